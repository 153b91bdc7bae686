//! What the README and the documents say is what the program does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use airtcp::recovery::{catalogue, episode};
use airtcp_reproduce::{Judged, Paper};
use airtcp_testkit::machine::TempDir;
use airtcp_testkit::programs::{program, repository};
use airtcp_testkit::sample::sample;

#[test]
fn the_table_of_answers_is_the_catalogue() {
    let table = catalogue::markdown();
    assert!(
        include_str!("../../docs/recipes.md").contains(&table),
        "replace the table in docs/recipes.md with `airtcp algorithms --markdown`:\n{table}"
    );
}

#[test]
fn the_readme_counts_the_claims_as_the_reproduction_judges_them() {
    let made = include_str!("../../docs/reproduction.md");
    let count = |verdict: Judged| made.matches(&format!("| **{}** |", verdict.name())).count();
    let [hold, do_not, undecided] = [Judged::Holds, Judged::DoesNotHold, Judged::Undecided].map(count);
    let all = hold + do_not + undecided;
    let sentence = format!(
        "Of {all} sentences {hold} hold, {do_not} do not, and for {undecided} the runs are not enough to tell."
    );
    let readme = include_str!("../../README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(all >= 100 && readme.contains(&sentence), "the README is to say: {sentence}");
}

#[test]
fn the_tables_of_states_and_moves_are_those_of_the_engine() {
    let tables = episode::markdown();
    let design = include_str!("../../docs/design.md");
    assert!(design.contains(&tables), "replace the tables in docs/design.md with:\n{tables}");
}

/// Where documents are.
const FOLDERS: [&str; 7] =
    [".", "docs", "fuzz", "interop/packetdrill", "interop/receivers", "pcaps", "tests/ns2"];

/// Of links, and of names in backticks that begin with one of these: the first is relative to its document.
#[test]
fn every_file_and_folder_that_a_document_names_is_there() {
    const TOP: [&str; 9] =
        ["benches/", "crates/", "docs/", "emulator/", "fuzz/", "interop/", "pcaps/", "src/", "tests/"];
    let mut checked = 0;
    for folder in FOLDERS.map(|folder| repository().join(folder)) {
        let documents = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        for document in documents.filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
            let text = fs::read_to_string(&document).unwrap();
            let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
            let links = links.filter(|link| !link.is_empty() && !link.contains("://"));
            let quoted = text.split('`').skip(1).step_by(2);
            let paths = quoted.filter(|name| TOP.iter().any(|top| name.starts_with(top)));
            let paths =
                paths.filter(|name| !name.contains(char::is_whitespace) && !name.contains(['*', '<']));
            let named = links.map(|link| folder.join(link)).chain(paths.map(|path| repository().join(path)));
            for path in named {
                assert!(path.exists(), "{} names {}, which is not there", document.display(), path.display());
                checked += 1;
            }
        }
    }
    assert!(checked >= 50, "only {checked} names were found");
}

/// The examples are compiled and run: so is what the walk-through shows of them.
#[test]
fn the_code_of_the_walk_through_is_the_examples() {
    let text = fs::read_to_string(repository().join("docs/extending.md")).unwrap();
    let examples = ["crates/sim/examples/own_answer.rs", "emulator/examples/own_stage.rs"];
    let examples = examples.map(|path| fs::read_to_string(repository().join(path)).unwrap());
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let examples = examples.map(|text| lines(&text));
    let blocks: Vec<_> =
        text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 6, "only {} blocks", blocks.len());
    for block in blocks {
        let wanted = lines(block);
        let is_in = |example: &Vec<String>| example.windows(wanted.len()).any(|lines| lines == wanted);
        assert!(examples.iter().any(is_in), "no example has this:\n{block}");
    }
}

#[test]
fn every_figure_is_in_the_file_that_reproduce_makes() {
    let made = include_str!("../../docs/reproduction.md");
    for paper in Paper::ALL {
        assert!(made.contains(&format!("\n## {}\n", paper.reference())), "no heading for {}", paper.cited());
    }
    for figure in airtcp_reproduce::figures() {
        let heading = format!("### `{}`: {}\n", figure.id, figure.title);
        assert!(
            made.contains(&heading),
            "make it: airtcp reproduce {} --record docs/reproduction.md: {heading}",
            figure.id
        );
    }
}

/// Figures whose runs take seconds of processor time with little optimisation. The first one takes half a second.
const QUICK: [&str; 5] = ["p2-fig13", "p1-fig8", "p2-fig12", "p2-fig14", "p2-fig15"];

#[test]
fn what_is_quick_to_reproduce_comes_out_again_octet_for_octet() {
    let (always, others) = QUICK.split_first().unwrap();
    comes_out_again(always);
    sample("quick figures", others, 1).into_iter().for_each(|id| comes_out_again(id));
}

/// AIRTCP_FIGURES="p0-fig9 p4" takes some.
#[test]
#[ignore = "nightly: takes the better part of an hour"]
fn every_figure_of_the_record_comes_out_again_octet_for_octet() {
    let some = std::env::var("AIRTCP_FIGURES").ok();
    let wanted = |id: &str| {
        some.as_ref().is_none_or(|some| {
            some.split_whitespace().any(|name| id == name || id.starts_with(&format!("{name}-")))
        })
    };
    let figures = airtcp_reproduce::figures();
    let figures: Vec<_> = figures.iter().map(|figure| figure.id).filter(|id| wanted(id)).collect();
    assert!(!figures.is_empty(), "no figure has a name of AIRTCP_FIGURES");
    figures.into_iter().for_each(comes_out_again);
}

/// Its section in the record and its files of numbers, with the seeds that it has there.
fn comes_out_again(id: &str) {
    let recorded = repository().join("docs/reproduction");
    let made = sections(include_str!("../../docs/reproduction.md"));
    let named = |heading: &&&str| heading.starts_with(&format!("`{id}`"));
    let section = made[made.keys().find(named).unwrap_or_else(|| panic!("no {id}"))];
    let seeds = section.split(" seeds.").next().unwrap().trim();
    let again = TempDir::new(id);
    let document = again.directory().join("reproduction.md");
    let output = Command::new(program("airtcp"))
        .args(["reproduce", id, "--seeds", seeds, "--most-seeds", seeds, "--record"])
        .arg(&document)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let advice = format!("make it again: airtcp reproduce {id} --record docs/reproduction.md");
    let printed = fs::read_to_string(&document).unwrap();
    let now: Vec<_> = sections(&printed).into_values().collect();
    assert_eq!(now, [section], "{advice}");
    for file in fs::read_dir(again.directory().join("reproduction")).unwrap() {
        let file = file.unwrap();
        let name = file.file_name();
        // A picture is of the same numbers.
        if Path::new(&name).extension().is_some_and(|extension| extension == "csv") {
            let before = fs::read_to_string(recorded.join(&name)).unwrap_or_default();
            assert_eq!(fs::read_to_string(file.path()).unwrap(), before, "{}: {advice}", name.display());
        }
    }
}

/// What stands under each heading of a figure.
fn sections(text: &str) -> BTreeMap<&str, &str> {
    let papers = text.split("\n## ");
    let figures = papers.flat_map(|paper| paper.split("\n### ").skip(1));
    figures
        .filter_map(|figure| figure.split_once('\n'))
        .map(|(heading, text)| (heading, text.trim()))
        .collect()
}
