//! Runs the commands of all documents as written. Each page is a test:
//! `cargo test --test docs -- docs/guides/sweeps.md`.
//!
//! The kind of a fenced block determines its meaning. Commands in `sh` blocks, and those after a prompt in
//! `console` blocks, run in order, and all commands of a page share one shell and one directory. The lines
//! below a command in a `console` block are its expected output, where `…` matches anything. A comment above
//! a block marks exceptions:
//!
//! - `<!-- illustration: REASON -->`: the commands cannot run here, or not in a test;
//! - `<!-- differs: REASON -->`: the commands run, and print something different each time;
//! - `<!-- file: NAME -->`: the block is a file that exists when the commands run.
//!
//! `<!-- separate -->` in the line below the heading of a section makes the section a test of its own, with its own
//! shell and directory. A page that takes longer than ten seconds is divided in this way.
//!
//! Options, targets and files in commands must exist, also in illustrations (`names`).

mod markdown;
mod names;
mod play;
mod shown;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use airtcp_testkit::programs::repository;
use libtest_mimic::{Arguments, Trial};
use markdown::Page;

/// Pages that run only in `make nightly`, because they take long and other tests run the same commands: the
/// README runs the demo, `sweeps` runs the example of a sweep, `ns2` its own generator, `experiments` and
/// `captures` the commands of the page about captures, and `experiments` the effects of LTE and NR. The names in
/// these pages are checked in every run.
const NIGHTLY: [&str; 5] = [
    "docs/explanation/lte-nr.md",
    "docs/reference/analyze.md",
    "docs/getting-started/demo.md",
    "docs/guides/sweeps.md",
    "tests/ns2/README.md",
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut paths = Vec::new();
    collect(repository(), &mut paths);
    paths.sort();
    let mut trials = markdown::tests::trials();
    trials.extend(shown::tests::trials());
    trials.extend(play::tests::trials());
    trials.extend(names::tests::trials());
    let (mut run, mut illustrations) = (0, 0);
    let known = Arc::new(names::Known::default());
    for path in paths {
        let name = path.strip_prefix(repository()).unwrap_or(&path).display().to_string();
        let page = Arc::new(Page::read(&std::fs::read_to_string(&path).expect("a page is text")));
        run += page.run().count();
        illustrations += page.illustrations().count();
        let (known, named) = (Arc::clone(&known), Arc::clone(&page));
        trials.push(Trial::test(format!("{name}: names"), move || names::check(&named, &known)));
        let nightly = NIGHTLY.contains(&name.as_str());
        for section in page.separate.clone() {
            let page = Arc::clone(&page);
            let title = format!("{name}: {section}");
            let trial = Trial::test(title, move || play::play(&page, Some(&section)));
            trials.push(trial.with_ignored_flag(nightly));
        }
        if page.run_in(None).next().is_some() || !page.errors.is_empty() {
            trials.push(Trial::test(name, move || play::play(&page, None)).with_ignored_flag(nightly));
        }
    }
    let examples = Arc::clone(&known);
    trials
        .push(Trial::test("help: examples name existing options", move || names::check_examples(&examples)));
    eprintln!("{run} commands of the documents are run, {illustrations} are illustrations");
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Collects all pages of the repository, except generated and hidden ones.
fn collect(dir: &Path, into: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    for entry in entries {
        let entry = entry.expect("a directory that could be opened can be read");
        let (path, name) = (entry.path(), entry.file_name());
        let built = name == "target" || name == "lab" && dir == repository();
        if built || name.to_string_lossy().starts_with('.') {
            continue;
        }
        // Links are not followed, because they may lead out of the repository.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            into.push(path);
        }
    }
}
