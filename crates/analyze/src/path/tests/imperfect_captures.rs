//! Captures that are cut off, begin late or are empty.

use super::*;
use aircaptures::problem::Problem;

/// The headers of a SYN have 60 bytes. All other packets have 52 bytes of headers, including 12 bytes of
/// options.
#[test]
fn only_cut_options_are_reported() {
    let run = run(LOSSY, "newreno", 100_000);
    for (snap_length, expected) in [(50, &[Problem::OptionsCut][..]), (60, &[])] {
        let cut = |name: &str, packets: &Packets| run.truncated_capture(name, packets, snap_length);
        let captures = vec![cut("fixed", &run.fixed), cut("mobile", &run.mobile)];
        let report = read(&Files { captures, ..Files::default() }, Keep::Findings).unwrap().0;
        for capture in &report.captures {
            let problems: Vec<_> = capture.problems.iter().map(|(problem, _)| problem).collect();
            assert_eq!(problems, expected, "{snap_length} bytes: {report}");
        }
    }
}

#[test]
fn losses_before_later_capture_began_are_undetermined() {
    let mut run = run(LOSSY, "newreno", 1_000_000);
    let begin = run.mobile[run.mobile.len() / 2].0;
    run.mobile.retain(|(at, _)| *at >= begin);
    let losses = run.losses().as_slice();
    let late = losses.iter().filter(|dropped| dropped.sent.as_nanos() as i64 >= begin).count();
    assert!(late > 0 && late < losses.len(), "{late} of {}", losses.len());
    for ahead in [0, 3_600_000 * MS] {
        let shifted = run.mobile.iter().map(|(at, octets)| (at + ahead, octets.clone())).collect();
        let captures = vec![run.capture("fixed", &run.fixed), run.capture("late", &shifted)];
        let [data, _] = on_path(&Files { captures, ahead: Some(vec![ahead]), ..Files::default() });
        assert_eq!(data.data.lost, late as u64, "{ahead}: {data:?}");
        assert_eq!(data.data.entered, data.data.arrived + data.data.lost + data.data.undetermined);
    }
}

#[test]
fn packets_in_transit_at_capture_end_are_undetermined() {
    let mut run = run(LOSSY, "newreno", 1_000_000);
    let end = run.mobile[run.mobile.len() / 2].0;
    run.mobile.retain(|(at, _)| *at <= end);
    let lost_until = |end: i64| {
        let losses = run.losses().as_slice();
        losses.iter().filter(|dropped| dropped.sent.as_nanos() as i64 <= end).count() as u64
    };
    let (surely, at_most) = (lost_until(end - 500 * MS), lost_until(end));
    let [data, _] = on_path(&run.files());
    assert!(surely > 3 && (surely..=at_most).contains(&data.data.lost), "{surely} {at_most}: {data:?}");
    assert_eq!(data.data.entered, data.data.arrived + data.data.lost + data.data.undetermined);
}

#[test]
fn empty_capture_shows_no_losses() {
    let run = run(LOSSY, "newreno", 100_000);
    for ahead in [None, Some(vec![1]), Some(vec![-1])] {
        let captures = vec![run.capture("fixed", &run.fixed), run.capture("empty", &Packets::new())];
        let report = read(&Files { captures, ahead, ..Files::default() }, Keep::Findings).unwrap().0;
        assert_eq!((report.captures[1].tcp_packets, report.matched), (0, 0), "{report}");
        for flow in flows(&report) {
            assert_eq!((flow.data.lost, flow.acks.lost), (0, 0), "{report}");
        }
    }
}
