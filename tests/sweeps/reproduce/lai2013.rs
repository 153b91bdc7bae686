//! The figures of Lai et al. 2013 with few seeds and short runs: completeness, and the claims that do not
//! depend on more seeds.

use airtcp_reproduce::lai2013;
use airtcp_reproduce::lai2013::setting::Extent;
use airtcp_reproduce::{Counts, Effort, Finding};
use airwire::time::Instant;

use super::{check_complete, holds, leading_number};

const SHORT: Extent =
    Extent { error_rates: &[0, 2, 6], from: Instant::from_secs(50), until: Instant::from_secs(200) };
const SHORTER: Extent =
    Extent { error_rates: &[2, 6], from: Instant::from_secs(20), until: Instant::from_secs(80) };

/// Returns the mean in a cell of the first table that has this column.
fn number(finding: &Finding, row: usize, column: &str) -> f64 {
    let has = |table: &&airtcp_reproduce::Table| table.columns.iter().any(|name| name == column);
    let table = finding.tables.iter().find(has).unwrap();
    let column = table.columns.iter().position(|name| name == column).unwrap();
    leading_number(&table.rows[row][column])
}

/// Checks the properties of every figure of the paper: claims are quotations with their place, unless they
/// are our own, and charts have several curves.
fn check_quotations(finding: &Finding) {
    check_complete(finding);
    for claim in &finding.claims {
        let is_own = matches!(claim.counts, Counts::Own(_));
        assert_eq!(claim.sentence.starts_with('“'), !is_own, "{claim:?}");
        assert_eq!(claim.place.is_empty(), is_own, "{claim:?}");
    }
    for chart in &finding.charts {
        assert!(chart.curves.len() > 1 && chart.curves.iter().all(|curve| !curve.points.is_empty()));
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn rebate_raises_newreno_goodput_and_newreno_matches_ns2() {
    let finding = lai2013::against_newreno(&Effort::new(3), &SHORT).unwrap();
    check_quotations(&finding);
    assert!(finding.tables.iter().all(|table| table.rows.len() == SHORT.error_rates.len()));
    holds(&finding, "severe performance deterioration");
    for row in 0..3 {
        assert!(number(&finding, row, "TCP-NR+") >= number(&finding, row, "TCP-NR"));
        let (ours, oracle) = (number(&finding, row, "TCP-NR"), number(&finding, row, "TCP-NR in ns-2"));
        // The run is ten times shorter than the oracle's.
        assert!((ours / oracle - 1.0).abs() < 0.1, "{ours}, in ns-2 {oracle}");
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn eifel_gains_with_reordering_but_not_with_loss() {
    let finding = lai2013::related_work(&Effort::new(3), &SHORTER).unwrap();
    check_quotations(&finding);
    let gain = |table: usize, row: usize| {
        let number = |column: &str| {
            let table = &finding.tables[table];
            let at = table.columns.iter().position(|name| name == column).unwrap();
            leading_number(&table.rows[row][at])
        };
        number("TCP-NR, Eifel") / number("TCP-NR") - 1.0
    };
    for row in [0, 1] {
        assert!(gain(0, row).abs() < 0.15 && gain(1, row) > 0.2, "{}", finding.markdown());
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn three_radio_links_reorder_like_one() {
    let finding = lai2013::ad_hoc(&Effort::new(2), &SHORTER).unwrap();
    check_quotations(&finding);
    for row in [0, 1] {
        assert!(number(&finding, row, "TCP-NR+") > number(&finding, row, "TCP-NR"), "{}", finding.markdown());
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn pr_with_rebate_outperforms_pr_and_newreno() {
    let finding = lai2013::against_pr(&Effort::new(3), &SHORTER).unwrap();
    check_quotations(&finding);
    holds(&finding, "better performance than TCP-NR+");
    for row in [0, 1] {
        assert!(number(&finding, row, "TCP-PR+") > number(&finding, row, "TCP-PR"));
        assert!(number(&finding, row, "TCP-PR on NewReno") > 0.0);
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn pr_performs_best_under_reordering() {
    let finding = lai2013::out_of_order(&Effort::new(3), &SHORTER).unwrap();
    check_quotations(&finding);
    holds(&finding, "attains the best performance");
    holds(&finding, "spuriously");
    for row in [0, 1] {
        let [plain, differentiated, ideal] =
            ["TCP-NR", "ideal differentiator", "ideal differentiator, as TCP-PR"]
                .map(|name| number(&finding, row, name));
        assert!(plain < differentiated && differentiated < ideal, "{}", finding.markdown());
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn ideal_differentiator_outperforms_newreno_under_loss() {
    let finding = lai2013::approximation(&Effort::new(3), &SHORTER).unwrap();
    check_quotations(&finding);
    for row in [0, 1] {
        let [plain, compensated, differentiated] =
            ["TCP-NR", "TCP-NR, ideally compensated", "ideal differentiator"]
                .map(|name| number(&finding, row, name));
        assert!(compensated > plain && differentiated > plain, "{}", finding.markdown());
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn remaining_figures_are_complete() {
    let effort = Effort::new(2);
    let one = Extent { error_rates: &[2], ..SHORTER };
    for finding in [
        lai2013::rules(&effort, &one),
        lai2013::other_differentiators(&effort, &one),
        lai2013::underestimated(&effort, &one),
        lai2013::jain_index(&effort, &one),
        lai2013::mixed_flows(&effort, &Extent { error_rates: &[0, 2], ..SHORTER }),
    ] {
        check_quotations(&finding.unwrap());
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn refuted_claims_are_tested_on_other_paths() {
    let short = Extent { error_rates: &[2, 6], from: Instant::from_secs(5), until: Instant::from_secs(20) };
    let finding = lai2013::sensitivity_to_paths(&Effort::new(2), &short).unwrap();
    let [verdicts, gains] = &finding.tables[..] else { panic!("{}", finding.markdown()) };
    assert_eq!((verdicts.rows.len(), gains.rows.len()), (9, 9));
    let is_verdict = |cell: &String| ["holds", "does not hold", "undecided"].contains(&cell.as_str());
    assert!(verdicts.rows.iter().all(|row| row[1..].iter().all(is_verdict)), "{}", finding.markdown());
    assert!(finding.claims.is_empty(), "the claims belong to their own figures: {:?}", finding.claims);
}

/// At 10 Mbit/s without errors, the window converges to the value of equation (1).
#[test]
#[ignore = "nightly: simulates a whole figure"]
fn error_free_newreno_converges_to_equation_1() {
    let extent = Extent { error_rates: &[1], from: Instant::from_secs(20), until: Instant::from_secs(60) };
    let finding = lai2013::rate_adaptation(&Effort::new(2), &extent).unwrap();
    check_quotations(&finding);
    let [model, flows] = &finding.tables[..] else { panic!("{}", finding.markdown()) };
    assert_eq!(model.rows.len(), 15);
    // Two radio links, each with TCP-NR without errors and then three senders with errors.
    assert_eq!(flows.rows.len(), 2 * 4);
    let ratio = leading_number(&flows.rows[0][7]);
    assert!((ratio - 1.0).abs() < 0.25, "{}", finding.markdown());
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn theorem_1_is_judged_at_large_windows() {
    let extent = Extent { error_rates: &[0, 2], from: Instant::from_secs(10), until: Instant::from_secs(60) };
    let finding = lai2013::theorem_1(&Effort::new(2), &extent).unwrap();
    check_quotations(&finding);
    let window = |row: usize| leading_number(&finding.tables[0].rows[row][3]);
    // 10 Mbit/s is the first radio link, and 2 Mbit/s is the last.
    assert!(window(0) > window(finding.tables[0].rows.len() - 2), "{}", finding.markdown());
}
