//! What is wrong with a capture. It is counted by kind and told at the end; everything else is analysed all the same.

use std::fmt;

use serde::{Serialize, Serializer};

/// A kind of problem. `Display` says what it means and what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Problem {
    /// Reading ended there.
    Damaged,
    /// A pcapng block, or octets between two blocks, that make no sense; reading went on behind them.
    Garbage,
    /// A frame has an earlier time than the one before it.
    ClockBackwards,
    /// A frame has a time that neither the one before it nor the one behind it can have; it is taken to have come between.
    ClockJumped,
    /// A frame has more octets than the capture says it keeps of one.
    AboveSnapLength,
    /// A frame of a link type that [`LinkType`](crate::link_layer::LinkType) does not know.
    UnknownLink,
    /// IP or TCP headers that cannot be.
    Malformed,
    /// TCP options that cannot be; the rest of the packet counts.
    MalformedOptions,
    /// A header that says that more is behind it than there was on the wire. What was there counts, where that is so of
    /// many packets.
    BeyondFrame,
    /// A checksum that does not fit, of IP or TCP, and is not one that a device will fill in.
    Checksum,
    /// Damaged on the way: one of the two above, where almost all packets from the same address are whole.
    Corrupted,
    /// An IP fragment whose others are missing.
    Fragment,
    /// IP fragments that overlap, or whose lengths cannot be. Receivers drop all of the packet (RFC 5722).
    FragmentOverlap,
    /// The capture kept too little of a frame to read the headers.
    HeadersCut,
    /// The capture kept only some of the options: the others count as absent.
    OptionsCut,
    /// The capture did not keep all of the payload, which does not matter here.
    PayloadCut,
    /// Connections that were taken to have ended because too many were open. If they go on, they count as new ones.
    Crowded,
    /// Packets of connections that are not followed: when they began, as many as can be followed were busy.
    NotFollowed,
    /// Frames that the kernel or the interface lost.
    NotCaptured,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damaged => "the capture is damaged or truncated: the rest was not read",
            Self::Garbage => "unreadable data between blocks, skipped",
            Self::ClockBackwards => "frames with an earlier timestamp than the frame before",
            Self::ClockJumped => {
                "frames with a timestamp far from both neighbours, assumed to lie between them"
            }
            Self::AboveSnapLength => "frames longer than the snap length of the capture",
            Self::UnknownLink => "frames of an unsupported link type",
            Self::Malformed => "malformed IP or TCP headers",
            Self::MalformedOptions => "malformed TCP options, ignored",
            Self::BeyondFrame => {
                "packets longer than their frames by their headers: only the data in the frame counts"
            }
            Self::Checksum => "packets with a wrong checksum",
            Self::Corrupted => {
                "packets damaged in transit (wrong checksum, or truncated): receivers drop them, so they do not count"
            }
            Self::Fragment => "IP fragments of incomplete packets",
            Self::FragmentOverlap => "overlapping or malformed IP fragments",
            Self::HeadersCut => {
                "packets cut within their headers: capture with a larger snap length (tcpdump -s)"
            }
            Self::OptionsCut => {
                "packets cut within their TCP options: capture with a larger snap length (tcpdump -s)"
            }
            Self::PayloadCut => "packets cut within their payload (lengths are from the IP header)",
            Self::Crowded => {
                "connections closed early, longest idle first, because too many were open at the same time"
            }
            Self::NotFollowed => {
                "packets of connections that were not analysed because too many were active: use a filter (-f)"
            }
            Self::NotCaptured => "frames dropped by the kernel or the interface: use a narrower filter (-f)",
        })
    }
}

/// How often a problem occurred.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occurrences {
    /// At least 1.
    pub count: u64,
    /// The number of the first frame that has it.
    pub first_frame: u64,
    /// What is worth knowing beyond the kind, such as the largest step of the clock.
    pub detail: Option<String>,
}

/// All problems of a capture, in the order of [`Problem`]. They are few, and one may be noted for every packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problems(Vec<(Problem, Occurrences)>);

impl Problems {
    /// Notes a problem.
    pub fn note(&mut self, problem: Problem, frame: u64) {
        self.entry(problem, frame).count += 1;
    }

    /// Notes a problem with a detail, which replaces the one before.
    pub fn note_detail(&mut self, problem: Problem, frame: u64, detail: String) {
        let entry = self.entry(problem, frame);
        entry.count += 1;
        entry.detail = Some(detail);
    }

    /// Notes a problem `count` times.
    pub fn add(&mut self, problem: Problem, frame: u64, count: u64) {
        if count > 0 {
            let entry = self.entry(problem, frame);
            entry.count += count;
            entry.first_frame = entry.first_frame.min(frame);
        }
    }

    /// Leaves a problem out.
    pub fn forget(&mut self, problem: Problem) {
        self.0.retain(|(other, _)| *other != problem);
    }

    fn entry(&mut self, problem: Problem, frame: u64) -> &mut Occurrences {
        let at = self.0.iter().position(|(other, _)| *other >= problem).unwrap_or(self.0.len());
        if self.0.get(at).is_none_or(|(other, _)| *other != problem) {
            self.0.insert(at, (problem, Occurrences { count: 0, first_frame: frame, detail: None }));
        }
        &mut self.0[at].1
    }

    /// How often the problem occurred.
    pub fn count(&self, problem: Problem) -> u64 {
        self.iter().find(|(other, _)| *other == problem).map_or(0, |(_, found)| found.count)
    }

    /// In the order of [`Problem`].
    pub fn iter(&self) -> impl Iterator<Item = (Problem, &Occurrences)> {
        self.0.iter().map(|(problem, found)| (*problem, found))
    }

    /// Whether nothing is wrong.
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
