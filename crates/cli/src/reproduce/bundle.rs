//! A record with its set-ups, checksums and instructions, for evaluators.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airtcp_sim::file;
use anyhow::Context;

use super::runs::IN_BUNDLE;
use crate::shared::digest::Hasher;

const INSTRUCTIONS: &str = include_str!("bundle.md.in");
const SUMS: &str = "SHA256SUMS";

/// Whether these options of a command write a bundle.
pub(super) fn is_bundle(record: Option<&Path>, setups: Option<&Path>) -> bool {
    record.zip(setups).is_some_and(|(record, setups)| setups == record.join(IN_BUNDLE))
}

/// Completes a bundle with instructions and checksums. `figure` is an example in the instructions.
pub(super) fn write(directory: &Path, figure: &str) -> anyhow::Result<()> {
    let instructions =
        INSTRUCTIONS.replace("{version}", env!("CARGO_PKG_VERSION")).replace("{figure}", figure);
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        file::replace(&path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
    };
    write("BUNDLE.md", &instructions)?;
    let mut names = Vec::new();
    collect_names(directory, Path::new(""), &mut names)?;
    names.sort();
    let sums =
        names.iter().map(|name| Ok(format!("{}  {}\n", digest(&directory.join(name))?, name.display())));
    write(SUMS, &sums.collect::<anyhow::Result<String>>()?)
}

/// Returns the files of a bundle that differ from their checksums or are missing. `None` if the record is not a bundle.
pub(super) fn changed(directory: &Path) -> anyhow::Result<Option<Vec<String>>> {
    let path = directory.join(SUMS);
    let sums = match airfiles::read_result(&path) {
        Ok(sums) => sums,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let mut changed = Vec::new();
    for (sum, name) in sums.lines().filter_map(|line| line.split_once("  ")) {
        let path = directory.join(name);
        if !path.exists() || digest(&path)? != sum {
            changed.push(name.to_owned());
        }
    }
    Ok(Some(changed))
}

/// Collects the files below `inside`, except the checksums.
fn collect_names(directory: &Path, inside: &Path, names: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let path = directory.join(inside);
    let fails = || format!("cannot read {}", path.display());
    for entry in fs::read_dir(&path).with_context(fails)? {
        let entry = entry.with_context(fails)?;
        let name = inside.join(entry.file_name());
        if entry.file_type().with_context(fails)?.is_dir() {
            collect_names(directory, &name, names)?;
        } else if name != Path::new(SUMS) {
            names.push(name);
        }
    }
    Ok(())
}

fn digest(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut hasher = Hasher::new(true);
    hasher.update(&bytes);
    Ok(hasher.finish().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_and_missing_files_differ_from_checksums() {
        let directory = std::env::temp_dir().join(format!("bundle-{}", std::process::id()));
        fs::create_dir_all(directory.join("data")).unwrap();
        for name in ["README.md", "data/a.csv", "data/b.csv"] {
            fs::write(directory.join(name), name).unwrap();
        }
        assert_eq!(changed(&directory).unwrap(), None);
        write(&directory, "p0-fig6").unwrap();
        assert_eq!(changed(&directory).unwrap(), Some(Vec::new()));
        // Complete bundles can be written again.
        write(&directory, "p0-fig6").unwrap();
        assert_eq!(changed(&directory).unwrap(), Some(Vec::new()));
        fs::write(directory.join("data/a.csv"), "other").unwrap();
        fs::remove_file(directory.join("data/b.csv")).unwrap();
        let differing = ["data/a.csv", "data/b.csv"].map(str::to_owned).to_vec();
        assert_eq!(changed(&directory).unwrap(), Some(differing));
        fs::remove_dir_all(&directory).unwrap();
    }
}
