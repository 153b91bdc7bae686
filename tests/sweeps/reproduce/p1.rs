//! P1's figures, with few seeds: everything is there, and what is sure with few seeds comes out.

use airtcp_reproduce::{Counts, Finding, Judged};

use super::{claim, finding};

/// Two sentences, seven cases, and a picture of each of the four.
#[test]
fn a_hundred_kilobytes_take_seconds_and_sack_is_not_nearly_twice_as_fast() {
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
    quoted(&finding);
}

/// Sentences of the paper are quoted, and each stands somewhere.
fn quoted(finding: &Finding) {
    for claim in finding.claims.iter().filter(|claim| claim.counts == Counts::Yes) {
        assert!(claim.paper.starts_with('“') && claim.paper.ends_with('”'), "{}", claim.paper);
        assert!(!claim.place.is_empty(), "{}", claim.paper);
    }
}

#[test]
fn a_judge_is_shown_and_not_counted() {
    let finding = finding("p1-judges-small-queue", 2);
    let [watching, charged] = finding.tables.as_slice() else { panic!("{}", finding.markdown()) };
    let names: Vec<_> = watching.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["vegas", "ntg", "ndg", "ncpld"]);
    assert_eq!(charged.rows.len(), 5, "newreno, and with each of them in charge");
    let counts = finding.claims.iter().filter(|claim| !matches!(claim.counts, Counts::Own(_))).count();
    assert_eq!(counts, 0, "{}", finding.markdown());
}
