//! P4's figures with few seeds and short runs: what stands in them, and the claims that hold even so.

use airlink::time::Duration;
use airtcp::reproduce::p4::setting::Way;
use airtcp::reproduce::p4::{self, FIGURES};
use airtcp::reproduce::{Effort, Judged};

const EFFORT: Effort = Effort { seeds: 8 };
const LENGTH: Duration = Duration::from_secs(300);

#[test]
fn every_figure_has_a_name_of_its_own() {
    let ids: Vec<_> = FIGURES.iter().map(|figure| figure.id).collect();
    assert_eq!(ids, ["p4-table3", "p4-fig6", "p4-fig7", "p4-fig8"]);
}

#[test]
fn over_one_radio_link_marks_are_worth_something() {
    let finding = p4::table3(&EFFORT, LENGTH).unwrap();
    let table = &finding.tables[0];
    assert_eq!(table.rows.len(), Way::ALL.len());
    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
    for way in ["F to M", "M to F"] {
        let claim = finding.claims.iter().find(|claim| claim.paper.starts_with(way)).unwrap();
        assert!(matches!(claim.judged, Judged::Holds | Judged::HoldsInPart), "{claim:?}");
    }
}

#[test]
fn the_worse_the_radio_the_more_they_are_worth() {
    let finding = p4::goodput(&EFFORT, Way::FixedToMobile, LENGTH).unwrap();
    assert_eq!(finding.tables[0].rows.len(), 4);
    assert_eq!(finding.claims[0].judged, Judged::Holds);
    assert_ne!(finding.claims[1].judged, Judged::DoesNotHold);
}
