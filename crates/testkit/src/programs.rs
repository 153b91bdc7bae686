//! The programs under test, and where the repository is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The root of the repository.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// `airtcp` or `airlink` as the sources are now, built like the test that asks.
///
/// Cargo builds programs before tests only for tests of the same package, so this asks for them. Whoever has built
/// them already says so with `AIRTCP_PROGRAMS=DIRECTORY`.
///
/// # Panics
/// If they do not build.
pub fn program(name: &str) -> PathBuf {
    DIRECTORY.join(name)
}

static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    if let Some(directory) = std::env::var_os("AIRTCP_PROGRAMS") {
        return repository().join(directory);
    }
    let test = std::env::current_exe().expect("a test program knows where it is");
    let directory = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST").to_owned();
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(profile) => profile,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "-p", "airtcp-cli", "-p", "airlink", "--profile", profile])
        .current_dir(repository())
        .status()
        .expect("cargo is there: it runs this test");
    assert!(built.success(), "the programs do not build");
    directory
});
