//! The figures of Chandra et al. 2003 with few seeds and short runs: completeness, and the claims that do not
//! depend on more seeds.

use airtcp_reproduce::chandra2003;
use airtcp_reproduce::chandra2003::setting::{BIT_ERROR_RATES, Way};
use airtcp_reproduce::{Counts, Effort, Finding, Judged};
use airwire::time::Duration;

use super::{check_complete, claim, holds};

const SEEDS: u32 = 4;
const SECONDS: Duration = Duration::from_secs(30);

/// Checks that each claim is a quotation with its place, or states why no quotation exists.
fn check_quotations(finding: &Finding) {
    check_complete(finding);
    for claim in &finding.claims {
        let is_own = matches!(claim.counts, Counts::Own(_));
        assert!(is_own || claim.sentence.starts_with('“') && claim.sentence.contains('”'), "{claim:?}");
        assert!(!claim.place.is_empty() && !claim.result.is_empty(), "{claim:?}");
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn table_3_has_paper_counts_and_both_readings() {
    let finding = chandra2003::table3(&Effort::new(2 * SEEDS), SECONDS * 10).unwrap();
    check_quotations(&finding);
    assert_eq!(finding.tables[0].rows.len(), Way::ALL.len() + 1);
    assert_eq!(finding.charts[0].curves[0].paper, [(0.0, 3176.0), (1.0, 3341.0), (2.0, 3459.0)]);
    holds(&finding, "significant improvements");
    // If the BER applies to each radio link, a packet is lost twice as often.
    let reno = |row: usize| finding.charts[0].curves[1].points[row].1.mean;
    assert!(reno(3) < 0.5 * reno(2), "{}", finding.markdown());
}

/// A packet must occupy the wire as long as 170 bit do at 56 kbit/s (at most 329 packets/s). With 832 bit at
/// that rate, at most 67 packets/s would arrive.
#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_6_gain_is_more_than_slight() {
    let finding = chandra2003::fig6(&Effort::new(SEEDS), SECONDS).unwrap();
    check_quotations(&finding);
    assert_eq!(finding.tables[0].rows.len(), BIT_ERROR_RATES.len());
    assert!(finding.charts[0].curves[0].points[3].1.mean > 200.0, "{}", finding.markdown());
    assert_ne!(claim(&finding, "slightly better").judged, Judged::Holds);
    assert_ne!(claim(&finding, "maintain its transmission rate").judged, Judged::Holds);
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_7_marks_help_from_mobile_to_fixed() {
    let finding = chandra2003::fig7(&Effort::new(SEEDS), SECONDS).unwrap();
    check_quotations(&finding);
    assert_eq!(finding.tables[0].rows.len(), BIT_ERROR_RATES.len());
    assert_ne!(claim(&finding, "better goodput").judged, Judged::DoesNotHold);
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_8_shows_both_readings_of_errors() {
    let finding = chandra2003::fig8(&Effort::new(SEEDS), SECONDS).unwrap();
    check_quotations(&finding);
    assert_eq!(finding.tables.len(), 2);
    let lost = |table: usize| finding.tables[table].rows[1][1].clone();
    assert_eq!((lost(0).as_str(), lost(1).as_str()), ("1.686 %", "3.343 %"));
    assert_ne!(claim(&finding, "better goodput").judged, Judged::DoesNotHold);
    let largest = claim(&finding, "largest from mobile to mobile");
    assert!(matches!(largest.counts, Counts::Own(_)), "{largest:?}");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn marks_attribute_ack_detected_losses_but_not_timeouts() {
    let finding = chandra2003::causes(&Effort::new(SEEDS), SECONDS).unwrap();
    check_quotations(&finding);
    holds(&finding, "distinguish between");
    holds(&finding, "two bits of information");
    assert_ne!(claim(&finding, "take appropriate action").judged, Judged::Holds);
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn marks_keep_congestion_window_larger() {
    let finding = chandra2003::window(&Effort::new(SEEDS), SECONDS * 2).unwrap();
    check_quotations(&finding);
    assert_eq!(finding.tables[0].rows.len(), Way::ALL.len() * BIT_ERROR_RATES.len() * 3);
    holds(&finding, "large congestion window size");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn unspecified_parameters_are_swept() {
    let finding = chandra2003::unstated(&Effort::new(2), SECONDS).unwrap();
    check_quotations(&finding);
    let [_, next, _, _] = &finding.tables[..] else { panic!("{}", finding.markdown()) };
    assert!(finding.tables.iter().all(|table| table.rows.len() == 9));
    // The queue matters because of congestion; the threshold never does.
    let row = |name: &str| next.rows.iter().find(|row| row[0].contains(name)).map(|row| &row[1..]);
    assert_ne!(row("5 packets"), row("as chosen"));
    assert_eq!(row("ssthresh"), row("as chosen"));
}
