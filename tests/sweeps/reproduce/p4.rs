//! P4's figures with few seeds and short runs: what stands in them, and the claims that are sure even so.

use airtcp_reproduce::p4;
use airtcp_reproduce::p4::setting::{BIT_ERROR_RATES, Way};
use airtcp_reproduce::{Counts, Effort, Finding, Judged};
use airwire::time::Duration;

use super::{claim, holds, whole};

const SEEDS: u32 = 4;
const SECONDS: Duration = Duration::from_secs(30);

/// Each claim is a quotation with its place, or says why it is none.
fn quoted(finding: &Finding) {
    whole(finding);
    for claim in &finding.claims {
        let own = matches!(claim.counts, Counts::Own(_));
        assert!(own || claim.paper.starts_with('“') && claim.paper.contains('”'), "{claim:?}");
        assert!(!claim.place.is_empty() && !claim.ours.is_empty(), "{claim:?}");
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn table_3_has_the_papers_counts_and_both_readings_of_two_radios() {
    let finding = p4::table3(&Effort::new(2 * SEEDS), SECONDS * 10).unwrap();
    quoted(&finding);
    assert_eq!(finding.tables[0].rows.len(), Way::ALL.len() + 1);
    assert_eq!(finding.charts[0].curves[0].paper, [(0.0, 3176.0), (1.0, 3341.0), (2.0, 3459.0)]);
    holds(&finding, "significant improvements");
    // With the BER on each radio a packet is lost twice as often.
    let reno = |row: usize| finding.charts[0].curves[1].points[row].1.mean;
    assert!(reno(3) < 0.5 * reno(2), "{}", finding.markdown());
}

/// With 832 bit on a wire of 56 kbit/s, 74 packets of 1e-4 were the most that went through in a second: now 170 bit are.
#[test]
#[ignore = "nightly: simulates a whole figure"]
fn from_fixed_to_mobile_the_gain_is_more_than_slight_and_largest_where_much_is_lost() {
    let finding = p4::fig6(&Effort::new(SEEDS), SECONDS).unwrap();
    quoted(&finding);
    assert_eq!(finding.tables[0].rows.len(), BIT_ERROR_RATES.len());
    assert!(finding.charts[0].curves[0].points[3].1.mean > 200.0, "{}", finding.markdown());
    assert_ne!(claim(&finding, "slightly better").judged, Judged::Holds);
    assert_eq!(claim(&finding, "maintain its transmission rate").judged, Judged::DoesNotHold);
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn from_mobile_to_fixed_marks_are_worth_something() {
    let finding = p4::fig7(&Effort::new(SEEDS), SECONDS).unwrap();
    quoted(&finding);
    assert_eq!(finding.tables[0].rows.len(), BIT_ERROR_RATES.len());
    assert_ne!(claim(&finding, "better goodput").judged, Judged::DoesNotHold);
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn from_mobile_to_mobile_both_readings_of_the_errors_are_shown() {
    let finding = p4::fig8(&Effort::new(SEEDS), SECONDS).unwrap();
    quoted(&finding);
    assert_eq!(finding.tables.len(), 2);
    let lost = |table: usize| finding.tables[table].rows[1][1].clone();
    assert_eq!((lost(0).as_str(), lost(1).as_str()), ("1.686 %", "3.343 %"));
    assert_ne!(claim(&finding, "better goodput").judged, Judged::DoesNotHold);
    let largest = claim(&finding, "largest from mobile to mobile");
    assert!(matches!(largest.counts, Counts::Own(_)), "{largest:?}");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn what_acks_find_is_told_apart_and_what_the_timer_finds_is_not() {
    let finding = p4::causes(&Effort::new(SEEDS), SECONDS).unwrap();
    quoted(&finding);
    holds(&finding, "distinguish between");
    holds(&finding, "two bits of information");
    assert_ne!(claim(&finding, "take appropriate action").judged, Judged::Holds);
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn a_window_that_is_kept_is_larger() {
    let finding = p4::window(&Effort::new(SEEDS), SECONDS * 2).unwrap();
    quoted(&finding);
    assert_eq!(finding.tables[0].rows.len(), Way::ALL.len() * BIT_ERROR_RATES.len() * 3);
    holds(&finding, "large congestion window size");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn what_the_paper_does_not_say_is_swept() {
    let finding = p4::free(&Effort::new(2), SECONDS).unwrap();
    quoted(&finding);
    let [_, next, _, _] = &finding.tables[..] else { panic!("{}", finding.markdown()) };
    assert!(finding.tables.iter().all(|table| table.rows.len() == 9));
    // The queue matters where there is congestion; the threshold never does.
    let row = |name: &str| next.rows.iter().find(|row| row[0].contains(name)).map(|row| &row[1..]);
    assert_ne!(row("5 packets"), row("as chosen"));
    assert_eq!(row("ssthresh"), row("as chosen"));
}
