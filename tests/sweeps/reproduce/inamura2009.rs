//! The figures of Inamura et al. 2009 with few seeds: the properties that do not depend on the number of seeds.

use airtcp_reproduce::{Counts, Finding};

use super::{claim, finding, holds, leading_number};

/// Returns a finding. Checks that it has charts, and that its claims are quotations with their place.
fn figure(id: &str, seeds: u32) -> Finding {
    let finding = finding(id, seeds);
    assert!(!finding.charts.is_empty(), "{id}");
    for chart in &finding.charts {
        assert!(chart.curves.iter().all(|curve| !curve.points.is_empty()), "{id}: {}", chart.title);
    }
    for claim in &finding.claims {
        assert!(!claim.place.is_empty(), "{}", claim.sentence);
        let is_quoted = claim.sentence.starts_with('“') && claim.sentence.contains('”');
        assert!(is_quoted || matches!(claim.counts, Counts::Own(_)), "{}", claim.sentence);
    }
    finding
}

/// Returns the number at the beginning of a table cell.
fn number(finding: &Finding, table: usize, row: usize, column: &str) -> f64 {
    let table = &finding.tables[table];
    let at = table.columns.iter().position(|name| name == column).unwrap_or_else(|| panic!("no {column}"));
    leading_number(&table.rows[row][at])
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn small_pdus_are_faster_at_high_error_rates() {
    let finding = figure("p2-pdu", 2);
    let at = |row| number(&finding, 0, row, "BLER 10 %");
    assert_eq!(finding.tables[0].rows[0][0], "42 bytes");
    for row in 1..5 {
        assert!(at(row) < at(row - 1), "{}", finding.markdown());
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_2_extreme_tsp_values_cost_throughput() {
    let finding = figure("p2-fig2", 1);
    let last = finding.tables[0].rows.len() - 1;
    let without_timeouts = |row| number(&finding, 0, row, "timer never fires");
    // The first row is 0 ms, which prohibits nothing; the fourth is 150 ms.
    assert_eq!(
        (finding.tables[0].rows[0][0].as_str(), finding.tables[0].rows[3][0].as_str()),
        ("0 ms", "150 ms")
    );
    assert!(
        without_timeouts(0) < without_timeouts(1) && without_timeouts(1) < without_timeouts(3),
        "a short TSP repeats PDUs in flight"
    );
    assert!(without_timeouts(last) < 0.7 * without_timeouts(3), "throughput drops even without timeouts");
    let copies = |row| number(&finding, 0, row, "PDUs sent again, per new one");
    assert!(copies(0) > 2.0 * copies(3) && copies(3) > copies(last));
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_3_low_maxdat_loses_segments() {
    let finding = figure("p2-fig3", 2);
    let [one, three] = [1, 3].map(|row| number(&finding, 0, row, "segments lost, %"));
    assert!(one > 10.0 * three, "{one} {three}");
    let [two, eight] = [2, 8].map(|row| number(&finding, 0, row, "kbit/s"));
    assert!(two < 0.5 * eight, "{two} {eight}");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_5_transmission_based_timer_fires_spuriously() {
    let finding = figure("p2-fig5", 12);
    holds(&finding, "Linux2.4 changed RTO implementation");
    // Solaris and Linux 2.2, in the table of spurious timeouts and in the table of all timeouts.
    for (spurious, all) in [(4, 4), (5, 5)] {
        for bler in ["BLER 1 %", "BLER 2 %", "BLER 5 %", "BLER 10 %"] {
            assert_eq!(number(&finding, 1, spurious, bler), number(&finding, 0, all, bler), "{bler}");
        }
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_5_windows_xp_substitute_is_not_counted() {
    let finding = figure("p2-fig5", 1);
    let counts = |words| &claim(&finding, words).counts;
    assert!(matches!(counts("Windows XP(SP2) 0"), Counts::ByConstruction(_)));
    assert_ne!(*counts("For Windows XP"), Counts::Yes);
    assert!(matches!(counts("FreeBSD4.5 0"), Counts::Repeats(_)), "the sentences of §5.2 count");
    let recipe = |row: usize| finding.tables[0].rows[row][1].as_str();
    assert_ne!(recipe(0), recipe(1), "FreeBSD 2.2.8 and 4.5 are two senders");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_6_compares_freebsd_senders_by_runs() {
    let finding = figure("p2-fig6", 2);
    assert_eq!(claim(&finding, "Comparing the difference between").counts, Counts::Yes);
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_7_eifel_detects_spurious_linux_timeouts() {
    let finding = figure("p2-fig7", 4);
    holds(&finding, "almost the same");
    holds(&finding, "all of RTO is detected");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn duplicate_ack_25_avoids_second_timeout() {
    let fast = figure("p2-fig12", 1);
    assert!(claim(&fast, "it has to wait a long time").result.starts_with("2 timeouts"));
    holds(&fast, "only work as conventional TCP");
    let proposed = figure("p2-fig13", 1);
    for words in ["25th duplicate ACK", "switches from the fast timeout", "one half of the previous cwnd"] {
        holds(&proposed, words);
    }
    holds(&figure("p2-fig14", 1), "33 kbps");
    let sack = figure("p2-fig15", 1);
    holds(&sack, "one half of the previous cwnd");
    holds(&sack, "6th duplicate ACK");
    let calibrated = |finding: &Finding| {
        finding.claims.iter().filter(|claim| matches!(claim.counts, Counts::Calibrated(_))).count()
    };
    assert_eq!((calibrated(&proposed), calibrated(&sack)), (1, 1), "their times are calibrated");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn deterministic_figures_do_not_depend_on_seeds() {
    for id in ["p2-fig12", "p2-fig13", "p2-fig14", "p2-fig15"] {
        assert_eq!(finding(id, 1).markdown(), finding(id, 2).markdown(), "{id}");
    }
}
