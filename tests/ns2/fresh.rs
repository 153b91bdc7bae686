//! Vectors that nobody has seen: generate.py makes them from a seed, when ignored tests are asked for.
//!
//!     cargo test --test ns2 -- --ignored
//!
//! The seed is the number of the day, or what `AIRTCP_NS2_SEED` says. `AIRTCP_NS2_COUNT` says how many vectors there are
//! of each kind.

use std::process::{Command, Stdio};
use std::thread;
use std::time::SystemTime;

use crate::vector::{Vector, read_family};

const SEED: &str = "AIRTCP_NS2_SEED";
const COUNT: &str = "AIRTCP_NS2_COUNT";
const RANGES: [&str; 2] = ["usual", "wide"];
const DEFAULT_COUNT: u64 = 1000;
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ns2");

/// Each family with its name. The seed is printed before anything can fail.
pub(crate) fn families() -> Result<Vec<(String, Vec<Vector>)>, String> {
    let seed = number(SEED)?.unwrap_or_else(today);
    let count = number(COUNT)?.unwrap_or(DEFAULT_COUNT);
    eprintln!("{count} fresh vectors of each kind. To have the same again: {SEED}={seed} {COUNT}={count}");
    let making = RANGES.map(|ranges| thread::spawn(move || family(ranges, seed, count)));
    making.into_iter().map(|family| family.join().map_err(|_| "reading vectors has panicked")?).collect()
}

fn family(ranges: &str, seed: u64, count: u64) -> Result<(String, Vec<Vector>), String> {
    let text = generate(ranges, seed, count)?;
    let vectors = read_family(&text).map_err(|e| format!("generate.py --ranges {ranges}: {e}"))?;
    if vectors.len() as u64 != count {
        return Err(format!("generate.py --ranges {ranges} made {} vectors, not {count}", vectors.len()));
    }
    Ok((format!("fresh/{ranges}"), vectors))
}

fn generate(ranges: &str, seed: u64, count: u64) -> Result<String, String> {
    let (seed, count) = (seed.to_string(), count.to_string());
    let output = Command::new("python3")
        .current_dir(DIRECTORY)
        .args(["generate.py", "ref_ns2.py", "--ranges", ranges, "--seed", &seed, "--count", &count])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("python3: {e}. Fresh vectors need it: sh interop/setup.sh test installs it"))?;
    if !output.status.success() {
        return Err(format!(
            "generate.py --ranges {ranges} --seed {seed} --count {count}: {}",
            output.status
        ));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("generate.py: {e}"))
}

fn number(variable: &str) -> Result<Option<u64>, String> {
    match std::env::var(variable) {
        Ok(text) => text.parse().map(Some).map_err(|_| format!("{variable}={text}: write a number")),
        Err(_) => Ok(None),
    }
}

/// Days since 1970.
fn today() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() / 86_400)
}
