//! The progress of the handshake, and ICMP errors about the connection's packets.

use airwire::segment::Flags;

use super::compact::heap_of_vec;
use super::findings::{IcmpFindings, Opening};
use aircaptures::icmp::IcmpError;
use aircaptures::packet::{Packet, Timestamp};

/// The progress of the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Begun,
    /// The SYN was answered by an RST.
    Refused,
    /// An RST came after the SYN-ACK, or from the end that sent the SYN.
    Reset {
        by: u8,
    },
    Open,
}

/// The effect of a packet on the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    None,
    /// The connection continues after an RST.
    AfterAll,
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) stage: Stage,
    pub(super) resets: u8,
}

impl Progress {
    /// Processes a packet. `answered` means that a SYN of `ends[1]` has been seen.
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
            // Windows retries with the same sequence number. So does a client that received a challenge ACK
            // (RFC 5961 §4.2).
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

    /// Returns the outcome. `syns` states whether each end has sent a SYN.
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

/// ICMP errors, one entry per kind and sender.
#[derive(Debug, Default)]
pub(super) struct Messages(Vec<IcmpFindings>);

/// Maximum number of entries, to bound the memory.
const MOST: usize = 8;

impl Messages {
    /// Adds an error. `caused_by_end` is the index of the end whose packet caused it.
    pub(super) fn take(
        &mut self,
        error: &IcmpError,
        number: u64,
        at: Timestamp,
        begin: Timestamp,
        caused_by_end: usize,
    ) {
        let same = |known: &&mut IcmpFindings| {
            (known.icmp_type, known.icmp_code, known.from, known.caused_by_end)
                == (error.icmp_type, error.code, error.from, caused_by_end)
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
                caused_by_end,
                count: 1,
                first_frame: number,
                first_seconds: at.since(begin),
                mtu: error.mtu,
            });
        }
    }

    fn says_unreachable(&self) -> bool {
        self.0.iter().any(|message| message.caused_by_end == 0 && message.kind.is_unreachable())
    }

    pub(super) fn heap(&self) -> usize {
        size_of::<Self>() + heap_of_vec::<IcmpFindings>(self.0.capacity())
    }

    pub(super) fn into_findings(self) -> Vec<IcmpFindings> {
        self.0
    }
}
