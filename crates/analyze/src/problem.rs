//! What is wrong with a capture, by kind: told at the end, while everything else is still analysed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Problem {
    /// Reading ended there.
    Damaged,
    /// A pcapng block, or the octets between two, that make no sense; reading went on behind them.
    Garbage,
    /// A frame has an earlier time than the one before it.
    ClockBackwards,
    /// More than the capture itself says that it keeps of a frame.
    AboveSnapLength,
    UnknownLink,
    /// IP or TCP headers that cannot be.
    Malformed,
    /// TCP options that cannot be; the rest of the packet is taken.
    MalformedOptions,
    /// Only the first one of a packet's fragments has the TCP header; it counts with the length it has.
    Fragment,
    /// Not enough of the headers was kept to know the packet.
    HeadersCut,
    /// Not all of the options was kept: they count as absent.
    OptionsCut,
    /// Payload was not kept, which does not matter here.
    PayloadCut,
    /// Connections that had to be taken for ended because too many were open: if they go on, as further ones.
    Crowded,
    /// Packets of connections that began when as many as can be followed were busy.
    NotFollowed,
    /// The kernel or the interface lost frames before they came here.
    NotCaptured,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damaged => "the capture is damaged or ends early: nothing behind it was read",
            Self::Garbage => "garbage between blocks, stepped over",
            Self::ClockBackwards => "frames with an earlier time than the one before",
            Self::AboveSnapLength => "frames longer than the capture's own snap length",
            Self::UnknownLink => "frames of a link type that is not known here",
            Self::Malformed => "IP or TCP headers that cannot be",
            Self::MalformedOptions => "TCP options that cannot be, taken as absent",
            Self::Fragment => "IP fragments: the first one counts with its own length, the others not at all",
            Self::HeadersCut => {
                "packets too short for their headers: a larger snap length is needed (tcpdump -s)"
            }
            Self::OptionsCut => {
                "packets whose TCP options were not all kept: a larger snap length is needed (tcpdump -s)"
            }
            Self::PayloadCut => "packets whose payload was not all kept (lengths are the IP header's)",
            Self::Crowded => {
                "connections taken for ended, the longest silent first, because too many were open at a time"
            }
            Self::NotFollowed => {
                "packets of further connections, not analysed because too many were busy: use a filter (-f)"
            }
            Self::NotCaptured => "frames lost by the kernel or the interface: a narrower filter (-f) helps",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occurrences {
    pub count: u64,
    /// Frame number.
    pub first_frame: u64,
    /// What is worth knowing beyond the kind: a reader's words, the largest step of the clock.
    pub detail: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problems(BTreeMap<Problem, Occurrences>);

impl Problems {
    pub fn note(&mut self, problem: Problem, frame: u64) {
        self.entry(problem, frame).count += 1;
    }

    /// The same with words, of which the last are kept.
    pub fn note_detail(&mut self, problem: Problem, frame: u64, detail: String) {
        let entry = self.entry(problem, frame);
        entry.count += 1;
        entry.detail = Some(detail);
    }

    /// What others have counted.
    pub fn add(&mut self, problem: Problem, frame: u64, count: u64) {
        if count > 0 {
            self.entry(problem, frame).count += count;
        }
    }

    pub fn forget(&mut self, problem: Problem) {
        self.0.remove(&problem);
    }

    fn entry(&mut self, problem: Problem, frame: u64) -> &mut Occurrences {
        self.0.entry(problem).or_insert(Occurrences { count: 0, first_frame: frame, detail: None })
    }

    pub fn count(&self, problem: Problem) -> u64 {
        self.0.get(&problem).map_or(0, |found| found.count)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Problem, &Occurrences)> {
        self.0.iter().map(|(problem, found)| (*problem, found))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Problems {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            problem: Problem,
            text: String,
            #[serde(flatten)]
            found: &'a Occurrences,
        }
        serializer.collect_seq(self.iter().map(|(problem, found)| Row {
            problem,
            text: problem.to_string(),
            found,
        }))
    }
}
