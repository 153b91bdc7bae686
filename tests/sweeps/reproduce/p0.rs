//! P0's figures, with few seeds: everything is there, and what is sure with few seeds comes out.

use std::path::Path;

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_reproduce::p0::setting::{Channel, Setting};
use airtcp_reproduce::{Counts, Judged};
use airtcp_sim::run::{Run, run};
use airtcp_sim::sweep::setup::Setup;
use airwire::time::Duration;

use super::{claim, finding, holds};

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn sifest_makes_tahoe_faster_and_less_idle_at_x_001_y_015() {
    let finding = finding("p0-fig11a", 8);
    let text = finding.markdown();
    assert_eq!(finding.tables[0].rows.len(), 12, "{text}");
    holds(&finding, "higher throughput and lower idle periods");
    // The figure has the paper's three numbers at its end.
    let [chart] = &finding.charts[..] else { panic!("{text}") };
    let marks: Vec<_> = chart.curves.iter().flat_map(|curve| curve.paper.clone()).collect();
    assert_eq!(marks, [(100.0, 932.0), (100.0, 1111.0), (100.0, 1245.0)]);
    for curve in &chart.curves {
        assert_eq!(curve.points.len(), 11, "{}", curve.name);
        assert!(curve.points.windows(2).all(|two| two[0].1.mean <= two[1].1.mean), "{}", curve.name);
    }
}

#[test]
fn clusters_of_three_packets_cost_little() {
    let finding = finding("p0-fig6", 6);
    assert_eq!(finding.tables[0].rows.len(), 6, "{}", finding.markdown());
    let judged = claim(&finding, "performs poorly").judged;
    assert_ne!(judged, Judged::Holds, "not at α = β = 0.3\n{}", finding.markdown());
    assert_eq!(finding.charts.len(), 2);
}

#[test]
fn of_two_losses_in_a_row_reno_waits_for_a_timeout() {
    let finding = finding("p0-fig7", 6);
    holds(&finding, "normally has to wait for a timeout");
    // (a) Tahoe and (b) Reno: in each, two packets in a row are lost, and sent again.
    assert_eq!(finding.charts.len(), 2, "{}", finding.markdown());
    for chart in &finding.charts {
        let of = |name| &chart.curves.iter().find(|curve| curve.name == name).unwrap().points;
        let lost: Vec<f64> = of("lost").iter().map(|(_, number)| number.mean).collect();
        let row = lost.windows(2).find(|two| two[0] + 1.0 == two[1]);
        let row = row.unwrap_or_else(|| panic!("{}: {lost:?}", chart.title));
        assert!(row.iter().all(|lost| of("resent").iter().any(|(_, number)| number.mean == *lost)));
    }
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn tahoe_has_a_tiny_window_for_much_of_the_time() {
    let finding = finding("p0-fig8", 4);
    holds(&finding, "remains very small");
    assert_eq!(finding.charts.len(), 1, "{}", finding.markdown());
    assert!(matches!(claim(&finding, "fates to fail").counts, Counts::ByConstruction(_)));
}

#[test]
fn a_packet_is_resent_by_timeouts_of_0_7_1_4_and_2_8_seconds() {
    let finding = finding("p0-fig9", 4);
    let [chart] = &finding.charts[..] else { panic!("{}", finding.markdown()) };
    let resent = &chart.curves.iter().find(|curve| curve.name == "resent").unwrap().points;
    let is_thrice = |number: f64| {
        let at: Vec<f64> = resent.iter().filter(|(_, of)| of.mean == number).map(|(at, _)| *at).collect();
        at.windows(3).any(|three| {
            let waits = [three[1] - three[0], three[2] - three[1]];
            (waits[0] - 1.4).abs() < 0.02 && (waits[1] - 2.8).abs() < 0.02
        })
    };
    assert!(resent.iter().any(|(_, number)| is_thrice(number.mean)), "{resent:?}");
    assert!(matches!(claim(&finding, "packet #618").counts, Counts::Calibrated(_)));
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn sifest_helps_where_the_receiver_has_little_room() {
    let finding = finding("p0-limits", 4);
    let text = finding.markdown();
    assert_eq!(finding.tables.len(), 5, "{text}");
    holds(&finding, "alleviate the occurrence of timeout");
    // With three segments Limited Transmit has no room for what could cause a third duplicate ACK.
    let cells = &finding.tables[0].rows[2];
    let gain: f64 = cells[5].split(' ').next().unwrap().parse().unwrap();
    assert!(cells[0] == "3" && cells[1] == "sifest" && gain > 5.0, "{cells:?}");
}

#[test]
#[ignore = "nightly: simulates a whole figure"]
fn other_readings_stand_beside_the_chosen_ones() {
    let finding = finding("p0-text", 3);
    let text = finding.markdown();
    assert_eq!(claim(&finding, "dupack</sub> when").judged, Judged::Holds);
    let [_, set_ups, letters, queues, choices] = &finding.tables[..] else { panic!("{text}") };
    // Each choice alone, and all of them that `sifest-literal` does not make.
    assert_eq!(choices.rows.len(), 10, "{text}");
    // By the letter a sender sends again whatever is alone in the path: that costs a tenth or more.
    let any_ack: f64 = choices.rows[0][2].split(' ').next().unwrap().parse().unwrap();
    assert!(choices.rows[0][0] == "`sifest-any-ack`" && any_ack < -5.0, "{text}");
    assert_eq!((set_ups.rows.len(), letters.rows.len()), (7, 5), "{text}");
    // The text read literally, with ticks of 500 ms, is far from the paper's numbers.
    let packets = |row: usize| -> f64 { set_ups.rows[row][1].split(' ').next().unwrap().parse().unwrap() };
    assert!(packets(1) < 0.8 * packets(0), "{text}");
    // Where nothing but a queue loses, `sifest` sends what the plain sender does, and the letter sends in vain.
    for row in &queues.rows {
        let sent: Vec<f64> = row[3].split(" / ").map(|count| count.parse().unwrap()).collect();
        assert!(sent[1] == sent[0] && sent[2] >= sent[0], "{row:?}");
    }
}

/// The command in docs/reference/presets.md makes the reproduced run, except for the first round trip.
#[test]
#[ignore = "nightly: simulates a whole figure"]
fn a_preset_and_the_papers_hosts_are_the_set_up_that_is_reproduced() {
    let setting = Setting::new("tahoe", Channel::new(0.01, 0.15));
    let plan = setting.plan().unwrap();
    let typed = Setup {
        recipes: vec!["tahoe+timer-ns2=100@ns2".parse().unwrap()],
        time: Some(Duration::from_secs(100)),
        receiver_options: Some("mss=472+delack-time=200".parse().unwrap()),
        receive_buffer: Some(7552),
        ..Setup::new("sifest-resent")
    };
    let scenario = typed.scenario(Path::new(""), airfiles::By::Person).unwrap();
    let acked = |run_of: &dyn Fn(u64) -> Run| -> Vec<f64> {
        (1..=60).map(|seed| setting.acknowledged(&run(&run_of(seed)).unwrap().flows[0])).collect()
    };
    let reproduced = acked(&|seed| Run { seed, ..plan.clone() });
    let typed = acked(&|seed| typed.run(scenario.clone(), seed));
    let gain = Mean::of(&gains(&typed, &reproduced)).unwrap();
    assert_eq!(Judged::similar(&gain), Judged::Holds, "{gain:?}");
}
