//! Problems of a capture, counted by kind and reported at the end. The rest of the capture is analysed
//! normally.

use serde::{Serialize, Serializer};

text_enum! {
    /// A kind of problem. `Display` describes it and suggests a remedy.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Problem {
        /// The capture is damaged, and reading ended there.
        Damaged => "the capture is damaged or truncated: the rest was not read",
        /// An invalid pcapng block, or invalid data between blocks. Reading continued behind the invalid
        /// part.
        Garbage => "unreadable data between blocks, skipped",
        /// A frame has an earlier timestamp than the previous frame.
        ClockBackwards => "frames with an earlier timestamp than the frame before",
        /// A frame has a timestamp far from both its neighbours. Its real time is assumed to be between the
        /// neighbours' times.
        ClockJumped => "frames with a timestamp far from both neighbours, assumed to lie between them",
        /// The clock was set forward, according to the timestamps of the TCP packets. Later frames count as that
        /// much earlier.
        ClockStepped => "steps of the clock that the TCP timestamps do not have: later frames count as that much earlier",
        /// The two directions of a connection were recorded with different clocks.
        ClocksDiffer =>
            "connections whose directions were recorded with different clocks (packets follow the responses to them)",
        /// The clock is so coarse that many frames have the same timestamp.
        ClockCoarse => "coarse clock: shorter times are not visible",
        /// A frame repeats an earlier one, because the capture contains a part of itself twice.
        Repeated => "frames that repeat earlier frames in the same order, ignored",
        /// A frame is longer than the snap length that the capture declares.
        AboveSnapLength => "frames longer than the snap length of the capture",
        /// A frame has a link type that [`LinkType`](crate::link_layer::LinkType) does not support.
        UnknownLink => "frames of an unsupported link type",
        /// IP or TCP headers are invalid.
        Malformed => "malformed IP or TCP headers",
        /// TCP options are invalid. The rest of the packet counts.
        MalformedOptions => "malformed TCP options, ignored",
        /// A header promises more data than the frame carried. If many packets have this problem, the data in the
        /// frame counts.
        BeyondFrame => "packets longer than their frames by their headers: only the data in the frame counts",
        /// An IP or TCP checksum is wrong, and a device will not fill it in.
        Checksum => "packets with a wrong checksum",
        /// A packet was damaged in transit: it has one of the two problems above, but almost all packets from the
        /// same address are intact.
        Corrupted =>
            "packets damaged in transit (wrong checksum, or truncated): receivers drop them, so they do not count",
        /// An IP fragment belongs to an incomplete packet.
        Fragment => "IP fragments of incomplete packets",
        /// IP fragments overlap or have invalid lengths. Receivers discard the whole packet (RFC 5722).
        FragmentOverlap => "overlapping or malformed IP fragments",
        /// The capture did not keep enough of a frame to read its headers.
        HeadersCut => "packets cut within their headers: capture with a larger snap length (tcpdump -s)",
        /// The capture contains only some of the TCP options. The others count as absent.
        OptionsCut => "packets cut within their TCP options: capture with a larger snap length (tcpdump -s)",
        /// The capture did not keep all of the payload, which the analysis does not need.
        PayloadCut => "packets cut within their payload (lengths are from the IP header)",
        /// Connections were closed early because too many were open. If they continue, they count as new
        /// connections.
        Crowded => "connections closed early, longest idle first, because too many were open at the same time",
        /// Packets belong to connections that are not analysed, because too many others were active when they
        /// began.
        NotFollowed =>
            "packets of connections that were not analysed because too many were active: use a filter (-f)",
        /// The kernel or the interface dropped frames.
        NotCaptured => "frames dropped by the kernel or the interface: use a narrower filter (-f)",
    }
}

/// The number of occurrences of a problem.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occurrences {
    /// The number of occurrences, at least 1.
    pub count: u64,
    /// The number of the first affected frame.
    pub first_frame: u64,
    /// Additional information, such as the largest step of the clock.
    pub detail: Option<String>,
}

/// All problems of a capture, in the order of [`Problem`]. A vector is enough because there are few kinds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problems(Vec<(Problem, Occurrences)>);

impl Problems {
    /// Counts one occurrence of a problem.
    pub fn record(&mut self, problem: Problem, frame: u64) {
        self.entry(problem, frame).count += 1;
    }

    /// Counts one occurrence of a problem, and replaces its detail.
    pub fn record_detail(&mut self, problem: Problem, frame: u64, detail: String) {
        let entry = self.entry(problem, frame);
        entry.count += 1;
        entry.detail = Some(detail);
    }

    /// Counts `count` occurrences of a problem.
    pub fn add(&mut self, problem: Problem, frame: u64, count: u64) {
        if count > 0 {
            let entry = self.entry(problem, frame);
            entry.count += count;
            entry.first_frame = entry.first_frame.min(frame);
        }
    }

    /// Removes a problem.
    pub fn remove(&mut self, problem: Problem) {
        self.0.retain(|(other, _)| *other != problem);
    }

    fn entry(&mut self, problem: Problem, frame: u64) -> &mut Occurrences {
        let at = self.0.iter().position(|(other, _)| *other >= problem).unwrap_or(self.0.len());
        if self.0.get(at).is_none_or(|(other, _)| *other != problem) {
            self.0.insert(at, (problem, Occurrences { count: 0, first_frame: frame, detail: None }));
        }
        &mut self.0[at].1
    }

    /// Returns the number of occurrences of a problem.
    pub fn count(&self, problem: Problem) -> u64 {
        self.iter().find(|(other, _)| *other == problem).map_or(0, |(_, found)| found.count)
    }

    /// Returns the problems in the order of [`Problem`].
    pub fn iter(&self) -> impl Iterator<Item = (Problem, &Occurrences)> {
        self.0.iter().map(|(problem, found)| (*problem, found))
    }

    /// Returns whether the capture is free of problems.
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
