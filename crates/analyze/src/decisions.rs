//! A sender's decision log, which `airtcp send --decisions` writes. A [`DecisionLine`] is written, and a [`Line`]
//! is read.

use airtcp::DecisionLine;
use airtcp::recovery::Decision;
use serde::Deserialize;
use serde_json::Value;

/// A decision in the log. The fields that only some decisions have are available by name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Line {
    /// Seconds since the sender's start.
    pub time: f64,
    /// Seconds since 1970 by the machine's clock, which also timestamps captures. Early versions did not
    /// write it.
    pub wall: Option<f64>,
    /// The state of the sender's loss recovery: `open`, `reduced`, `recovery` or `restarted`. Early versions
    /// did not write it.
    pub episode: Option<String>,
    /// The connection's number, if several connections share the log.
    pub connection: Option<u64>,
    /// The question that the decision answers: `detect`, `repair`, `window`, `timeout`, `undo` …
    pub question: String,
    /// The name of the algorithm that decided.
    pub by: String,
    /// The kind of decision: `lost`, `window`, `timeout` …
    pub what: String,
    /// The reason as text.
    pub why: String,
    #[serde(flatten)]
    more: serde_json::Map<String, Value>,
}

/// The log of one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The decisions, in the order of the file.
    pub lines: Vec<Line>,
    /// The sender's start, in nanoseconds since 1970. All `time` fields are relative to the start.
    pub start: i64,
}

/// The reason why a log cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// None of the lines is a decision.
    #[error("not a log of decisions; `airtcp send --decisions FILE` writes one")]
    NotALog,
    /// The log lacks the wall-clock time that relates it to a capture.
    #[error("no start time (`wall`) in the log, perhaps written by an early version; repeat the transfer")]
    NoWall,
    /// The log contains decisions of several connections.
    #[error(
        "the log has several connections; select one with `jq -c 'select(.connection == 1)'`, and the same one in \
         the capture with --connection"
    )]
    Several,
}

impl Log {
    /// Reads the text of a log.
    pub fn read(text: &str) -> Result<Self, LogError> {
        let (lines, unreadable) = read(text);
        if lines.is_empty() && unreadable > 0 {
            return Err(LogError::NotALog);
        }
        if lines.windows(2).any(|pair| pair[0].connection != pair[1].connection) {
            return Err(LogError::Several);
        }
        let wall = |line: &Line| Some(((line.wall? - line.time) * 1e9).round() as i64);
        let start = lines.first().map_or(Some(0), wall).ok_or(LogError::NoWall)?;
        Ok(Self { lines, start })
    }
}

/// Returns the lines, and the number of invalid lines, such as the incomplete last line of a killed sender.
pub fn read(log: &str) -> (Vec<Line>, usize) {
    let lines: Vec<_> = log.lines().map(serde_json::from_str).collect();
    let all = lines.len();
    let lines: Vec<Line> = lines.into_iter().filter_map(Result::ok).collect();
    let unreadable = all - lines.len();
    (lines, unreadable)
}

/// Windows that differ by at most this number of segments count as equal. A window that is a function of
/// time, such as CUBIC's, changes with every microsecond.
const SAME_WINDOW: f64 = 0.1;
/// The same tolerance for large windows, relative to the window.
const SAME_SHARE: f64 = 0.001;

impl Line {
    /// Returns the log line of a decision. Returns `None` if the decision cannot be represented in the log.
    pub fn of(decision: &Decision) -> Option<Self> {
        // The conversion through text gives the numbers the same precision as in a log file.
        serde_json::from_str(&serde_json::to_string(&DecisionLine::new(decision, 0.0, None)).ok()?).ok()
    }

    /// Returns whether both lines contain the same decision, regardless of time. Windows may differ by a
    /// tenth of a segment or by a thousandth (the larger value).
    pub fn decides_as(&self, other: &Self) -> bool {
        let Self { time: _, wall: _, episode, connection: _, question, by, what, why, more } = self;
        let words = |line: &Self| {
            [&line.question, &line.by, &line.what, &line.why].map(String::as_str) == [question, by, what, why]
        };
        let near = |(key, value): (&String, &Value)| match (value.as_f64(), other.number(key)) {
            (Some(one), Some(two)) if what == "window" => {
                (one - two).abs() <= SAME_WINDOW.max(SAME_SHARE * one.abs().max(two.abs()))
            }
            _ => other.more.get(key) == Some(value),
        };
        words(other) && *episode == other.episode && more.len() == other.more.len() && more.iter().all(near)
    }

    /// Returns the field `key`, if it exists and is a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.more.get(key).and_then(Value::as_f64)
    }

    /// Returns the byte of the stream that the decision concerns. The SYN is 0.
    pub fn offset(&self) -> Option<u64> {
        self.number("offset").map(|offset| offset as u64)
    }

    /// Returns the number of segments that the decision concerns.
    pub fn segments(&self) -> f64 {
        self.number("segments").unwrap_or(1.0)
    }

    /// Returns the decision as text.
    pub fn detail(&self) -> String {
        let number = |key: &str| self.number(key).unwrap_or_default();
        let text = |key: &str| self.more.get(key).and_then(Value::as_str).unwrap_or("?");
        match (self.what.as_str(), self.offset()) {
            ("lost", Some(offset)) => {
                let segments = self.segments();
                let noun = if segments == 1.0 { "segment" } else { "segments" };
                format!("{segments} {noun} lost from {offset}")
            }
            ("window", _) => self.window(),
            ("cause" | "judged", _) => format!("{}: {}", self.what, text("cause")),
            ("enter", _) => format!("enter {} until {}", text("phase"), number("recover")),
            ("leave", _) => format!("leave {}", text("phase")),
            ("fallback", _) => format!("fall back to {}", text("to")),
            ("timeout", Some(offset)) => format!("retransmission timer expired for {offset}"),
            ("resend", Some(offset)) => format!("retransmit {offset}"),
            ("resume", Some(offset)) => format!("continue at {offset}"),
            (_, Some(offset)) => format!("{} at {offset}", self.what),
            (_, None) => self.what.clone(),
        }
    }

    /// Returns the change of the window as text, in segments. A missing number is an arbitrarily high
    /// threshold.
    fn window(&self) -> String {
        let shown = |key| self.number(key).map_or_else(|| "∞".to_owned(), |it| format!("{it:.1}"));
        let change = |name: &str, was, is| match (shown(was), shown(is)) {
            (was, is) if was == is => format!("{name} {is}"),
            (was, is) => format!("{name} {was} → {is}"),
        };
        format!("{}, {}", change("cwnd", "was_cwnd", "cwnd"), change("ssthresh", "was_ssthresh", "ssthresh"))
    }
}

#[cfg(test)]
mod tests {
    use airtcp::recovery::catalogue::Question;
    use airtcp::recovery::{RecoveryState, What};
    use airwire::time::Instant;

    use super::*;

    fn window(at: u64, cwnd: f64, ssthresh: f64) -> Line {
        let what = What::Window { cwnd, ssthresh, was_cwnd: 10.0, was_ssthresh: f64::INFINITY };
        let (state, question) = (RecoveryState::Open, Question::Window);
        let at = Instant::from_millis(at);
        Line::of(&Decision { at, state, question, by: "cubic", what, why: "ACK" }).unwrap()
    }

    #[test]
    fn decisions_match_despite_time_and_small_window_difference() {
        let one = window(100, 10.5, f64::INFINITY);
        assert!(one.decides_as(&window(900, 10.5, f64::INFINITY)));
        assert!(one.decides_as(&window(100, 10.58, f64::INFINITY)), "CUBIC's window follows the clock");
        assert!(!one.decides_as(&window(100, 10.65, f64::INFINITY)));
        assert!(!one.decides_as(&window(100, 10.5, 8.0)), "a finite threshold differs from an infinite one");
        assert!(window(0, 500.0, 400.0).decides_as(&window(0, 500.4, 400.0)));
        assert!(!window(0, 500.0, 400.0).decides_as(&window(0, 500.6, 400.0)));
    }

    #[test]
    fn decisions_with_different_offset_author_or_state_differ() {
        let of = |state, by, offset| {
            let (at, question) = (Instant::ZERO, Question::Detect);
            let what = What::Lost { offset, segments: 1 };
            Line::of(&Decision { at, state, question, by, what, why: "late" }).unwrap()
        };
        let one = of(RecoveryState::Open, "rack", 1449);
        assert!(one.decides_as(&of(RecoveryState::Open, "rack", 1449)));
        for other in [
            of(RecoveryState::Open, "rack", 1450),
            of(RecoveryState::Open, "sack", 1449),
            of(RecoveryState::Cwr, "rack", 1449),
        ] {
            assert!(!one.decides_as(&other), "{other:?}");
        }
    }
}
