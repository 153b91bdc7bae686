//! A transfer in real or virtual time, in a form that can be compared.
//!
//! Times are nanoseconds since the first SYN left the sender's device. Sequence numbers are offsets in their
//! stream: the SYN has offset 0, and the first data byte has offset 1.

use std::fmt;

use aircaptures::packet::{Packet, Timestamp};
use airlink::packet::PerDirection;
use airlink::stage::DropReason;
use airtcp_analyze::decisions::Line;
use airwire::segment::Flags;
use airwire::seq::Seq;

/// One transfer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// The time at which the first SYN left, in nanoseconds of the path's clock.
    pub(crate) start: i64,
    /// The sender's decisions, in order.
    pub(crate) decisions: Vec<TimedDecision>,
    /// All packets at the capture points that they pass, indexed by [`CapturePoint`].
    pub(crate) observed: [Vec<ObservedPacket>; 4],
    /// The outcome of each packet that entered the path.
    pub(crate) fates: PerDirection<Vec<PathFate>>,
    pub(crate) disturbances: Disturbances,
}

/// A decision and its time.
#[derive(Clone, Debug)]
pub(crate) struct TimedDecision {
    pub(crate) at: i64,
    pub(crate) line: Line,
}

/// The points where packets are observed: at the devices of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CapturePoint {
    /// Data leaves the path at the receiver.
    ReceiverIn,
    /// The receiver's ACK enters the path.
    ReceiverOut,
    /// The ACK leaves the path at the sender.
    SenderIn,
    /// Data enters the path.
    SenderOut,
}

impl CapturePoint {
    /// All points, in causal order at one instant.
    pub(crate) const ALL: [Self; 4] = [Self::ReceiverIn, Self::ReceiverOut, Self::SenderIn, Self::SenderOut];

    /// The component that is responsible if a packet passes here late.
    pub(crate) const fn component(self) -> &'static str {
        match self {
            Self::ReceiverIn => "on the way down",
            Self::ReceiverOut => "at the receiver",
            Self::SenderIn => "on the way up",
            Self::SenderOut => "at the sender",
        }
    }
}

/// A packet that passed one of these points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedPacket {
    pub(crate) at: i64,
    pub(crate) segment: Segment,
}

/// The part of a packet's content that can affect the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// A segment from the sender to the receiver.
    Data { offset: u64, len: u32, flags: Flags },
    /// A segment from the receiver to the sender. `edge` is the end of the offered window. `moves_window` is
    /// set if the ACK repeats the previous ACK number with another window: for a sender without SACK, it is
    /// not a duplicate ACK (RFC 5681 §2).
    Ack { ack: u64, sack: Vec<(u64, u64)>, flags: Flags, edge: u64, moves_window: bool },
}

impl Segment {
    /// Returns true if both segments have the same meaning. The end of the window is not compared, because it
    /// rarely limits a sender. It is checked separately where it does.
    pub(crate) fn is_equivalent(&self, other: &Self) -> bool {
        let without_edge = |segment: &Self| {
            let mut segment = segment.clone();
            if let Self::Ack { edge, .. } = &mut segment {
                *edge = 0;
            }
            segment
        };
        without_edge(self) == without_edge(other)
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Data { flags, .. } | Self::Ack { flags, .. }) = self;
        let names = [
            (Flags::SYN, "SYN"),
            (Flags::FIN, "FIN"),
            (Flags::RST, "RST"),
            (Flags::ECE, "ECE"),
            (Flags::CWR, "CWR"),
        ];
        let set = names.into_iter().filter(|(flag, _)| flags.contains(*flag));
        let set: String = set.map(|(_, name)| format!(" {name}")).collect();
        match self {
            Self::Data { offset, len, .. } => write!(f, "{offset}+{len}{set}"),
            Self::Ack { ack, sack, moves_window, .. } => {
                write!(f, "ACK {ack}{set}")?;
                sack.iter().try_for_each(|(left, right)| write!(f, " [{left},{right})"))?;
                f.write_str(if *moves_window { " (another window)" } else { "" })
            }
        }
    }
}

/// The outcome of a packet in the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathFate {
    /// The packet arrived, or was in the path when the transfer ended.
    Passed,
    /// The path dropped it.
    Dropped(DropReason),
}

impl fmt::Display for PathFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("not dropped"),
            Self::Dropped(why) => write!(f, "dropped ({})", why.name()),
        }
    }
}

/// Disturbances that a real machine adds to a path. In virtual time, all are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Disturbances {
    /// Packets that a device of a kernel dropped or refused between two programs.
    pub(crate) dropped: u64,
    /// Packets on the path that do not belong to the transfer.
    pub(crate) foreign: u64,
    /// Maximum delay of a packet in the emulator beyond its due time, in nanoseconds.
    pub(crate) max_lateness: i64,
}

/// The packets of the transfer in the captures on both sides of a path.
#[derive(Debug)]
pub(crate) struct CapturedTransfer {
    /// The time at which the first SYN passed the sender's device.
    pub(crate) start: Timestamp,
    /// The packets, indexed by [`CapturePoint`].
    pub(crate) observed: [Vec<ObservedPacket>; 4],
    /// Packets on the sender's side that do not belong to the transfer.
    pub(crate) foreign: u64,
}

impl CapturedTransfer {
    /// Reads the transfer from all captured packets of both sides. `None` if there is no SYN.
    pub(crate) fn new(fixed: &[Packet], mobile: &[Packet], port: u16) -> Option<Self> {
        let is_syn = |packet: &&Packet| packet.dst.port() == port && packet.flags.contains(Flags::SYN);
        let syn = fixed.iter().find(is_syn)?;
        let own = |packet: &&Packet| {
            [packet.src, packet.dst] == [syn.src, syn.dst] || [packet.src, packet.dst] == [syn.dst, syn.src]
        };
        let packets_from = |packets: &[Packet], sender: bool| {
            let mut offsets = OffsetReader::new(syn.seq);
            let mut observed = Vec::new();
            for packet in packets.iter().filter(own) {
                let from_sender = packet.src == syn.src;
                let segment = offsets.read(packet, from_sender);
                if from_sender == sender {
                    let at = packet.at.0 - syn.at.0;
                    observed.extend(segment.map(|segment| ObservedPacket { at, segment }));
                }
            }
            observed
        };
        let foreign = fixed.len() - fixed.iter().filter(own).count();
        let observed = CapturePoint::ALL.map(|point| match point {
            CapturePoint::ReceiverIn => packets_from(mobile, true),
            CapturePoint::ReceiverOut => packets_from(mobile, false),
            CapturePoint::SenderIn => packets_from(fixed, false),
            CapturePoint::SenderOut => packets_from(fixed, true),
        });
        Some(Self { start: syn.at, observed, foreign: foreign as u64 })
    }
}

/// Converts sequence numbers to offsets.
struct OffsetReader {
    isn: Seq,
    /// The highest offset so far.
    highest: u64,
    /// The options that the sender's SYN offered, and later those that both ends negotiated.
    negotiated: Negotiated,
    /// The last ACK number, and the end of its window.
    last: Option<(u64, u64)>,
}

#[derive(Default)]
struct Negotiated {
    /// The sender's SYN has the window scale option.
    scaling: bool,
    sack: bool,
    /// The shift count of the receiver's windows.
    shift: u8,
}

/// The flags that can affect the other end.
const RELEVANT_FLAGS: [Flags; 5] = [Flags::SYN, Flags::FIN, Flags::RST, Flags::ECE, Flags::CWR];

impl OffsetReader {
    fn new(isn: Seq) -> Self {
        Self { isn, highest: 0, negotiated: Negotiated::default(), last: None }
    }

    fn offset(&self, number: Seq) -> Option<u64> {
        number.offset(self.isn, self.highest)
    }

    /// Converts a packet. `None` if a sequence number has no offset.
    fn read(&mut self, packet: &Packet, from_sender: bool) -> Option<Segment> {
        let relevant = RELEVANT_FLAGS.into_iter().filter(|flag| packet.flags.contains(*flag));
        let flags = relevant.fold(Flags::NONE, Flags::with);
        let syn = flags.contains(Flags::SYN);
        let options = &packet.options;
        if from_sender {
            if syn {
                let (scaling, sack) = (options.window_scale.is_some(), options.sack_permitted);
                self.negotiated = Negotiated { scaling, sack, shift: 0 };
            }
            let offset = self.offset(packet.seq)?;
            self.highest = self.highest.max(offset + packet.seq_len());
            return Some(Segment::Data { offset, len: packet.len, flags });
        }
        if syn {
            self.negotiated.shift =
                options.window_scale.filter(|_| self.negotiated.scaling).unwrap_or_default();
            self.negotiated.sack &= options.sack_permitted;
        }
        let ack = self.offset(packet.ack?)?;
        // The window in a SYN segment is never scaled (RFC 7323 §2.2).
        let shift = if syn { 0 } else { self.negotiated.shift };
        let edge = ack + (u64::from(packet.window) << shift);
        let last = self.last.replace((ack, edge));
        let moves_window =
            !self.negotiated.sack && last.is_some_and(|(number, end)| number == ack && end != edge);
        let blocks = options.sack.as_slice().iter();
        let sack =
            blocks.filter_map(|(left, right)| Some((self.offset(*left)?, self.offset(*right)?))).collect();
        Some(Segment::Ack { ack, sack, flags, edge, moves_window })
    }
}

#[cfg(test)]
mod tests {
    use airwire::options::Options;

    use super::*;
    use crate::capture::tests::packet;

    const PORT: u16 = 9000;
    /// Close to the maximum, so that the sequence numbers of the data wrap.
    const ISN: Seq = Seq(u32::MAX - 100);

    fn transfer(sack_permitted: bool) -> [Packet; 6] {
        let options = Options { window_scale: Some(3), sack_permitted, ..Options::default() };
        let (to_receiver, to_sender) = ([1000, PORT], [PORT, 1000]);
        let syn = |packet| Packet { flags: Flags::SYN, options, window: 500, ..packet };
        let ack = |at, window| Packet { window, ..packet(at, to_sender, Seq(8), Some(ISN.at(201)), 0) };
        [
            syn(packet(1000, to_receiver, ISN, None, 0)),
            syn(packet(1060, to_sender, Seq(7), Some(ISN.at(1)), 0)),
            Packet { flags: Flags::PSH, ..packet(1061, to_receiver, ISN.at(1), Some(Seq(8)), 200) },
            ack(1121, 400),
            ack(1122, 400),
            ack(1123, 410),
        ]
    }

    fn segments(captured: &CapturedTransfer, point: CapturePoint) -> Vec<(i64, String)> {
        let packets = captured.observed[point as usize].iter();
        packets.map(|packet| (packet.at, packet.segment.to_string())).collect()
    }

    #[test]
    fn offsets_and_times_are_relative_to_syn() {
        let mut fixed = transfer(true).to_vec();
        fixed.insert(1, packet(1001, [2000, 22], Seq(1), None, 9));
        let captured = CapturedTransfer::new(&fixed, &transfer(true), PORT).unwrap();
        assert_eq!((captured.start, captured.foreign), (Timestamp(1000), 1));
        let sent = segments(&captured, CapturePoint::SenderOut);
        assert_eq!(sent, [(0, "0+0 SYN".to_owned()), (61, "1+200".to_owned())]);
        let received = segments(&captured, CapturePoint::SenderIn);
        assert_eq!(received[..2], [(60, "ACK 1 SYN".to_owned()), (121, "ACK 201".to_owned())]);
        assert!(CapturedTransfer::new(&fixed[1..], &[], PORT).is_none(), "without a SYN");
    }

    #[test]
    fn windows_are_scaled_after_handshake() {
        let captured = CapturedTransfer::new(&transfer(true), &[], PORT).unwrap();
        let edges =
            captured.observed[CapturePoint::SenderIn as usize].iter().map(|packet| match packet.segment {
                Segment::Ack { edge, .. } => edge,
                Segment::Data { .. } => 0,
            });
        assert_eq!(edges.collect::<Vec<_>>(), [501, 3401, 3401, 3481]);
    }

    #[test]
    fn window_update_without_sack_is_not_duplicate_ack() {
        let last = |sack| {
            let captured = CapturedTransfer::new(&transfer(sack), &[], PORT).unwrap();
            let acks = segments(&captured, CapturePoint::SenderIn);
            acks[2..].iter().map(|(_, segment)| segment.clone()).collect::<Vec<_>>()
        };
        assert_eq!(last(false), ["ACK 201", "ACK 201 (another window)"]);
        assert_eq!(last(true), ["ACK 201", "ACK 201"]);
    }
}
