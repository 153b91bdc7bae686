//! One connection as the script sees it: sequence numbers count from 0, ports are left out, and timestamps are its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airwire::time::Instant;

use super::ast::{Flags, IpFields, Options, Segment, TcpOption, Tos};
use super::syscall::Fd;
use super::wire::Packet;

/// Where the script's side starts: close enough below 2^32 that most scripts cross it.
const REMOTE_BASE: u32 = 0xffff_f800;

/// The payload octet at a sequence number of the script, the same in both directions.
/// Its period is prime, so that a segment out of place never matches.
pub(super) fn octet(seq: u32) -> u8 {
    (seq % 251) as u8
}

/// What a stream carries from this sequence number on.
pub(super) fn octets(seq: u32, len: u32) -> Vec<u8> {
    (0..len).map(|offset| octet(seq.wrapping_add(offset))).collect()
}

#[derive(Debug)]
pub(super) struct ScriptFlow {
    /// The host's end.
    pub(super) local: SocketAddr,
    /// The script's end.
    pub(super) remote: SocketAddr,
    pub(super) fd: Option<Fd>,
    /// What the script calls 0 in the host's stream; set by the host's SYN.
    local_base: u32,
    remote_base: u32,
    /// The script's numbers of the two SYNs: 0 unless it says otherwise.
    local_isn: u32,
    remote_isn: u32,
    clock: Timestamps,
}

/// The host's timestamp clock against the script's numbers.
#[derive(Debug, Default)]
struct Timestamps {
    /// (script, live) of the first that the script named.
    anchor: Option<(u32, u32)>,
    /// Script → live, for what the script's side echoes.
    named: BTreeMap<u32, u32>,
    last_live: u32,
}

impl ScriptFlow {
    pub(super) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            fd: None,
            local_base: 0,
            remote_base: REMOTE_BASE,
            local_isn: 0,
            remote_isn: 0,
            clock: Timestamps::default(),
        }
    }

    /// Takes note of a packet that left the host. A SYN fixes what the script calls 0.
    pub(super) fn observe(&mut self, packet: &Packet) {
        if packet.flags.contains(Flags::SYN) {
            self.local_base = packet.seq;
        }
        if let Some(val) = packet.options.iter().find_map(timestamp) {
            self.clock.last_live = val;
        }
    }

    /// The script's line is the host's SYN: its number may be other than 0.
    pub(super) fn rebase(&mut self, live: u32, script: u32) {
        self.local_base = live.wrapping_sub(script);
        self.local_isn = script;
    }

    /// The wire's number for one of the script's in the host's stream.
    pub(super) fn local_seq(&self, script: u32) -> u32 {
        self.local_base.wrapping_add(script)
    }

    /// What the host's payload must be, by the script's sequence number.
    pub(super) fn expected_payload(&self, seq: u32, len: usize) -> Vec<u8> {
        octets(seq.wrapping_sub(self.local_isn), len as u32)
    }

    /// A line of the script as it goes to the host.
    pub(super) fn make_live(&mut self, segment: &Segment, ip: IpFields, now: Instant) -> Packet {
        let options = match &segment.options {
            Options::Any => Vec::new(),
            Options::Exactly(options) => {
                options.iter().map(|option| self.option_to_live(option, segment, now)).collect()
            }
        };
        let syn = u32::from(segment.has(Flags::SYN));
        if syn == 1 {
            self.remote_isn = segment.seq;
        }
        Packet {
            src: self.remote,
            dst: self.local,
            tos: match ip.tos {
                Some(Tos::Octet(tos) | Tos::Ecn(tos)) => tos,
                None => 0,
            },
            ttl: ip.ttl.unwrap_or(255),
            flags: segment.flags,
            seq: self.remote_base.wrapping_add(segment.seq),
            ack: segment.ack.map_or(0, |ack| self.local_base.wrapping_add(ack)),
            win: segment.win.unwrap_or(0),
            urg: segment.urg.unwrap_or(0),
            options,
            payload: octets(segment.seq.wrapping_sub(self.remote_isn).wrapping_add(syn), segment.len),
        }
    }

    fn option_to_live(&self, option: &TcpOption, segment: &Segment, now: Instant) -> TcpOption {
        match option {
            TcpOption::Sack(blocks) => TcpOption::Sack(
                blocks
                    .iter()
                    .map(|(left, right)| {
                        (self.local_base.wrapping_add(*left), self.local_base.wrapping_add(*right))
                    })
                    .collect(),
            ),
            // A half that the script left open is filled as a peer with a millisecond clock would fill it.
            TcpOption::Timestamps { val, ecr } => TcpOption::Timestamps {
                val: Some(val.unwrap_or(now.as_millis() as u32)),
                ecr: Some(match ecr {
                    // RFC 7323 section 3.2: zero where there is nothing to echo yet.
                    _ if !segment.has(Flags::ACK) => ecr.unwrap_or(0),
                    Some(ecr) => self.clock.to_live(*ecr),
                    None => self.clock.last_live,
                }),
            },
            other => other.clone(),
        }
    }

    /// What the host sent, in the script's numbers.
    pub(super) fn to_script(&self, packet: &Packet) -> Segment {
        let acks = packet.flags.contains(Flags::ACK) || packet.ack != 0;
        Segment {
            flags: packet.flags,
            seq: packet.seq.wrapping_sub(self.local_base),
            len: packet.payload.len() as u32,
            ack: acks.then(|| packet.ack.wrapping_sub(self.remote_base)),
            win: Some(packet.win),
            urg: Some(packet.urg).filter(|urg| *urg != 0),
            options: Options::Exactly(
                packet.options.iter().map(|option| self.option_to_script(option)).collect(),
            ),
        }
    }

    fn option_to_script(&self, option: &TcpOption) -> TcpOption {
        match option {
            TcpOption::Sack(blocks) => TcpOption::Sack(
                blocks
                    .iter()
                    .map(|(left, right)| {
                        (left.wrapping_sub(self.remote_base), right.wrapping_sub(self.remote_base))
                    })
                    .collect(),
            ),
            TcpOption::Timestamps { val, ecr } => {
                TcpOption::Timestamps { val: val.map(|val| self.clock.to_script(val)), ecr: *ecr }
            }
            other => other.clone(),
        }
    }

    /// The script's line names the timestamp of this packet.
    pub(super) fn name_timestamp(&mut self, script: u32, packet: &Packet) {
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

impl Timestamps {
    fn to_live(&self, script: u32) -> u32 {
        if let Some(live) = self.named.get(&script) {
            return *live;
        }
        match self.anchor {
            Some((named, live)) => live.wrapping_add(script.wrapping_sub(named)),
            None => script,
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

    #[test]
    fn numbers_count_from_each_sides_syn_across_the_wrap() {
        let mut flow = flow();
        let syn = Packet {
            flags: Flags::SYN,
            seq: 0xffff_fffe,
            ..flow.make_live(&segment(Flags::ACK, 0, None, Vec::new()), IpFields::default(), Instant::ZERO)
        };
        flow.observe(&syn);
        let live = flow.make_live(
            &segment(Flags::ACK, 4096, Some(11), vec![TcpOption::Sack(vec![(21, 31)])]),
            IpFields::default(),
            Instant::ZERO,
        );
        assert_eq!((live.seq, live.ack), (REMOTE_BASE.wrapping_add(4096), 9));
        assert_eq!(live.options, [TcpOption::Sack(vec![(19, 29)])]);
        assert_eq!(live.payload, octets(4096, 10));

        let sent = Packet {
            flags: Flags::ACK,
            seq: 3,
            ack: REMOTE_BASE.wrapping_add(7),
            options: vec![TcpOption::Sack(vec![(REMOTE_BASE, 5)])],
            ..live
        };
        let mapped = flow.to_script(&sent);
        assert_eq!((mapped.seq, mapped.ack), (5, Some(7)));
        assert_eq!(mapped.options, Options::Exactly(vec![TcpOption::Sack(vec![(0, 0x805)])]));
    }

    #[test]
    fn timestamps_follow_the_first_that_the_script_named() {
        let mut flow = flow();
        let stamp = |val, ecr| vec![TcpOption::Timestamps { val, ecr }];
        let mut sent =
            flow.make_live(&segment(Flags::ACK, 1, Some(1), Vec::new()), IpFields::default(), Instant::ZERO);
        sent.options = stamp(Some(5000), Some(7));
        flow.observe(&sent);
        flow.name_timestamp(100, &sent);
        sent.options = stamp(Some(5250), Some(7));
        assert_eq!(flow.to_script(&sent).options, Options::Exactly(stamp(Some(350), Some(7))));

        let echo = |flow: &mut ScriptFlow, ecr| {
            let line = segment(Flags::ACK, 1, Some(1), stamp(Some(9), ecr));
            flow.make_live(&line, IpFields::default(), Instant::ZERO).options
        };
        assert_eq!(echo(&mut flow, Some(100)), stamp(Some(9), Some(5000)));
        assert_eq!(echo(&mut flow, Some(130)), stamp(Some(9), Some(5030)));
        assert_eq!(echo(&mut flow, None), stamp(Some(9), Some(5000)));
    }
}
