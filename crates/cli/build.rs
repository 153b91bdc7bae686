//! Puts the playground's core, a WebAssembly module, into the program.
//!
//! `AIRTCP_PLAYGROUND_CORE` names the module, or is empty for a program without a playground. If the variable
//! is not set, an optimised build makes the module itself, provided that the WebAssembly target is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

const WASM: &str = "wasm32-unknown-unknown";

fn main() {
    println!("cargo::rerun-if-env-changed=AIRTCP_PLAYGROUND_CORE");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let core = match env::var_os("AIRTCP_PLAYGROUND_CORE") {
        Some(path) if path.is_empty() => None,
        Some(path) => {
            println!("cargo::rerun-if-changed={}", Path::new(&path).display());
            Some(PathBuf::from(path))
        }
        None => built(&out),
    };
    let core = core.map(|path| {
        fs::read(&path).unwrap_or_else(|error| panic!("AIRTCP_PLAYGROUND_CORE, {}: {error}", path.display()))
    });
    fs::write(out.join("playground.wasm"), core.unwrap_or_default()).expect("OUT_DIR is writable");
}

/// Builds the module below `out`. Returns `None` in an unoptimised build, or if source or target are missing.
/// `airtcp playground` then reports how to build with the module.
fn built(out: &Path) -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let playground = Path::new(&set("CARGO_MANIFEST_DIR")).join("../playground/Cargo.toml");
    let rustc =
        Command::new(set("RUSTC")).args(["--print", "target-libdir", "--target", WASM]).output().ok()?;
    let has_target = Path::new(String::from_utf8_lossy(&rustc.stdout).trim()).is_dir();
    if env::var("PROFILE").is_ok_and(|profile| profile != "release") || !playground.exists() || !has_target {
        return None;
    }
    let directory = out.join("playground");
    let status = Command::new(set("CARGO"))
        .args([
            "rustc",
            "--locked",
            "--quiet",
            "--profile",
            "page",
            "--target",
            WASM,
            "--lib",
            "--crate-type",
            "cdylib",
        ])
        .arg("--manifest-path")
        .arg(&playground)
        .arg("--target-dir")
        .arg(&directory)
        // cargo and clippy set these for the host's target.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .stdout(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        println!(
            "cargo::warning=the core of `airtcp playground` did not build, so the program does not contain it"
        );
        return None;
    }
    let made = directory.join(WASM).join("page");
    // `PATH: SOURCE SOURCE …`
    let sources = fs::read_to_string(made.join("airtcp_playground.d")).unwrap_or_default();
    let sources =
        sources.lines().filter_map(|line| line.split_once(": ")).flat_map(|(_, all)| all.split(' '));
    sources.for_each(|source| println!("cargo::rerun-if-changed={source}"));
    Some(made.join("airtcp_playground.wasm"))
}
