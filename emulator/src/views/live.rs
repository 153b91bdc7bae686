//! A status line on the terminal: time, rates, packets inside, block errors, HARQ attempts, retransmitted PDUs,
//! queue, packets that PDCP holds, lateness.

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
    /// Transport blocks of HARQ, each of which is transmitted at least once. 0: no HARQ.
    new: u64,
    /// PDUs that RLC has retransmitted.
    resent: u64,
    /// Bytes of the packets whose transmission has not begun.
    queued: u64,
    /// Packets that PDCP holds back.
    held: u64,
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
            let sum = &mut sums[direction];
            // A dedicated bearer has its own RLC, PDCP and queue, but no blocks.
            for stats in [&stage[direction.name()], &stage["dedicated"][direction.name()]] {
                let count = |value: &Value| value.as_u64().unwrap_or(0);
                let is_radio = stats["sender"].is_object();
                sum.sent += count(&stats["blocks"]);
                sum.lost += count(&stats["blocks_lost"]);
                sum.new += count(&stats["harq"]["transport_blocks"]);
                sum.resent += count(&stats["sender"]["pdus_resent"]);
                sum.queued += if is_radio { count(&stats["queue_bytes"]) } else { 0 };
                sum.held += count(&stats["pdcp"]["held_now"]);
            }
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
        let new = blocks.new - before.new;
        if new > 0 {
            let _ = write!(line, "  attempts {direction} {:.2}", sent as f64 / new as f64);
        }
        let _ = write!(line, "  retransmitted {direction} {}", blocks.resent);
        if blocks.queued > 0 {
            let _ = write!(line, "  queue {direction} {:.0} kB", blocks.queued as f64 / 1e3);
        }
        if blocks.held > 0 {
            let _ = write!(line, "  PDCP holds {direction} {}", blocks.held);
        }
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

    #[test]
    fn live_line_shows_layers_of_nr() {
        let stats = |sent, new, lost| {
            let sender = json!({ "pdus_resent": 3 });
            let down = json!({
                "blocks": sent, "blocks_lost": lost, "harq": { "transport_blocks": new },
                "sender": sender, "queue_bytes": 1_500_000, "pdcp": { "held_now": 12 },
            });
            let dedicated = json!({ "sender": sender, "queue_bytes": 20_000, "pdcp": { "held_now": 1 } });
            radio(
                &json!({ "radio": { "down": down, "up": {}, "dedicated": { "down": dedicated, "up": {} } } }),
            )
        };
        let before = Sample { at: Instant::from_secs(1), radio: stats(100, 90, 10), ..Sample::default() };
        let now = Sample { at: Instant::from_secs(2), radio: stats(220, 190, 30), ..before.clone() };
        let line = line(&before, &now, None);
        assert_eq!(
            line.split_once("inside 0  ").unwrap().1,
            "BLER down 16.7 %  attempts down 1.20  retransmitted down 6  queue down 1520 kB  PDCP holds down 13"
        );
    }
}
