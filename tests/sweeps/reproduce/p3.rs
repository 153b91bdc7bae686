//! P3's figures with few seeds and short runs: what stands in them, and the claims that hold even so.

use airtcp_reproduce::p3;
use airtcp_reproduce::p3::setting::Extent;
use airtcp_reproduce::{Counts, Effort, Finding, Judged};
use airwire::time::Instant;

use super::{claim, whole};

const SHORT: Extent =
    Extent { error_rates: &[0, 2, 6], from: Instant::from_secs(50), until: Instant::from_secs(200) };
const SHORTER: Extent =
    Extent { error_rates: &[2, 6], from: Instant::from_secs(20), until: Instant::from_secs(80) };

/// The mean in a cell of the first table that has this column.
fn number(finding: &Finding, row: usize, column: &str) -> f64 {
    let has = |table: &&airtcp_reproduce::Table| table.columns.iter().any(|name| name == column);
    let table = finding.tables.iter().find(has).unwrap();
    let column = table.columns.iter().position(|name| name == column).unwrap();
    table.rows[row][column].split(' ').next().unwrap().parse().unwrap()
}

/// What every figure of the paper has: sentences in quotation marks with their places, unless they are our own, and
/// curves.
fn quoted(finding: &Finding) {
    whole(finding);
    for claim in &finding.claims {
        let is_own = matches!(claim.counts, Counts::Own(_));
        assert_eq!(claim.paper.starts_with('“'), !is_own, "{claim:?}");
        assert_eq!(claim.place.is_empty(), is_own, "{claim:?}");
    }
    for chart in &finding.charts {
        assert!(chart.curves.len() > 1 && chart.curves.iter().all(|curve| !curve.points.is_empty()));
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn the_rebate_brings_newreno_more_and_newreno_is_ns2s() {
    let finding = p3::against_newreno(&Effort::new(3), &SHORT).unwrap();
    quoted(&finding);
    assert!(finding.tables.iter().all(|table| table.rows.len() == SHORT.error_rates.len()));
    assert_eq!(claim(&finding, "severe performance deterioration").judged, Judged::Holds);
    for row in 0..3 {
        assert!(number(&finding, row, "TCP-NR+") >= number(&finding, row, "TCP-NR"));
        let (ours, oracle) = (number(&finding, row, "TCP-NR"), number(&finding, row, "TCP-NR in ns-2"));
        // A run that is ten times shorter than the oracle's.
        assert!((ours / oracle - 1.0).abs() < 0.1, "{ours}, in ns-2 {oracle}");
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn pr_with_the_rebate_is_above_pr_and_newreno_with_it() {
    let finding = p3::against_pr(&Effort::new(3), &SHORTER).unwrap();
    quoted(&finding);
    assert_eq!(claim(&finding, "better performance than TCP-NR+").judged, Judged::Holds);
    for row in [0, 1] {
        assert!(number(&finding, row, "TCP-PR+") > number(&finding, row, "TCP-PR"));
        assert!(number(&finding, row, "TCP-PR on NewReno") > 0.0);
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn under_reordering_pr_is_best_and_no_better_than_who_knows_the_truth() {
    let finding = p3::out_of_order(&Effort::new(3), &SHORTER).unwrap();
    quoted(&finding);
    assert_eq!(claim(&finding, "attains the best performance").judged, Judged::Holds);
    assert_eq!(claim(&finding, "spuriously").judged, Judged::Holds);
    for row in [0, 1] {
        let [plain, told, ideal] = ["TCP-NR", "ideal differentiator", "ideal differentiator, as TCP-PR"]
            .map(|name| number(&finding, row, name));
        assert!(plain < told && told < ideal, "{}", finding.markdown());
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn who_knows_the_truth_has_more_than_newreno_under_loss() {
    let finding = p3::approximation(&Effort::new(3), &SHORTER).unwrap();
    quoted(&finding);
    for row in [0, 1] {
        let [plain, compensated, differentiated] =
            ["TCP-NR", "TCP-NR, ideally compensated", "ideal differentiator"]
                .map(|name| number(&finding, row, name));
        assert!(compensated > plain && differentiated > plain, "{}", finding.markdown());
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn the_other_figures_are_whole() {
    let effort = Effort::new(2);
    let one = Extent { error_rates: &[2], ..SHORTER };
    for finding in [
        p3::rules(&effort, &one),
        p3::other_differentiators(&effort, &one),
        p3::underestimated(&effort, &one),
        p3::jain_index(&effort, &one),
        p3::beside(&effort, &Extent { error_rates: &[0, 2], ..SHORTER }),
    ] {
        quoted(&finding.unwrap());
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn each_refutation_is_looked_at_on_other_paths() {
    let short = Extent { error_rates: &[2, 6], from: Instant::from_secs(5), until: Instant::from_secs(20) };
    let finding = p3::paths(&Effort::new(2), &short).unwrap();
    let [verdicts, gains] = &finding.tables[..] else { panic!("{}", finding.markdown()) };
    assert_eq!((verdicts.rows.len(), gains.rows.len()), (9, 9));
    let is_verdict = |cell: &String| ["holds", "does not hold", "undecided"].contains(&cell.as_str());
    assert!(verdicts.rows.iter().all(|row| row[1..].iter().all(is_verdict)), "{}", finding.markdown());
    assert!(finding.claims.is_empty(), "the sentences are claims of their figures: {:?}", finding.claims);
}

/// At 10 Mbit/s, without errors, a window settles where (1) says.
#[test]
#[ignore = "nightly: simulates a whole figure"]
fn newreno_without_errors_goes_where_equation_1_says() {
    let extent = Extent { error_rates: &[1], from: Instant::from_secs(20), until: Instant::from_secs(60) };
    let finding = p3::rate_adaptation(&Effort::new(2), &extent).unwrap();
    quoted(&finding);
    let [model, flows] = &finding.tables[..] else { panic!("{}", finding.markdown()) };
    assert_eq!(model.rows.len(), 15);
    // Two radio links, and TCP-NR without errors before three senders with.
    assert_eq!(flows.rows.len(), 2 * 4);
    let off: f64 = flows.rows[0][7].split(' ').next().unwrap().parse().unwrap();
    assert!((off - 1.0).abs() < 0.25, "{}", finding.markdown());
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn theorem_1_is_judged_where_windows_are_large() {
    let extent = Extent { error_rates: &[0, 2], from: Instant::from_secs(10), until: Instant::from_secs(60) };
    let finding = p3::overlay(&Effort::new(2), &extent).unwrap();
    quoted(&finding);
    let window =
        |row: usize| finding.tables[0].rows[row][3].split(' ').next().unwrap().parse::<f64>().unwrap();
    // 10 Mbit/s is the first radio link, 2 Mbit/s the last.
    assert!(window(0) > window(finding.tables[0].rows.len() - 2), "{}", finding.markdown());
}
