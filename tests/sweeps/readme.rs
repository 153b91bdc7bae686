//! Checks that the README and the documents agree with the programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use airtcp::recovery::{catalogue, episode};
use airtcp_reproduce::{Paper, Verdict};
use airtcp_testkit::programs::{program, repository};
use airtcp_testkit::sample::sample;

#[test]
fn recipe_table_matches_catalogue() {
    let table = catalogue::markdown();
    assert!(
        include_str!("../../docs/reference/recipes.md").contains(&table),
        "replace the table in docs/reference/recipes.md with `airtcp algorithms --markdown`:\n{table}"
    );
}

const RECORD: &str = "docs/evidence/papers";

/// Returns the pages of the reproduced papers, by paper.
fn record() -> BTreeMap<&'static str, String> {
    let papers = Paper::ALL.into_iter().chain([Paper::Every]);
    let page = |paper: Paper| repository().join(RECORD).join(format!("{}.md", paper.name()));
    papers.map(|paper| (paper.name(), fs::read_to_string(page(paper)).unwrap())).collect()
}

#[test]
fn readme_claim_counts_match_reproduction_record() {
    let pages: String = record().into_values().collect();
    let mut counts = [0; Verdict::COLUMNS.len()];
    for claim in pages.split("\n- **").skip(1) {
        let column = claim.split_once("**: ").and_then(|(verdict, _)| Verdict::column(verdict));
        counts[column.expect("a claim begins with a verdict")] += 1;
    }
    let [hold, do_not, depend, undecided, not_testable, hold_once, do_not_once] = counts;
    let all = hold + do_not + depend + undecided + not_testable;
    let sentence = format!(
        "{all} claims were tested: {hold} hold, {do_not} do not hold, {depend} depend on a detail that the paper leaves \
         open, {undecided} are undecided and {not_testable} could not be tested. Another {} claims are about single \
         runs; {hold_once} of them hold.",
        hold_once + do_not_once
    );
    let readme = include_str!("../../README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(all >= 100 && readme.contains(&sentence), "README.md must contain: {sentence}");
}

#[test]
fn command_line_pages_match_help_texts() {
    for name in ["airtcp", "airtcp-serve", "airlink"] {
        let output = Command::new(program(name)).args(["man", "--markdown"]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let file = format!("docs/reference/{name}-command-line.md");
        let page = fs::read_to_string(repository().join(&file)).unwrap_or_default();
        assert!(page == printed, "{file} is out of date: run `{name} man --markdown > {file}`");
    }
}

#[test]
fn recovery_state_tables_match_engine() {
    let tables = episode::markdown();
    let page = include_str!("../../docs/explanation/recovery.md");
    assert!(page.contains(&tables), "replace the tables in docs/explanation/recovery.md with:\n{tables}");
}

/// Collects the documents below a directory.
fn documents(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_built = ["target", "corpus", "artifacts", "node_modules"].contains(&name.as_str());
        if path.is_dir() && !name.starts_with('.') && !is_built {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// Returns the HTML anchor that mdBook and repository hosts derive from a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

fn anchors(text: &str) -> Vec<String> {
    let mut is_code = false;
    let is_heading = |line: &&str| {
        is_code ^= line.trim_start().starts_with("```");
        !is_code && line.starts_with('#')
    };
    text.lines().filter(is_heading).map(anchor).collect()
}

/// Checks links with their anchors, and names in backticks that begin with a directory of the repository.
#[test]
fn every_document_link_and_path_exists() {
    const TOP: [&str; 9] =
        ["benches/", "crates/", "docs/", "emulator/", "fuzz/", "interop/", "pcaps/", "src/", "tests/"];
    let mut checked = 0;
    let mut missing = Vec::new();
    let mut all = Vec::new();
    documents(repository(), &mut all);
    for document in all {
        let text = fs::read_to_string(&document).unwrap();
        let folder = document.parent().unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            // `airtcp playground` writes the file that links of the papers' pages open.
            if link.contains("://") || link.starts_with("playground.html#") {
                continue;
            }
            let (file, wanted) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { document.clone() } else { folder.join(file) };
            let exists = target.exists()
                && (wanted.is_empty()
                    || anchors(&fs::read_to_string(&target).unwrap()).iter().any(|it| it == wanted));
            if !exists {
                missing.push(format!("{}: link {link}", document.display()));
            }
            checked += 1;
        }
        let quoted = text.split('`').skip(1).step_by(2);
        let paths = quoted.filter(|name| TOP.iter().any(|top| name.starts_with(top)));
        for name in
            paths.filter(|name| !name.contains(char::is_whitespace) && !name.contains(['*', '<', '…']))
        {
            if !repository().join(name).exists() {
                missing.push(format!("{}: file {name}", document.display()));
            }
            checked += 1;
        }
    }
    assert!(checked >= 50, "only {checked} names were found");
    assert!(missing.is_empty(), "missing:\n{}", missing.join("\n"));
}

/// Tables, headings, pictures, comments and links into the playground cannot be wrapped.
#[test]
fn documents_wrap_at_100_columns() {
    let mut all = Vec::new();
    documents(repository(), &mut all);
    let mut long = Vec::new();
    for document in all {
        let text = fs::read_to_string(&document).unwrap();
        let mut is_code = false;
        for (index, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let is_one_line = ["|", "#", "![", "<!--"].iter().any(|start| line.starts_with(start));
            let is_one_line = is_one_line || line.contains("](playground.html#");
            if !is_code && !is_one_line && line.chars().count() > 100 {
                long.push(format!("{}:{}", document.display(), index + 1));
            }
        }
    }
    assert!(long.is_empty(), "these lines have more than 100 characters:\n{}", long.join("\n"));
}

#[test]
fn readme_has_at_most_900_words() {
    let words = include_str!("../../README.md").split_whitespace().count();
    assert!(words <= 900, "README.md has {words} words");
}

/// `make book` shows the pages of docs/SUMMARY.md.
#[test]
fn book_summary_lists_every_page() {
    let docs = repository().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut pages = Vec::new();
    documents(&docs, &mut pages);
    for page in pages.iter().filter(|page| !page.ends_with("SUMMARY.md")) {
        let name = page.strip_prefix(&docs).unwrap().display().to_string();
        assert_eq!(summary.matches(&format!("]({name})")).count(), 1, "{name} in docs/SUMMARY.md");
    }
}

/// The examples are compiled and run, so the code in the guides works.
#[test]
fn walkthrough_code_matches_examples() {
    let pages = ["docs/guides/add-an-algorithm.md", "docs/guides/add-a-stage.md"];
    let text: String =
        pages.iter().map(|page| fs::read_to_string(repository().join(page)).unwrap()).collect();
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
        assert!(examples.iter().any(is_in), "no example contains:\n{block}");
    }
}

#[test]
fn every_figure_and_claim_is_recorded() {
    let record = record();
    let index = fs::read_to_string(repository().join(RECORD).join("README.md")).unwrap();
    for figure in airtcp_reproduce::figures() {
        let page = &record[figure.paper.name()];
        let heading = format!("\n## `{}`: {}\n", figure.id, figure.title);
        assert!(page.contains(&heading), "run `airtcp reproduce {} --record {RECORD}`: {heading}", figure.id);
        let section = page.split_once(&heading).unwrap().1.split("\n## ").next().unwrap();
        let claims = section.matches("\n- **").count();
        assert_eq!(index.matches(&format!("| [{}](", figure.id)).count(), claims, "{}", figure.id);
    }
    for paper in Paper::ALL {
        let head = record[paper.name()].split("\n## ").next().unwrap();
        let central = head.lines().filter(|line| line.ends_with(") |")).count();
        assert_eq!(central, paper.central().unwrap().claims.len(), "central claims of {}", paper.cited());
    }
}

/// Figures whose runs take seconds of processor time with little optimisation. The first one takes half a second.
const QUICK: [&str; 4] = ["p2-fig13", "p2-fig12", "p2-fig14", "p2-fig15"];

#[test]
fn quick_figures_reproduce_record_exactly() {
    let (always, others) = QUICK.split_first().unwrap();
    check_reproduction(always);
    sample("quick figures", others, 1).into_iter().for_each(|id| check_reproduction(id));
}

/// `AIRTCP_FIGURES="p0-fig9 p4"` selects figures.
#[test]
#[ignore = "nightly: takes hours"]
fn all_figures_reproduce_record_exactly() {
    let selected = std::env::var("AIRTCP_FIGURES").ok();
    let wanted = |id: &str| {
        selected.as_ref().is_none_or(|selected| {
            selected.split_whitespace().any(|name| id == name || id.starts_with(&format!("{name}-")))
        })
    };
    let figures = airtcp_reproduce::figures();
    let figures: Vec<_> = figures.iter().map(|figure| figure.id).filter(|id| wanted(id)).collect();
    assert!(!figures.is_empty(), "AIRTCP_FIGURES names no figure");
    figures.into_iter().for_each(check_reproduction);
}

/// Runs a figure again with the recorded seeds, and compares its section, pictures and tables.
fn check_reproduction(id: &str) {
    let output = Command::new(program("airtcp"))
        .args(["reproduce", id, "--verify-record"])
        .arg(repository().join(RECORD))
        .output();
    let output = output.unwrap();
    let advice = "if the change is intended, run the command under the figure's heading with --record";
    assert!(output.status.success(), "{}: {advice}", String::from_utf8_lossy(&output.stderr));
}
