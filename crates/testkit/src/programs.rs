//! The programs under test, and the location of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Returns the root of the repository.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the path of `airtcp` or `airlink`, built from the current sources with the calling test's build
/// profile.
///
/// Cargo builds the programs of a test only if they belong to the same package, so this function builds them.
/// `AIRTCP_PROGRAMS=DIRECTORY` names a directory of programs that are built already.
///
/// # Panics
/// If the build fails.
pub fn program(name: &str) -> PathBuf {
    DIRECTORY.join(name)
}

static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    if let Some(directory) = std::env::var_os("AIRTCP_PROGRAMS") {
        return repository().join(directory);
    }
    let test = std::env::current_exe().expect("the path of this test program");
    let directory = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST").to_owned();
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(profile) => profile,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--locked",
            "-p",
            "airtcp-cli",
            "-p",
            "airtcp-serve",
            "-p",
            "airlink",
            "--profile",
            profile,
        ])
        .current_dir(repository())
        .status()
        .expect("cargo, which runs this test");
    assert!(status.success(), "the build of the programs failed");
    directory
});
