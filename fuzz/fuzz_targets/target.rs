//! The caller of a target: libFuzzer, or a `main` that reads the files in its arguments. Such a `main` tests
//! the seeds without libFuzzer.

#[cfg(fuzzing)]
macro_rules! run {
    ($target:ident) => {
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $target(data));
    };
}

#[cfg(not(fuzzing))]
macro_rules! run {
    ($target:ident) => {
        fn main() {
            target::files($target);
        }
    };
}

pub(crate) use run;

/// Calls `target` with the content of each file in the arguments. Directories are searched recursively.
#[cfg(not(fuzzing))]
pub(crate) fn files(target: fn(&[u8])) {
    use std::fs;
    use std::path::PathBuf;

    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut tried = 0;
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            paths.extend(entries.into_iter().map(|entry| entry.path()));
            continue;
        }
        let data = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Printed before the call, so that a panic belongs to this file.
        println!("{}", path.display());
        target(&data);
        tried += 1;
    }
    assert!(tried > 0, "pass files or directories as arguments");
}
