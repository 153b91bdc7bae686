//! Summary of a run: a table for people, or one JSON object for programs.

use std::collections::BTreeMap;
use std::fmt;

use airtcp_numbers::table::{wrapped, wrapped_lines};
use airwire::time::{Duration, Instant};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::Value;

use super::TERMINAL_WIDTH;
use crate::packet::Direction;
use crate::path::{Path, Totals};
use crate::stage::DropReason;

/// Incremented when a field changes its meaning or is removed, not when one is added.
const SCHEMA_VERSION: u32 = 1;

/// Result of a run. Its `Display` output is the table.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Version of this format: 1.
    pub schema_version: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Length of the run in seconds.
    pub seconds: f64,
    /// The direction from the fixed side to the mobile side.
    pub down: DirectionTotals,
    /// The direction from the mobile side to the fixed side.
    pub up: DirectionTotals,
    /// Packets inside the path at the end.
    pub held: usize,
    /// Background traffic, which the other fields do not include. `None`: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// Counters of each stage, by the stage's name.
    pub stages: Value,
    /// Lateness of the packets. `None` in virtual time, where packets are never late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<LatenessSummary>,
}

/// Counters of the packets in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DirectionTotals {
    /// Packets that entered the path.
    pub entered: u64,
    /// Bytes of these packets.
    pub entered_bytes: u64,
    /// Copies of packets that were created inside. Absent if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub copied: u64,
    /// Packets that left at the other end.
    pub left: u64,
    /// Bytes of these packets.
    pub left_bytes: u64,
    /// Dropped packets by reason. Reasons that did not occur are absent.
    pub dropped: BTreeMap<&'static str, u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(packets: &u64) -> bool {
    *packets == 0
}

/// Counters of background traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Background {
    /// The direction from the fixed side to the mobile side.
    pub down: DirectionTotals,
    /// The direction from the mobile side to the fixed side.
    pub up: DirectionTotals,
}

/// Distribution of the lateness (actual minus ideal departure time), in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LatenessSummary {
    /// Packets that left at a deadline.
    pub packets: u64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p999: u64,
    /// The maximum.
    pub max: u64,
}

impl From<&Totals> for DirectionTotals {
    fn from(totals: &Totals) -> Self {
        let dropped = DropReason::ALL
            .into_iter()
            .map(|why| (why.name(), totals.dropped_for(why)))
            .filter(|(_, packets)| *packets > 0)
            .collect();
        Self {
            entered: totals.entered,
            entered_bytes: totals.entered_bytes,
            copied: totals.copied,
            left: totals.left,
            left_bytes: totals.left_bytes,
            dropped,
        }
    }
}

impl Background {
    /// `None`: the path did not carry background traffic.
    fn of(path: &Path) -> Option<Self> {
        let totals = path.background();
        (totals.down.entered + totals.up.entered > 0)
            .then(|| Self { down: (&totals.down).into(), up: (&totals.up).into() })
    }
}

impl LatenessSummary {
    /// Creates the summary from a histogram in nanoseconds.
    fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            packets: histogram.len(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        }
    }
}

impl Summary {
    /// Summarizes `path` at `now`. `lateness` is a histogram in nanoseconds.
    pub fn new(
        scenario: &str,
        seed: u64,
        path: &Path,
        now: Instant,
        lateness: Option<&Histogram<u64>>,
    ) -> Self {
        let totals = path.totals();
        Self {
            schema_version: SCHEMA_VERSION,
            scenario: scenario.to_owned(),
            seed,
            seconds: now.as_secs_f64(),
            down: DirectionTotals::from(&totals.down),
            up: DirectionTotals::from(&totals.up),
            held: path.held(),
            background: Background::of(path),
            stages: path.stats(),
            lateness: lateness.map(LatenessSummary::of),
        }
    }

    fn direction(&self, direction: Direction) -> &DirectionTotals {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, seed {}, {:.1} s", self.scenario, self.seed, self.seconds)?;
        writeln!(
            f,
            "{:<9}  {:>12}  {:>11}  {:>7}  {:>10}  dropped for",
            "direction", "packets: in", "out", "dropped", "kbit/s out"
        )?;
        for direction in Direction::BOTH {
            let totals = self.direction(direction);
            let dropped: u64 = totals.dropped.values().sum();
            // A run in virtual time can have the length 0.
            let rate = match totals.left_bytes as f64 * 8.0 / 1000.0 / self.seconds {
                rate if rate.is_finite() => format!("{rate:.1}"),
                _ => "-".to_owned(),
            };
            let why: Vec<String> =
                totals.dropped.iter().map(|(why, packets)| format!("{packets} {why}")).collect();
            let line = format!(
                "{direction:<9}  {:>12}  {:>11}  {dropped:>7}  {rate:>10}  ",
                totals.entered, totals.left
            );
            writeln!(f, "{}", wrapped(&line, &why.join(", "), TERMINAL_WIDTH).trim_end())?;
        }
        for direction in Direction::BOTH {
            let copied = self.direction(direction).copied;
            if copied > 0 {
                writeln!(f, "{direction}: {copied} copies of packets were created")?;
            }
        }
        if self.held > 0 {
            writeln!(f, "{} packets are still inside", self.held)?;
        }
        if let Value::Object(stages) = &self.stages {
            for (name, stats) in stages {
                counters(f, name, stats)?;
            }
        }
        if let Some(LatenessSummary { packets, p50, p90, p99, p999, max }) = self.lateness
            && packets > 0
        {
            let time = Duration::from_nanos;
            writeln!(
                f,
                "lateness of {packets} packets: p50 {} p90 {} p99 {} p99.9 {} max {}",
                time(p50),
                time(p90),
                time(p99),
                time(p999),
                time(max)
            )?;
        }
        Ok(())
    }
}

/// Writes the scalar counters of an object on one line, then its inner objects.
fn counters(f: &mut fmt::Formatter<'_>, name: &str, stats: &Value) -> fmt::Result {
    let Value::Object(stats) = stats else { return Ok(()) };
    let plain = |(key, value): (&String, &Value)| match value {
        // Omit counters of 0. The JSON output has them.
        Value::Number(number) if number.as_f64() != Some(0.0) => match number.as_u64() {
            Some(whole) => Some(format!("{key} {whole}")),
            None => Some(format!("{key} {:.4}", number.as_f64()?)),
        },
        Value::String(text) => Some(format!("{key} {text}")),
        _ => None,
    };
    let line: Vec<String> = stats.iter().filter_map(plain).collect();
    if !line.is_empty() {
        let line = format!("{name}: {}", line.join(", "));
        write!(f, "{}", wrapped_lines(&line, Some(TERMINAL_WIDTH)))?;
    }
    for (part, inner) in stats {
        counters(f, &format!("{name} {part}"), inner)?;
    }
    Ok(())
}
