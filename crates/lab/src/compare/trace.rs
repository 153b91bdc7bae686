//! A transfer in real or virtual time, in a form that can be compared.
//!
//! Times are nanoseconds since the first SYN left the sender's device. Sequence numbers are offsets in their
//! stream: the SYN has offset 0, and the first data byte has offset 1.

use std::fmt;

use aircaptures::packet::{Packet, Timestamp};
use airlink::stage::Why;
use airtcp_analyze::decisions::Line;
use airwire::segment::Flags;
use airwire::seq::Seq;
use serde::Serialize;

/// One transfer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// The time at which the first SYN left, in nanoseconds of the path's clock.
    pub(crate) start: i64,
    /// The sender's decisions, in order.
    pub(crate) decisions: Vec<Decided>,
    /// All packets at the four places that they pass, indexed by [`Place`].
    pub(crate) passed: [Vec<Passed>; 4],
    /// The fate of each packet that entered the path, downwards and upwards.
    pub(crate) fates: [Vec<Fate>; 2],
    /// Disturbances by the machine.
    pub(crate) machine: Machine,
}

/// A decision and its time.
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    pub(crate) at: i64,
    pub(crate) line: Line,
}

/// The places where packets are observed: at the devices of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Data leaves the path at the receiver.
    ReceiverIn,
    /// The receiver's ACK enters the path.
    ReceiverOut,
    /// The ACK leaves the path at the sender.
    SenderIn,
    /// Data enters the path.
    SenderOut,
}

impl Place {
    /// All places, in causal order at one instant.
    pub(crate) const ALL: [Self; 4] = [Self::ReceiverIn, Self::ReceiverOut, Self::SenderIn, Self::SenderOut];

    /// The part of the system that is responsible if a packet passes here late.
    pub(crate) const fn step(self) -> &'static str {
        match self {
            Self::ReceiverIn => "on the way down",
            Self::ReceiverOut => "at the receiver",
            Self::SenderIn => "on the way up",
            Self::SenderOut => "at the sender",
        }
    }
}

/// A packet that passed one of these places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) at: i64,
    pub(crate) segment: Segment,
}

/// The content of a packet, as far as it can affect the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// A segment from the sender to the receiver.
    Data { offset: u64, len: u32, flags: Flags },
    /// A segment from the receiver to the sender. `edge` is the end of the offered window. `moves` is set if
    /// the ACK repeats the previous ACK number with another window: for a sender without SACK, it is not a
    /// duplicate ACK (RFC 5681 §2).
    Ack { ack: u64, sack: Vec<(u64, u64)>, flags: Flags, edge: u64, moves: bool },
}

impl Segment {
    /// Returns true if both segments have the same meaning. The end of the window is not compared, because it
    /// rarely limits a sender. It is checked separately where it does.
    pub(crate) fn says_as(&self, other: &Self) -> bool {
        let heard = |segment: &Self| match segment {
            Self::Ack { ack, sack, flags, moves, edge: _ } => Some((*ack, sack.clone(), *flags, *moves)),
            Self::Data { .. } => None,
        };
        match (heard(self), heard(other)) {
            (Some(one), Some(two)) => one == two,
            _ => self == other,
        }
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
        let set: String = names
            .into_iter()
            .filter(|(flag, _)| flags.contains(*flag))
            .map(|(_, name)| format!(" {name}"))
            .collect();
        match self {
            Self::Data { offset, len, .. } => write!(f, "{offset}+{len}{set}"),
            Self::Ack { ack, sack, moves, .. } => {
                write!(f, "ACK {ack}{set}")?;
                sack.iter().try_for_each(|(left, right)| write!(f, " [{left},{right})"))?;
                f.write_str(if *moves { " (another window)" } else { "" })
            }
        }
    }
}

/// The fate of a packet in the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The packet arrived, or was in the path when the transfer ended.
    Passed,
    /// The path dropped it.
    Dropped(Why),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("not dropped"),
            Self::Dropped(why) => write!(f, "dropped ({})", why.name()),
        }
    }
}

/// Disturbances that a real machine adds to a path. All of them are zero in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    /// Packets that a device of a kernel dropped or refused between two programs.
    pub(crate) dropped: u64,
    /// Packets on the path that do not belong to the transfer.
    pub(crate) strangers: u64,
    /// Maximum delay of a packet in the emulator beyond its due time, in nanoseconds.
    pub(crate) latest: i64,
}

/// The packets of the transfer in the captures on both sides of a path.
#[derive(Debug)]
pub(crate) struct Captured {
    /// The time at which the first SYN passed the sender's device.
    pub(crate) start: Timestamp,
    pub(crate) passed: [Vec<Passed>; 4],
    /// Packets on the sender's side that do not belong to the transfer.
    pub(crate) strangers: u64,
}

impl Captured {
    /// Reads the transfer from all captured packets of both sides. `None` if there is no SYN.
    pub(crate) fn new(fixed: &[Packet], mobile: &[Packet], port: u16) -> Option<Self> {
        let is_syn = |packet: &&Packet| packet.dst.port() == port && packet.flags.contains(Flags::SYN);
        let syn = fixed.iter().find(is_syn)?;
        let own = |packet: &&Packet| {
            [packet.src, packet.dst] == [syn.src, syn.dst] || [packet.src, packet.dst] == [syn.dst, syn.src]
        };
        let of = |packets: &[Packet], out: bool| {
            let mut numbering = Numbering::new(syn.seq);
            let mut seen = Vec::new();
            for packet in packets.iter().filter(own) {
                let forth = packet.src == syn.src;
                let segment = numbering.read(packet, forth);
                if forth == out {
                    let at = packet.at.0 - syn.at.0;
                    seen.extend(segment.map(|segment| Passed { at, segment }));
                }
            }
            seen
        };
        let strangers = fixed.len() - fixed.iter().filter(own).count();
        let passed = Place::ALL.map(|place| match place {
            Place::ReceiverIn => of(mobile, true),
            Place::ReceiverOut => of(mobile, false),
            Place::SenderIn => of(fixed, false),
            Place::SenderOut => of(fixed, true),
        });
        Some(Self { start: syn.at, passed, strangers: strangers as u64 })
    }
}

/// Converts sequence numbers to offsets.
struct Numbering {
    isn: Seq,
    /// The highest offset so far.
    highest: u64,
    /// The options that the sender's SYN offered, and later those that both ends agreed on.
    agreed: Agreed,
    /// The last ACK number, and the end of its window.
    last: Option<(u64, u64)>,
}

#[derive(Default)]
struct Agreed {
    /// The sender's SYN has the window scale option.
    scaling: bool,
    sack: bool,
    /// The shift count of the receiver's windows.
    shift: u8,
}

/// The flags that can affect the other end.
const HEARD: [Flags; 5] = [Flags::SYN, Flags::FIN, Flags::RST, Flags::ECE, Flags::CWR];

impl Numbering {
    fn new(isn: Seq) -> Self {
        Self { isn, highest: 0, agreed: Agreed::default(), last: None }
    }

    fn offset(&self, number: Seq) -> Option<u64> {
        number.offset(self.isn, self.highest)
    }

    /// Converts a packet. `forth` means from the sender to the receiver. `None` if a number has no offset.
    fn read(&mut self, packet: &Packet, forth: bool) -> Option<Segment> {
        let heard = HEARD.into_iter().filter(|flag| packet.flags.contains(*flag));
        let flags = heard.fold(Flags::NONE, Flags::with);
        let syn = flags.contains(Flags::SYN);
        let options = &packet.options;
        if forth {
            if syn {
                let (scaling, sack) = (options.window_scale.is_some(), options.sack_permitted);
                self.agreed = Agreed { scaling, sack, shift: 0 };
            }
            let offset = self.offset(packet.seq)?;
            self.highest = self.highest.max(offset + packet.seq_len());
            return Some(Segment::Data { offset, len: packet.len, flags });
        }
        if syn {
            self.agreed.shift = options.window_scale.filter(|_| self.agreed.scaling).unwrap_or_default();
            self.agreed.sack &= options.sack_permitted;
        }
        let ack = self.offset(packet.ack?)?;
        // The window in a SYN segment is never scaled (RFC 7323 §2.2).
        let shift = if syn { 0 } else { self.agreed.shift };
        let edge = ack + (u64::from(packet.window) << shift);
        let last = self.last.replace((ack, edge));
        let moves = !self.agreed.sack && last.is_some_and(|(number, end)| number == ack && end != edge);
        let blocks = options.sack.as_slice().iter();
        let sack =
            blocks.filter_map(|(left, right)| Some((self.offset(*left)?, self.offset(*right)?))).collect();
        Some(Segment::Ack { ack, sack, flags, edge, moves })
    }
}

#[cfg(test)]
mod tests {
    use airwire::options::Options;
    use airwire::segment::Ecn;

    use super::*;

    const PORT: u16 = 9000;
    /// Close to the maximum, so that the sequence numbers of the data wrap.
    const ISN: Seq = Seq(u32::MAX - 100);

    fn packet(at: i64, ports: [u16; 2], seq: Seq, ack: Option<Seq>, len: u32) -> Packet {
        let [src, dst] = ports.map(|port| ([127, 0, 0, 1], port).into());
        Packet {
            number: 0,
            at: Timestamp(at),
            src,
            dst,
            seq,
            ack,
            flags: Flags::NONE,
            window: 500,
            ecn: Ecn::NotEct,
            len,
            ip_id: None,
            options: Options::default(),
            options_cut: false,
        }
    }

    fn transfer(sack_permitted: bool) -> [Packet; 6] {
        let options = Options { window_scale: Some(3), sack_permitted, ..Options::default() };
        let (forth, back) = ([1000, PORT], [PORT, 1000]);
        let syn = |packet| Packet { flags: Flags::SYN, options, ..packet };
        let ack = |at, window| Packet { window, ..packet(at, back, Seq(8), Some(ISN.at(201)), 0) };
        [
            syn(packet(1000, forth, ISN, None, 0)),
            syn(packet(1060, back, Seq(7), Some(ISN.at(1)), 0)),
            Packet { flags: Flags::PSH, ..packet(1061, forth, ISN.at(1), Some(Seq(8)), 200) },
            ack(1121, 400),
            ack(1122, 400),
            ack(1123, 410),
        ]
    }

    fn shown(passed: &[Passed]) -> Vec<(i64, String)> {
        passed.iter().map(|passed| (passed.at, passed.segment.to_string())).collect()
    }

    #[test]
    fn offsets_and_times_are_relative_to_syn() {
        let mut fixed = transfer(true).to_vec();
        fixed.insert(1, packet(1001, [2000, 22], Seq(1), None, 9));
        let captured = Captured::new(&fixed, &transfer(true), PORT).unwrap();
        assert_eq!((captured.start, captured.strangers), (Timestamp(1000), 1));
        let left = shown(&captured.passed[Place::SenderOut as usize]);
        assert_eq!(left, [(0, "0+0 SYN".to_owned()), (61, "1+200".to_owned())]);
        let came = shown(&captured.passed[Place::SenderIn as usize]);
        assert_eq!(came[..2], [(60, "ACK 1 SYN".to_owned()), (121, "ACK 201".to_owned())]);
        assert!(Captured::new(&fixed[1..], &[], PORT).is_none(), "without a SYN");
    }

    #[test]
    fn windows_are_scaled_after_handshake() {
        let captured = Captured::new(&transfer(true), &[], PORT).unwrap();
        let edges = captured.passed[Place::SenderIn as usize].iter().map(|passed| match passed.segment {
            Segment::Ack { edge, .. } => edge,
            Segment::Data { .. } => 0,
        });
        assert_eq!(edges.collect::<Vec<_>>(), [501, 3401, 3401, 3481]);
    }

    #[test]
    fn window_update_without_sack_is_not_duplicate_ack() {
        let last = |sack| {
            let captured = Captured::new(&transfer(sack), &[], PORT).unwrap();
            captured.passed[Place::SenderIn as usize][2..]
                .iter()
                .map(|it| it.segment.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(last(false), ["ACK 201", "ACK 201 (another window)"]);
        assert_eq!(last(true), ["ACK 201", "ACK 201"]);
    }
}
