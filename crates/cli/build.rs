//! Puts the core of the playground into the program, if it was built before: `make playground` names it.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-env-changed=AIRTCP_PLAYGROUND_CORE");
    let out = env::var_os("OUT_DIR").expect("cargo names the directory");
    // Empty without it: the program says so when it is asked for the page.
    let core = env::var_os("AIRTCP_PLAYGROUND_CORE").filter(|path| !path.is_empty()).map(|path| {
        println!("cargo::rerun-if-changed={}", Path::new(&path).display());
        fs::read(&path)
            .unwrap_or_else(|error| panic!("AIRTCP_PLAYGROUND_CORE, {}: {error}", Path::new(&path).display()))
    });
    fs::write(Path::new(&out).join("playground.wasm"), core.unwrap_or_default())
        .expect("OUT_DIR can be written");
}
