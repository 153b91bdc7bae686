//! New vectors that generate.py generates from a seed.
//!
//! The tests of a change try a few; `make nightly` tries many, with the date as seed. `AIRTCP_NS2_SEED` sets
//! another seed, and `AIRTCP_NS2_COUNT` the number of vectors of each kind.

use std::process::{Command, Stdio};

use airtcp_testkit::sample::{seed, size};

use crate::vector::{Vector, read_family};

const SEED: &str = "AIRTCP_NS2_SEED";
const COUNT: &str = "AIRTCP_NS2_COUNT";
pub(crate) const RANGES: [&str; 2] = ["usual", "wide"];
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ns2");

/// Returns the vectors of one kind. Prints the seed first, so that every failure can be reproduced.
pub(crate) fn vectors(ranges: &str) -> Result<Vec<Vector>, String> {
    let seed = number(SEED)?.unwrap_or_else(seed);
    let count = number(COUNT)?.unwrap_or_else(|| size(20, 1000));
    eprintln!("{count} fresh vectors. To repeat them: {SEED}={seed} {COUNT}={count}");
    let text = generate(ranges, seed, count)?;
    let vectors = read_family(&text).map_err(|e| format!("generate.py --ranges {ranges}: {e}"))?;
    if vectors.len() as u64 != count {
        return Err(format!("generate.py --ranges {ranges} made {} vectors, not {count}", vectors.len()));
    }
    Ok(vectors)
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
