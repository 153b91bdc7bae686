//! P1's figures, with few seeds: everything is there, and what is sure with few seeds comes out.

use airtcp_reproduce::Judged;

use super::{claim, finding};

/// Five cases, and the four variants with both ratios beside ns-2; the ratio is nowhere near the paper's.
#[test]
fn a_hundred_kilobytes_take_seconds_and_sack_is_not_nearly_twice_as_fast() {
    let finding = finding("p1-fig8", 3);
    assert_eq!(finding.tables[0].rows.len(), 5, "{}", finding.markdown());
    assert_ne!(claim(&finding, "1.8 times").judged, Judged::Holds, "{}", finding.markdown());
}

#[test]
fn a_small_queue_hardly_shows_in_the_rtt_and_a_long_one_does() {
    let (long, small) = (finding("p1-fig17", 3), finding("p1-fig18", 3));
    assert_eq!(claim(&long, "considerable increase").judged, Judged::Holds, "{}", long.markdown());
    assert_eq!(claim(&small, "considerable increase").judged, Judged::Holds, "{}", small.markdown());
}

#[test]
fn vegas_cannot_see_a_small_queue_overflow() {
    let finding = finding("p1-judges-small-queue", 3);
    let [watching, charged] = finding.tables.as_slice() else { panic!("{}", finding.markdown()) };
    let names: Vec<_> = watching.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["vegas", "ntg", "ndg", "ncpld"]);
    assert_eq!(charged.rows.len(), 5, "newreno, and with each of them in charge");
    assert_eq!(claim(&finding, "vegas").judged, Judged::Holds, "{}", finding.markdown());
}
