//! Captures of transfers in virtual time, distorted as capture setups distort them. The findings must equal
//! the findings of the original, or the distortion must be reported.

use aircaptures::capture::{Frame, Next};
use aircaptures::link_layer::LinkType;
use aircaptures::packet::Timestamp;
use aircaptures::problem::Problem;
use airtcp_testkit::frames::Tcp;
use airwire::segment;

use super::*;
use crate::connection::ConnectionFindings;
use crate::connection::findings::{CapturePoint, DirectionFindings};
use crate::test_support::{run_flow, scenario};

const LOSSY: &str = scenario!(
    r#"rate = "10Mbit", delay = "30ms""#,
    "kind = \"loss\"\nname = \"air\"\nboth = { model = \"uniform\", per = \"1%\" }"
);
const MICROSECOND: i64 = 1000;
const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600 * SECOND;

/// A packet in the capture, and its time in nanoseconds.
#[derive(Clone, Debug)]
struct Row {
    at: i64,
    tcp: Tcp,
    window: u16,
}

impl Row {
    fn end(&self) -> u32 {
        self.tcp.seq.wrapping_add(self.tcp.len as u32)
    }
}

/// A transfer, captured at the sender, which is the first end.
fn transfer(recipe: &str, seed: u64) -> Vec<Row> {
    let (_, [sender, _]) = run_flow(LOSSY, recipe, 400_000, seed);
    let rows = sender.iter().map(|(at, bytes)| {
        let segment = segment::parse(bytes).unwrap();
        let (seq, ack, len) = (segment.seq.0, segment.ack.0, segment.payload.len());
        let ident = u16::from_be_bytes([bytes[4], bytes[5]]);
        let options = segment.options;
        let tcp = Tcp { ident, options, ..Tcp::new(segment.src, segment.dst, segment.flags, seq, ack, len) };
        let at = at.as_nanos() as i64 / MICROSECOND * MICROSECOND;
        Row { at: SECOND + at, tcp, window: segment.window }
    });
    rows.collect()
}

fn is_data(rows: &[Row], row: &Row) -> bool {
    row.tcp.src == rows[0].tcp.src
}

struct Surveyed {
    totals: Totals,
    connections: Vec<ConnectionFindings>,
}

impl Surveyed {
    fn of(rows: &[Row]) -> Self {
        let mut survey = Survey::new(Traces::None, Limits::default());
        let mut finished = Vec::new();
        for (number, row) in (1..).zip(rows) {
            let data = row.tcp.carrying(row.window, &vec![0; row.tcp.len]);
            let frame = Frame {
                number,
                at: Timestamp(row.at),
                link: LinkType::RAW,
                data: &data,
                length: data.len() as u32,
                snap_length: None,
            };
            survey.feed(Next::Frame(frame), &mut |one| finished.push(one));
        }
        let totals = survey.finish(&mut |one| finished.push(one));
        finished.sort_by_key(|one| one.number);
        Self { totals, connections: finished.into_iter().map(|one| one.ended.findings).collect() }
    }

    #[track_caller]
    fn only(&self) -> &ConnectionFindings {
        assert_eq!(self.connections.len(), 1);
        &self.connections[0]
    }

    /// The findings about both directions, without the resolution of the clock, which depends on all times, and
    /// without frame numbers.
    #[track_caller]
    fn directions(&self) -> [DirectionFindings; 2] {
        let mut directions = self.only().directions.clone();
        for direction in &mut directions {
            direction.rtt.resolution_seconds = None;
            if let Some(found) = &mut direction.round_trips {
                found.frames = Default::default();
            }
        }
        directions
    }

    #[track_caller]
    fn data(&self) -> &DirectionFindings {
        &self.only().directions[0]
    }

    fn count(&self, problem: Problem) -> u64 {
        self.totals.problems.count(problem)
    }
}

/// Recipes with and without the options that identify a packet.
const RECIPES: [&str; 2] = ["sack", "newreno+no-timestamps"];

fn without_ids(rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.iter_mut().for_each(|row| row.tcp.ident = 0);
    rows
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| row.at);
    rows
}

// ----- packets captured twice -----

#[test]
fn doubled_packets_do_not_change_findings() {
    for (recipe, seed) in RECIPES.into_iter().zip(71..) {
        for rows in [transfer(recipe, seed), without_ids(&transfer(recipe, seed))] {
            let original = Surveyed::of(&rows);
            assert!(original.data().retransmissions.packets > 0);
            for delay in [0, 15 * MICROSECOND, 40 * MICROSECOND, 300 * MICROSECOND] {
                let later = rows.iter().map(|row| Row { at: row.at + delay, ..row.clone() });
                let doubled = Surveyed::of(&sorted(rows.iter().cloned().chain(later).collect()));
                let found = doubled.only();
                assert_eq!(found.copies, rows.len() as u64, "{recipe}, {delay} ns");
                assert_eq!(doubled.directions(), original.directions(), "{recipe}, {delay} ns");
                assert_eq!(found.handshake, original.only().handshake);
            }
        }
    }
}

/// Replaces runs of new data segments by large sends, as a host with TSO captures them. Calls `write` with the
/// large packet and its segments.
fn merged(rows: &[Row], most: usize, mut write: impl FnMut(&mut Vec<Row>, Row, &[Row])) -> Vec<Row> {
    let mut written: Vec<Row> = Vec::new();
    let mut run: Vec<Row> = Vec::new();
    let mut flush = |run: &mut Vec<Row>, written: &mut Vec<Row>| {
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            let len = run.iter().map(|row| row.tcp.len).sum();
            let (at, flags) = (last.at, last.tcp.flags);
            let large = Row { at, tcp: Tcp { len, flags, ..first.tcp.clone() }, ..first.clone() };
            write(written, large, run);
            run.clear();
        }
    };
    for row in rows {
        let continues = run.last().is_some_and(|last| {
            let same =
                last.tcp.options.timestamps == row.tcp.options.timestamps && last.tcp.ack == row.tcp.ack;
            row.tcp.seq == last.end() && row.at - last.at < MILLISECOND && same
        });
        let is_full = is_data(rows, row) && row.tcp.len >= 1000;
        if !is_full || !continues || run.len() == most {
            flush(&mut run, &mut written);
        }
        if is_full { run.push(row.clone()) } else { written.push(row.clone()) }
    }
    flush(&mut run, &mut written);
    sorted(written)
}

#[test]
fn large_send_and_its_segments_count_once() {
    for (recipe, seed) in RECIPES.into_iter().zip(72..) {
        for rows in [transfer(recipe, seed), without_ids(&transfer(recipe, seed))] {
            let large_only = Surveyed::of(&merged(&rows, 10, |rows, large, _| rows.push(large)));
            let mut pieces = 0;
            let both = merged(&rows, 10, |written, large, run| {
                let at = large.at + 12 * MICROSECOND;
                if run.len() > 1 {
                    written.push(large);
                    pieces += run.len() as u64;
                    let of_run = run.iter().enumerate();
                    written.extend(
                        of_run.map(|(i, row)| Row { at: at + i as i64 * MICROSECOND, ..row.clone() }),
                    );
                } else {
                    written.extend_from_slice(run);
                }
            });
            assert!(pieces > 50, "{pieces} segments");
            let both = Surveyed::of(&both);
            assert_eq!(both.only().copies, pieces, "{recipe}");
            let (found, expected) = (both.data(), large_only.data());
            assert_eq!(found.retransmissions, expected.retransmissions, "{recipe}");
            assert_eq!((found.sent_bytes, found.acked_bytes), (expected.sent_bytes, expected.acked_bytes));
            assert_eq!(found.sender.segment_bytes as usize, rows[3].tcp.len);
        }
    }
}

#[test]
fn segments_and_the_merged_packet_count_once() {
    let rows = transfer("sack", 73);
    let original = Surveyed::of(&rows);
    let mut large_packets = 0;
    let both = merged(&rows, 17, |written, large, run| {
        written.extend_from_slice(run);
        if run.len() > 1 {
            large_packets += 1;
            written.push(Row { at: large.at + 30 * MICROSECOND, ..large });
        }
    });
    let both = Surveyed::of(&both);
    assert!(large_packets > 10);
    assert_eq!(both.only().copies, large_packets);
    assert_eq!(both.directions(), original.directions());
}

/// After an ICMP error, a sender retransmits with smaller segments and other identifications.
#[test]
fn resegmented_retransmission_is_not_a_copy() {
    let rows = transfer("sack", 74);
    let (first, last) = (3, 6);
    let mut cut = rows[..last].to_vec();
    for row in &rows[first..last] {
        for piece in 0..2 {
            let mut small = row.clone();
            small.at = rows[last - 1].at + 200 * MICROSECOND;
            small.tcp.len = row.tcp.len / 2;
            small.tcp.seq = row.tcp.seq.wrapping_add(piece * row.tcp.len as u32 / 2);
            small.tcp.ident = row.tcp.ident.wrapping_add(500 + piece as u16);
            cut.push(small);
        }
    }
    let found = Surveyed::of(&cut);
    assert_eq!((found.only().copies, found.data().retransmissions.packets), (0, 6));
}

// ----- offload -----

#[test]
fn large_sends_are_not_taken_for_segments() {
    for (recipe, seed) in RECIPES.into_iter().zip(75..) {
        let rows = transfer(recipe, seed);
        let original = Surveyed::of(&rows);
        for most in [2, 10, 40] {
            let large = merged(&rows, most, |written, large, _| written.push(large));
            let found = Surveyed::of(&large);
            let (sender, expected) = (&found.data().sender, &original.data().sender);
            assert!(sender.longest_segment_bytes > expected.longest_segment_bytes);
            assert_eq!(sender.segment_bytes, expected.segment_bytes, "{recipe}, up to {most}");
            assert_eq!(sender.initial_window_segments, expected.initial_window_segments, "{recipe}, {most}");
            let text = found.only().to_string();
            assert!(
                text.contains(&format!("segments of {} bytes (in packets", expected.segment_bytes)),
                "{text}"
            );
            // Without the handshake, the lengths of the packets show the length of the segments.
            let found = Surveyed::of(&large[3..]);
            assert_eq!(found.data().sender.segment_bytes, expected.segment_bytes, "{recipe}, up to {most}");
        }
    }
}

// ----- order and clocks of the directions -----

#[test]
fn data_after_its_partial_ack_is_not_retransmission() {
    let rows = transfer("sack", 76);
    let large = merged(&rows, 10, |written, large, _| written.push(large));
    let mut moved = 0;
    let mut late = large.clone();
    for (index, row) in large.iter().enumerate().filter(|(_, row)| is_data(&large, row)) {
        // The first ACK that covers some of the packet.
        let ack = large[index..].iter().find(|ack| {
            let covered = ack.tcp.ack.wrapping_sub(row.tcp.seq) as usize;
            !is_data(&large, ack) && covered > 0 && covered < row.tcp.len
        });
        if let Some(ack) = ack.filter(|ack| ack.at - row.at < 100 * MILLISECOND) {
            moved += 1;
            late[index].at = ack.at + 100 * MICROSECOND;
        }
    }
    assert!(moved > 3, "{moved} packets");
    let (found, expected) = (Surveyed::of(&sorted(late)), Surveyed::of(&large));
    let (found, expected) = (found.data(), expected.data());
    assert!(found.retransmissions.unexplained <= expected.retransmissions.unexplained);
    assert_eq!(found.retransmissions.packets, expected.retransmissions.packets);
    assert_eq!((found.acked_bytes, found.acked_unseen_bytes), (expected.acked_bytes, 0));
}

/// The times of the second end's packets are changed by `by`, as by another clock.
fn skewed(rows: &[Row], by: i64) -> Vec<Row> {
    let changed = rows.iter().map(|row| {
        let by = if is_data(rows, row) { 0 } else { by };
        Row { at: row.at + by, ..row.clone() }
    });
    sorted(changed.collect())
}

#[test]
fn clock_difference_above_round_trip_is_reported() {
    for (recipe, seed) in RECIPES.into_iter().zip(77..) {
        let rows = transfer(recipe, seed);
        let original = Surveyed::of(&rows);
        assert!(original.only().clock_difference_seconds.is_none());
        for early in [90, 120, 300, 1000] {
            let found = Surveyed::of(&skewed(&rows, -early * MILLISECOND));
            let case = format!("{recipe}, {early} ms");
            let least = found.only().clock_difference_seconds.unwrap_or(0.0);
            assert!(least > 0.003 && least <= early as f64 / 1e3, "{case}: {least}");
            assert_eq!(found.count(Problem::ClocksDiffer), 1, "{case}");
            assert_eq!(found.only().capture_at, CapturePoint::Unknown);
            assert!(found.only().to_string().contains("the clocks of the two directions differ"));
            let data = found.data();
            let count = original.data().retransmissions.packets;
            assert!(data.retransmissions.packets.abs_diff(count) <= 1, "{case}: {:?}", data.retransmissions);
            assert_eq!((data.retransmissions.spurious.by_ack, data.acked_unseen_bytes), (0, 0), "{case}");
            assert_eq!((data.rtt.samples, data.acked_bytes), (0, original.data().acked_bytes), "{case}");
            assert_eq!(data.window.max_flight_bytes, None);
        }
    }
}

#[test]
fn echoes_before_their_originals_reveal_late_acks() {
    let rows = transfer("sack", 79);
    for late in [40, 300] {
        let found = Surveyed::of(&skewed(&rows, late * MILLISECOND));
        let least = found.only().clock_difference_seconds.unwrap_or(0.0);
        assert!(least > 0.003 && least <= late as f64 / 1e3, "{late} ms: {least}");
        assert_eq!(found.data().rtt.samples, 0);
    }
}

#[test]
fn clocks_that_differ_by_less_are_not_reported() {
    let rows = transfer("sack", 80);
    for by in [-2, 2] {
        let found = Surveyed::of(&skewed(&rows, by * MILLISECOND));
        assert_eq!(found.only().clock_difference_seconds, None, "{by} ms");
    }
}

// ----- steps of the clock -----

/// The clock is set by `by` before the frame with this index.
fn stepped(rows: &[Row], index: usize, by: i64) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows[index..].iter_mut().for_each(|row| row.at += by);
    rows
}

#[test]
fn forward_step_of_the_clock_is_corrected() {
    for (recipe, seed) in RECIPES.into_iter().zip(81..) {
        let rows = transfer(recipe, seed);
        let original = Surveyed::of(&rows);
        let has_timestamps = recipe == "sack";
        let middle = rows.len() / 2;
        let places = if has_timestamps { &[2, 3, middle, rows.len() - 4][..] } else { &[middle] };
        for index in places {
            // At the beginning, the rate of the timestamps is unknown.
            for by in [HOUR, 90 * SECOND].into_iter().take(if *index < 10 { 1 } else { 2 }) {
                let found = Surveyed::of(&stepped(&rows, *index, by));
                let case = format!("{recipe}, {by} ns before frame {}", index + 1);
                assert_eq!(found.count(Problem::ClockStepped), 1, "{case}");
                assert!((found.totals.seconds - original.totals.seconds).abs() < 0.05, "{case}");
                let (found, expected) = (found.data(), original.data());
                assert_eq!(found.retransmissions.packets, expected.retransmissions.packets, "{case}");
                assert!(found.rtt.max_seconds.unwrap() < expected.rtt.max_seconds.unwrap() + 0.2, "{case}");
            }
        }
        if has_timestamps {
            let short = Surveyed::of(&stepped(&rows, middle, 6 * SECOND));
            assert_eq!(short.count(Problem::ClockStepped), 1);
        }
    }
}

#[test]
fn pause_is_not_a_step_of_the_clock() {
    let rows = transfer("sack", 83);
    for pause in [8 * SECOND, HOUR] {
        // Both ends' timestamps count the pause in milliseconds.
        let mut paused = stepped(&rows, rows.len() / 2, pause);
        for row in &mut paused[rows.len() / 2..] {
            if let Some(timestamps) = &mut row.tcp.options.timestamps {
                timestamps.val = timestamps.val.wrapping_add((pause / MILLISECOND) as u32);
            }
        }
        let found = Surveyed::of(&paused);
        assert_eq!(found.count(Problem::ClockStepped), 0);
        assert!(found.totals.seconds > pause as f64 / 1e9);
    }
}

/// The data waits on the path for a while, as during an outage. The receiver's timestamps count the time.
#[test]
fn packets_stuck_on_path_are_not_clock_step() {
    let rows = transfer("sack", 84);
    let mut stuck = stepped(&rows, rows.len() / 2, 20 * SECOND);
    for row in &mut stuck[rows.len() / 2..] {
        if !is_data(&rows, row)
            && let Some(timestamps) = &mut row.tcp.options.timestamps
        {
            timestamps.val = timestamps.val.wrapping_add(20_000);
        }
    }
    assert_eq!(Surveyed::of(&stuck).count(Problem::ClockStepped), 0);
}

#[test]
fn backward_step_of_the_clock_leaves_findings_unchanged() {
    let rows = transfer("sack", 85);
    let original = Surveyed::of(&rows);
    let found = Surveyed::of(&stepped(&rows, rows.len() / 2, -HOUR));
    assert_eq!(found.count(Problem::ClockBackwards), 1);
    assert_eq!(found.data().retransmissions.packets, original.data().retransmissions.packets);
}

// ----- coarse clocks -----

#[test]
fn times_below_the_clock_resolution_are_not_zero() {
    let rows = transfer("sack", 86);
    for (step, text) in [(10 * MILLISECOND, "below 10.0 ms"), (SECOND, "below 1.00 s")] {
        // The connection lasts for less than a second, so several connections are needed to know the
        // resolution.
        let again = |index: i64| {
            rows.iter().map(move |row| {
                let mut row = row.clone();
                for end in [&mut row.tcp.src, &mut row.tcp.dst] {
                    end.set_port(end.port() + 20 * index as u16);
                }
                row.at = (row.at + index * 2 * SECOND) / step * step;
                row
            })
        };
        let found = Surveyed::of(&(0..30).flat_map(again).collect::<Vec<_>>());
        assert_eq!(found.count(Problem::ClockCoarse), 1);
        let last = found.connections.last().unwrap();
        assert_eq!(last.clock_resolution_seconds, Some(step as f64 / 1e9));
        let rtt = &last.directions[0].rtt;
        assert!(rtt.samples > 0 && rtt.min_seconds != Some(0.0) && rtt.median_seconds != Some(0.0));
        assert_ne!(last.handshake.rtt_seconds, Some(0.0));
        if step == SECOND {
            assert!(last.to_string().contains(text), "{last}");
        }
    }
    let fine = Surveyed::of(&rows);
    assert_eq!(fine.count(Problem::ClockCoarse), 0);
}

// ----- repeated parts -----

#[test]
fn repeated_part_of_the_capture_is_ignored() {
    let rows = transfer("sack", 87);
    let original = Surveyed::of(&rows);
    let later = stepped(&rows, 0, HOUR);
    let count = rows.len();
    for (what, added) in [
        ("all", rows.clone()),
        ("twice", [&rows[..], &rows].concat()),
        ("all, an hour later", later),
        ("the beginning", rows[..count / 3].to_vec()),
        ("the middle", rows[count / 3..count / 2].to_vec()),
        ("the end", rows[count / 2..].to_vec()),
    ] {
        let found = Surveyed::of(&[&rows[..], &added].concat());
        assert_eq!(found.count(Problem::Repeated), added.len() as u64, "{what}");
        assert_eq!(found.only(), original.only(), "{what}");
        assert_eq!(found.totals.frames, (count + added.len()) as u64);
    }
}

#[test]
fn frames_like_the_first_are_not_repeated_part() {
    let rows = transfer("sack", 88);
    // The SYN is retransmitted with the same identification, and a keep-alive is sent regularly.
    let mut more = vec![rows[0].clone()];
    more.extend(rows.iter().cloned().map(|row| Row { at: row.at + 1, ..row }));
    let keep_alive = rows.last().unwrap();
    more.extend((1..20).map(|i| Row { at: keep_alive.at + i * SECOND, ..keep_alive.clone() }));
    let found = Surveyed::of(&more);
    assert_eq!(found.count(Problem::Repeated), 0);
    assert_eq!(found.totals.tcp_packets, more.len() as u64);
}
