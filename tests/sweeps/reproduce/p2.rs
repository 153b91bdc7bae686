//! The figures of P2, with few seeds: what does not depend on their number.

use airtcp_reproduce::p2::FIGURES;

use super::{finding, holds};

#[test]
fn every_figure_has_full_tables_claims_and_choices() {
    for figure in FIGURES {
        finding(figure.id, 1);
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
