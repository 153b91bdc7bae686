//! What the sender's side of a path shows of a transfer, whoever sends: read from the capture of its device.

use std::path::Path;

use pcap::{Capture, Offline, Precision};
use serde::{Deserialize, Serialize};
use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket};

use super::LabError;
use crate::tcp::seq::Seq;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// From the first SYN to the first ACK for all of the data.
    pub seconds: f64,
    /// Sequence space that was acknowledged, without SYN and FIN.
    pub acked_bytes: u64,
    pub data_packets: u64,
    /// Those that bring nothing which was not sent before.
    pub resent_packets: u64,
    pub resent_bytes: u64,
    /// Silence on the link, in both directions, that a retransmission ended: what waiting for timers has cost.
    pub idle_seconds: f64,
    /// The longest of these silences.
    pub longest_idle_seconds: f64,
}

/// What one packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    /// From the sender of the data.
    forth: bool,
    syn: bool,
    fin: bool,
    seq: u32,
    ack: Option<u32>,
    len: u32,
}

/// Of a connection to this port, in a capture of IP packets.
pub fn read(path: &Path, port: u16) -> Result<Findings, LabError> {
    let unreadable = |error: pcap::Error| LabError::Transfer(format!("{}: {error}", path.display()));
    let mut capture: Capture<Offline> =
        Capture::from_file_with_precision(path, Precision::Nano).map_err(unreadable)?;
    let mut reader = Reader::default();
    loop {
        match capture.next_packet() {
            Ok(packet) => {
                // With nanosecond precision libpcap has nanoseconds where the name says microseconds.
                let at = packet.header.ts.tv_sec as f64 + packet.header.ts.tv_usec as f64 / 1e9;
                if let Some(packet) = parse(packet.data, port) {
                    reader.take(at, packet);
                }
            }
            Err(pcap::Error::NoMorePackets) => return Ok(reader.findings()),
            Err(error) => return Err(unreadable(error)),
        }
    }
}

fn parse(packet: &[u8], port: u16) -> Option<Packet> {
    match packet.first()? >> 4 {
        4 => {
            let ip = Ipv4Packet::new_checked(packet).ok()?;
            (ip.next_header() == IpProtocol::Tcp).then(|| parse_tcp(ip.payload(), port))?
        }
        6 => {
            let ip = Ipv6Packet::new_checked(packet).ok()?;
            (ip.next_header() == IpProtocol::Tcp).then(|| parse_tcp(ip.payload(), port))?
        }
        _ => None,
    }
}

fn parse_tcp(segment: &[u8], port: u16) -> Option<Packet> {
    let tcp = TcpPacket::new_checked(segment).ok()?;
    let forth = tcp.dst_port() == port;
    (forth || tcp.src_port() == port).then(|| Packet {
        forth,
        syn: tcp.syn(),
        fin: tcp.fin(),
        seq: tcp.seq_number().0 as u32,
        ack: tcp.ack().then(|| tcp.ack_number().0 as u32),
        len: tcp.payload().len() as u32,
    })
}

/// Offsets count from the SYN, which has 0.
#[derive(Debug, Default)]
struct Reader {
    isn: Option<Seq>,
    started: f64,
    last: f64,
    /// Behind the highest octet that was sent, and acknowledged.
    max: u64,
    acked: u64,
    fin: Option<u64>,
    finished: f64,
    findings: Findings,
}

impl Reader {
    fn take(&mut self, at: f64, packet: Packet) {
        if self.isn.is_none() {
            if !packet.forth || !packet.syn {
                return;
            }
            self.isn = Some(Seq(packet.seq));
            (self.started, self.last) = (at, at);
        }
        let silence = at - std::mem::replace(&mut self.last, at);
        if packet.forth {
            self.sent(packet, silence);
        } else if let Some(ack) = packet.ack {
            self.acked(at, ack);
        }
    }

    fn offset(&self, number: u32) -> Option<u64> {
        Seq(number).offset(self.isn?, self.acked)
    }

    fn sent(&mut self, packet: Packet, silence: f64) {
        let Some(start) = self.offset(packet.seq) else { return };
        let end = start + u64::from(packet.len) + u64::from(packet.syn) + u64::from(packet.fin);
        if end == start {
            return;
        }
        if packet.fin {
            self.fin = Some(end - 1);
        }
        self.findings.data_packets += u64::from(packet.len > 0);
        if end > self.max {
            self.max = end;
            return;
        }
        self.findings.idle_seconds += silence;
        self.findings.longest_idle_seconds = self.findings.longest_idle_seconds.max(silence);
        if packet.len > 0 {
            self.findings.resent_packets += 1;
            self.findings.resent_bytes += u64::from(packet.len);
        }
    }

    fn acked(&mut self, at: f64, ack: u32) {
        let Some(ack) = self.offset(ack) else { return };
        if ack <= self.acked || ack > self.max {
            return;
        }
        // What acknowledges the FIN alone acknowledges no data.
        if self.fin.is_none_or(|fin| self.acked < fin) {
            self.finished = at;
        }
        self.acked = ack;
    }

    fn findings(mut self) -> Findings {
        let fin = u64::from(self.fin.is_some_and(|fin| self.acked > fin));
        self.findings.acked_bytes = self.acked.saturating_sub(1 + fin);
        self.findings.seconds = (self.finished - self.started).max(0.0);
        self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(seq: u32, len: u32) -> Packet {
        Packet { forth: true, syn: false, fin: false, seq, ack: Some(1), len }
    }

    fn ack(ack: u32) -> Packet {
        Packet { forth: false, syn: false, fin: false, seq: 1, ack: Some(ack), len: 0 }
    }

    /// From a SYN at a sequence number that wraps soon.
    fn findings(packets: &[(f64, Packet)]) -> Findings {
        let isn = u32::MAX - 500;
        let mut reader = Reader::default();
        let shifted = |number: u32| number.wrapping_add(isn);
        for (at, packet) in [(10.0, Packet { syn: true, ack: None, ..data(0, 0) })].iter().chain(packets) {
            let own = if packet.forth { shifted(packet.seq) } else { packet.seq };
            let ack = packet.ack.map(|ack| if packet.forth { ack } else { shifted(ack) });
            reader.take(*at, Packet { seq: own, ack, ..*packet });
        }
        reader.findings()
    }

    #[test]
    fn a_transfer_without_loss_waits_for_nothing() {
        let fin = Packet { fin: true, ..data(1001, 500) };
        let found = findings(&[(10.1, ack(1)), (10.1, data(1, 1000)), (10.2, fin), (10.5, ack(1502))]);
        assert_eq!((found.acked_bytes, found.data_packets, found.resent_packets), (1500, 2, 0));
        assert_eq!(found.idle_seconds, 0.0);
        assert!((found.seconds - 0.5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_silence_before_a_retransmission_is_idle_time_and_no_other_is() {
        let found = findings(&[
            (10.1, ack(1)),
            (10.1, data(1, 1000)),
            (10.2, data(1001, 1000)),
            // The application had nothing to say.
            (12.2, data(2001, 1000)),
            (13.2, data(1, 1000)),
            (13.3, ack(3001)),
        ]);
        assert_eq!((found.resent_packets, found.resent_bytes), (1, 1000));
        assert!((found.idle_seconds - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.acked_bytes, 3000);
    }

    #[test]
    fn a_lost_syn_and_an_ack_for_the_fin_alone_are_no_data() {
        let syn = Packet { syn: true, ack: None, ..data(0, 0) };
        let fin = Packet { fin: true, ..data(101, 0) };
        let found = findings(&[
            (11.0, syn),
            (11.1, ack(1)),
            (11.1, data(1, 100)),
            (11.2, fin),
            (11.3, ack(101)),
            (12.0, ack(102)),
        ]);
        assert_eq!((found.acked_bytes, found.data_packets, found.resent_packets), (100, 1, 0));
        assert!((found.idle_seconds - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.seconds - 1.3).abs() < 1e-9, "{found:?}");
    }
}
