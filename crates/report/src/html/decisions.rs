//! Adds the log of a sender (`decisions.jsonl`) to the trace of its packets.
//!
//! The log counts seconds from the sender's start, and the capture uses the wall clock of the same machine.
//! The wall-clock time of the sender's start aligns the two.

use std::collections::BTreeSet;

use airtcp_analyze::decisions::{self, Line};
use airtcp_analyze::trace::{DecisionSeen, EpisodeSeen, Idle, Offset, Sending, Trace, WindowPoint};

/// A change of the window in bytes. `ssthresh` is `None` if it is arbitrarily high.
struct Change {
    at: Offset,
    cwnd: f64,
    ssthresh: Option<f64>,
}

/// The result of adding a log to a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergedLog {
    /// Number of lines that cannot be parsed and are skipped, such as the last line of a killed sender.
    pub unreadable: usize,
    /// Number of retransmissions whose cause in the log differs from the cause inferred from the capture.
    pub corrected: usize,
}

/// Adds the log's decisions, states, windows and causes to the trace. `start` is the sender's start in
/// nanoseconds since 1970. `mss` is the segment size in bytes; the log counts windows in segments.
pub fn merge_log(trace: &mut Trace, log: &str, start: i64, mss: f64) -> MergedLog {
    let (lines, unreadable) = decisions::read(log);
    let origin = trace.origin;
    let offset = |line: &Line| start - origin + (line.time * 1e9).round() as i64;
    trace.episodes = episodes(&lines, offset, end(trace));
    let timeouts = lines.iter().filter(|line| line.what == "timeout").map(offset).collect();
    let corrected = causes(trace, &timeouts);
    let mut changes = Vec::new();
    for line in &lines {
        let at = offset(line);
        if let (true, Some(cwnd)) = (line.what == "window", line.number("cwnd")) {
            let ssthresh = line.number("ssthresh").map(|it| it * mss);
            changes.push(Change { at, cwnd: cwnd * mss, ssthresh });
        }
        if !is_ordinary_growth(line) {
            trace.decisions.push(decision(at, line, mss));
        }
    }
    trace.windows = with_changes(&trace.windows, &changes);
    MergedLog { unreadable, corrected }
}

/// Corrects the causes of retransmissions, and returns the number of corrections.
///
/// In a capture, a timer that expires just after an ACK arrived looks like a fast retransmission caused by
/// that ACK. The log is more precise: the timer caused a retransmission while the sender is `restarted` after
/// one of the `timeouts`. It did not cause a retransmission in `recovery`. Tahoe also restarts without a
/// timeout; then the cause from the capture remains.
fn causes(trace: &mut Trace, timeouts: &BTreeSet<Offset>) -> usize {
    let Trace { segments, acks, idle, episodes, .. } = trace;
    let mut corrected = 0;
    let mut timeout_episode = None;
    for index in 0..segments.len() {
        let segment = &segments[index];
        if matches!(segment.sending, Sending::New | Sending::Probe) {
            continue;
        }
        let begun = episodes.partition_point(|episode| episode.from <= segment.at);
        let state = episodes[..begun].last().filter(|episode| segment.at < episode.to);
        let cause = match state.map(|episode| (episode.state.as_str(), episode.from)) {
            Some(("restarted", from)) if timeouts.contains(&from) => Sending::Timeout,
            Some(("recovery", _)) => Sending::Fast,
            _ => segment.sending,
        };
        let first = cause == Sending::Timeout && timeout_episode.replace(begun) != Some(begun);
        if cause == segment.sending {
            continue;
        }
        corrected += 1;
        // The preceding silence counts as idle time only if a timeout ended it.
        let at = segment.at;
        idle.retain(|idle| idle.to != at || cause == Sending::Timeout);
        if first && !idle.iter().any(|idle| idle.to == at) {
            let acks = acks.iter().map(|ack| ack.at);
            let packets = segments[..index].iter().map(|sent| sent.at).chain(acks);
            let last = packets.filter(|packet| *packet < at).max();
            idle.extend(last.map(|from| Idle { from, to: at }));
        }
        segments[index].sending = cause;
    }
    idle.sort_by_key(|idle| idle.from);
    corrected
}

/// Returns the time of the last packet.
fn end(trace: &Trace) -> Offset {
    let sent = trace.segments.iter().map(|it| it.at);
    sent.chain(trace.acks.iter().map(|it| it.at)).max().unwrap_or_default()
}

/// Derives the episodes from the state in each line. The last episode may extend to `end`.
fn episodes(lines: &[Line], offset: impl Fn(&Line) -> Offset, end: Offset) -> Vec<EpisodeSeen> {
    let mut episodes: Vec<EpisodeSeen> = Vec::new();
    let mut current: Option<EpisodeSeen> = None;
    for line in lines {
        let Some(state) = line.episode.as_deref() else { continue };
        let enters = line.what == "enter";
        let at = offset(line);
        if enters || current.as_ref().map_or("open", |episode| &episode.state) != state {
            episodes.extend(current.take().map(|episode| EpisodeSeen { to: at, ..episode }));
            let why = if enters { line.why.clone() } else { String::new() };
            let episode = EpisodeSeen { from: at, to: at, state: state.to_owned(), why };
            current = Some(episode).filter(|_| state != "open");
        }
    }
    let last = lines.last().map_or(end, |line| offset(line).max(end));
    episodes.extend(current.map(|episode| EpisodeSeen { to: last, ..episode }));
    episodes
}

/// Returns whether the line is the growth on an ACK, which the curve shows and which gets no mark.
fn is_ordinary_growth(line: &Line) -> bool {
    line.question == "window" && line.what == "window" && line.why == "ACK"
}

fn decision(at: Offset, line: &Line, mss: f64) -> DecisionSeen {
    let grows = line.number("cwnd") > line.number("was_cwnd");
    let what = match (line.what.as_str(), line.question.as_str()) {
        ("window", "undo") => "undo",
        ("window", _) if grows => "opened",
        (what, _) => what,
    };
    DecisionSeen {
        at,
        by: line.by.clone(),
        what: what.to_owned(),
        text: format!("{}: {} ({})", line.question, line.detail(), line.why),
        about: line.offset().map(|offset| (offset, offset + (line.segments().max(1.0) * mss) as u64)),
    }
}

/// Adds the sender's window to all points, and one point for each change of the window.
fn with_changes(points: &[WindowPoint], changes: &[Change]) -> Vec<WindowPoint> {
    if changes.is_empty() {
        return points.to_vec();
    }
    let mut merged = Vec::with_capacity(points.len() + changes.len());
    let mut last = WindowPoint { at: 0, in_flight: 0, estimated: 0, cwnd: None, ssthresh: None };
    let mut changes = changes.iter().peekable();
    let mut add_changes = |until: Offset, last: &mut WindowPoint, merged: &mut Vec<WindowPoint>| {
        while let Some(change) = changes.next_if(|change| change.at <= until) {
            *last =
                WindowPoint { at: change.at, cwnd: Some(change.cwnd), ssthresh: change.ssthresh, ..*last };
            merged.push(*last);
        }
    };
    for point in points {
        add_changes(point.at, &mut last, &mut merged);
        last = WindowPoint { cwnd: last.cwnd, ssthresh: last.ssthresh, ..*point };
        merged.push(last);
    }
    add_changes(Offset::MAX, &mut last, &mut merged);
    merged
}

#[cfg(test)]
mod tests {
    use airtcp_analyze::trace::SentSegment;

    use super::*;

    const LOG: &str = r#"{"time":0.5,"question":"window","by":"aimd","what":"window","cwnd":2.0,"ssthresh":null,"was_cwnd":1.0,"was_ssthresh":null,"why":"ACK"}
{"time":1.5,"question":"timeout","by":"rto","what":"timeout","offset":1001,"why":"RTO"}
{"time":1.5,"question":"window","by":"aimd","what":"window","cwnd":1.0,"ssthresh":2.0,"was_cwnd":2.0,"was_ssthresh":null,"why":"retransmission timeout"}
{"time":1.6,"question":"repair","by":"sack","what":"lost","offs"#;

    fn trace() -> Trace {
        let point = |at, in_flight| WindowPoint { at, in_flight, estimated: 9, cwnd: None, ssthresh: None };
        Trace {
            origin: 1_000_000_000,
            windows: vec![point(0, 1000), point(600_000_000, 2000), point(2_000_000_000, 500)],
            ..Trace::default()
        }
    }

    #[test]
    fn decision_times_are_converted_to_trace_clock() {
        let mut trace = trace();
        // The sender started 100 ms after the capture.
        let merged = merge_log(&mut trace, LOG, 1_100_000_000, 1000.0);
        assert_eq!(merged.unreadable, 1, "the last line is cut");
        let decisions: Vec<_> =
            trace.decisions.iter().map(|it| (it.at, it.what.as_str(), it.about)).collect();
        let at = 1_600_000_000;
        assert_eq!(decisions, [(at, "timeout", Some((1001, 2001))), (at, "window", None)]);
        assert_eq!(trace.decisions[0].text, "timeout: retransmission timer expired for 1001 (RTO)");
        assert_eq!(
            trace.decisions[1].text,
            "window: cwnd 2.0 → 1.0, ssthresh ∞ → 2.0 (retransmission timeout)"
        );
    }

    fn line(time: f64, episode: &str, what: &str, why: &str) -> String {
        format!(
            r#"{{"time":{time},"episode":"{episode}","question":"repair","by":"sack","what":"{what}","why":"{why}"}}"#
        )
    }

    #[test]
    fn retransmission_causes_follow_decision_log() {
        let log = [
            line(0.1, "recovery", "enter", "a loss"),
            line(0.5, "recovery", "timeout", "just behind an ACK"),
            line(0.5, "restarted", "enter", "a timeout"),
            line(0.9, "open", "leave", "an ACK"),
            // Fast retransmit as in Tahoe.
            line(1.2, "restarted", "enter", "a loss detected without a timeout, with a repair that restarts"),
            line(1.5, "open", "leave", "an ACK"),
        ];
        let sent = |ms: i64, sending| SentSegment {
            at: ms * 1_000_000,
            number: 1,
            start: 1,
            end: 1001,
            sending,
            dupacks: 0,
            in_flight: 3,
            fate: airtcp_analyze::trace::Fate::Unknown,
        };
        let mut trace = trace();
        let inferred =
            [Sending::New, Sending::Fast, Sending::New, Sending::Fast, Sending::Tail, Sending::Fast];
        let times = [0, 100, 499, 500, 900, 1200];
        trace.segments = inferred.into_iter().zip(times).map(|(it, ms)| sent(ms, it)).collect();
        let merged = merge_log(&mut trace, &log.join("\n"), 1_000_000_000, 1000.0);
        let causes: Vec<_> = trace.segments.iter().map(|segment| segment.sending).collect();
        let expected =
            [Sending::New, Sending::Fast, Sending::New, Sending::Timeout, Sending::Tail, Sending::Fast];
        assert_eq!(causes, expected);
        assert_eq!(merged, MergedLog { unreadable: 0, corrected: 1 });
        // The idle period before the retransmission is attributed to the timer too.
        assert_eq!(trace.idle, [Idle { from: 499_000_000, to: 500_000_000 }]);
    }

    #[test]
    fn episode_ends_at_leave_or_next_enter() {
        let log = [
            line(0.1, "open", "lost", "three"),
            line(0.1, "recovery", "enter", "a loss"),
            line(0.3, "recovery", "resend", "partial ACK"),
            line(0.5, "restarted", "enter", "the timer"),
            line(0.7, "restarted", "enter", "the timer again"),
            line(0.9, "open", "leave", "an ACK"),
            line(1.2, "reduced", "enter", "an ECN echo"),
        ];
        let mut trace = trace();
        merge_log(&mut trace, &log.join("\n"), 1_000_000_000, 1000.0);
        let ms =
            |it: &EpisodeSeen| (it.from / 1_000_000, it.to / 1_000_000, it.state.clone(), it.why.clone());
        let expected = [
            (100, 500, "recovery", "a loss"),
            (500, 700, "restarted", "the timer"),
            (700, 900, "restarted", "the timer again"),
            (1200, 1200, "reduced", "an ECN echo"),
        ];
        let expected = expected.map(|(from, to, state, why)| (from, to, state.to_owned(), why.to_owned()));
        assert_eq!(trace.episodes.iter().map(ms).collect::<Vec<_>>(), expected);

        // Logs of an early version do not contain states.
        merge_log(&mut trace, LOG, 1_000_000_000, 1000.0);
        assert_eq!(trace.episodes, []);
    }

    #[test]
    fn window_points_combine_cwnd_changes_and_flight() {
        let mut trace = trace();
        merge_log(&mut trace, LOG, 1_000_000_000, 1000.0);
        let points: Vec<_> =
            trace.windows.iter().map(|it| (it.at / 1_000_000, it.in_flight, it.cwnd, it.ssthresh)).collect();
        assert_eq!(
            points,
            [
                (0, 1000, None, None),
                (500, 1000, Some(2000.0), None),
                (600, 2000, Some(2000.0), None),
                (1500, 2000, Some(1000.0), Some(2000.0)),
                (2000, 500, Some(1000.0), Some(2000.0)),
            ]
        );
    }
}
