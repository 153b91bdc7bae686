//! The papers' figures with few seeds and, where possible, short runs. The tests check that each figure is
//! complete, and that the claims hold that do not depend on more seeds.

use std::collections::BTreeSet;

use airtcp_reproduce::{Claim, Effort, Finding, Judged, figures};

mod chandra2003;
mod inamura2009;
mod lai2013;
mod ni2002;
mod pan2004;
mod runs;

/// Returns the finding of `airtcp reproduce ID`, and checks that it is complete.
fn finding(id: &str, seeds: u32) -> Finding {
    let figure =
        figures().into_iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("no figure {id}"));
    let finding = figure.run(&Effort::new(seeds)).unwrap_or_else(|error| panic!("{id}: {error}"));
    check_complete(&finding);
    assert!(!figure.choices(&finding).is_empty(), "{id}");
    finding
}

fn check_complete(finding: &Finding) {
    let text = finding.markdown();
    assert!(!finding.claims.is_empty(), "{text}");
    for table in &finding.tables {
        assert!(!table.rows.is_empty(), "{}\n{text}", table.title);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}\n{text}", table.title);
    }
    assert!(!text.contains("NaN"), "{text}");
}

/// Returns the number at the beginning of a table cell.
fn leading_number(cell: &str) -> f64 {
    let word = cell.split_whitespace().next().unwrap_or_default();
    word.parse().unwrap_or_else(|_| panic!("no number: {cell}"))
}

fn claim<'a>(finding: &'a Finding, words: &str) -> &'a Claim {
    let mut claims = finding.claims.iter();
    claims
        .find(|claim| claim.sentence.contains(words))
        .unwrap_or_else(|| panic!("no claim about `{words}` in\n{}", finding.markdown()))
}

fn holds(finding: &Finding, words: &str) {
    let claim = claim(finding, words);
    assert_eq!(claim.judged, Judged::Holds, "{claim:?}\n{}", finding.markdown());
}

#[test]
fn figure_ids_are_unique() {
    let figures = figures();
    let ids: BTreeSet<_> = figures.iter().map(|figure| figure.id).collect();
    assert_eq!(ids.len(), figures.len());
    for paper in ["p0-", "p1-", "p2-", "p3-", "p4-"] {
        assert!(ids.iter().any(|id| id.starts_with(paper)), "no figure of {paper}");
    }
}
