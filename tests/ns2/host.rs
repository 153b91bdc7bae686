//! An airtcp host as the sender. It exchanges real TCP/IP packets, which this module translates to and from
//! the segment numbers of the ns-2 path.
//!
//! A segment number is the stream offset divided by the segment size. With a SYN, number 0 is the SYN and
//! data starts at 1. Without one, data starts at 0, and the handshake takes no time and is hidden from the
//! path.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use airtcp::host::{ConnId, Host, HostConfig, IoError};
use airtcp::profile::Profile;
use airtcp::tcp::SocketOptions;
use airwire::time::Instant;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpAddress, IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
    TcpTimestampRepr,
};

use crate::settings;
use crate::sink::Ack;
use crate::vector::Flow;
use crate::world::{FlowSender, Segment};

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PEER_PORT: u16 = 5001;
const PEER_ISS: u32 = 1000;
/// Segments beyond the recording for unlimited transfers, so that the end of the data never affects the
/// sender.
const EXTRA_SEGMENTS: u32 = 200;

pub(crate) struct HostSender<'a> {
    flow: &'a Flow,
    host: Host,
    connection: Option<ConnId>,
    /// The host's port and initial sequence number, taken from its SYN.
    port: u16,
    iss: u32,
    tsval: Option<u32>,
    /// Bytes of the stream that are not yet in the host's send buffer. `None` before the connection is
    /// established.
    unwritten: Option<usize>,
    /// Number of consecutive deadlines at which the host sent nothing.
    idle_deadlines: u32,
    fault: Option<String>,
}

impl<'a> HostSender<'a> {
    pub(crate) fn new(flow: &'a Flow) -> Result<Self, String> {
        let config = HostConfig {
            addrs: vec![IpAddr::V4(HOST)],
            mtu: flow.payload as usize + 60,
            profile: settings::profile(flow),
            recipe: settings::recipe(flow)?,
            seed: 1,
        };
        let host = Host::new(config);
        Ok(Self {
            flow,
            host,
            connection: None,
            port: 0,
            iss: 0,
            tsval: None,
            unwritten: None,
            idle_deadlines: 0,
            fault: None,
        })
    }

    /// Returns the number of stream bytes before this segment.
    fn offset(&self, segment: i64) -> u32 {
        let first = i64::from(self.flow.syn);
        (segment - first).max(0) as u32 * self.flow.payload
    }

    fn total_bytes(&self) -> usize {
        let recorded = self.flow.tx.0.iter().map(|&(_, segment)| segment).max().unwrap_or(0);
        self.flow.segments.unwrap_or(recorded + EXTRA_SEGMENTS) as usize * self.flow.payload as usize
    }

    /// Writes as much of the stream to the host as its send buffer accepts.
    fn write(&mut self, now: Instant) {
        let (Some(id), Some(left)) = (self.connection, self.unwritten.as_mut()) else { return };
        let zeros = [0; 65536];
        while *left > 0 {
            match self.host.write(now, id, &zeros[..zeros.len().min(*left)]) {
                Ok(taken) => *left -= taken,
                Err(IoError::WouldBlock) => break,
                Err(error) => {
                    self.fault = Some(format!("write: {error:?}"));
                    break;
                }
            }
        }
    }

    fn answer_syn(&mut self, now: Instant) {
        self.deliver(
            now,
            TcpControl::Syn,
            &Ack { ack: if self.flow.syn { 0 } else { -1 }, sack: Vec::new(), tsecr: self.tsval },
        );
        self.unwritten = Some(self.total_bytes());
    }

    /// Delivers one packet from the peer to the host.
    fn deliver(&mut self, now: Instant, control: TcpControl, ack: &Ack) {
        let packet = packet_from_peer(&self.segment(now, control, ack));
        self.host.handle_packet(now, &packet);
    }

    /// Returns a segment of the peer.
    fn segment(&self, now: Instant, control: TcpControl, ack: &Ack) -> TcpRepr<'static> {
        let sequence = |segment: i64| self.iss.wrapping_add(1).wrapping_add(self.offset(segment));
        let mut sack_ranges = [None; 3];
        for (slot, &(left, right)) in sack_ranges.iter_mut().zip(&ack.sack) {
            *slot = Some((sequence(left), sequence(right)));
        }
        let syn = control == TcpControl::Syn;
        let tsopt = if self.flow.timestamps { 12 } else { 0 };
        TcpRepr {
            src_port: PEER_PORT,
            dst_port: self.port,
            control,
            seq_number: TcpSeqNumber(if syn { PEER_ISS } else { PEER_ISS + 1 } as i32),
            ack_number: Some(TcpSeqNumber(sequence(ack.ack + 1) as i32)),
            // The window beyond the ACK. It fits into 16 bits in every vector.
            window_len: u16::try_from(self.flow.window * self.flow.payload).unwrap_or(u16::MAX),
            window_scale: None,
            max_seg_size: syn.then_some(self.flow.payload as u16 + tsopt),
            sack_permitted: syn && self.flow.sack,
            sack_ranges,
            timestamp: ack
                .tsecr
                .filter(|_| self.flow.timestamps)
                .map(|ecr| TcpTimestampRepr::new(millis(now), ecr)),
            payload: &[],
        }
    }

    /// Returns the segments that the host sends; the SYN is segment 0. Pure ACKs are discarded.
    fn drain(&mut self, now: Instant) -> Vec<Segment> {
        let mut sent = Vec::new();
        let mut bytes = Vec::new();
        while self.host.poll_packet(now, &mut bytes) {
            match self.number(&bytes) {
                Ok(Some(number)) => {
                    let note = self.note();
                    sent.push(Segment { number, tsval: self.tsval, note });
                }
                Ok(None) => {}
                Err(fault) => self.fault = Some(fault),
            }
        }
        sent
    }

    fn number(&mut self, bytes: &[u8]) -> Result<Option<u32>, String> {
        let ip = Ipv4Packet::new_checked(bytes).map_err(|_| "not an IPv4 packet".to_owned())?;
        let packet = TcpPacket::new_checked(ip.payload()).map_err(|_| "not a TCP segment".to_owned())?;
        let (src, dst) = (IpAddress::Ipv4(ip.src_addr()), IpAddress::Ipv4(ip.dst_addr()));
        let tcp = TcpRepr::parse(&packet, &src, &dst, &ChecksumCapabilities::default())
            .map_err(|_| "checksum or header is wrong".to_owned())?;
        if let Some(timestamp) = tcp.timestamp {
            self.tsval = Some(timestamp.tsval);
        }
        let seq = tcp.seq_number.0 as u32;
        match tcp.control {
            TcpControl::Syn => {
                self.iss = seq;
                self.port = tcp.src_port;
                return Ok(Some(0));
            }
            TcpControl::Fin | TcpControl::Rst => return Err(format!("unexpected {:?}", tcp.control)),
            TcpControl::None | TcpControl::Psh => {}
        }
        if tcp.payload.is_empty() {
            return Ok(None);
        }
        let offset = seq.wrapping_sub(self.iss).wrapping_sub(1);
        let size = self.flow.payload;
        if !offset.is_multiple_of(size) || tcp.payload.len() as u32 != size {
            return Err(format!("{} bytes at {offset}: not a whole segment", tcp.payload.len()));
        }
        Ok(Some(offset / size + u32::from(self.flow.syn)))
    }

    fn note(&self) -> String {
        let Some(connection) = self.connection.and_then(|id| self.host.connection(id)) else {
            return "no connection".to_owned();
        };
        settings::note(connection)
    }

    fn finish(&mut self, now: Instant) -> Vec<Segment> {
        self.write(now);
        let sent = self.drain(now);
        // Sending does not free space in the send buffer; only ACKs do. One pass is therefore enough.
        if sent.is_empty() {
            self.idle_deadlines += 1
        } else {
            self.idle_deadlines = 0
        }
        sent
    }
}

impl FlowSender for HostSender<'_> {
    fn start(&mut self, now: f64) -> Vec<Segment> {
        let now = instant(now);
        let remote = SocketAddr::from((PEER, PEER_PORT));
        let options = SocketOptions {
            nodelay: true,
            send_buffer: self.total_bytes(),
            ..SocketOptions::of(&Profile::ns2())
        };
        match self.host.connect(now, None, remote, options) {
            Ok(id) => self.connection = Some(id),
            Err(error) => self.fault = Some(format!("connect: {error:?}")),
        }
        let syn = self.drain(now);
        if self.flow.syn {
            return syn;
        }
        self.answer_syn(now);
        self.finish(now)
    }

    fn ack(&mut self, now: f64, ack: &Ack) -> Vec<Segment> {
        let now = instant(now);
        self.idle_deadlines = 0;
        if self.unwritten.is_none() {
            self.answer_syn(now);
        } else {
            self.deliver(now, TcpControl::None, ack);
        }
        self.finish(now)
    }

    fn next_deadline(&self) -> Option<f64> {
        if self.fault.is_some() || self.idle_deadlines > 1000 {
            return None;
        }
        self.host.next_deadline().map(|at| at.as_nanos() as f64 / 1e9)
    }

    fn deadline(&mut self, now: f64) -> Vec<Segment> {
        let now = instant(now);
        self.host.handle_deadline(now);
        self.finish(now)
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

fn instant(seconds: f64) -> Instant {
    Instant::from_nanos((seconds * 1e9).round() as u64)
}

fn millis(now: Instant) -> u32 {
    now.as_millis() as u32
}

/// Adds an IP header and the checksums to a segment of the peer.
fn packet_from_peer(tcp: &TcpRepr<'_>) -> Vec<u8> {
    let ip = Ipv4Repr {
        src_addr: PEER,
        dst_addr: HOST,
        next_header: IpProtocol::Tcp,
        payload_len: tcp.buffer_len(),
        hop_limit: 64,
    };
    let mut bytes = vec![0; ip.buffer_len() + tcp.buffer_len()];
    let checksums = ChecksumCapabilities::default();
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    ip.emit(&mut packet, &checksums);
    let (src, dst) = (IpAddress::Ipv4(PEER), IpAddress::Ipv4(HOST));
    tcp.emit(&mut TcpPacket::new_unchecked(packet.payload_mut()), &src, &dst, &checksums);
    bytes
}
