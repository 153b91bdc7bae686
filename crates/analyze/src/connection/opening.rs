//! How far the handshake came, and what ICMP said of the connection's packets.

use airwire::segment::Flags;

use super::compact::heap_of_vec;
use super::findings::{IcmpFindings, Opening};
use aircaptures::icmp::IcmpError;
use aircaptures::packet::{Packet, Timestamp};

/// How far the handshake has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Begun,
    /// An RST came for an answer to the SYN.
    Refused,
    /// An RST came after the SYN-ACK, or from who had sent the SYN.
    Reset {
        by: u8,
    },
    Open,
}

/// What a packet does to the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    None,
    /// The reset before it was not the end.
    AfterAll,
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) stage: Stage,
    pub(super) resets: u8,
}

impl Progress {
    /// `answered`: a SYN of `ends[1]` has been seen.
    pub(super) fn take(&mut self, packet: &Packet, from: usize, answered: bool) -> Step {
        if self.stage == Stage::Open {
            return Step::None;
        }
        let flags = packet.flags;
        if flags.contains(Flags::RST) {
            self.resets = self.resets.saturating_add(1);
            let is_refusal = from == 1 && !answered;
            self.stage = if is_refusal { Stage::Refused } else { Stage::Reset { by: from as u8 } };
        } else if flags.contains(Flags::SYN) {
            // Windows tries again with the same number, and so does who was answered by an ACK (RFC 5961 §4.2).
            if packet.ack.is_some() && self.stage != Stage::Begun {
                self.stage = Stage::Begun;
                return Step::AfterAll;
            }
        } else if packet.len > 0 || from == 0 && packet.ack.is_some() {
            let was = std::mem::replace(&mut self.stage, Stage::Open);
            return if was == Stage::Begun { Step::None } else { Step::AfterAll };
        }
        Step::None
    }

    /// `syns`: whether each end has sent one.
    pub(super) fn findings(&self, syns: [bool; 2], icmp: Option<&Messages>) -> Opening {
        match (self.stage, syns) {
            (_, [false, false]) => Opening::Unseen,
            (Stage::Open, _) => Opening::Open,
            (Stage::Refused, _) => Opening::Refused,
            (Stage::Reset { by }, _) => Opening::Reset { by: usize::from(by) },
            (Stage::Begun, [_, true]) => Opening::HalfOpen,
            (Stage::Begun, _) if icmp.is_some_and(Messages::says_unreachable) => Opening::Unreachable,
            (Stage::Begun, _) => Opening::NoAnswer,
        }
    }
}

/// ICMP errors, each kind from each sender once.
#[derive(Debug, Default)]
pub(super) struct Messages(Vec<IcmpFindings>);

/// Kinds and senders that are told apart: more are not worth their memory.
const MOST: usize = 8;

impl Messages {
    /// `about`: whose packet it was.
    pub(super) fn take(
        &mut self,
        error: &IcmpError,
        number: u64,
        at: Timestamp,
        begin: Timestamp,
        about: usize,
    ) {
        let same = |known: &&mut IcmpFindings| {
            (known.icmp_type, known.icmp_code, known.from, known.about)
                == (error.icmp_type, error.code, error.from, about)
        };
        if let Some(known) = self.0.iter_mut().find(same) {
            known.count += 1;
            known.mtu = known.mtu.into_iter().chain(error.mtu).min();
        } else if self.0.len() < MOST {
            self.0.push(IcmpFindings {
                kind: error.kind,
                icmp_type: error.icmp_type,
                icmp_code: error.code,
                from: error.from,
                about,
                count: 1,
                first_frame: number,
                first_seconds: at.since(begin),
                mtu: error.mtu,
            });
        }
    }

    fn says_unreachable(&self) -> bool {
        self.0.iter().any(|message| message.about == 0 && message.kind.is_unreachable())
    }

    pub(super) fn heap(&self) -> usize {
        size_of::<Self>() + heap_of_vec::<IcmpFindings>(self.0.capacity())
    }

    pub(super) fn into_findings(self) -> Vec<IcmpFindings> {
        self.0
    }
}
