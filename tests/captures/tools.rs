//! External programs.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs tshark.
pub(crate) fn tshark(args: &[&str]) -> Output {
    let output = Command::new("tshark").args(args).output();
    output.expect("this test needs tshark: apt-get install tshark")
}

/// Runs tshark, and returns what it prints to stdout.
pub(crate) fn tshark_text(args: &[&str]) -> String {
    String::from_utf8(tshark(args).stdout).unwrap()
}

/// Runs a command with this input.
pub(crate) fn pipe(command: &mut Command, input: &[u8]) -> Output {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}; sh interop/setup.sh test"));
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}
