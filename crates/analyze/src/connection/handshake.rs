//! Follows the handshake, with its outcome, its duration and the negotiated options.

use aircaptures::packet::Packet;
use airwire::segment::{Ecn, Flags};

use super::findings::{Handshake, HandshakeOutcome, HandshakeSeen, SynFindings};
use super::icmp::IcmpErrors;
use crate::compact::CompactOption;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
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

/// The contents of the SYN of one end. If the SYN was retransmitted, the last one counts.
#[derive(Clone, Copy, Debug)]
struct Syn {
    at: i64,
    times: u8,
    window_scale: Option<u8>,
    sack: bool,
    timestamps: bool,
    /// Whether the capture cut off some of its options.
    options_cut: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct HandshakeTracker {
    stage: Stage,
    resets: u8,
    syns: [Option<Syn>; 2],
    /// The time from SYN to SYN-ACK, and from SYN-ACK to its ACK.
    durations: [CompactOption; 2],
    /// Whether any packet has timestamps, has SACK blocks, or is ECN-capable.
    has_timestamps: bool,
    has_sack_blocks: bool,
    has_ecn: bool,
}

impl HandshakeTracker {
    /// Returns the state after the handshake, without the losses in it.
    pub(super) fn continued(&self) -> Self {
        let syns = self.syns.map(|syn| syn.map(|syn| Syn { times: 1, ..syn }));
        Self { syns, resets: 0, ..self.clone() }
    }

    /// Updates the stage. Returns whether the connection continues after an RST.
    pub(super) fn update_stage(&mut self, packet: &Packet, from: usize) -> bool {
        if self.stage == Stage::Open {
            return false;
        }
        if packet.flags.contains(Flags::RST) {
            self.resets = self.resets.saturating_add(1);
            let is_refusal = from == 1 && !self.has_syn(1);
            self.stage = if is_refusal { Stage::Refused } else { Stage::Reset { by: from as u8 } };
            return false;
        }
        let stage = if packet.flags.contains(Flags::SYN) {
            // Windows retries with the same sequence number. So does a client that received a challenge ACK
            // (RFC 5961 §4.2).
            packet.ack.map(|_| Stage::Begun)
        } else {
            (packet.len > 0 || from == 0 && packet.ack.is_some()).then_some(Stage::Open)
        };
        let Some(stage) = stage else { return false };
        std::mem::replace(&mut self.stage, stage) != Stage::Begun
    }

    /// Processes a packet at the time `at`. If it completes a part of the handshake, returns the response time
    /// of its sender.
    pub(super) fn process(&mut self, at: i64, packet: &Packet, from: usize) -> Option<i64> {
        self.has_timestamps |= packet.options.timestamps.is_some();
        self.has_sack_blocks |= !packet.options.sack.is_empty();
        self.has_ecn |= packet.ecn != Ecn::NotEct;
        let is_syn = packet.flags.contains(Flags::SYN);
        if is_syn {
            let options = &packet.options;
            self.syns[from] = Some(Syn {
                at,
                times: self.syns[from].map_or(0, |syn| syn.times).saturating_add(1),
                window_scale: options.window_scale,
                sack: options.sack_permitted,
                timestamps: options.timestamps.is_some(),
                options_cut: packet.options_cut,
            });
        }
        let (request, part) = match (from, is_syn) {
            (1, true) if self.syns[1]?.times == 1 => (self.syns[0]?, 0),
            (0, false) if self.durations[1].as_time().is_none() => (self.syns[1]?, 1),
            _ => return None,
        };
        if request.times != 1 || packet.ack.is_none() {
            return None;
        }
        self.durations[part] = CompactOption::time(at - request.at);
        Some(at - request.at)
    }

    /// Returns the time of the ACK for the SYN-ACK.
    pub(super) fn opened_at(&self) -> Option<i64> {
        self.syns[1].zip(self.durations[1].as_time()).map(|(syn_ack, took)| syn_ack.at + took)
    }

    pub(super) fn has_syn(&self, end: usize) -> bool {
        self.syns[end].is_some()
    }

    /// Returns whether both ends' SYNs have an option. Returns `None` if the capture does not show it.
    fn agreed(&self, option: fn(&Syn) -> bool) -> Option<bool> {
        let [first, second] = [self.syns[0]?, self.syns[1]?];
        let is_known = |syn: &Syn| option(syn) || !syn.options_cut;
        (is_known(&first) && is_known(&second)).then(|| option(&first) && option(&second))
    }

    /// Returns whether timestamps are in use. If a SYN is missing, the other packets show it.
    pub(super) fn uses_timestamps(&self) -> bool {
        self.agreed(|syn| syn.timestamps).unwrap_or(self.has_timestamps)
    }

    /// Returns whether SACK is in use, determined in the same way.
    pub(super) fn uses_sack(&self) -> bool {
        self.agreed(|syn| syn.sack).unwrap_or(self.has_sack_blocks)
    }

    /// Returns whether SACK was negotiated but the capture has shown no block so far.
    pub(super) fn hides_sacks(&self) -> bool {
        !self.has_sack_blocks && self.agreed(|syn| syn.sack) == Some(true)
    }

    pub(super) fn uses_ecn(&self) -> bool {
        self.has_ecn
    }

    /// Returns the window scales of both ends, if the capture shows them. RFC 7323 §2.2: window scaling is in
    /// effect only if both ends send the option.
    pub(super) fn window_scales(&self) -> Option<[u8; 2]> {
        self.agreed(|syn| syn.window_scale.is_some())?;
        let [first, second] = self.syns.map(|syn| syn.and_then(|syn| syn.window_scale));
        Some(first.zip(second).map_or([0; 2], <[u8; 2]>::from))
    }

    /// Returns the results. `mss` contains the MSS option of each end.
    pub(super) fn findings(&self, mss: [Option<u16>; 2], icmp: Option<&IcmpErrors>) -> Handshake {
        let seconds = |ns: Option<i64>| ns.map(|ns| ns as f64 / 1e9);
        let [syn_to_syn_ack, syn_ack_to_ack] = self.durations.map(CompactOption::as_time);
        let syn = |end: usize| {
            self.syns[end].map(|syn| SynFindings {
                times: u64::from(syn.times),
                mss: mss[end],
                window_scale: syn.window_scale,
                sack_permitted: syn.sack,
                timestamps: syn.timestamps,
                options_cut: syn.options_cut,
            })
        };
        Handshake {
            seen: match self.syns {
                [Some(_), Some(_)] => HandshakeSeen::Whole,
                [None, None] => HandshakeSeen::None,
                _ => HandshakeSeen::Part,
            },
            outcome: self.outcome(icmp),
            resets: u64::from(self.resets),
            syns: [syn(0), syn(1)],
            syn_to_syn_ack_seconds: seconds(syn_to_syn_ack),
            syn_ack_to_ack_seconds: seconds(syn_ack_to_ack),
            rtt_seconds: seconds(syn_to_syn_ack.zip(syn_ack_to_ack).map(|(to, back)| to + back)),
        }
    }

    fn outcome(&self, icmp: Option<&IcmpErrors>) -> HandshakeOutcome {
        match (self.stage, self.syns) {
            (_, [None, None]) => HandshakeOutcome::Unseen,
            (Stage::Open, _) => HandshakeOutcome::Open,
            (Stage::Refused, _) => HandshakeOutcome::Refused,
            (Stage::Reset { by }, _) => HandshakeOutcome::Reset { by: usize::from(by) },
            (Stage::Begun, [_, Some(_)]) => HandshakeOutcome::HalfOpen,
            (Stage::Begun, _) if icmp.is_some_and(IcmpErrors::reports_unreachable) => {
                HandshakeOutcome::Unreachable
            }
            (Stage::Begun, _) => HandshakeOutcome::NoAnswer,
        }
    }
}
