//! A sender's own log of its decisions, which `airtcp send --decisions` writes: [`Written`] is a line as it is written,
//! [`Line`] one that was read.

pub mod written;

use airtcp::recovery::Decision;
use serde::Deserialize;
use serde_json::Value;
pub use written::{Written, WrittenOf};

/// A decision: what every decision has, and the rest by name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Line {
    /// Seconds from the sender's start.
    pub time: f64,
    /// Seconds since 1970 by the machine's clock, which captures have as well. Early versions did not write it.
    pub wall: Option<f64>,
    /// The state of the sender's loss recovery: `open`, `reduced`, `recovery` or `restarted`. Early versions did not
    /// write it.
    pub episode: Option<String>,
    /// The connection's number, if several share the log.
    pub connection: Option<u64>,
    /// The question that was answered: `detect`, `repair`, `window`, `timeout`, `undo` …
    pub question: String,
    /// The name of the answer that decided.
    pub by: String,
    /// What was decided: `lost`, `window`, `timeout` …
    pub what: String,
    /// The reason in words.
    pub why: String,
    #[serde(flatten)]
    more: serde_json::Map<String, Value>,
}

/// The log of one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// In the order of the file.
    pub lines: Vec<Line>,
    /// The sender's start, from which its times count, in nanoseconds since 1970.
    pub start: i64,
}

/// Why a log cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No line of it is a decision.
    #[error("not a log of decisions; `airtcp send --decisions FILE` writes one")]
    NotALog,
    /// It has no wall time, which ties it to a capture.
    #[error("no start time (`wall`) in the log, perhaps written by an early version; repeat the transfer")]
    NoWall,
    /// It has the decisions of several connections.
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

/// Returns the lines, and how many cannot be read, such as the last one of a sender that was killed.
pub fn read(log: &str) -> (Vec<Line>, usize) {
    let lines: Vec<_> = log.lines().map(serde_json::from_str).collect();
    let all = lines.len();
    let lines: Vec<Line> = lines.into_iter().filter_map(Result::ok).collect();
    let unreadable = all - lines.len();
    (lines, unreadable)
}

/// So far apart, in segments, windows are still the same decision: a window that is a function of time, as CUBIC's is,
/// differs with each microsecond.
const SAME_WINDOW: f64 = 0.1;
/// The same for large windows, as a share.
const SAME_SHARE: f64 = 0.001;

impl Line {
    /// The line that the log would have. `None`: the log has no form for it.
    pub fn of(decision: &Decision) -> Option<Self> {
        // Through text, so that its numbers are what a reader of a file gets.
        serde_json::from_str(&serde_json::to_string(&Written::new(decision, 0.0)).ok()?).ok()
    }

    /// Whether both decide the same, whenever they do. Windows may be a tenth of a segment, or a thousandth, apart.
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

    /// The field `key`, if it is there and a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.more.get(key).and_then(Value::as_f64)
    }

    /// The octet of the stream that it is about, the SYN being at 0.
    pub fn offset(&self) -> Option<u64> {
        self.number("offset").map(|offset| offset as u64)
    }

    /// How many segments it is about.
    pub fn segments(&self) -> f64 {
        self.number("segments").unwrap_or(1.0)
    }

    /// What was decided, in words.
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

    /// The change of the window, in segments. The log has no number for an arbitrarily high threshold.
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
    use airtcp::recovery::{Phase, What};
    use airwire::time::Instant;

    use super::*;

    fn window(at: u64, cwnd: f64, ssthresh: f64) -> Line {
        let what = What::Window { cwnd, ssthresh, was_cwnd: 10.0, was_ssthresh: f64::INFINITY };
        let (episode, question) = (Phase::Open, Question::Window);
        let at = Instant::from_millis(at);
        Line::of(&Decision { at, episode, question, by: "cubic", what, why: "ACK" }).unwrap()
    }

    #[test]
    fn a_decision_is_the_same_at_any_time_and_its_window_nearly() {
        let one = window(100, 10.5, f64::INFINITY);
        assert!(one.decides_as(&window(900, 10.5, f64::INFINITY)));
        assert!(one.decides_as(&window(100, 10.58, f64::INFINITY)), "CUBIC's window follows the clock");
        assert!(!one.decides_as(&window(100, 10.65, f64::INFINITY)));
        assert!(!one.decides_as(&window(100, 10.5, 8.0)), "a threshold is not none");
        assert!(window(0, 500.0, 400.0).decides_as(&window(0, 500.4, 400.0)));
        assert!(!window(0, 500.0, 400.0).decides_as(&window(0, 500.6, 400.0)));
    }

    #[test]
    fn offsets_authors_and_states_are_exact() {
        let of = |episode, by, offset| {
            let (at, question) = (Instant::ZERO, Question::Detect);
            let what = What::Lost { offset, segments: 1 };
            Line::of(&Decision { at, episode, question, by, what, why: "late" }).unwrap()
        };
        let one = of(Phase::Open, "rack", 1449);
        assert!(one.decides_as(&of(Phase::Open, "rack", 1449)));
        for other in
            [of(Phase::Open, "rack", 1450), of(Phase::Open, "sack", 1449), of(Phase::Reduced, "rack", 1449)]
        {
            assert!(!one.decides_as(&other), "{other:?}");
        }
    }
}
