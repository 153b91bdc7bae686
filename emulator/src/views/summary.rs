//! The result of a run: a table for people, one JSON object for programs.

use std::collections::BTreeMap;
use std::fmt;

use airwire::time::{Duration, Instant};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::Value;

use crate::packet::Direction;
use crate::path::{Path, Totals};
use crate::stage::Why;

/// Grows when a field changes its meaning or goes away, not when one is added.
const SCHEMA_VERSION: u32 = 1;

/// The result of a run. Displayed, it is the table.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The version of this format: 1.
    pub schema_version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// The seed of all random streams.
    pub seed: u64,
    /// How long the run was.
    pub seconds: f64,
    /// From the fixed side to the mobile side.
    pub down: DirectionTotals,
    /// From the mobile side to the fixed side.
    pub up: DirectionTotals,
    /// Packets that are inside at the end.
    pub held: usize,
    /// The packets of traffic sources, which the fields above do not count. `None`: there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// Each stage's counters, by its name.
    pub stages: Value,
    /// How late packets left. `None` in virtual time, where they never are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<LatenessSummary>,
}

/// What became of the packets of one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DirectionTotals {
    /// Packets that entered the path.
    pub entered: u64,
    /// Their octets.
    pub entered_bytes: u64,
    /// Copies of packets that came into being in it. Absent: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub copied: u64,
    /// Packets that left it at the other end.
    pub left: u64,
    /// Their octets.
    pub left_bytes: u64,
    /// Packets dropped, by the reason. A reason that did not occur is absent.
    pub dropped: BTreeMap<&'static str, u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(packets: &u64) -> bool {
    *packets == 0
}

/// What became of the packets of traffic sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Background {
    /// From the fixed side to the mobile side.
    pub down: DirectionTotals,
    /// From the mobile side to the fixed side.
    pub up: DirectionTotals,
}

/// The distribution of actual departure minus ideal departure, in nanoseconds.
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
    /// The largest.
    pub max: u64,
}

impl From<&Totals> for DirectionTotals {
    fn from(totals: &Totals) -> Self {
        let dropped = Why::ALL
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
    /// `None`: there were no such packets.
    fn of(path: &Path) -> Option<Self> {
        let totals = path.background();
        (totals.down.entered + totals.up.entered > 0)
            .then(|| Self { down: (&totals.down).into(), up: (&totals.up).into() })
    }
}

impl LatenessSummary {
    /// From a histogram of nanoseconds.
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
    /// What there is to say of `path` at `now`. `lateness`: of nanoseconds.
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
            // In virtual time it may all have been in no time.
            let rate = match totals.left_bytes as f64 * 8.0 / 1000.0 / self.seconds {
                rate if rate.is_finite() => format!("{rate:.1}"),
                _ => "-".to_owned(),
            };
            let why: Vec<String> =
                totals.dropped.iter().map(|(why, packets)| format!("{packets} {why}")).collect();
            let line = format!(
                "{direction:<9}  {:>12}  {:>11}  {dropped:>7}  {rate:>10}  {}",
                totals.entered,
                totals.left,
                why.join(", ")
            );
            writeln!(f, "{}", line.trim_end())?;
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

/// The plain counters of an object in one line, then those of the objects in it.
fn counters(f: &mut fmt::Formatter<'_>, name: &str, stats: &Value) -> fmt::Result {
    let Value::Object(stats) = stats else { return Ok(()) };
    let plain = |(key, value): (&String, &Value)| match value {
        // Counters of 0 are left out here; --json has them.
        Value::Number(number) if number.as_f64() != Some(0.0) => match number.as_u64() {
            Some(whole) => Some(format!("{key} {whole}")),
            None => Some(format!("{key} {:.4}", number.as_f64()?)),
        },
        Value::String(text) => Some(format!("{key} {text}")),
        _ => None,
    };
    let line: Vec<String> = stats.iter().filter_map(plain).collect();
    if !line.is_empty() {
        writeln!(f, "{name}: {}", line.join(", "))?;
    }
    for (part, inner) in stats {
        counters(f, &format!("{name} {part}"), inner)?;
    }
    Ok(())
}
