//! Arbitrary text as a packetdrill script. The script passes, or the error describes the fault.
//!
//! The script is in a directory that does not exist, so includes and helper programs are not found.

#![cfg_attr(fuzzing, no_main)]

mod target;

use std::path::Path;

use airtcp_script::{RunOptions, run_text};

target::run!(run);

fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match run_text(text, Path::new("fuzz/seeds/scripts/none/script.pkt"), &RunOptions::default()) {
        Ok(passed) => assert!(!passed.to_string().is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
