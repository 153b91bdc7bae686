//! P0's figures, with few seeds: everything is there, and what is sure with few seeds comes out.

use airtcp::reproduce::{Claim, Effort, Finding, Judged, figures};

const FEW: Effort = Effort { seeds: 4 };

fn run(id: &str) -> Finding {
    let figure = figures().into_iter().find(|figure| figure.id == id).expect("the figure is listed");
    (figure.run)(&FEW).unwrap()
}

fn claim<'a>(finding: &'a Finding, words: &str) -> &'a Claim {
    finding
        .claims
        .iter()
        .find(|claim| claim.paper.contains(words))
        .unwrap_or_else(|| panic!("no claim about `{words}` in\n{}", finding.markdown()))
}

#[test]
fn sifest_makes_tahoe_faster_at_x_001_y_015() {
    let finding = run("p0-fig11a");
    let text = finding.markdown();
    assert_eq!(finding.tables[0].rows.len(), 8, "{text}");
    for words in ["sifest gives Tahoe", "with LIW 33.6 %"] {
        let judged = claim(&finding, words).judged;
        assert!(matches!(judged, Judged::Holds | Judged::HoldsInPart), "{words}\n{text}");
    }
    assert!(!finding.choices.is_empty() && !finding.remarks.is_empty(), "{text}");
}

#[test]
fn clustered_errors_cost_something_when_the_states_are_long() {
    let finding = run("p0-fig6");
    assert_eq!(finding.tables[0].rows.len(), 6, "{}", finding.markdown());
    let judged = claim(&finding, "12.5 %").judged;
    assert_ne!(judged, Judged::Holds, "not at α = β = 0.3\n{}", finding.markdown());
}

#[test]
fn the_text_has_its_numbers_and_its_formulas_hold() {
    let finding = run("p0-text");
    assert_eq!(finding.tables.len(), 3, "{}", finding.markdown());
    assert_eq!(claim(&finding, "Th_timeout").judged, Judged::Holds);
}

#[test]
fn every_row_of_every_table_has_all_its_columns() {
    for id in ["p0-fig6", "p0-fig11a", "p0-text"] {
        for table in run(id).tables {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{id}: {}", table.title);
        }
    }
}
