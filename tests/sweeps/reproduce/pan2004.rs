//! The figures of Pan et al. 2004 with few seeds: completeness, and the claims that do not
//! depend on more seeds.

use std::path::Path;

use airtcp_reproduce::pan2004::setting::{Channel, Setting};
use airtcp_reproduce::{Counts, Judged};
use airtcp_sim::run::{Run, run};
use airtcp_sim::sweep::setup::Setup;
use airwire::time::Duration;

use super::{claim, finding, holds, leading_number};

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_11a_sifest_raises_tahoe_throughput() {
    let finding = finding("p0-fig11a", 8);
    let text = finding.markdown();
    assert_eq!(finding.tables[0].rows.len(), 12, "{text}");
    holds(&finding, "higher throughput and lower idle periods");
    // The figure ends with the paper's three numbers.
    let [chart] = &finding.charts[..] else { panic!("{text}") };
    let marks: Vec<_> = chart.curves.iter().flat_map(|curve| curve.paper.clone()).collect();
    assert_eq!(marks, [(100.0, 932.0), (100.0, 1111.0), (100.0, 1245.0)]);
    for curve in &chart.curves {
        assert_eq!(curve.points.len(), 11, "{}", curve.name);
        assert!(curve.points.windows(2).all(|two| two[0].1.mean <= two[1].1.mean), "{}", curve.name);
    }
}

#[test]
fn figure_6_loss_clusters_cost_little() {
    let finding = finding("p0-fig6", 6);
    assert_eq!(finding.tables[0].rows.len(), 6, "{}", finding.markdown());
    let judged = claim(&finding, "performs poorly").judged;
    assert_ne!(judged, Judged::Holds, "not at α = β = 0.3\n{}", finding.markdown());
    assert_eq!(finding.charts.len(), 2);
}

#[test]
fn figure_7_reno_times_out_after_two_losses() {
    let finding = finding("p0-fig7", 6);
    holds(&finding, "normally has to wait for a timeout");
    // (a) Tahoe and (b) Reno: in each, two consecutive packets are lost and retransmitted.
    assert_eq!(finding.charts.len(), 2, "{}", finding.markdown());
    for chart in &finding.charts {
        let points = |name| &chart.curves.iter().find(|curve| curve.name == name).unwrap().points;
        let lost: Vec<f64> = points("lost").iter().map(|(_, number)| number.mean).collect();
        let row = lost.windows(2).find(|two| two[0] + 1.0 == two[1]);
        let row = row.unwrap_or_else(|| panic!("{}: {lost:?}", chart.title));
        assert!(row.iter().all(|lost| points("resent").iter().any(|(_, number)| number.mean == *lost)));
    }
}

/// With sifest, more packets are retransmitted because they are late.
#[test]
#[ignore = "nightly: simulates a whole figure"]
fn sifest_retransmits_late_packets() {
    let finding = finding("p0-reordering", 4);
    let (rows, text) = (&finding.tables[0].rows, finding.markdown());
    assert_eq!(rows.len(), 2 * 5 * 6, "{text}");
    let late = |row: &[String]| leading_number(row.last().unwrap());
    let total = |sender: usize| rows.chunks(3).map(|family| late(&family[sender])).sum::<f64>();
    assert!(total(0) < total(1) && total(1) < total(2), "{text}");
    assert_ne!(claim(&finding, "Fig. 2c of Lai et al.").judged, Judged::Holds, "{text}");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn figure_8_tahoe_window_often_stays_tiny() {
    let finding = finding("p0-fig8", 4);
    holds(&finding, "remains very small");
    assert_eq!(finding.charts.len(), 1, "{}", finding.markdown());
    assert!(matches!(claim(&finding, "fates to fail").counts, Counts::ByConstruction(_)));
}

#[test]
fn figure_9_retransmission_timeouts_back_off_exponentially() {
    let finding = finding("p0-fig9", 4);
    let [chart] = &finding.charts[..] else { panic!("{}", finding.markdown()) };
    let resent = &chart.curves.iter().find(|curve| curve.name == "resent").unwrap().points;
    let is_backed_off = |number: f64| {
        let at: Vec<f64> = resent.iter().filter(|(_, sent)| sent.mean == number).map(|(at, _)| *at).collect();
        at.windows(3).any(|three| {
            let [first, second] = [three[1] - three[0], three[2] - three[1]];
            (first - 1.4).abs() < 0.02 && (second - 2.8).abs() < 0.02
        })
    };
    assert!(resent.iter().any(|(_, number)| is_backed_off(number.mean)), "{resent:?}");
    assert!(matches!(claim(&finding, "packet #618").counts, Counts::Calibrated(_)));
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn sifest_helps_with_small_receive_windows() {
    let finding = finding("p0-limits", 4);
    let text = finding.markdown();
    assert_eq!(finding.tables.len(), 5, "{text}");
    holds(&finding, "alleviate the occurrence of timeout");
    // With a window of three segments, Limited Transmit cannot send the segment that would cause the third
    // duplicate ACK.
    let cells = &finding.tables[0].rows[2];
    let gain = leading_number(&cells[5]);
    assert!(cells[0] == "3" && cells[1] == "sifest" && gain > 5.0, "{cells:?}");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn alternative_readings_are_compared_with_chosen_ones() {
    let finding = finding("p0-text", 3);
    let text = finding.markdown();
    assert_eq!(claim(&finding, "dupack</sub> when").judged, Judged::Holds);
    let [_, set_ups, letters, queues, choices] = &finding.tables[..] else { panic!("{text}") };
    // One row for each parameter that restores the paper's wording, and one for `sifest-literal`.
    assert_eq!(choices.rows.len(), 10, "{text}");
    // Read literally, the paper retransmits a segment that is alone on the path after any ACK. This costs
    // more than 5 %.
    let any_ack = leading_number(&choices.rows[0][2]);
    assert!(choices.rows[0][0] == "`sifest-any-ack`" && any_ack < -5.0, "{text}");
    assert_eq!((set_ups.rows.len(), letters.rows.len()), (7, 5), "{text}");
    // Read literally, with ticks of 500 ms, the text leads to numbers far from the paper's.
    let packets = |row: usize| leading_number(&set_ups.rows[row][1]);
    assert!(packets(1) < 0.8 * packets(0), "{text}");
    // If only a queue drops packets, `sifest` sends the same as the plain sender, and `sifest-literal`
    // retransmits in vain.
    for row in &queues.rows {
        let sent: Vec<f64> = row[3].split(" / ").map(|count| count.parse().unwrap()).collect();
        assert!(sent[1] == sent[0] && sent[2] >= sent[0], "{row:?}");
    }
}

/// The command in docs/reference/presets.md executes the reproduced run.
#[test]
fn preset_with_paper_hosts_equals_reproduced_setup() {
    let plan = Setting::new("tahoe", Channel::new(0.01, 0.15)).plan().unwrap();
    let typed = Setup {
        recipes: vec!["tahoe+timer-ns2=100+no-window-scale+no-handshake-rtt@ns2".parse().unwrap()],
        time: Some(Duration::from_secs(100)),
        receiver_options: Some("mss=472+delack-time=200".parse().unwrap()),
        receive_buffer: Some(7552),
        ..Setup::new("sifest-resent")
    };
    let scenario = typed.scenario(Path::new(""), airfiles::PathSource::User).unwrap();
    for seed in 1..=20 {
        let reproduced = run(&Run { seed, ..plan.clone() }).unwrap();
        let mut typed = run(&typed.run(scenario.clone(), seed)).unwrap();
        typed.flows[0].recipe = reproduced.flows[0].recipe.clone();
        assert_eq!(typed, reproduced, "seed {seed}");
    }
}
