//! The table of `make siege`: for each attack, the promised and the observed behaviour.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;

/// Environment variable that names the file of the table. Without it, nothing is written.
const FILE: &str = "AIRTCP_SIEGE";

/// Writes a row of the table. The calling test has checked that the observed behaviour is as promised.
///
/// # Panics
/// If the file cannot be written.
pub fn record(attack: &str, promised: &str, observed: impl Display) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    // A single write, because other tests write rows at the same time.
    file.write_all(format!("{attack:<50}  {promised:<54}  {observed}\n").as_bytes()).unwrap();
}
