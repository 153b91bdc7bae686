//! Translation of one connection between the script's numbers and those on the wire: sequence
//! numbers, timestamps and ports.
//!
//! Sequence numbers follow tcpdump and packetdrill: in a packet with SYN they are absolute, and in
//! any other packet they are relative to the SYN of their direction. `< S 1000:1000(0)` is followed
//! by `> S. 0:0(0) ack 1001` and `< . 1:1(0) ack 1`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airwire::time::Instant;

use super::ast::{Flags, IpFields, Options, Segment, TcpOption, Tos};
use super::syscall::Fd;
use super::wire::Packet;

/// Initial sequence number of the script's side. It is close enough to 2^32 that the sequence
/// numbers of most scripts wrap around.
const REMOTE_BASE: u32 = 0xffff_f800;

/// Returns the payload byte at a sequence number of the script, which is the same in both
/// directions. The period is prime, so that a misplaced segment does not match.
fn payload_byte(seq: u32) -> u8 {
    (seq % 251) as u8
}

/// Returns `len` payload bytes from this sequence number on.
pub(super) fn payload(seq: u32, len: u32) -> Vec<u8> {
    (0..len).map(|offset| payload_byte(seq.wrapping_add(offset))).collect()
}

#[derive(Debug)]
pub(super) struct ScriptFlow {
    /// The host's address.
    pub(super) local: SocketAddr,
    /// The script's address.
    pub(super) remote: SocketAddr,
    pub(super) fd: Option<Fd>,
    /// The direction from the host.
    host: Stream,
    /// The direction from the script's side.
    peer: Stream,
    /// The side that sent the first SYN.
    opening: Opening,
    clock: Timestamps,
}

/// The sequence numbers of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Stream {
    /// Initial sequence number on the wire.
    live: u32,
    /// Initial sequence number in the script. It is 0 until a line gives another number.
    script: u32,
}

/// TSecr values that the script's side may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Echo {
    /// Only TSvals that a line has expected from the host.
    Named,
    /// `--tcp_ts_ecr_scaled`: also other values, converted by their distance from the first
    /// expected one.
    Scaled,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Opening {
    /// No packet was sent.
    Fresh,
    /// The script's side sent the first packet. `named` is set once a line has given the sequence
    /// number of the host's SYN.
    Passive { named: bool },
    /// The host sent the first SYN.
    Active { named: bool, answered: bool },
}

/// Mapping between the host's timestamps and the script's numbers.
#[derive(Debug, Default)]
struct Timestamps {
    /// The first pair (script, wire) that the script gave.
    anchor: Option<(u32, u32)>,
    /// Script → wire, for the values that the script's side echoes.
    named: BTreeMap<u32, u32>,
    last_live: u32,
}

impl ScriptFlow {
    pub(super) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            fd: None,
            host: Stream::default(),
            peer: Stream { live: REMOTE_BASE, script: 0 },
            opening: Opening::Fresh,
            clock: Timestamps::default(),
        }
    }

    /// Records a packet that the host has sent. A SYN sets the initial sequence number.
    pub(super) fn observe(&mut self, packet: &Packet) {
        if packet.flags.contains(Flags::SYN) {
            self.host.live = packet.seq;
        }
        if self.opening == Opening::Fresh {
            self.opening = Opening::Active { named: false, answered: false };
        }
        if let Some(val) = packet.options.iter().find_map(timestamp) {
            self.clock.last_live = val;
        }
    }

    /// Sets the script's initial sequence number of the host from the first line that expects the
    /// host's SYN.
    pub(super) fn set_script_isn(&mut self, script: u32) {
        match &mut self.opening {
            Opening::Passive { named } | Opening::Active { named, .. } if !*named => {
                *named = true;
                self.host.script = script;
            }
            _ => {}
        }
    }

    /// Converts a sequence number of the host's direction, in a segment without SYN, to the wire.
    pub(super) fn host_seq(&self, script: u32) -> u32 {
        self.host.to_live(script, false)
    }

    /// Returns the payload that the host must have sent in this segment, whose sequence number is
    /// the script's.
    pub(super) fn expected_payload(&self, segment: &Segment) -> Vec<u8> {
        payload(self.host.offset(segment), segment.len)
    }

    /// Converts a line of the script to the packet that the host receives.
    pub(super) fn make_live(
        &mut self,
        segment: &Segment,
        ip: IpFields,
        echo: Echo,
        now: Instant,
    ) -> Result<Packet, String> {
        self.open(segment);
        let options = match &segment.options {
            Options::Any => Vec::new(),
            Options::Exactly(options) => {
                let live = |option| self.option_to_live(option, segment, echo, now);
                options.iter().map(live).collect::<Result<_, _>>()?
            }
        };
        let syn = segment.has(Flags::SYN);
        Ok(Packet {
            src: self.remote,
            dst: self.local,
            tos: match ip.tos {
                Some(Tos::Octet(tos) | Tos::Ecn(tos)) => tos,
                Some(Tos::AnyEct) | None => 0,
            },
            ttl: ip.ttl.unwrap_or(255),
            flags: segment.flags,
            seq: self.peer.to_live(segment.seq, syn),
            // Without the ACK flag the field has no meaning and is sent as written.
            ack: match segment.ack.unwrap_or(0) {
                ack if segment.has(Flags::ACK) => self.host.to_live(ack, syn),
                ack => ack,
            },
            win: segment.win.unwrap_or(0),
            urg: segment.urg.unwrap_or(0),
            options,
            payload: payload(self.peer.offset(segment), segment.len),
        })
    }

    /// Sets the initial sequence number of the script's side from its first packet, or from the
    /// SYN-ACK that answers the host's SYN.
    fn open(&mut self, segment: &Segment) {
        let answers = segment.has(Flags::SYN) && segment.has(Flags::ACK);
        match &mut self.opening {
            Opening::Fresh => {
                self.opening = Opening::Passive { named: false };
                self.peer.script = segment.seq;
            }
            // A SYN-ACK counts as the answer only after a line has expected the host's SYN.
            Opening::Active { named: true, answered } if answers && !*answered => {
                *answered = true;
                // In a simultaneous open, the script's side has already sent a SYN. The wire numbers continue
                // from that SYN.
                self.peer.live = self.peer.to_live(segment.seq, true);
                self.peer.script = segment.seq;
            }
            Opening::Passive { .. } | Opening::Active { .. } => {}
        }
    }

    fn option_to_live(
        &self,
        option: &TcpOption,
        segment: &Segment,
        echo: Echo,
        now: Instant,
    ) -> Result<TcpOption, String> {
        let syn = segment.has(Flags::SYN);
        Ok(match option {
            TcpOption::Sack(blocks) => TcpOption::Sack(
                blocks
                    .iter()
                    .map(|(left, right)| (self.host.to_live(*left, syn), self.host.to_live(*right, syn)))
                    .collect(),
            ),
            // A value that the script leaves out is filled in like a peer with a millisecond clock.
            TcpOption::Timestamps { val, ecr } => TcpOption::Timestamps {
                val: Some(val.unwrap_or(now.as_millis() as u32)),
                ecr: Some(match ecr {
                    // RFC 7323 section 3.2: TSecr is zero without the ACK flag.
                    _ if !segment.has(Flags::ACK) => ecr.unwrap_or(0),
                    Some(ecr) => self.clock.to_live(*ecr, echo).ok_or_else(|| {
                        format!(
                            "no packet of the host had TS val {ecr}, so there is nothing to echo; with \
                             --tcp_ts_ecr_scaled it is reckoned from the first that had one"
                        )
                    })?,
                    None => self.clock.last_live,
                }),
            },
            other => other.clone(),
        })
    }

    /// Converts a packet of the host to the script's numbers.
    pub(super) fn to_script(&self, packet: &Packet) -> Segment {
        let syn = packet.flags.contains(Flags::SYN);
        Segment {
            flags: packet.flags,
            seq: self.host.to_script(packet.seq, syn),
            len: packet.payload.len() as u32,
            ack: match packet.ack {
                ack if packet.flags.contains(Flags::ACK) => Some(self.peer.to_script(ack, syn)),
                // Without the ACK flag the field has no meaning, but a line may still compare it.
                ack => Some(ack).filter(|ack| *ack != 0),
            },
            win: Some(packet.win),
            urg: Some(packet.urg).filter(|urg| *urg != 0),
            options: Options::Exactly(
                packet.options.iter().map(|option| self.option_to_script(option, syn)).collect(),
            ),
        }
    }

    fn option_to_script(&self, option: &TcpOption, syn: bool) -> TcpOption {
        match option {
            TcpOption::Sack(blocks) => TcpOption::Sack(
                blocks
                    .iter()
                    .map(|(left, right)| (self.peer.to_script(*left, syn), self.peer.to_script(*right, syn)))
                    .collect(),
            ),
            TcpOption::Timestamps { val, ecr } => {
                TcpOption::Timestamps { val: val.map(|val| self.clock.to_script(val)), ecr: *ecr }
            }
            other => other.clone(),
        }
    }

    /// Records the script's number for the timestamp of this packet.
    pub(super) fn record_timestamp(&mut self, script: u32, packet: &Packet) {
        if let Some(live) = packet.options.iter().find_map(timestamp) {
            self.clock.anchor.get_or_insert((script, live));
            self.clock.named.insert(script, live);
        }
    }
}

fn timestamp(option: &TcpOption) -> Option<u32> {
    match option {
        TcpOption::Timestamps { val, .. } => *val,
        _ => None,
    }
}

impl Stream {
    fn to_live(self, script: u32, syn: bool) -> u32 {
        self.live.wrapping_add(script).wrapping_sub(if syn { self.script } else { 0 })
    }

    fn to_script(self, live: u32, syn: bool) -> u32 {
        live.wrapping_sub(self.live).wrapping_add(if syn { self.script } else { 0 })
    }

    /// Returns the position in the stream, from 1, of the first byte of a segment's payload.
    fn offset(self, segment: &Segment) -> u32 {
        match segment.has(Flags::SYN) {
            true => segment.seq.wrapping_sub(self.script).wrapping_add(1),
            false => segment.seq,
        }
    }
}

impl Timestamps {
    fn to_live(&self, script: u32, echo: Echo) -> Option<u32> {
        match (self.named.get(&script), self.anchor, echo) {
            (Some(live), ..) => Some(*live),
            (None, Some((named, live)), Echo::Scaled) => Some(live.wrapping_add(script.wrapping_sub(named))),
            (None, ..) => None,
        }
    }

    fn to_script(&self, live: u32) -> u32 {
        match self.anchor {
            Some((named, anchor)) => named.wrapping_add(live.wrapping_sub(anchor)),
            None => live,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> ScriptFlow {
        ScriptFlow::new("192.168.0.1:8080".parse().unwrap(), "192.0.2.1:50000".parse().unwrap())
    }

    fn segment(flags: Flags, seq: u32, ack: Option<u32>, options: Vec<TcpOption>) -> Segment {
        Segment { flags, seq, len: 10, ack, win: Some(100), urg: None, options: Options::Exactly(options) }
    }

    /// Returns the packet that the host receives for a line.
    fn live(flow: &mut ScriptFlow, line: &Segment) -> Packet {
        flow.make_live(line, IpFields::default(), Echo::Named, Instant::ZERO).unwrap()
    }

    /// Returns a packet of the host with wire numbers.
    fn sent(flags: Flags, seq: u32, ack: u32, options: Vec<TcpOption>) -> Packet {
        let mut packet = live(&mut flow(), &segment(flags, 0, None, Vec::new()));
        (packet.seq, packet.ack, packet.options) = (seq, ack, options);
        packet.payload.clear();
        packet
    }

    const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);

    #[test]
    fn sequence_numbers_are_relative_to_syn_across_wrap() {
        let mut flow = flow();
        flow.observe(&sent(Flags::SYN, 0xffff_fffe, 0, Vec::new()));
        let line = segment(Flags::ACK, 4096, Some(11), vec![TcpOption::Sack(vec![(21, 31)])]);
        let packet = live(&mut flow, &line);
        assert_eq!((packet.seq, packet.ack), (REMOTE_BASE.wrapping_add(4096), 9));
        assert_eq!(packet.options, [TcpOption::Sack(vec![(19, 29)])]);
        assert_eq!(packet.payload, payload(4096, 10));

        let sack = vec![TcpOption::Sack(vec![(REMOTE_BASE, 5)])];
        let mapped = flow.to_script(&sent(Flags::ACK, 3, REMOTE_BASE.wrapping_add(7), sack));
        assert_eq!((mapped.seq, mapped.ack), (5, Some(7)));
        assert_eq!(mapped.options, Options::Exactly(vec![TcpOption::Sack(vec![(0, 0x805)])]));
    }

    #[test]
    fn only_syn_segments_use_scripted_initial_numbers() {
        let mut flow = flow();
        let syn = live(&mut flow, &segment(Flags::SYN, 1000, None, Vec::new()));
        let syn_ack = sent(SYN_ACK, 77, syn.seq.wrapping_add(1), Vec::new());
        flow.observe(&syn_ack);
        flow.set_script_isn(5000);
        // The number of the first line remains in effect.
        flow.set_script_isn(6000);
        let mapped = flow.to_script(&syn_ack);
        assert_eq!((mapped.seq, mapped.ack), (5000, Some(1001)));

        let sack = vec![TcpOption::Sack(vec![(11, 21)])];
        let data = live(&mut flow, &segment(Flags::ACK, 1, Some(1), sack));
        assert_eq!((data.seq, data.ack), (syn.seq.wrapping_add(1), 78));
        assert_eq!(data.options, [TcpOption::Sack(vec![(88, 98)])]);
        assert_eq!(data.payload, payload(1, 10));
        let again = live(&mut flow, &segment(Flags::SYN, 1003, None, Vec::new()));
        assert_eq!((again.seq, again.payload), (syn.seq.wrapping_add(3), payload(4, 10)));
        let ack = flow.to_script(&sent(Flags::ACK, 78, data.seq.wrapping_add(10), Vec::new()));
        assert_eq!((ack.seq, ack.ack), (1, Some(11)));
    }

    #[test]
    fn syn_ack_defines_peer_sequence_of_active_open() {
        let mut flow = flow();
        flow.observe(&sent(Flags::SYN, 77, 0, Vec::new()));
        flow.set_script_isn(0);
        let crossing = live(&mut flow, &segment(Flags::SYN, 1000, None, Vec::new()));
        let answer = live(&mut flow, &segment(SYN_ACK, 1000, Some(1), Vec::new()));
        assert_eq!((answer.seq, answer.ack), (crossing.seq, 78));
        let first = live(&mut flow, &segment(Flags::ACK, 1, Some(1), Vec::new()));
        assert_eq!(first.seq, crossing.seq.wrapping_add(1));
    }

    #[test]
    fn ack_field_is_literal_without_ack_flag() {
        let mut flow = flow();
        flow.observe(&sent(Flags::SYN, 77, 0, Vec::new()));
        assert_eq!(live(&mut flow, &segment(Flags::RST, 1, Some(5), Vec::new())).ack, 5);
        assert_eq!(live(&mut flow, &segment(Flags::ACK, 1, None, Vec::new())).ack, 77);
        assert_eq!(flow.to_script(&sent(Flags::RST, 77, 9, Vec::new())).ack, Some(9));
    }

    #[test]
    fn timestamps_are_relative_to_first_scripted_value() {
        let mut flow = flow();
        let stamp = |val, ecr| vec![TcpOption::Timestamps { val, ecr }];
        let first = sent(Flags::ACK, 1, 1, stamp(Some(5000), Some(7)));
        flow.observe(&first);
        flow.record_timestamp(100, &first);
        let later = sent(Flags::ACK, 1, 1, stamp(Some(5250), Some(7)));
        assert_eq!(flow.to_script(&later).options, Options::Exactly(stamp(Some(350), Some(7))));

        let mut line = |ecr, echo| {
            let line = segment(Flags::ACK, 1, Some(1), stamp(Some(9), ecr));
            flow.make_live(&line, IpFields::default(), echo, Instant::ZERO).map(|packet| packet.options)
        };
        assert_eq!(line(Some(100), Echo::Named).unwrap(), stamp(Some(9), Some(5000)));
        assert_eq!(line(None, Echo::Named).unwrap(), stamp(Some(9), Some(5000)));
        assert!(line(Some(130), Echo::Named).unwrap_err().contains("TS val 130"));
        assert_eq!(line(Some(130), Echo::Scaled).unwrap(), stamp(Some(9), Some(5030)));
    }
}
