//! The figures of P2, with few seeds: what does not depend on their number.

use airtcp::reproduce::p2::FIGURES;
use airtcp::reproduce::{Claim, Effort, Finding, Judged, Paper};

fn finding(id: &str, seeds: u32) -> Finding {
    let figure = FIGURES.iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("no figure {id}"));
    assert_eq!(figure.paper, Paper::P2);
    (figure.run)(&Effort { seeds }).unwrap_or_else(|error| panic!("{id}: {error}"))
}

fn claim<'a>(finding: &'a Finding, words: &str) -> &'a Claim {
    let named = |claim: &&Claim| claim.paper.contains(words);
    finding.claims.iter().find(named).unwrap_or_else(|| panic!("no claim about {words:?}"))
}

fn holds(finding: &Finding, words: &str) {
    let claim = claim(finding, words);
    assert_eq!(claim.judged, Judged::Holds, "{claim:?}\n{}", finding.markdown());
}

#[test]
fn every_figure_has_full_tables_claims_and_choices() {
    for figure in FIGURES {
        let finding = finding(figure.id, 1);
        assert!(!finding.claims.is_empty() && !finding.choices.is_empty(), "{}", figure.id);
        for table in &finding.tables {
            assert!(!table.rows.is_empty(), "{}: {}", figure.id, table.title);
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len(), "{}: {row:?}", figure.id);
            }
        }
        assert!(!finding.markdown().contains("NaN"), "{}", finding.markdown());
    }
}

#[test]
fn throughput_has_its_best_value_at_a_tsp_inside_the_range() {
    let finding = finding("p2-fig2", 4);
    holds(&finding, "optimum at a TSP inside");
    holds(&finding, "transmits PDUs several times");
}

#[test]
fn a_radio_that_gives_up_early_loses_segments() {
    holds(&finding("p2-fig3", 3), "fewer segments lost");
}

#[test]
fn the_25th_duplicate_ack_spares_the_second_timeout() {
    holds(&finding("p2-fig12", 1), "waits for the second timeout");
    let proposed = finding("p2-fig13", 1);
    for words in ["25th duplicate ACK", "no second timeout", "one half of the previous cwnd"] {
        holds(&proposed, words);
    }
    holds(&finding("p2-fig14", 1), "33 kbit/s");
    holds(&finding("p2-fig15", 1), "right edge");
}

#[test]
fn what_is_not_random_does_not_change_with_the_seeds() {
    for id in ["p2-fig12", "p2-fig13", "p2-fig14", "p2-fig15"] {
        assert_eq!(finding(id, 1).markdown(), finding(id, 2).markdown(), "{id}");
    }
}
