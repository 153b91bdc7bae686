//! The table of `make siege`: of each attack what is promised, and what was seen.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;

/// The environment variable that names the table's file. Without it nothing is written.
const FILE: &str = "AIRTCP_SIEGE";

/// A row of the table: the test that saw it has checked that it is as promised.
///
/// # Panics
/// If the file cannot be written.
pub fn seen(attack: &str, promised: &str, seen: impl Display) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    // In one piece: other tests write rows at the same time.
    file.write_all(format!("{attack:<50}  {promised:<54}  {seen}\n").as_bytes()).unwrap();
}
