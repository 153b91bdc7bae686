//! The figures of P2, with few seeds: what does not depend on their number.

use airtcp_reproduce::p2::FIGURES;
use airtcp_reproduce::{Counts, Finding, Judged};

use super::{claim, finding, holds};

/// What a cell of a table begins with.
fn number(finding: &Finding, table: usize, row: usize, column: &str) -> f64 {
    let table = &finding.tables[table];
    let at = table.columns.iter().position(|name| name == column).unwrap_or_else(|| panic!("no {column}"));
    let cell = &table.rows[row][at];
    let first = cell.split_whitespace().next().unwrap_or_default();
    first.parse().unwrap_or_else(|_| panic!("{column}: {cell}"))
}

#[test]
fn every_figure_has_tables_charts_claims_and_choices() {
    for figure in FIGURES {
        let finding = finding(figure.id, 1);
        assert!(!finding.charts.is_empty(), "{}", figure.id);
        for chart in &finding.charts {
            assert!(
                chart.curves.iter().all(|curve| !curve.points.is_empty()),
                "{}: {}",
                figure.id,
                chart.title
            );
        }
    }
}

#[test]
fn every_claim_that_counts_is_quoted_and_has_its_place() {
    for figure in FIGURES {
        for claim in finding(figure.id, 1).claims {
            assert!(!claim.place.is_empty(), "{}", claim.paper);
            let is_quoted = claim.paper.starts_with('“') && claim.paper.contains('”');
            assert!(is_quoted || matches!(claim.counts, Counts::Own(_)), "{}", claim.paper);
            assert_ne!(claim.judged, Judged::HoldsInPart, "{}", claim.paper);
        }
    }
}

#[test]
fn both_ends_of_tsp_cost_throughput_and_the_left_one_copies() {
    let finding = finding("p2-fig2", 3);
    holds(&finding, "small TSP causes low link utilization");
    holds(&finding, "many STATUS PDUs");
    // 0 ms is the first row: never prohibited.
    let [none, short] = [0, 1].map(|row| number(&finding, 0, row, "BSD timer"));
    assert!(none < short, "{none} {short}");
}

#[test]
fn what_the_right_side_costs_is_there_without_any_timeout() {
    let claim = claim(&finding("p2-fig2", 3), "caused by the spurious timeouts").clone();
    assert_eq!(claim.judged, Judged::DoesNotHold, "{claim:?}");
}

#[test]
fn a_radio_that_gives_up_early_loses_segments() {
    let finding = finding("p2-fig3", 2);
    holds(&finding, "more persistence, fewer segments lost");
    let [three, eight] = [3, 8].map(|row| number(&finding, 0, row, "kbit/s"));
    assert!(three < 0.8 * eight, "{three} {eight}");
}

#[test]
fn a_timer_that_starts_with_the_transmission_fires_more_often() {
    let finding = finding("p2-fig5", 6);
    holds(&finding, "Linux2.4 changed RTO implementation");
    // Nothing is lost here, so all timeouts are spurious.
    for (row, in_ten) in [(4, 5), (3, 4)] {
        for bler in ["BLER 5 %", "BLER 10 %"] {
            let (spurious, timeouts) = (number(&finding, 1, row, bler), number(&finding, 0, in_ten, bler));
            assert_eq!(spurious, timeouts, "{row} {bler}");
        }
    }
}

#[test]
fn eifel_changes_throughput_and_not_the_number_of_timeouts() {
    holds(&finding("p2-fig7", 4), "almost the same");
}

#[test]
fn the_25th_duplicate_ack_spares_the_second_timeout() {
    let fast = finding("p2-fig12", 1);
    assert_eq!(claim(&fast, "it has to wait a long time").ours.chars().next(), Some('2'), "two timeouts");
    holds(&fast, "only work as conventional TCP");
    let proposed = finding("p2-fig13", 1);
    for words in ["25th duplicate ACK", "switches from the fast timeout", "one half of the previous cwnd"] {
        holds(&proposed, words);
    }
    holds(&finding("p2-fig14", 1), "33 kbps");
    let sack = finding("p2-fig15", 1);
    holds(&sack, "one half of the previous cwnd");
    holds(&sack, "6th duplicate ACK");
    let calibrated = |finding: &Finding| {
        finding.claims.iter().filter(|claim| matches!(claim.counts, Counts::Calibrated(_))).count()
    };
    assert_eq!((calibrated(&proposed), calibrated(&sack)), (1, 1), "their times were put in");
}

#[test]
fn what_is_not_random_does_not_change_with_the_seeds() {
    for id in ["p2-fig12", "p2-fig13", "p2-fig14", "p2-fig15"] {
        assert_eq!(finding(id, 1).markdown(), finding(id, 2).markdown(), "{id}");
    }
}
