//! Options for the traffic of a lab's transfers.

use std::time::Duration;

use airhelp::options::number;
use airtcp::ProfileName;
use airtcp_lab::sender::{self, TypedSender};
use airtcp_lab::workload::{Amount, Directions, Workload};
use airtcp_numbers::units;
use clap::{Args, ValueEnum};

use crate::shared::failure;

#[derive(Clone, Debug, Args)]
pub(super) struct WorkloadOptions {
    /// Bytes that each connection sends [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = "Transfers")]
    bytes: Option<u64>,
    /// Time that each connection sends for, instead of --bytes
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration, conflicts_with = "bytes", help_heading = "Transfers")]
    time: Option<airwire::time::Duration>,
    /// Direction of the data: down is to the mobile side, up is from it
    #[arg(long, value_name = "DIRECTION", default_value = "down", help_heading = "Transfers")]
    direction: Direction,
    /// Number of parallel connections of the sender per direction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::<u16>(1..=100), help_heading = "Transfers")]
    flows: u16,
    /// Add a competing sender on the same path, one connection per direction: a recipe, or a kernel sender such as linux:cubic (repeatable)
    #[arg(long, value_name = "RECIPE|SENDER", help_heading = "Transfers")]
    competitor: Vec<TypedSender>,
    /// Limit on the rate at which the receiver reads, such as 50kB/s or 400kbit/s: its buffer fills and the window closes
    #[arg(long, value_name = "RATE", value_parser = units::bytes_per_second, help_heading = "Transfers")]
    read_rate: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Direction {
    Down,
    Up,
    Both,
}

const BYTES: u64 = 1_000_000;
/// Maximum number of simultaneous connections. Each needs its own network.
const MAX_CONNECTIONS: usize = 250;

impl WorkloadOptions {
    /// Returns the competitors as the user typed them.
    pub(super) fn competitors(&self) -> &[TypedSender] {
        &self.competitor
    }

    /// Builds the workload. `profile` applies to recipes that do not name one; `limit` is the time limit per
    /// transfer.
    pub(super) fn workload(
        &self,
        profile: ProfileName,
        limit: airwire::time::Duration,
    ) -> anyhow::Result<Workload> {
        if let Some(time) = self.time.filter(|time| *time >= limit) {
            return Err(failure::usage(format!(
                "--for {time} takes longer than a transfer may: raise --limit, which is {limit}"
            )));
        }
        let directions = match self.direction {
            Direction::Down => Directions::Down,
            Direction::Up => Directions::Up,
            Direction::Both => Directions::Both,
        };
        let connections = directions.each().len() * (usize::from(self.flows) + self.competitor.len());
        if connections > MAX_CONNECTIONS {
            return Err(failure::usage(format!(
                "{connections} connections at a time are too many: {MAX_CONNECTIONS} at most"
            )));
        }
        Ok(Workload {
            directions,
            flows: self.flows,
            competitors: sender::competitors(&self.competitor, profile),
            amount: match self.time {
                Some(time) => Amount::Time(Duration::from_nanos(time.as_nanos())),
                None => Amount::Bytes(self.bytes.unwrap_or(BYTES)),
            },
            read_rate: self.read_rate,
        })
    }
}
