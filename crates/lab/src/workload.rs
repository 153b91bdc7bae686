//! The properties of every transfer in an experiment: direction, amount of data, number of connections and
//! competitors.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlink::packet::Direction;
use airtcp_numbers::units::show_bytes;
use serde::{Deserialize, Serialize};

use super::sender::Sender;
use super::testbed::PathSide;

/// The direction of the data, named as in the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// From the fixed side to the mobile side.
    #[default]
    Down,
    /// From the mobile side to the fixed side.
    Up,
}

impl Way {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }

    /// The same direction in the path.
    pub(crate) const fn direction(self) -> Direction {
        match self {
            Self::Down => Direction::Down,
            Self::Up => Direction::Up,
        }
    }

    pub(crate) const fn sender_side(self) -> PathSide {
        match self {
            Self::Down => PathSide::Fixed,
            Self::Up => PathSide::Mobile,
        }
    }

    pub(crate) const fn receiver_side(self) -> PathSide {
        match self {
            Self::Down => PathSide::Mobile,
            Self::Up => PathSide::Fixed,
        }
    }
}

/// The directions of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ways {
    /// Towards the mobile side.
    #[default]
    Down,
    /// Towards the fixed side.
    Up,
    /// Both directions at the same time.
    Both,
}

impl Ways {
    /// Each direction once.
    pub const fn each(self) -> &'static [Way] {
        match self {
            Self::Down => &[Way::Down],
            Self::Up => &[Way::Up],
            Self::Both => &[Way::Down, Way::Up],
        }
    }
}

/// The amount of data on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This number of bytes.
    Octets(u64),
    /// As much as fits into this time.
    Time(Duration),
}

impl Amount {
    fn time(self) -> Option<Duration> {
        match self {
            Self::Time(time) => Some(time),
            Self::Octets(_) => None,
        }
    }
}

/// The properties of every transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The directions of the data.
    pub ways: Ways,
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
    pub const fn plain(octets: u64) -> Self {
        let amount = Amount::Octets(octets);
        Self { ways: Ways::Down, flows: 1, competitors: Vec::new(), amount, read_rate: None }
    }

    /// The form used in files.
    pub fn asked(&self) -> Asked {
        let Self { ways, flows, competitors, amount, read_rate } = self;
        Asked {
            direction: *ways,
            flows: *flows,
            competitors: competitors.iter().map(|sender| sender.name.clone()).collect(),
            seconds: amount.time().map(|time| time.as_secs_f64()),
            read_rate: *read_rate,
        }
    }

    /// The number of bytes on each connection. `None` if connections are limited by time.
    pub fn octets(&self) -> Option<u64> {
        match self.amount {
            Amount::Octets(octets) => Some(octets),
            Amount::Time(_) => None,
        }
    }

    /// The time that each connection sends. `None` if connections are limited by bytes.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.amount.time()
    }

    /// All connections of a transfer with this sender. The first one is the sender's own.
    pub(crate) fn streams<'a>(&'a self, tested: &'a Sender) -> Vec<Stream<'a>> {
        let mut streams = Vec::new();
        for &way in self.ways.each() {
            let own = (0..self.flows).map(|_| (tested, Role::Tested));
            for (sender, role) in own.chain(self.competitors.iter().map(|sender| (sender, Role::Competitor)))
            {
                let earlier = |other: &&Stream<'_>| (other.role, other.way) == (role, way);
                let number = streams.iter().filter(earlier).count();
                streams.push(Stream { index: streams.len() as u16, sender, role, way, number });
            }
        }
        streams
    }
}

/// A workload in `lab.json`. The number of bytes per connection is stored separately, as `bytes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// The directions of the data.
    pub direction: Ways,
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
impl Default for Asked {
    fn default() -> Self {
        Workload::plain(0).asked()
    }
}

impl Asked {
    /// Returns true if this describes the workload. Senders may be spelled differently.
    pub(super) fn is(&self, workload: &Workload) -> bool {
        let asked = workload.asked();
        let same = |(sender, kept): (&Sender, &String)| sender.is(kept);
        let beside = self.competitors.len() == workload.competitors.len()
            && workload.competitors.iter().zip(&self.competitors).all(same);
        beside && Self { competitors: self.competitors.clone(), ..asked } == *self
    }

    /// Describes one transfer in words. `bytes` is the data on a connection if no time is set. `path` names
    /// the path and the receiver, and may be empty.
    pub fn in_words(&self, bytes: Option<u64>, path: &str) -> String {
        let amount = match (self.seconds, bytes) {
            (Some(seconds), _) => format!("{seconds} s"),
            (None, bytes) => match bytes.unwrap_or_default() {
                1 => "1 byte".to_owned(),
                bytes @ 0..1000 => format!("{bytes} bytes"),
                bytes => show_bytes(bytes),
            },
        };
        let way = match self.direction {
            Ways::Down => "down",
            Ways::Up => "up",
            Ways::Both => "down and up at the same time",
        };
        let flows = match (self.flows, self.competitors.is_empty()) {
            (1, true) => String::new(),
            (1, false) => " in 1 connection".to_owned(),
            (flows, _) => format!(" in each of {flows} connections"),
        };
        let beside = match self.competitors.as_slice() {
            [] => String::new(),
            others => format!(" with competitor {}", others.join(", ")),
        };
        let read = match self.read_rate {
            Some(rate) => format!(", which reads at most {}/s", show_bytes(rate)),
            None => String::new(),
        };
        format!("{amount} {way}{flows}{beside}{path}{read}")
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
    pub(crate) way: Way,
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
        if self.index > 0 && self.way == Way::Up {
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
        let beside = if self.role == Role::Competitor { " (competitor)" } else { "" };
        write!(f, "{}{beside}, connection {} {}", self.sender.name, self.number + 1, self.way.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sender::{Typed, resolve};

    fn sender(text: &str) -> Sender {
        let typed: Typed = text.parse().unwrap();
        resolve(&[typed], None).unwrap().remove(0)
    }

    #[test]
    fn each_connection_has_unique_port_and_files() {
        let tested = sender("newreno");
        let beside = vec![sender("linux:cubic"), sender("linux:reno")];
        let workload = Workload { ways: Ways::Both, flows: 2, competitors: beside, ..Workload::plain(1000) };
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
        assert_eq!(plain.asked().in_words(plain.octets(), ""), "1.00 MB down");
        assert_eq!(plain.asked(), Asked::default());
        let much = Workload {
            ways: Ways::Both,
            flows: 3,
            competitors: vec![sender("linux:cubic")],
            amount: Amount::Time(Duration::from_secs(30)),
            read_rate: Some(50_000),
        };
        let said = "30 s down and up at the same time in each of 3 connections with competitor linux:cubic over leo to linux, which \
                    reads at most 50.0 kB/s";
        assert_eq!(much.asked().in_words(much.octets(), " over leo to linux"), said);
    }

    #[test]
    fn workloads_match_regardless_of_sender_spelling() {
        let with_competitors = |names: &[&str]| {
            let typed: Vec<_> = names.iter().map(|name| name.parse().unwrap()).collect();
            let competitors = crate::sender::competitors(&typed, airtcp::ProfileName::Linux);
            Workload { competitors, ..Workload::plain(1) }
        };
        let kept = with_competitors(&["sack+limited-transmit", "linux:cubic"]).asked();
        assert!(kept.is(&with_competitors(&["limited-transmit+sack@linux", "linux:cubic"])));
        for other in [&["sack+limited-transmit@default", "linux:cubic"][..], &["linux:cubic"], &[]] {
            assert!(!kept.is(&with_competitors(other)), "{other:?}");
        }
        assert!(
            !kept.is(&Workload { flows: 2, ..with_competitors(&["sack+limited-transmit", "linux:cubic"]) })
        );
    }

    #[test]
    fn missing_workload_fields_mean_one_connection_down() {
        assert_eq!(serde_json::from_str::<Asked>("{}").unwrap(), Asked::default());
    }
}
