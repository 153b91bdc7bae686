//! A capture of the PDUs of one layer. It uses the framings that Wireshark's dissectors read if their heuristics
//! are enabled: `umts-rlc` (`tshark --enable-heuristic rlc_udp`), `rlc-lte` (`rlc_lte_udp`), `rlc-nr`
//! (`rlc_nr_udp`), and in the same way `mac-lte`, `mac-nr`, `pdcp-lte` and `pdcp-nr`.
//!
//! Each PDU is the payload of a UDP datagram. The header of the datagram contains data that the PDU lacks: the
//! source port shows whether the channel damaged the PDU, the IP identification (in IPv6 the flow label) is the
//! number of the transmission, and an IP timestamp contains the time until an RLC PDU of LTE or NR arrives.
//!
//! Transport blocks can be longer than a datagram of IPv4. They use IPv6, which has jumbograms (RFC 2675).

use std::path::Path as FilePath;

use super::RunInfo;
use crate::capture::Capture;
use crate::output::OutputError;
use crate::packet::Direction;
use crate::stage::{BlockContext, RadioLayer, RadioPdu, Technology};

/// Source port of a PDU that arrives.
const ARRIVES: u16 = 50_000;
/// Source port of a PDU that the channel damages.
pub const LOST: u16 = 50_002;
/// Destination port of all PDUs.
const TO: u16 = 50_001;

/// Documentation addresses (RFC 5737), so that the datagrams are not mistaken for traffic.
const NETWORK: [u8; 4] = [192, 0, 2, 1];
const MOBILE: [u8; 4] = [192, 0, 2, 2];
/// The same for IPv6 (RFC 3849): 2001:db8:: and the last byte of the IPv4 address.
const PREFIX: [u8; 15] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Number of the first radio bearer for user data. Four bearers are for signalling.
const FIRST_BEARER: usize = 5;

/// The type C-RNTI in the framings `mac-lte` and `mac-nr`, and the C-RNTI of every terminal.
const C_RNTI_TYPE: u8 = 3;
const C_RNTI: [u8; 2] = 0x4601_u16.to_be_bytes();
/// Modes of RLC in the framings `rlc-lte` and `rlc-nr`.
const UNACKNOWLEDGED: u8 = 2;
const ACKNOWLEDGED: u8 = 4;

/// Size of the IPv4 header without options.
const IP_HEADER: usize = 20;
/// Size of the IPv6 header without extension headers.
const IPV6_HEADER: usize = 40;
/// Protocol number of UDP.
const UDP: u8 = 17;
/// Start of a hop-by-hop options header with the option Jumbo Payload (RFC 2675 §2), without the next header.
const JUMBO_PAYLOAD: [u8; 3] = [0, 0xc2, 4];
/// The IP option Internet Timestamp (RFC 791) with one timestamp, which contains the time from the transmission
/// to the arrival in nanoseconds.
const TIMESTAMP: [u8; 4] = [68, 8, 9, 0];
/// The timestamp is not the time since midnight.
const NON_STANDARD: u32 = 1 << 31;

/// A pcap file of radio PDUs.
pub(super) struct RadioCapture {
    capture: Capture,
    layer: RadioLayer,
    datagram: Vec<u8>,
}

impl RadioCapture {
    pub(super) fn create(path: &FilePath, layer: RadioLayer, run: &RunInfo) -> Result<Self, OutputError> {
        Ok(Self { capture: Capture::create(path, run.wall_zero)?, layer, datagram: Vec::new() })
    }

    /// Writes a PDU of the layer, or of UMTS.
    pub(super) fn pdu(&mut self, pdu: &RadioPdu) -> Result<(), OutputError> {
        let is_umts = matches!(pdu.technology, Technology::Umts { .. });
        if !is_umts && pdu.technology.layer() != self.layer {
            return Ok(());
        }
        match pdu.technology.layer() {
            RadioLayer::Mac => ipv6(pdu, &mut self.datagram),
            RadioLayer::Rlc | RadioLayer::Pdcp => ipv4(pdu, &mut self.datagram),
        }
        self.capture.write(pdu.at, &self.datagram)
    }

    pub(super) fn finish(mut self) -> Result<(), OutputError> {
        self.capture.flush()
    }
}

/// The addresses of the sender and the receiver.
fn addresses(pdu: &RadioPdu) -> [[u8; 4]; 2] {
    match pdu.direction {
        Direction::Down => [NETWORK, MOBILE],
        Direction::Up => [MOBILE, NETWORK],
    }
}

fn ipv4(pdu: &RadioPdu, out: &mut Vec<u8>) {
    let [from, to] = addresses(pdu);
    let delay = pdu.arrival.map(|at| (at - pdu.at).as_nanos()).filter(|delay| *delay < NON_STANDARD.into());
    let ip_header = IP_HEADER + if delay.is_some() { 8 } else { 0 };
    out.clear();
    // The lengths follow when they are known.
    out.extend([0x40 | (ip_header / 4) as u8, 0, 0, 0]);
    out.extend((pdu.transmission.min(0xffff) as u16).to_be_bytes());
    // Don't Fragment, TTL 64.
    out.extend([0x40, 0, 64, UDP, 0, 0]);
    out.extend(from);
    out.extend(to);
    if let Some(delay) = delay {
        out.extend(TIMESTAMP);
        out.extend((NON_STANDARD | delay as u32).to_be_bytes());
    }
    udp(pdu, out);

    let total_len = out.len() as u16;
    out[2..4].copy_from_slice(&total_len.to_be_bytes());
    let checksum = !sum(0, &out[..ip_header]);
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
    let udp_len = total_len - ip_header as u16;
    out[ip_header + 4..ip_header + 6].copy_from_slice(&udp_len.to_be_bytes());
    let pseudo = sum(0, &out[12..IP_HEADER]);
    udp_checksum(pseudo, &mut out[ip_header..]);
}

fn ipv6(pdu: &RadioPdu, out: &mut Vec<u8>) {
    let [from, to] = addresses(pdu);
    out.clear();
    out.extend((6 << 28 | pdu.transmission.min(0xf_ffff)).to_be_bytes());
    // The length follows when it is known. Hop limit 64.
    out.extend([0, 0, UDP, 64]);
    for address in [from, to] {
        out.extend(PREFIX);
        out.push(address[3]);
    }
    udp(pdu, out);

    let udp_len = out.len() - IPV6_HEADER;
    let pseudo = sum(0, &out[8..IPV6_HEADER]);
    if let Ok(len) = u16::try_from(udp_len) {
        out[4..6].copy_from_slice(&len.to_be_bytes());
        out[IPV6_HEADER + 4..IPV6_HEADER + 6].copy_from_slice(&len.to_be_bytes());
    }
    udp_checksum(pseudo, &mut out[IPV6_HEADER..]);
    if udp_len > u16::MAX.into() {
        // RFC 2675: a jumbogram has the lengths 0 in both headers, and its length in an option.
        let next_header = std::mem::replace(&mut out[6], 0);
        let extension = std::iter::once(next_header).chain(JUMBO_PAYLOAD);
        let length = (udp_len as u32 + 8).to_be_bytes();
        out.splice(IPV6_HEADER..IPV6_HEADER, extension.chain(length));
    }
}

/// Appends a UDP datagram without its length and checksum.
fn udp(pdu: &RadioPdu, out: &mut Vec<u8>) {
    out.extend(if pdu.lost { LOST } else { ARRIVES }.to_be_bytes());
    out.extend(TO.to_be_bytes());
    out.extend([0; 4]);
    match pdu.technology {
        Technology::Umts { indicators } => umts_rlc(pdu, indicators, out),
        Technology::Lte { sn } => rlc_lte(pdu, ACKNOWLEDGED, sn, out),
        Technology::LteUm { sn } => rlc_lte(pdu, UNACKNOWLEDGED, sn, out),
        Technology::Nr { sn } => rlc_nr(pdu, ACKNOWLEDGED, sn, out),
        Technology::NrUm { sn } => rlc_nr(pdu, UNACKNOWLEDGED, sn, out),
        Technology::LteMac(context) => mac_lte(pdu, context, out),
        Technology::NrMac(context) => mac_nr(pdu, context, out),
        Technology::LtePdcp { sn } => pdcp_lte(pdu, sn, out),
        Technology::NrPdcp { sn } => pdcp_nr(pdu, sn, out),
    }
    out.extend_from_slice(&pdu.bytes);
}

/// Sets the checksum of a UDP datagram. `addresses` is the sum of the IP addresses.
fn udp_checksum(addresses: u16, datagram: &mut [u8]) {
    let mut pseudo = sum(addresses, &(datagram.len() as u32).to_be_bytes());
    pseudo = sum(pseudo, &[0, UDP]);
    // RFC 768: a checksum of 0 would mean that none was computed.
    let checksum = match !sum(pseudo, datagram) {
        0 => 0xffff,
        checksum => checksum,
    };
    datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
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

/// Writes the framing of the `mac-lte` heuristic for a DL-SCH or UL-SCH.
fn mac_lte(pdu: &RadioPdu, context: BlockContext, out: &mut Vec<u8>) {
    let BlockContext { is_tdd, frame, slot, process } = context;
    let is_down = pdu.direction == Direction::Down;
    out.extend(b"mac-lte");
    out.extend([1 + u8::from(is_tdd), u8::from(is_down), C_RNTI_TYPE, 0x02]);
    out.extend(C_RNTI);
    out.push(0x03);
    out.extend(mac_ue_id(pdu));
    out.push(0x04);
    out.extend((frame << 4 | slot).to_be_bytes());
    let retransmissions = (pdu.transmission - 1).min(255) as u8;
    out.extend([0x06, retransmissions]);
    // Attributes of the physical layer, most of which are not modelled and therefore 0. The HARQ process is the
    // fifth of six in the uplink, and the seventh of ten in the downlink, where the last one marks a
    // retransmission.
    let process = process.min(255) as u8;
    if is_down {
        out.extend([0x0b, 10, 0, 0, 0, 0, 0, 0, process, 0, 0, u8::from(retransmissions > 0)]);
    } else {
        out.extend([0x0b, 6, 0, 0, 0, 0, process, 0]);
    }
    out.push(0x01);
}

/// Writes the framing of the `mac-nr` heuristic for a DL-SCH or UL-SCH.
fn mac_nr(pdu: &RadioPdu, context: BlockContext, out: &mut Vec<u8>) {
    let BlockContext { is_tdd, frame, slot, process } = context;
    out.extend(b"mac-nr");
    out.extend([1 + u8::from(is_tdd), u8::from(pdu.direction == Direction::Down), C_RNTI_TYPE, 0x02]);
    out.extend(C_RNTI);
    out.push(0x03);
    out.extend(mac_ue_id(pdu));
    out.extend([0x06, process.min(255) as u8, 0x07]);
    out.extend(frame.to_be_bytes());
    out.extend(slot.to_be_bytes());
    out.push(0x01);
}

/// Writes the framing of the `pdcp-lte` heuristic for a DRB.
fn pdcp_lte(pdu: &RadioPdu, sn: u8, out: &mut Vec<u8>) {
    out.extend(b"pdcp-lte");
    // With a header, user plane, without ROHC.
    out.extend([0, 2, 0, 0x02, sn, 0x03, u8::from(pdu.direction == Direction::Down)]);
    // Channel type DCCH or DTCH.
    out.extend([0x04, 1, 0x0d, 0, bearer_id(pdu), 0x0e]);
    out.extend(ue_id(pdu.epoch));
    out.push(0x01);
}

/// Writes the framing of the `pdcp-nr` heuristic for a DRB.
fn pdcp_nr(pdu: &RadioPdu, sn: u8, out: &mut Vec<u8>) {
    out.extend(b"pdcp-nr");
    // User plane; bearer type DCCH or DTCH.
    out.extend([2, 0x02, sn, 0x03, u8::from(pdu.direction == Direction::Down), 0x04, 1]);
    out.extend([0x05, bearer_id(pdu), 0x06]);
    out.extend(ue_id(pdu.epoch));
    out.push(0x01);
}

/// A UE ID for each re-establishment and stage. A transport block has no DRB identity to distinguish stages.
fn mac_ue_id(pdu: &RadioPdu) -> [u8; 2] {
    ue_id(pdu.epoch.wrapping_mul(16).wrapping_add(pdu.stage as u32 % 16))
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
