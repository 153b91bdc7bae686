//! An independent implementation of segmentation offload, for comparison in tests.

use airwire::checksum;
use airwire::piece::Piece;
use airwire::segment::parse_ip;

const FIN_AND_PSH: u8 = 0x09;

/// Returns the packets into which the kernel splits a piece behind a device with offload (`tcp_gso_segment`).
///
/// # Panics
/// If the piece is inconsistent.
pub fn split(piece: &Piece) -> Vec<Vec<u8>> {
    let all = piece.parts().collect::<Vec<_>>().concat();
    assert_eq!(all.len(), piece.len());
    let Some(size) = piece.segment_size() else { return vec![all] };
    let v4 = all[0] >> 4 == 4;
    let tcp = if v4 { 20 } else { 40 };
    let (headers, text) = all.split_at(tcp + 4 * usize::from(all[tcp + 12] >> 4));
    let texts: Vec<&[u8]> = if text.is_empty() { vec![text] } else { text.chunks(size).collect() };
    let last = texts.len() - 1;
    let mut packets = Vec::new();
    for (at, text) in texts.into_iter().enumerate() {
        let mut packet = [headers, text].concat();
        add(&mut packet[tcp + 4..tcp + 8], at * size);
        if at < last {
            packet[tcp + 13] &= !FIN_AND_PSH;
        }
        let len = packet.len();
        if v4 {
            packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            add(&mut packet[4..6], at);
            packet[10..12].fill(0);
            let sum = checksum::plain(&packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
        }
        let (src, dst) = parse_ip(&packet).map(|ip| (ip.src, ip.dst)).unwrap();
        packet[tcp + 16..tcp + 18].fill(0);
        let sum = checksum::transport(src, dst, 6, &packet[tcp..]);
        packet[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
        packets.push(packet);
    }
    packets
}

/// Adds to a number in network byte order, which may wrap.
fn add(field: &mut [u8], count: usize) {
    let mut carry = count;
    for byte in field.iter_mut().rev() {
        let sum = usize::from(*byte) + (carry & 0xff);
        *byte = sum as u8;
        carry = (carry >> 8) + (sum >> 8);
    }
}
