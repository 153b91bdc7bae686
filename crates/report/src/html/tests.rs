use airtcp::recovery::RecoveryState;
use airtcp_analyze::trace::{DecisionSeen, Sending, SentSegment};
use airwire::Cause;

use super::table::Cell;
use super::*;

const MARKUP: &str = "</script><img src=x onerror=alert(1)><!--";

/// A trace with a retransmission and a decision. All texts are `name`.
fn trace(name: &str) -> Trace {
    let segment = SentSegment {
        at: 1_500_000,
        number: 7,
        start: 1,
        end: 1449,
        sending: Sending::Fast,
        dupacks: 3,
        in_flight: 4,
        fate: Fate::Lost(Loss::Airlink(Cause::Radio)),
    };
    let decision = DecisionSeen {
        at: 1_499_000,
        by: name.to_owned(),
        what: name.to_owned(),
        text: name.to_owned(),
        about: Some((1, 1449)),
    };
    Trace { name: name.to_owned(), segments: vec![segment], decisions: vec![decision], ..Trace::default() }
}

/// An experiment with one run. All texts are `name`.
fn experiment(name: &str) -> Experiment {
    let row = (vec![0], vec![Cell::text(name)]);
    let table = Table { caption: name.to_owned(), columns: vec![("sender", "who sends")], rows: vec![row] };
    let exchanges = vec![waterfall::Exchange::default()];
    let sender =
        chart::Sender { name: name.to_owned(), verdict: name.to_owned(), ..chart::Sender::default() };
    Experiment {
        name: name.to_owned(),
        waterfalls: vec![Waterfall { title: name.to_owned(), exchanges, ..Waterfall::default() }],
        facts: vec![(name.to_owned(), name.to_owned())],
        scenario: Some(name.to_owned()),
        sentences: vec![name.to_owned()],
        chart: Some(Chart { against: name.to_owned(), senders: vec![sender] }),
        summary: Some(table.clone()),
        runs: table,
    }
}

fn page(name: &str) -> Page {
    let facts = vec![(name.to_owned(), name.to_owned())];
    Page {
        opening: vec![0],
        has_wide_tables: false,
        title: name.to_owned(),
        experiments: vec![experiment(name)],
        runs: vec![Run { name: name.to_owned(), facts, trace: trace(name) }],
    }
}

#[test]
fn names_are_escaped_everywhere_on_page() {
    let (plain, escaped) = (page("plain").html(), page(MARKUP).html());
    for markup in ["<img", "<!--", "</script", "<script"] {
        assert_eq!(escaped.matches(markup).count(), plain.matches(markup).count(), "{markup}");
    }
    assert!(escaped.contains("&lt;img src=x onerror"), "the escaped name is readable");
    assert!(escaped.contains(r#""name":"\u003c/script>"#));
}

#[test]
fn page_defines_every_recovery_state() {
    for phase in RecoveryState::ALL.into_iter().filter(|phase| *phase != RecoveryState::Open) {
        let (name, meaning) = (phase.name(), phase.meaning());
        assert!(page("plain").html().contains(&format!("\n  {name}: '{meaning}',\n")), "{name}");
    }
}

#[test]
fn page_loads_no_external_resources() {
    let html = page("plain").html();
    for reference in ["http:", "https:", "src=", "@import", "url(", "//cdn"] {
        assert!(!html.contains(reference), "{reference}");
    }
    assert!(html.contains("default-src 'none'; script-src 'sha256-"));
}

#[test]
fn page_columns_match_trace_values() {
    let html = page("plain").html();
    assert!(html.contains(&format!(r#""number":"{}""#, column([7]))));
    assert!(html.contains(&format!(r#""sending":"{}""#, column([1]))), "fast");
    assert!(html.contains(&format!(r#""fate":"{}""#, column([4]))), "lost on the radio");
    assert!(html.contains(&format!(r#""at":"{}""#, column([1500]))), "microseconds");
}

#[test]
fn script_contains_every_file_of_page() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/html/page")).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    for file in files.filter(|file| file.ends_with(".js")) {
        assert!(SCRIPT.contains(&format!("\n// ---- {file}\n")), "{file}");
    }
}
