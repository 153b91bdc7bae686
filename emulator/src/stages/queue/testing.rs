//! Packets for tests of queues.

use airwire::time::Instant;

use crate::packet::{Direction, Origin, Packet, PacketId};

/// A UDP datagram of this flow, Not-ECT, in a packet of `octets`.
pub(super) fn udp(host: u8, port: u16, octets: usize) -> Vec<u8> {
    let mut bytes = vec![0; octets.max(28)];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(octets.max(28) as u16).to_be_bytes());
    bytes[8] = 64;
    bytes[9] = 17;
    bytes[12..16].copy_from_slice(&[10, 0, 0, host]);
    bytes[16..20].copy_from_slice(&[10, 1, 0, 1]);
    bytes[20..22].copy_from_slice(&port.to_be_bytes());
    bytes[22..24].copy_from_slice(&7_u16.to_be_bytes());
    bytes
}

/// The same in IPv6.
pub(super) fn udp6(host: u8, port: u16, octets: usize) -> Vec<u8> {
    let mut bytes = vec![0; octets.max(48)];
    bytes[0] = 0x60;
    bytes[4..6].copy_from_slice(&(octets.max(48) as u16 - 40).to_be_bytes());
    bytes[6] = 17;
    bytes[23] = host;
    bytes[40..42].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// A packet on its way down.
pub(super) fn packet(id: u64, at: Instant, bytes: Vec<u8>) -> Packet {
    Packet { id: PacketId(id), direction: Direction::Down, origin: Origin::Host, entered: at, bytes }
}
