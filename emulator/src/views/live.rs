//! A status line on the terminal: time, rates, queue, block errors, retransmitted PDUs, lateness.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use airwire::time::{Duration, Instant};
use serde_json::Value;

use crate::packet::{Direction, PerDirection};
use crate::path::Path;

/// Interval between updates.
const INTERVAL: Duration = Duration::from_millis(200);

pub(super) struct Live {
    last: Sample,
    next: Instant,
}

/// Counters at one point in time.
#[derive(Clone, Debug, Default)]
struct Sample {
    at: Instant,
    left_bytes: PerDirection<u64>,
    held: usize,
    /// Sums over all radio stages.
    radio: PerDirection<Blocks>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Blocks {
    sent: u64,
    lost: u64,
    resent: u64,
}

impl Live {
    /// `None`: stderr is not a terminal.
    pub(super) fn on_terminal() -> Option<Self> {
        std::io::stderr()
            .is_terminal()
            .then(|| Self { last: Sample::default(), next: Instant::ZERO + INTERVAL })
    }

    pub(super) fn next_tick(&self) -> Instant {
        self.next
    }

    /// Draws the line, with rates since the last call.
    pub(super) fn draw(&mut self, now: Instant, path: &Path, lateness_p99: Option<Duration>) {
        let sample = Sample::take(now, path);
        // The run continues even if the terminal is gone.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K{}", line(&self.last, &sample, lateness_p99));
        self.last = sample;
        self.next = now + INTERVAL;
    }

    pub(super) fn clear(self) {
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
    }
}

impl Sample {
    fn take(at: Instant, path: &Path) -> Self {
        let totals = path.totals();
        Self {
            at,
            left_bytes: PerDirection::from_fn(|direction| totals[direction].left_bytes),
            held: path.held(),
            radio: radio(&path.stats()),
        }
    }
}

/// Sums over the radio stages, whose counters contain `blocks`.
fn radio(stats: &Value) -> PerDirection<Blocks> {
    let mut sums = PerDirection::<Blocks>::default();
    for stage in stats.as_object().into_iter().flat_map(serde_json::Map::values) {
        for direction in Direction::BOTH {
            let stats = &stage[direction.name()];
            let sum = &mut sums[direction];
            sum.sent += stats["blocks"].as_u64().unwrap_or(0);
            sum.lost += stats["blocks_lost"].as_u64().unwrap_or(0);
            sum.resent += stats["sender"]["pdus_resent"].as_u64().unwrap_or(0);
        }
    }
    sums
}

fn line(before: &Sample, now: &Sample, lateness_p99: Option<Duration>) -> String {
    let seconds = (now.at - before.at).as_nanos() as f64 / 1e9;
    let mut line = format!("{:8.1} s", now.at.as_secs_f64());
    for direction in Direction::BOTH {
        let bytes = now.left_bytes[direction] - before.left_bytes[direction];
        // Writing into a string cannot fail.
        let _ = write!(line, "  {direction} {:.0} kbit/s", bytes as f64 * 8.0 / 1000.0 / seconds.max(1e-9));
    }
    let _ = write!(line, "  inside {}", now.held);
    for (direction, blocks) in now.radio.iter().filter(|(_, blocks)| blocks.sent > 0) {
        let before = before.radio[direction];
        let (sent, lost) = (blocks.sent - before.sent, blocks.lost - before.lost);
        if sent > 0 {
            let _ = write!(line, "  BLER {direction} {:.1} %", lost as f64 * 100.0 / sent as f64);
        }
        let _ = write!(line, "  retransmitted {direction} {}", blocks.resent);
    }
    if let Some(p99) = lateness_p99 {
        let _ = write!(line, "  late p99 {p99}");
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn live_line_shows_changes_since_last_sample() {
        let stats = |sent, lost| {
            let down = json!({"blocks": sent, "blocks_lost": lost, "sender": {"pdus_resent": lost}});
            json!({"radio": {"down": down, "up": {}},
                   "wire": {"down": {"queue": 3}}})
        };
        let before =
            Sample { at: Instant::from_secs(1), radio: radio(&stats(1200, 120)), ..Sample::default() };
        let now = Sample {
            at: Instant::from_millis(1_200),
            left_bytes: PerDirection { down: 9_600, up: 0 },
            held: 7,
            radio: radio(&stats(1440, 132)),
        };
        let line = line(&before, &now, Some(Duration::from_micros(85)));
        assert_eq!(
            line.trim_start(),
            "1.2 s  down 384 kbit/s  up 0 kbit/s  inside 7  BLER down 5.0 %  retransmitted down 132  late p99 85us"
        );
    }
}
