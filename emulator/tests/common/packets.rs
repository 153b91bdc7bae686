//! The packets of captures.

use std::path::Path;

/// Returns the IPv4 packets of a capture that have this source address.
pub(crate) fn packets(capture: &Path, from: [u8; 4]) -> Vec<Vec<u8>> {
    let mut capture = pcap::Capture::from_file(capture).unwrap();
    let mut packets = Vec::new();
    while let Ok(packet) = capture.next_packet() {
        if packet.data[12..16] == from {
            packets.push(packet.data.to_vec());
        }
    }
    packets
}
