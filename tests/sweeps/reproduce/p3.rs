//! P3's figures with few seeds and short runs: what stands in them, and the claims that hold even so.

use airtcp_reproduce::p3;
use airtcp_reproduce::p3::setting::Extent;
use airtcp_reproduce::{Effort, Finding, Judged};
use airwire::time::Instant;

use super::{claim, whole};

const SHORT: Extent =
    Extent { error_rates: &[0, 2, 6], from: Instant::from_secs(50), until: Instant::from_secs(200) };

/// The mean in a cell.
fn number(finding: &Finding, row: usize, column: &str) -> f64 {
    let table = &finding.tables[0];
    let column = table.columns.iter().position(|name| name == column).unwrap();
    table.rows[row][column].split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_rebate_brings_newreno_more_and_newreno_is_ns2s() {
    let finding = p3::against_newreno(&Effort::new(4), &SHORT).unwrap();
    whole(&finding);
    assert!(finding.tables.iter().all(|table| table.rows.len() == SHORT.error_rates.len()));
    assert_eq!(claim(&finding, "severe performance deterioration").judged, Judged::Holds);
    assert_ne!(claim(&finding, "improves on NewReno").judged, Judged::DoesNotHold);
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
    let finding = p3::against_pr(&Effort::new(4), &SHORT).unwrap();
    assert_eq!(claim(&finding, "TCP-PR+ gains over TCP-PR").judged, Judged::Holds);
    for row in [1, 2] {
        assert!(number(&finding, row, "PR") > number(&finding, row, "NewReno"));
    }
}
