//! Every number in a table has a unit: in its cell, in the heading of its column, or in the heading of its
//! group.

use std::fs;
use std::process::Command;

use airtcp_testkit::machine::{Ended, TempDir, airtcp, run};
use airtcp_testkit::programs::{program, repository};
use airtcp_testkit::sample::size;

/// Units, and names of counted things.
const UNITS: &[&str] = &[
    "s",
    "seconds",
    "ms",
    "µs",
    "kbit/s",
    "Mbit/s",
    "Gbit/s",
    "%",
    "B",
    "kB",
    "MB",
    "bytes",
    "octet",
    "octets",
    "packets",
    "segments",
    "ACKs",
    "losses",
    "transfers",
    "runs",
    "rounds",
    "decisions",
    "timeouts",
    "retransmits",
    "reductions",
    "retransm.",
    "retransmissions",
    "flow",
    "no",
    "frame",
    "frames",
];

fn has_unit(text: &str) -> bool {
    // A ratio has no unit.
    if text.contains(" / ") {
        return true;
    }
    let words = text.split([' ', ',', ':', '(', ')']);
    words.into_iter().any(|word| UNITS.contains(&word))
}

/// Returns true if the cell is a number such as `-1.6 %`, `± 3` or `10/10`. An address is not a number.
fn is_number(cell: &str) -> bool {
    let digits = cell.trim_start_matches(['±', '+', '-', ' ']);
    let first = digits.split([' ', '/']).next().unwrap_or_default();
    first.parse::<f64>().is_ok()
}

type ColumnRange = std::ops::Range<usize>;

/// Returns the ranges of the columns, which are separated by at least two spaces in every line.
fn columns(lines: &[&str]) -> Vec<ColumnRange> {
    let lines: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    let width = lines.iter().map(Vec::len).max().unwrap_or(0);
    let blank = |at: usize| lines.iter().all(|line| line.get(at).is_none_or(|c| *c == ' '));
    let mut columns = Vec::new();
    let mut at = 0;
    while at < width {
        while at < width && blank(at) {
            at += 1;
        }
        let from = at;
        while at < width && !(blank(at) && blank(at + 1)) {
            at += 1;
        }
        if from < at {
            columns.push(from..at);
        }
    }
    columns
}

fn cell(line: &str, place: &ColumnRange) -> String {
    line.chars().skip(place.start).take(place.len()).collect::<String>().trim().to_owned()
}

/// Returns the headings of columns whose numbers have no unit. `above` is the line above the headings: a
/// title of the table, or the names of groups of columns.
fn without_unit(above: &str, lines: &[&str]) -> Vec<String> {
    // A heading such as `lossless, kbit/s` in the first column also gives the unit of the whole table.
    let first = lines[0].split("  ").next().unwrap_or_default();
    let is_title = !above.starts_with("   ");
    let all = (is_title && has_unit(above)) || first.split_once(", ").is_some_and(|(_, unit)| has_unit(unit));
    let groups = if is_title { Vec::new() } else { columns(&[above]) };
    let mut named = false;
    let mut wrong = Vec::new();
    let mut before = true;
    for place in columns(lines) {
        let heading = cell(lines[0], &place);
        let cells: Vec<_> = lines[1..].iter().map(|line| cell(line, &place)).collect();
        let group = groups.iter().find(|group| group.contains(&place.start));
        // airlink puts the unit of a group before the heading of its first column.
        if let Some((of_all, _)) = heading.split_once(": ") {
            named = has_unit(of_all);
        } else if has_unit(&heading) || cells.iter().any(|cell| has_unit(cell)) {
            named = false;
        }
        let column_has_unit = (heading.is_empty() && before)
            || has_unit(&heading)
            || group.is_some_and(|group| has_unit(&cell(above, group)))
            || named
            || all;
        let mut numbers = cells.iter().filter(|cell| is_number(cell));
        before = numbers.all(|cell| column_has_unit || has_unit(cell));
        if !before {
            wrong.push(heading);
        }
    }
    wrong
}

#[test]
fn number_without_unit_is_found() {
    let lines = [
        "sender  kbit/s: mean          median  gain    exact",
        "sack           10.2  ± 2.0    10.1  +3.0 %      3",
    ];
    assert_eq!(without_unit("", &lines), ["exact"]);
    let lines = ["sender    goodput  resent", "sack    10 kbit/s       3"];
    assert_eq!(without_unit("", &lines), ["resent"]);
    assert_eq!(without_unit("segments", &lines), [""; 0]);
    let lines = ["sender  all  spurious  exact", "sack      3         0      1"];
    assert_eq!(without_unit("        timeouts ----", &lines), ["exact"]);
}

/// Checks the table whose heading contains all these words. It ends before an empty line, or before a line
/// that begins with `end`.
fn check(command: &str, text: &str, heading: &[&str], end: &str) {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| heading.iter().all(|word| line.contains(word)));
    let at = at.unwrap_or_else(|| panic!("{command}: no table with {heading:?} in\n{text}"));
    let title = at.checked_sub(1).map_or("", |before| lines[before]);
    let is_end =
        |line: &&&str| line.trim().is_empty() || (!end.is_empty() && line.trim_start().starts_with(end));
    let rows = lines[at + 1..].iter().take_while(|line| !is_end(line)).count();
    assert!(rows > 0, "{command}: the table is empty\n{text}");
    let wrong = without_unit(title, &lines[at..=at + rows]);
    assert!(wrong.is_empty(), "{command}: no unit for {wrong:?} in\n{text}");
}

fn successful_stdout(ended: Ended) -> String {
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

#[test]
fn sim_tables_have_units() {
    let line = "sim -s wcdma-384 --recipe newreno --recipe sack --bytes 200k --set radio.down.queue.packets=10 --wide";
    let text = successful_stdout(run(&line.split(' ').collect::<Vec<_>>()));
    check("sim", &text, &["flow", "goodput"], "");
    check("sim, second block", &text, &["flow", "ACKs"], "total");
    check("sim, the path", &text, &["direction"], "wire");
    let link =
        Command::new(program("airlink")).args(["sim", "-s", "wcdma-384", "--for", "5s"]).output().unwrap();
    check("airlink sim", &successful_stdout(Ended::of(link)), &["direction"], "wire");
}

#[test]
fn sweep_tables_have_units() {
    let scratch = TempDir::new("sweep");
    let file = scratch.path("s.toml");
    let text = "schema = 1\nseeds = 2\n[fixed]\nscenario = \"sifest-random\"\nbytes = \"30k\"\n\
                [axes]\nrecipe = [\"reno\", \"newreno\"]\n";
    fs::write(&file, text).unwrap();
    successful_stdout(run(&["sweep", "run", &file, "--quiet"]));
    let text =
        successful_stdout(run(&["sweep", "summary", &file, "--metric", "goodput,timeouts,resent,took"]));
    for block in text.split("\n\n").filter(|block| block.contains("verdict")) {
        let title = block.lines().next().unwrap();
        let named = title.split(':').next().unwrap();
        assert!(has_unit(named) || named.contains("number per run"), "{title}");
    }
    assert_eq!(text.matches("verdict").count(), 4, "{text}");
}

#[test]
fn reproduce_tables_have_units() {
    let figure = size("p1-fig8", "p2-fig7");
    let text = successful_stdout(run(&["reproduce", figure, "--seeds", "2", "--most-seeds", "2"]));
    let lines: Vec<&str> = text.lines().collect();
    let tables = lines.windows(2).filter(|pair| pair[1].starts_with("|---") || pair[1].starts_with("|:--"));
    let heads: Vec<&str> = tables.map(|pair| pair[0]).collect();
    assert!(!heads.is_empty(), "{text}");
    for head in heads {
        let at = lines.iter().position(|line| *line == head).unwrap();
        let table: Vec<Vec<&str>> = lines[at..]
            .iter()
            .take_while(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let title = lines[..at].iter().rfind(|line| !line.is_empty()).copied().unwrap_or("");
        for column in 0..table[0].len() {
            let numbers = table[2..].iter().filter_map(|row| row.get(column)).filter(|cell| is_number(cell));
            let row_has = |cell: &&str| table[2..].iter().any(|row| row.contains(cell) && has_unit(row[0]));
            let has_units = |cell: &&str| has_unit(cell) || row_has(cell);
            let heading = table[0][column];
            assert!(
                has_unit(heading) || has_unit(title) || numbers.clone().all(has_units),
                "no unit for {heading} in\n{text}"
            );
        }
    }
}

#[test]
fn analyze_tables_have_units() {
    let capture = repository().join("pcaps/newreno.pcap");
    let text = successful_stdout(run(&["analyze", capture.to_str().unwrap(), "--resent", "--wide"]));
    check("analyze", &text, &["no", "goodput"], "");
    check("analyze --resent", &text, &["frame", "sequence"], "");
}

/// Requires root, because it builds a path.
#[test]
fn lab_tables_have_units_and_report_has_headings() {
    let scratch = TempDir::new("lab");
    let out = scratch.path("out");
    let senders =
        ["--recipe", "newreno", "--sender", "linux:cubic", "--runs", "2", "--bytes", "60k", "--jobs", "4"];
    let more = ["--set", "radio.down.queue.packets=8", "--virtual", "--wide", "--output", &out, "--quiet"];
    let text =
        successful_stdout(run(&[&["lab", "run", "--scenario", "wcdma-384"], &senders[..], &more].concat()));
    check("lab run", &text, &["sender", "median"], "undecided");
    check("lab run --virtual", &text, &["sender", "ratio"], "newreno, round");
    let transfer = scratch.join("out/01-newreno");
    let [fixed, mobile, events, sender] = ["fixed.pcap", "mobile.pcap", "events.jsonl", "sender.jsonl"]
        .map(|name| transfer.join(name).to_str().unwrap().to_owned());
    let path = ["analyze", "--path", &fixed, &mobile, "--truth", &events, "--sender-log", &sender, "--wide"];
    let text = successful_stdout(run(&path));
    check("analyze --truth", &text, &["packets", "right", "wrong"], "passed");
    assert!(text.contains("\n  passed "), "{text}");
    // In this comparison, the unit is in the first column of each row.
    let (_, compared) = text.split_once("comparison with the sender's counters").unwrap();
    let rows: Vec<&str> = compared.lines().skip(2).collect();
    assert!(
        !rows.is_empty() && rows.iter().all(|row| has_unit(row) || row.contains("of them")),
        "{compared}"
    );

    // The comparison needs only the sender's capture, not the whole path.
    let alone = ["analyze", &fixed, "--sender-log", &sender];
    let text = successful_stdout(run(&alone));
    assert!(text.contains("\ncomparison with the sender's counters"), "{text}");
    let json = successful_stdout(run(&[&alone[..], &["--json"]].concat()));
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let counts = document["sender"]["counts"].as_array().unwrap();
    assert!(counts.iter().any(|count| count["what"] == "timeouts"), "{document}");

    let page = scratch.path("page.html");
    successful_stdout(run(&["report", &out, "--output", &page]));
    let html = fs::read_to_string(page).unwrap();
    for heading in
        ["median kbit/s", "retransmissions: timeout", "spurious timeouts", "retransmissions", "idle s"]
    {
        assert!(html.contains(heading), "no heading {heading} in the page");
    }

    let matrix =
        ["lab", "matrix", "--receiver", "linux", "--recipe", "sack", "--kind", "lossless", "--bytes", "50k"];
    let ended = Ended::of(airtcp(&matrix).args(["--output", &scratch.path("matrix")]).output().unwrap());
    let text = successful_stdout(ended);
    check("lab matrix", &text, &["lossless, kbit/s"], "");
    assert_eq!(text.lines().last(), Some("passed 1 of 1"));
}

#[test]
fn scenario_settings_show_units() {
    let shown = Command::new(program("airlink")).args(["show", "wcdma-384"]).output().unwrap();
    let text = successful_stdout(Ended::of(shown));
    // Numbers without a unit are counts, identifiers and fractions.
    for (key, unit) in [("rate", "bit"), ("delay", "s"), ("tti", "s"), ("timer_poll", "s"), ("pdu", "B")] {
        let settings = text.lines().filter_map(|line| line.split_once(" = "));
        let of_key = settings.filter(|(name, _)| name.rsplit('.').next() == Some(key));
        let values: Vec<&str> = of_key.map(|(_, value)| value).collect();
        let has_unit = |value: &&str| value.ends_with(&format!("{unit}\""));
        assert!(!values.is_empty() && values.iter().all(has_unit), "{key}: {values:?} in {text}");
    }
}

/// Over a path without a rate or a delay, a transfer takes no time, so its goodput is undefined.
#[test]
fn zero_duration_transfer_has_no_goodput() {
    let text =
        successful_stdout(run(&["sim", "--scenario", "lossless", "--recipe", "newreno", "--bytes", "10k"]));
    let row = text.lines().find(|line| line.contains("10.0 kB")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[2..6], ["10.0", "kB", "-", "0.000"], "{text}");
    let row = text.lines().find(|line| line.starts_with("down ")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["down", "10", "10", "0", "-"], "{text}");
}
