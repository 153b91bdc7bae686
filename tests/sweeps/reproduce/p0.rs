//! P0's figures, with few seeds: everything is there, and what is sure with few seeds comes out.

use airtcp_reproduce::Judged;

use super::{claim, finding};

#[test]
fn sifest_makes_tahoe_faster_at_x_001_y_015() {
    let finding = finding("p0-fig11a", 4);
    let text = finding.markdown();
    assert_eq!(finding.tables[0].rows.len(), 8, "{text}");
    for words in ["sifest gives Tahoe", "with LIW 33.6 %"] {
        let judged = claim(&finding, words).judged;
        assert!(matches!(judged, Judged::Holds | Judged::HoldsInPart), "{words}\n{text}");
    }
    assert!(!finding.remarks.is_empty(), "{text}");
}

#[test]
fn clustered_errors_cost_something_when_the_states_are_long() {
    let finding = finding("p0-fig6", 4);
    assert_eq!(finding.tables[0].rows.len(), 6, "{}", finding.markdown());
    let judged = claim(&finding, "12.5 %").judged;
    assert_ne!(judged, Judged::Holds, "not at α = β = 0.3\n{}", finding.markdown());
}

#[test]
fn the_text_has_its_numbers_and_its_formulas_hold() {
    let finding = finding("p0-text", 4);
    assert_eq!(finding.tables.len(), 3, "{}", finding.markdown());
    assert_eq!(claim(&finding, "Th_timeout").judged, Judged::Holds);
}
