//! P3's figures with few seeds and short runs: what stands in them, and the claims that hold even so.

use airlink::time::Instant;
use airtcp::reproduce::p3::setting::Extent;
use airtcp::reproduce::p3::{self, FIGURES};
use airtcp::reproduce::{Effort, Finding, Judged};

const SHORT: Extent =
    Extent { error_rates: &[0, 2, 6], from: Instant::from_secs(50), until: Instant::from_secs(200) };

fn judged<'a>(finding: &'a Finding, words: &str) -> &'a Judged {
    let claim = finding.claims.iter().find(|claim| claim.paper.contains(words));
    &claim.unwrap_or_else(|| panic!("no claim about {words}: {:?}", finding.claims)).judged
}

/// The mean in a cell.
fn number(finding: &Finding, row: usize, column: &str) -> f64 {
    let table = &finding.tables[0];
    let column = table.columns.iter().position(|name| name == column).unwrap();
    table.rows[row][column].split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn every_figure_has_a_name_of_its_own() {
    let ids: Vec<_> = FIGURES.iter().map(|figure| figure.id).collect();
    assert_eq!(
        ids,
        ["p3-fig2a", "p3-fig2b", "p3-fig2c", "p3-fig4", "p3-underestimation", "p3-theorem1", "p3-fairness"]
    );
}

#[test]
fn the_rebate_brings_newreno_more_and_newreno_is_ns2s() {
    let finding = p3::against_newreno(&Effort { seeds: 4 }, &SHORT).unwrap();
    for table in &finding.tables {
        assert_eq!(table.rows.len(), SHORT.error_rates.len());
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
    }
    assert_eq!(*judged(&finding, "severe performance deterioration"), Judged::Holds);
    assert_ne!(*judged(&finding, "improves on NewReno"), Judged::DoesNotHold);
    for row in 0..3 {
        assert!(number(&finding, row, "NewReno+") >= number(&finding, row, "NewReno"));
        for name in ["NewReno", "Sack1"] {
            let (ours, oracle) =
                (number(&finding, row, name), number(&finding, row, &format!("{name} in ns-2")));
            // A run that is ten times shorter than the oracle's.
            assert!((ours / oracle - 1.0).abs() < 0.1, "{name}: {ours}, in ns-2 {oracle}");
        }
    }
}

#[test]
fn pr_is_above_newreno_under_loss_and_its_rebate_above_it() {
    let finding = p3::against_pr(&Effort { seeds: 4 }, &SHORT).unwrap();
    assert_eq!(*judged(&finding, "TCP-PR+ gains over TCP-PR"), Judged::Holds);
    for row in [1, 2] {
        assert!(number(&finding, row, "PR") > number(&finding, row, "NewReno"));
    }
}
