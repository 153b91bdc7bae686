//! The properties of every transfer in an experiment: direction, amount of data, number of connections and
//! competitors.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlink::packet::Direction;
use airtcp_numbers::units::show_bytes;
use serde::{Deserialize, Serialize};

use super::sender::Sender;

/// The directions of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Towards the mobile side.
    #[default]
    Down,
    /// Towards the fixed side.
    Up,
    /// Both directions at the same time.
    Both,
}

impl Directions {
    /// Each direction once.
    pub fn each(self) -> &'static [Direction] {
        match self {
            Self::Down => &[Direction::Down],
            Self::Up => &[Direction::Up],
            Self::Both => &Direction::BOTH,
        }
    }
}

/// The amount of data on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This number of bytes.
    Bytes(u64),
    /// As much as fits into this time.
    Time(Duration),
}

impl Amount {
    fn time(self) -> Option<Duration> {
        match self {
            Self::Time(time) => Some(time),
            Self::Bytes(_) => None,
        }
    }
}

/// The properties of every transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The directions of the data.
    pub directions: Directions,
    /// Number of connections of the tested sender in each direction.
    pub flows: u16,
    /// Competitors. Each has one connection in each direction.
    pub competitors: Vec<Sender>,
    /// The amount of data on each connection.
    pub amount: Amount,
    /// Maximum number of bytes that a receiver reads per second. `None` means no limit.
    pub read_rate: Option<u64>,
}

impl Workload {
    /// One connection down, with a receiver that reads without limit.
    pub const fn plain(bytes: u64) -> Self {
        let amount = Amount::Bytes(bytes);
        Self { directions: Directions::Down, flows: 1, competitors: Vec::new(), amount, read_rate: None }
    }

    /// The form used in files.
    pub fn record(&self) -> WorkloadRecord {
        let Self { directions, flows, competitors, amount, read_rate } = self;
        WorkloadRecord {
            direction: *directions,
            flows: *flows,
            competitors: competitors.iter().map(|sender| sender.name.clone()).collect(),
            seconds: amount.time().map(|time| time.as_secs_f64()),
            read_rate: *read_rate,
        }
    }

    /// The number of bytes on each connection. `None` if connections are limited by time.
    pub fn bytes(&self) -> Option<u64> {
        match self.amount {
            Amount::Bytes(bytes) => Some(bytes),
            Amount::Time(_) => None,
        }
    }

    /// The time that each connection sends. `None` if connections are limited by bytes.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.amount.time()
    }

    /// All connections of a transfer in which `tested` is the tested sender. The first connection has this
    /// sender.
    pub(crate) fn streams<'a>(&'a self, tested: &'a Sender) -> Vec<Stream<'a>> {
        let mut streams = Vec::new();
        for &direction in self.directions.each() {
            let own = (0..self.flows).map(|_| (tested, Role::Tested));
            let competitors = self.competitors.iter().map(|sender| (sender, Role::Competitor));
            for (sender, role) in own.chain(competitors) {
                let is_same_kind = |other: &&Stream<'_>| (other.role, other.direction) == (role, direction);
                let number = streams.iter().filter(is_same_kind).count();
                streams.push(Stream { index: streams.len() as u16, sender, role, direction, number });
            }
        }
        streams
    }
}

/// A workload in `lab.json`. The number of bytes per connection is stored separately, as `bytes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkloadRecord {
    /// The directions of the data.
    pub direction: Directions,
    /// Number of connections of the tested sender in each direction.
    pub flows: u16,
    /// The names of the competitors.
    pub competitors: Vec<String>,
    /// The time that a connection sends. `None` if connections are limited by bytes.
    pub seconds: Option<f64>,
    /// Maximum number of bytes that a receiver reads per second. `None` means no limit.
    pub read_rate: Option<u64>,
}

/// The values that an older file without these fields implies.
impl Default for WorkloadRecord {
    fn default() -> Self {
        Workload::plain(0).record()
    }
}

impl WorkloadRecord {
    /// Returns true if this describes the workload. Senders may be spelled differently.
    pub(super) fn matches(&self, workload: &Workload) -> bool {
        let same_competitors = self.competitors.len() == workload.competitors.len()
            && workload.competitors.iter().zip(&self.competitors).all(|(sender, name)| sender.matches(name));
        same_competitors && Self { competitors: self.competitors.clone(), ..workload.record() } == *self
    }

    /// Describes one transfer in words. `bytes` is the data on a connection if no time is set. `path` names
    /// the path and the receiver, and may be empty.
    pub fn describe(&self, bytes: Option<u64>, path: &str) -> String {
        let amount = match (self.seconds, bytes) {
            (Some(seconds), _) => format!("{seconds} s"),
            (None, bytes) => match bytes.unwrap_or_default() {
                1 => "1 byte".to_owned(),
                bytes @ 0..1000 => format!("{bytes} bytes"),
                bytes => show_bytes(bytes),
            },
        };
        let direction = match self.direction {
            Directions::Down => "down",
            Directions::Up => "up",
            Directions::Both => "down and up at the same time",
        };
        let flows = match (self.flows, self.competitors.is_empty()) {
            (1, true) => String::new(),
            (1, false) => " in 1 connection".to_owned(),
            (flows, _) => format!(" in each of {flows} connections"),
        };
        let competitors = match self.competitors.as_slice() {
            [] => String::new(),
            others => format!(" with competitor {}", others.join(", ")),
        };
        let read = match self.read_rate {
            Some(rate) => format!(", which reads at most {}/s", show_bytes(rate)),
            None => String::new(),
        };
        format!("{amount} {direction}{flows}{competitors}{path}{read}")
    }
}

/// The owner of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The tested sender.
    #[default]
    Tested,
    /// A competitor.
    Competitor,
}

/// One connection of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream<'a> {
    /// Index among all connections of the transfer.
    pub(crate) index: u16,
    pub(crate) sender: &'a Sender,
    pub(crate) role: Role,
    pub(crate) direction: Direction,
    /// Index among the connections with the same role and direction.
    pub(crate) number: usize,
}

/// The receiver's port of the first connection. Each further connection uses the next port.
pub(crate) const PORT: u16 = 9000;

impl Stream<'_> {
    pub(crate) const fn port(&self) -> u16 {
        PORT + self.index
    }

    /// The path of a file that belongs to the connection, in the transfer's directory: `sender.jsonl`,
    /// `sender-competitor.jsonl`, `sender-up-2.jsonl`. The first connection's files have no suffix.
    pub(crate) fn file(&self, directory: &Path, stem: &str, extension: &str) -> PathBuf {
        let mut name = stem.to_owned();
        if self.role == Role::Competitor {
            name.push_str("-competitor");
        }
        if self.index > 0 && self.direction == Direction::Up {
            name.push_str("-up");
        }
        if self.number > 0 {
            name.push_str(&format!("-{}", self.number + 1));
        }
        directory.join(name).with_extension(extension)
    }
}

/// Identifies one of several connections in errors.
impl fmt::Display for Stream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = if self.role == Role::Competitor { " (competitor)" } else { "" };
        write!(f, "{}{role}, connection {} {}", self.sender.name, self.number + 1, self.direction)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sender::{TypedSender, resolve};

    fn sender(text: &str) -> Sender {
        let typed: TypedSender = text.parse().unwrap();
        resolve(&[typed], None).unwrap().remove(0)
    }

    #[test]
    fn each_connection_has_unique_port_and_files() {
        let tested = sender("newreno");
        let competitors = vec![sender("linux:cubic"), sender("linux:reno")];
        let workload =
            Workload { directions: Directions::Both, flows: 2, competitors, ..Workload::plain(1000) };
        let streams = workload.streams(&tested);
        let name = |stream: &Stream<'_>| stream.file(Path::new(""), "sender", "log").display().to_string();
        let names: Vec<_> = streams.iter().map(name).collect();
        let expected = [
            "sender.log",
            "sender-2.log",
            "sender-competitor.log",
            "sender-competitor-2.log",
            "sender-up.log",
            "sender-up-2.log",
            "sender-competitor-up.log",
            "sender-competitor-up-2.log",
        ];
        assert_eq!(names, expected);
        let ports: BTreeSet<_> = streams.iter().map(Stream::port).collect();
        assert_eq!((ports.len(), ports.first()), (8, Some(&9000)));
        assert_eq!(streams[5].to_string(), "newreno, connection 2 up");
        assert_eq!(streams[2].to_string(), "linux:cubic (competitor), connection 1 down");
    }

    #[test]
    fn workload_is_described_in_words() {
        let plain = Workload::plain(1_000_000);
        assert_eq!(plain.record().describe(plain.bytes(), ""), "1.00 MB down");
        assert_eq!(plain.record(), WorkloadRecord::default());
        let complex = Workload {
            directions: Directions::Both,
            flows: 3,
            competitors: vec![sender("linux:cubic")],
            amount: Amount::Time(Duration::from_secs(30)),
            read_rate: Some(50_000),
        };
        let expected = "30 s down and up at the same time in each of 3 connections with competitor linux:cubic over leo to linux, which \
                        reads at most 50.0 kB/s";
        assert_eq!(complex.record().describe(complex.bytes(), " over leo to linux"), expected);
    }

    #[test]
    fn workloads_match_regardless_of_sender_spelling() {
        let with_competitors = |names: &[&str]| {
            let typed: Vec<_> = names.iter().map(|name| name.parse().unwrap()).collect();
            let competitors = crate::sender::competitors(&typed, airtcp::ProfileName::Linux);
            Workload { competitors, ..Workload::plain(1) }
        };
        let names = ["sack+limited-transmit", "linux:cubic"];
        let record = with_competitors(&names).record();
        assert!(record.matches(&with_competitors(&["limited-transmit+sack@linux", "linux:cubic"])));
        for other in [&["sack+limited-transmit@default", "linux:cubic"][..], &["linux:cubic"], &[]] {
            assert!(!record.matches(&with_competitors(other)), "{other:?}");
        }
        assert!(!record.matches(&Workload { flows: 2, ..with_competitors(&names) }));
    }

    #[test]
    fn missing_workload_fields_mean_one_connection_down() {
        assert_eq!(serde_json::from_str::<WorkloadRecord>("{}").unwrap(), WorkloadRecord::default());
    }
}
