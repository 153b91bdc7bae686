//! A segment from our side, without the values that may differ between two TCPs: initial sequence numbers,
//! clocks, windows.

use std::cmp::Ordering;
use std::fmt;

use airwire::segment::{Ecn, Flags};
use airwire::time::Duration;
use airwire::view::View;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum SeqNumber {
    /// Offset in the stream.
    Offset(i64),
    /// The number 0 itself, in a reset that answers a segment without ACK.
    Zero,
    /// The number itself, because no SYN was received, in a reset that answers an ACK.
    Raw(u32),
}

/// One end of a SACK block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum BlockEdge {
    At(u64),
    /// Distance from the edge of the window, because two TCPs have different edges.
    FromEdge(i64),
}

impl fmt::Display for BlockEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at) => write!(f, "{at}"),
            Self::FromEdge(by) => write!(f, "edge{by:+}"),
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Observed {
    /// Time since the exchange began.
    pub at: Duration,
    /// It could be read as soon as the event before it was delivered.
    pub prompt: bool,
    pub flags: Flags,
    pub seq: SeqNumber,
    pub ack: Option<u64>,
    pub len: usize,
    /// In bytes.
    pub window: u64,
    /// The kinds of the options in their order, including padding.
    pub kinds: Vec<u8>,
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    /// The echoed time of the peer's clock, since the exchange began.
    pub ecr: Option<i32>,
    pub sack: Vec<(BlockEdge, BlockEdge)>,
    pub ecn: Ecn,
    /// Time to live, and the Don't Fragment flag.
    pub ip: (u8, bool),
}

impl Observed {
    /// The word for the kind of segment.
    pub(crate) fn kind(&self) -> &'static str {
        let has = |flag| self.flags.contains(flag);
        match () {
            () if has(Flags::RST) => "rst",
            () if has(Flags::SYN) => "syn",
            () if has(Flags::FIN) => "fin",
            () if self.len > 0 => "data",
            () => "ack",
        }
    }

    /// The first field in which the two differ, and the order of its values. Times are not compared.
    pub(crate) fn differs(&self, other: &Self) -> Option<(&'static str, Ordering)> {
        let flags = |segment: &Self| segment.flags.without(Flags::PSH).0;
        let psh = |segment: &Self| segment.flags.contains(Flags::PSH);
        let sack = |segment: &Self| (segment.sack.len(), segment.sack.clone());
        let kinds = |segment: &Self| (segment.kinds.len(), segment.kinds.clone());
        let fields = [
            ("flags", flags(self).cmp(&flags(other))),
            ("seq", self.seq.cmp(&other.seq)),
            ("len", self.len.cmp(&other.len)),
            ("ack", self.ack.cmp(&other.ack)),
            ("sack", sack(self).cmp(&sack(other))),
            ("options", kinds(self).cmp(&kinds(other))),
            ("mss", self.mss.cmp(&other.mss)),
            ("scale", self.scale.cmp(&other.scale)),
            ("ecr", self.ecr.cmp(&other.ecr)),
            ("window", (self.window > 0).cmp(&(other.window > 0))),
            ("ecn", (self.ecn as u8).cmp(&(other.ecn as u8))),
            ("ip", self.ip.cmp(&other.ip)),
            ("psh", psh(self).cmp(&psh(other))),
        ];
        fields.into_iter().find(|(_, order)| order.is_ne())
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.flags)?;
        match self.seq {
            SeqNumber::Offset(at) => write!(f, "{at}:{}({})", at + self.len as i64, self.len)?,
            SeqNumber::Zero => write!(f, "=0({})", self.len)?,
            SeqNumber::Raw(number) => write!(f, "={number}({})", self.len)?,
        }
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        write!(f, " win {}", self.window)?;
        let mut listed = Vec::new();
        for kind in &self.kinds {
            match kind {
                1 => listed.push("nop".to_owned()),
                2 => listed.push(format!("mss {}", self.mss.unwrap_or(0))),
                3 => listed.push(format!("wscale {}", self.scale.unwrap_or(0))),
                4 => listed.push("sackOK".to_owned()),
                5 => {
                    let blocks: Vec<_> = self.sack.iter().map(|(l, r)| format!("{l}:{r}")).collect();
                    listed.push(format!("sack {}", blocks.join(" ")));
                }
                8 => listed.push(format!("TS ecr {}", self.ecr.unwrap_or(0))),
                other => listed.push(format!("option {other}")),
            }
        }
        if !listed.is_empty() {
            write!(f, " <{}>", listed.join(","))?;
        }
        if self.ecn != Ecn::NotEct {
            write!(f, " [{:?}]", self.ecn)?;
        }
        Ok(())
    }
}

/// The kinds of a packet's TCP options, in their order.
pub(crate) fn kinds(packet: &[u8]) -> Vec<u8> {
    let segment = View::of(packet).ok().and_then(|view| view.tcp());
    let mut options = segment.map_or(&[][..], |segment| segment.options);
    let mut kinds = Vec::new();
    while let [kind, rest @ ..] = options {
        kinds.push(*kind);
        let skip =
            if *kind < 2 { 0 } else { usize::from(rest.first().copied().unwrap_or(1)).saturating_sub(1) };
        options = rest.get(skip..).unwrap_or(&[]);
    }
    kinds
}

/// Time to live, and the Don't Fragment flag of an IPv4 packet.
pub(crate) fn ip(packet: &[u8]) -> (u8, bool) {
    (packet[8], packet[6] & 0x40 != 0)
}
