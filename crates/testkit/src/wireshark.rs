//! Wireshark as a judge of captures.

use std::path::Path;
use std::process::Command;

/// Dissects a capture with tshark and these heuristic dissectors. Returns the output of tshark.
///
/// # Panics
///
/// If tshark is missing or fails.
pub fn tshark(capture: &Path, heuristics: &[&str], args: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).arg("-n");
    for heuristic in heuristics {
        command.args(["--enable-heuristic", heuristic]);
    }
    // The RTCP dissector claims some packets of the emulator.
    command.args(["--disable-protocol", "rtcp"]);
    let output = command.args(args).output().expect("this test needs tshark: sh interop/setup.sh test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("tshark prints UTF-8")
}
