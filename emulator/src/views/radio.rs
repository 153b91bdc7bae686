//! A capture of all radio PDUs in order of transmission. It uses the framings that Wireshark's RLC dissectors
//! read if their heuristics are enabled: `umts-rlc` (`tshark --enable-heuristic rlc_udp`), `rlc-lte`
//! (`rlc_lte_udp`) and `rlc-nr` (`rlc_nr_udp`).
//!
//! Each PDU is the payload of a UDP datagram. The header of the datagram contains data that the PDU lacks:
//! the source port shows whether the channel damaged the PDU, the IP identification is the number of the
//! transmission, and an IP timestamp contains the time until a PDU of LTE or NR arrives.

use std::path::Path as FilePath;

use super::RunInfo;
use crate::capture::Capture;
use crate::output::OutputError;
use crate::packet::Direction;
use crate::stage::{RadioPdu, Technology};

/// Source port of a PDU that arrives.
const ARRIVES: u16 = 50_000;
/// Source port of a PDU that the channel damages.
pub const LOST: u16 = 50_002;
/// Destination port of all PDUs.
const TO: u16 = 50_001;

/// Documentation addresses (RFC 5737), so that the datagrams are not mistaken for traffic.
const NETWORK: [u8; 4] = [192, 0, 2, 1];
const MOBILE: [u8; 4] = [192, 0, 2, 2];

/// Number of the first radio bearer for user data. Four bearers are for signalling.
const FIRST_BEARER: usize = 5;

/// Modes of RLC in the framings `rlc-lte` and `rlc-nr`.
const UNACKNOWLEDGED: u8 = 2;
const ACKNOWLEDGED: u8 = 4;

/// Size of the IP header without options.
const IP_HEADER: usize = 20;
/// The IP option Internet Timestamp (RFC 791) with one timestamp, which contains the time from the transmission
/// to the arrival in nanoseconds.
const TIMESTAMP: [u8; 4] = [68, 8, 9, 0];
/// The timestamp is not the time since midnight.
const NON_STANDARD: u32 = 1 << 31;

/// A pcap file of radio PDUs.
pub(super) struct RadioCapture {
    capture: Capture,
    datagram: Vec<u8>,
}

impl RadioCapture {
    pub(super) fn create(path: &FilePath, run: &RunInfo) -> Result<Self, OutputError> {
        Ok(Self { capture: Capture::create(path, run.wall_zero)?, datagram: Vec::new() })
    }

    pub(super) fn pdu(&mut self, pdu: &RadioPdu) -> Result<(), OutputError> {
        encode(pdu, &mut self.datagram);
        self.capture.write(pdu.at, &self.datagram)
    }

    pub(super) fn finish(mut self) -> Result<(), OutputError> {
        self.capture.flush()
    }
}

fn encode(pdu: &RadioPdu, out: &mut Vec<u8>) {
    let (from, to) = match pdu.direction {
        Direction::Down => (NETWORK, MOBILE),
        Direction::Up => (MOBILE, NETWORK),
    };
    let delay = pdu.arrival.map(|at| (at - pdu.at).as_nanos()).filter(|delay| *delay < NON_STANDARD.into());
    let ip_header = IP_HEADER + if delay.is_some() { 8 } else { 0 };
    out.clear();
    // The lengths follow when they are known.
    out.extend([0x40 | (ip_header / 4) as u8, 0, 0, 0]);
    out.extend((pdu.transmission.min(0xffff) as u16).to_be_bytes());
    // Don't Fragment, TTL 64, UDP.
    out.extend([0x40, 0, 64, 17, 0, 0]);
    out.extend(from);
    out.extend(to);
    if let Some(delay) = delay {
        out.extend(TIMESTAMP);
        out.extend((NON_STANDARD | delay as u32).to_be_bytes());
    }
    out.extend(if pdu.lost { LOST } else { ARRIVES }.to_be_bytes());
    out.extend(TO.to_be_bytes());
    out.extend([0; 4]);

    match pdu.technology {
        Technology::Umts { indicators } => umts_rlc(pdu, indicators, out),
        Technology::Lte { sn } => rlc_lte(pdu, ACKNOWLEDGED, sn, out),
        Technology::LteUm { sn } => rlc_lte(pdu, UNACKNOWLEDGED, sn, out),
        Technology::Nr { sn } => rlc_nr(pdu, ACKNOWLEDGED, sn, out),
        Technology::NrUm { sn } => rlc_nr(pdu, UNACKNOWLEDGED, sn, out),
    }
    out.extend_from_slice(&pdu.bytes);

    let total_len = out.len() as u16;
    out[2..4].copy_from_slice(&total_len.to_be_bytes());
    let checksum = !sum(0, &out[..ip_header]);
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
    let udp_len = (total_len - ip_header as u16).to_be_bytes();
    out[ip_header + 4..ip_header + 6].copy_from_slice(&udp_len);
    let mut pseudo = sum(0, &out[12..IP_HEADER]);
    pseudo = sum(pseudo, &[0, 17]);
    pseudo = sum(pseudo, &udp_len);
    // RFC 768: a checksum of 0 would mean that none was computed.
    let checksum = match !sum(pseudo, &out[ip_header..]) {
        0 => 0xffff,
        checksum => checksum,
    };
    out[ip_header + 6..ip_header + 8].copy_from_slice(&checksum.to_be_bytes());
}

/// Writes the framing of the `umts-rlc` heuristic.
fn umts_rlc(pdu: &RadioPdu, indicators: u8, out: &mut Vec<u8>) {
    out.extend(b"umts-rlc");
    // Channel type PS DTCH and mode AM. The dissector reassembles SDUs and dissects IP only with both.
    out.extend([0x02, 4, 0x03, 2]);
    out.extend([0x04, u8::from(pdu.direction == Direction::Down)]);
    out.push(0x05);
    // The dissector treats a repeated sequence number as a duplicate, or discards unfinished SDUs. Therefore
    // each epoch gets its own UE ID. 0 is not allowed.
    out.extend((pdu.epoch.wrapping_add(1)).max(1).to_be_bytes());
    out.extend([0x06, (FIRST_BEARER + pdu.stage).min(255) as u8]);
    out.extend([0x07, if indicators == 7 { 1 } else { 2 }]);
    out.push(0x01);
}

/// Writes the framing of the `rlc-lte` heuristic for a DRB.
fn rlc_lte(pdu: &RadioPdu, mode: u8, sn: u8, out: &mut Vec<u8>) {
    out.extend(b"rlc-lte");
    out.extend([mode, 0x02, sn, 0x03, u8::from(pdu.direction == Direction::Down)]);
    out.push(0x05);
    out.extend(ue_id(pdu.epoch));
    out.extend([0x06, 0, 5, 0x07, 0, bearer_id(pdu)]);
    out.push(0x01);
}

/// Writes the framing of the `rlc-nr` heuristic for a DRB.
fn rlc_nr(pdu: &RadioPdu, mode: u8, sn: u8, out: &mut Vec<u8>) {
    out.extend(b"rlc-nr");
    out.extend([mode, sn, 0x02, u8::from(pdu.direction == Direction::Down)]);
    out.push(0x03);
    out.extend(ue_id(pdu.epoch));
    out.extend([0x04, 5, 0x05, bearer_id(pdu)]);
    out.push(0x01);
}

/// A UE ID for each re-establishment, so that the dissector does not combine PDUs from before and after one.
/// 0 and 65535 are not used.
fn ue_id(epoch: u32) -> [u8; 2] {
    ((epoch % 0xfffe) as u16 + 1).to_be_bytes()
}

/// DRB identity: 1 to 16 for the default bearers of the stages, 17 to 32 for the dedicated ones.
fn bearer_id(pdu: &RadioPdu) -> u8 {
    (pdu.stage % 16 + 16 * pdu.bearer) as u8 + 1
}

/// Continues a one's complement sum (RFC 1071).
fn sum(start: u16, bytes: &[u8]) -> u16 {
    let mut sum = u64::from(start);
    for pair in bytes.chunks(2) {
        sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
