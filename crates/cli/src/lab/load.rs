//! The options that say what every transfer of a lab is.

use std::time::Duration;

use airtcp::ProfileName;
use airtcp_lab::sender::{self, Typed};
use airtcp_lab::workload::{Amount, Ways, Workload};
use airtcp_numbers::units;
use clap::{Args, ValueEnum};

use crate::shared::failure;

#[derive(Clone, Debug, Args)]
pub(super) struct Load {
    /// Bytes to send, by each connection [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = "Transfers")]
    bytes: Option<u64>,
    /// Stop after this time, with however many bytes, each connection
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration, conflicts_with = "bytes", help_heading = "Transfers")]
    time: Option<airwire::time::Duration>,
    /// Which way the data goes: down is to the mobile; up is from it; both are at the same time
    #[arg(long, value_name = "WAY", default_value = "down", help_heading = "Transfers")]
    direction: Direction,
    /// Connections at the same time, of the sender, in each direction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100), help_heading = "Transfers")]
    flows: u16,
    /// Who sends over the same path at the same time, one connection in each direction: a recipe, or linux:cubic and the like (repeatable)
    #[arg(long, value_name = "RECIPE|SENDER", help_heading = "Transfers")]
    beside: Vec<Typed>,
    /// The most that a receiver reads in a second, so that its buffer fills and the window closes: 50kB/s, 400kbit/s
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
/// Each has a network of its own, and there are so many.
const MOST_CONNECTIONS: usize = 250;

impl Load {
    /// As they were typed.
    pub(super) fn beside(&self) -> &[Typed] {
        &self.beside
    }

    /// `profile` is that of recipes which name none. A transfer may take `limit`.
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
        let ways = match self.direction {
            Direction::Down => Ways::Down,
            Direction::Up => Ways::Up,
            Direction::Both => Ways::Both,
        };
        let connections = ways.each().len() * (usize::from(self.flows) + self.beside.len());
        if connections > MOST_CONNECTIONS {
            return Err(failure::usage(format!(
                "{connections} connections at a time are too many: {MOST_CONNECTIONS} at most"
            )));
        }
        Ok(Workload {
            ways,
            flows: self.flows,
            beside: sender::beside(&self.beside, profile),
            amount: match self.time {
                Some(time) => Amount::Time(Duration::from_nanos(time.as_nanos())),
                None => Amount::Octets(self.bytes.unwrap_or(BYTES)),
            },
            read_rate: self.read_rate,
        })
    }
}
