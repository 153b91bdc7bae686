//! Prebuilt TCP/IPv4 packets. Only the fields that differ between segments, and the checksum, are rewritten.

use std::net::Ipv4Addr;

use airwire::view::{Tcp, View};
use smoltcp::wire::{IpProtocol, checksum};

use crate::addresses::{OURS, PORT};

pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

const OUR_PORT: u16 = 40_000;
const IP: usize = 20;
const SEQ: usize = IP + 4;
const CHECKSUM: usize = IP + 16;
/// Offset of TSval: after the two NOPs, and the kind and length of the timestamps option.
const TS_VAL: usize = IP + 24;

/// A segment with replaceable sequence number and TSval.
#[derive(Debug)]
pub(crate) struct Segment {
    bytes: Vec<u8>,
    /// Sum over the pseudo-header and the segment, with sequence number and TSval set to zero.
    fixed_sum: u32,
}

impl Segment {
    /// Builds a segment. The options must begin with NOP, NOP and timestamps, as [`timestamps`] builds them.
    pub(crate) fn new(to: Ipv4Addr, ack: u32, flags: u8, options: &[u8], payload: &[u8]) -> Self {
        let tcp_len = 20 + options.len() + payload.len();
        let total = (IP + tcp_len) as u16;
        let mut bytes = vec![0x45, 0];
        bytes.extend(total.to_be_bytes());
        // Identification 0, DF, TTL 64.
        bytes.extend([0, 0, 0x40, 0, 64, u8::from(IpProtocol::Tcp), 0, 0]);
        bytes.extend(OURS.octets());
        bytes.extend(to.octets());
        let ip_sum = !checksum::data(&bytes);
        bytes[10..12].copy_from_slice(&ip_sum.to_be_bytes());

        bytes.extend(OUR_PORT.to_be_bytes());
        bytes.extend(PORT.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(ack.to_be_bytes());
        bytes.extend([((20 + options.len()) / 4 * 16) as u8, flags, 0xff, 0xff, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.extend(payload);
        let mut segment = Self { bytes, fixed_sum: 0 };
        segment.bytes[TS_VAL..TS_VAL + 4].fill(0);
        let pseudo = checksum::pseudo_header_v4(&OURS, &to, IpProtocol::Tcp, tcp_len as u32);
        segment.fixed_sum = u32::from(pseudo) + u32::from(checksum::data(&segment.bytes[IP..]));
        segment
    }

    /// Returns the whole packet with this sequence number and TSval.
    pub(crate) fn stamped(&mut self, seq: u32, ts_val: u32) -> &[u8] {
        self.bytes[SEQ..SEQ + 4].copy_from_slice(&seq.to_be_bytes());
        self.bytes[TS_VAL..TS_VAL + 4].copy_from_slice(&ts_val.to_be_bytes());
        let halves = |word: u32| (word >> 16) + (word & 0xffff);
        let sum = self.fixed_sum + halves(seq) + halves(ts_val);
        // The first fold leaves at most one carry.
        let folded = halves(halves(sum)) as u16;
        self.bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!folded).to_be_bytes());
        &self.bytes
    }
}

/// Several segments in one packet, for a device with offload. The device splits it and completes
/// the checksums.
#[derive(Debug)]
pub(crate) struct Segments {
    /// The header of linux/virtio_net.h, followed by the packet.
    bytes: Vec<u8>,
}

impl Segments {
    /// Length of `struct virtio_net_hdr`.
    const VNET_HEADER: usize = 10;

    /// Builds `count` segments of `mss` bytes each. The other arguments are as for
    /// [`Segment::new`].
    pub(crate) fn new(to: Ipv4Addr, ack: u32, flags: u8, options: &[u8], mss: usize, count: usize) -> Self {
        const NEEDS_CSUM: u8 = 1;
        const GSO_TCPV4: u8 = 1;
        let segment = Segment::new(to, ack, flags, options, &vec![0x5a; mss * count]);
        let headers = IP + 20 + options.len();
        let mut bytes = vec![NEEDS_CSUM, GSO_TCPV4];
        for field in [headers, mss, IP, CHECKSUM - IP] {
            bytes.extend((field as u16).to_ne_bytes());
        }
        bytes.extend(&segment.bytes);
        let pseudo = checksum::pseudo_header_v4(
            &OURS,
            &to,
            IpProtocol::Tcp,
            (bytes.len() - Self::VNET_HEADER - IP) as u32,
        );
        bytes[Self::VNET_HEADER + CHECKSUM..][..2].copy_from_slice(&pseudo.to_be_bytes());
        Self { bytes }
    }

    /// Returns the data to write to the device, with this sequence number and TSval.
    pub(crate) fn stamped(&mut self, seq: u32, ts_val: u32) -> &[u8] {
        self.bytes[Self::VNET_HEADER + SEQ..][..4].copy_from_slice(&seq.to_be_bytes());
        self.bytes[Self::VNET_HEADER + TS_VAL..][..4].copy_from_slice(&ts_val.to_be_bytes());
        &self.bytes
    }
}

/// Builds NOP, NOP, timestamps: the aligned layout that Linux sends and its fast path expects.
pub(crate) fn timestamps(ts_ecr: u32) -> Vec<u8> {
    let mut options = vec![1, 1, 8, 10, 0, 0, 0, 0];
    options.extend(ts_ecr.to_be_bytes());
    options
}

/// Returns the segment in a packet. Returns `None` if it is not a TCP packet to this program's port.
pub(crate) fn received(packet: &[u8]) -> Option<Tcp<'_>> {
    View::complete(packet)?.tcp().filter(|tcp| tcp.header.dst_port == OUR_PORT)
}

#[cfg(test)]
mod tests {
    use smoltcp::wire::{IpAddress, Ipv4Packet, TcpPacket};

    use super::*;
    use crate::addresses::KERNEL;

    #[test]
    fn checksums_are_correct_for_every_carry() {
        let mut segment = Segment::new(KERNEL, 0x8000_ffff, ACK, &timestamps(7), &[0xa5; 1448]);
        for (seq, ts_val) in
            [(0, 0), (1, 2), (u32::MAX, u32::MAX), (0xffff_0000, 0x0001_ffff), (0x1234_5678, 9)]
        {
            let packet = Ipv4Packet::new_checked(segment.stamped(seq, ts_val)).unwrap();
            assert!(packet.verify_checksum());
            assert_eq!(packet.total_len(), 1500);
            let tcp = TcpPacket::new_checked(packet.payload()).unwrap();
            assert!(
                tcp.verify_checksum(&IpAddress::Ipv4(OURS), &IpAddress::Ipv4(KERNEL)),
                "{seq:#x} {ts_val:#x}"
            );
            assert_eq!(tcp.seq_number().0 as u32, seq);
        }
    }
}
