//! The figures of Ni et al. 2002 with few seeds: completeness, and the claims that do not
//! depend on more seeds.

use airtcp_reproduce::{Counts, Finding, Judged};

use super::{claim, finding};

/// The figure has two claims and seven cases, and a chart for each of Figs. 8 to 11.
#[test]
fn figure_8_sack_is_not_twice_as_fast() {
    let finding = finding("p1-fig8", 3);
    assert_eq!(finding.tables[0].rows.len(), 7, "{}", finding.markdown());
    assert_ne!(claim(&finding, "1.8 times").judged, Judged::Holds, "{}", finding.markdown());
    let titles: Vec<_> = finding.charts.iter().map(|chart| chart.title.as_str()).collect();
    assert!(titles[0].starts_with("Fig. 8") && titles[3].starts_with("Fig. 11"), "{titles:?}");
    for chart in &finding.charts {
        let names: Vec<_> = chart.curves.iter().map(|curve| curve.name.as_str()).collect();
        assert_eq!(names, ["sent", "dropped", "ACK"]);
        let last =
            |curve: usize| chart.curves[curve].points.iter().map(|(_, at)| at.mean).fold(0.0, f64::max);
        assert_eq!((last(0), last(2)), (99.0, 99.0), "packets 0 to 99: {}", chart.title);
    }
    check_quotations(&finding);
}

/// Checks that claims from the paper are quotations with their place.
fn check_quotations(finding: &Finding) {
    for claim in finding.claims.iter().filter(|claim| claim.counts == Counts::Yes) {
        assert!(claim.sentence.starts_with('“') && claim.sentence.ends_with('”'), "{}", claim.sentence);
        assert!(!claim.place.is_empty(), "{}", claim.sentence);
    }
}

#[test]
fn judge_claims_are_not_counted() {
    let finding = finding("p1-judges-small-queue", 2);
    let [watching, charged] = finding.tables.as_slice() else { panic!("{}", finding.markdown()) };
    let names: Vec<_> = watching.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["vegas", "ntg", "ndg", "ncpld"]);
    assert_eq!(charged.rows.len(), 5, "newreno, and newreno with each judge");
    let counts = finding.claims.iter().filter(|claim| !matches!(claim.counts, Counts::Own(_))).count();
    assert_eq!(counts, 0, "{}", finding.markdown());
}
