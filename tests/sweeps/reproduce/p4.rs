//! P4's figures with few seeds and short runs: what stands in them, and the claims that hold even so.

use airtcp_reproduce::p4;
use airtcp_reproduce::p4::setting::Way;
use airtcp_reproduce::{Effort, Judged};
use airwire::time::Duration;

use super::{claim, whole};

const SEEDS: u32 = 8;
const LENGTH: Duration = Duration::from_secs(300);

#[test]
fn over_one_radio_link_marks_are_worth_something() {
    let finding = p4::table3(&Effort::new(SEEDS), LENGTH).unwrap();
    whole(&finding);
    assert_eq!(finding.tables[0].rows.len(), Way::ALL.len());
    for way in ["F to M", "M to F"] {
        let claim = claim(&finding, way);
        assert!(matches!(claim.judged, Judged::Holds | Judged::HoldsInPart), "{claim:?}");
    }
}

#[test]
fn the_worse_the_radio_the_more_they_are_worth() {
    let finding = p4::goodput(&Effort::new(SEEDS), Way::FixedToMobile, LENGTH).unwrap();
    assert_eq!(finding.tables[0].rows.len(), 4);
    assert_eq!(finding.claims[0].judged, Judged::Holds);
    assert_ne!(finding.claims[1].judged, Judged::DoesNotHold);
}
