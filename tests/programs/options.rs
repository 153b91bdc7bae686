//! An option means the same in every command of all programs: it has the same short form, the same name for
//! its value, and the same beginning of its help text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use airtcp_testkit::machine::{TempDir, run};
use airtcp_testkit::programs::program;

/// Options whose meaning differs, the commands in which it differs, and the reason.
const EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    (
        "output",
        &["airtcp-lab-run", "airtcp-lab-matrix", "airtcp-demo"],
        "a lab keeps many files: a directory",
    ),
    ("direction", &["airtcp-lab-run"], "between real hosts data may go both ways at once"),
    ("bytes", &["airtcp-lab-run"], "each connection of a lab sends as much"),
    ("for", &["airtcp-lab-run"], "each connection of a lab sends for as long"),
    ("flows", &["airtcp-lab-run"], "a transfer of a lab may have connections in both directions"),
    ("events", &["airtcp-lab-run"], "a lab's directory has a place for the file: there is nothing to name"),
    ("events", &["airtcp-analyze"], "it reads what the others write"),
    ("radio-pcap", &["airtcp-analyze"], "it reads what the others write"),
    ("decisions", &["airtcp-analyze"], "it reads what the others write"),
    ("against", &["airtcp-sweep-summary"], "a sweep compares values of an axis, a lab senders"),
    ("addr", &["airtcp-sink"], "the kernel has its addresses already: this one is chosen from them"),
    ("mtu", &["airtcp-script"], "packetdrill's own option"),
    ("plot", &["airtcp-reproduce"], "a capture has directions, and a paper has figures"),
];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Meaning {
    short: Option<char>,
    /// The placeholder without brackets: `SIZE` for `<SIZE>`.
    value: String,
    /// The help text up to the first comma, colon, bracket or similar character.
    help_start: String,
}

/// Returns the options of a manual page, with their long names.
fn options(page: &str) -> Vec<(String, Meaning)> {
    let plain = |line: &str| {
        let fonts = ["\\fB", "\\fI", "\\fR", "\\&"];
        let line = fonts.iter().fold(line.to_owned(), |line, font| line.replace(font, ""));
        line.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\(aq", "'")
    };
    let lines: Vec<String> = page.lines().map(plain).collect();
    let headers = lines.iter().enumerate().filter(|(at, _)| *at > 0 && lines[at - 1] == ".TP");
    let named = headers.filter_map(|(at, header)| {
        let (before, long) = header.split_once("--")?;
        let long: String =
            long.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
        let value = header.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
        let help = lines.get(at + 1).map_or("", String::as_str);
        let end = help.find([',', ';', ':', '(', '[', '.']).unwrap_or(help.len());
        let meaning = Meaning {
            short: before.strip_prefix('-').and_then(|short| short.chars().next()),
            value: value.map_or_else(String::new, |(value, _)| value.to_owned()),
            help_start: help[..end].trim().to_owned(),
        };
        Some((long, meaning))
    });
    named.collect()
}

/// Returns the manual pages of all programs, with the names of their commands.
pub(crate) fn pages(directory: &Path) -> Vec<(String, String)> {
    for name in ["airtcp", "airtcp-serve", "airlink"] {
        let output = Command::new(program(name)).arg("man").arg(directory).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let page = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    entries.map(page).collect()
}

#[test]
fn option_has_same_meaning_in_every_command() {
    let directory = TempDir::new("options");
    let pages = pages(&directory);
    assert!(pages.len() > 30, "only {} manual pages were found", pages.len());
    let mut by_name: BTreeMap<String, Vec<(String, Meaning)>> = BTreeMap::new();
    for (command, page) in pages {
        for (long, meaning) in options(&page) {
            by_name.entry(long).or_default().push((command.clone(), meaning));
        }
    }
    assert!(by_name["scenario"].len() >= 6 && by_name["seed"].len() >= 8, "{:?}", by_name["scenario"]);
    let reason = |long: &str, command: &str| {
        EXCEPTIONS.iter().position(|(name, commands, _)| *name == long && commands.contains(&command))
    };
    let mut wrong = String::new();
    let mut used = vec![false; EXCEPTIONS.len()];
    for (long, all) in &by_name {
        // The meaning shared by all commands that have no reason to differ.
        let Some((_, common)) = all.iter().find(|(command, _)| reason(long, command).is_none()) else {
            wrong += &format!("--{long}: every command has a reason to differ\n");
            continue;
        };
        for (command, meaning) in all {
            match reason(long, command) {
                Some(at) => used[at] |= meaning != common,
                None if meaning == common => {}
                None => wrong += &format!("--{long}: {command} has {meaning:?}, others {common:?}\n"),
            }
        }
    }
    for ((long, commands, _), _) in EXCEPTIONS.iter().zip(&used).filter(|(_, used)| !**used) {
        wrong += &format!("--{long} is the same in {commands:?}: remove it from EXCEPTIONS\n");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The text of a page is indented by seven columns, and preformatted lines are not wrapped.
#[test]
fn examples_in_manual_pages_fit_80_columns() {
    let directory = TempDir::new("columns");
    for (name, page) in pages(&directory) {
        assert!(page.contains("\n.SH EXAMPLES\n"), "{name} has no example");
        for block in page.split("\n.nf\n").skip(1) {
            for line in block.split("\n.fi").next().unwrap().lines() {
                let line = line.replace("\\-", "-").replace("\\\\", "\\").replace("\\*(Aq", "'");
                assert!(line.chars().count() <= 73, "{name}: {line}");
            }
        }
    }
}

/// Existing scripts may use the old name of an option.
#[test]
fn former_option_names_still_work() {
    let sim = |option: &str| run(&["sim", "-s", "lossless", "--bytes", "10k", option, "linux", "--json"]);
    let [now, before] = ["--receiver-profile", "--receiver"].map(sim);
    assert_eq!((now.code, before.code), (0, 0), "{}{}", now.stderr, before.stderr);
    assert_eq!(now.stdout, before.stdout);
    for (args, other) in [
        (&["analyze", "/nonexistent.pcap", "--limit", "3"][..], "--limit"),
        (&["analyze", "/nonexistent.pcap", "--sender", "x"], "--sender"),
        (&["sink", "9", "--rcvbuf", "1k", "--netns", "/nonexistent"], "--rcvbuf"),
        (&["recv", "9", "--recv-buffer", "1k", "--netns", "/nonexistent"], "--recv-buffer"),
    ] {
        let ended = run(args);
        assert!(ended.stderr.contains("/nonexistent") && !ended.stderr.contains(other), "{}", ended.stderr);
    }
}
