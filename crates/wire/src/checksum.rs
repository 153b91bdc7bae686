//! The Internet checksum (RFC 1071), eight octets at a time: it is the largest cost of a data segment, and
//! the portable two-octet loop would halve the throughput of the whole sender (`make bench` shows the share).

use std::net::IpAddr;

/// The one's complement sum of `data` as big-endian 16-bit words, folded to 16 bits, not inverted.
fn sum(data: &[u8]) -> u16 {
    // RFC 1071 §2(B): the sum is independent of byte order, so add native words and swap once at the end.
    let mut lanes = [0_u64; 4];
    let mut chunks = data.chunks_exact(16);
    for chunk in &mut chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk.chunks_exact(4)) {
            *lane += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
    }
    let mut total: u64 = lanes.iter().map(|lane| (lane & 0xffff_ffff) + (lane >> 32)).sum();
    let mut pairs = chunks.remainder().chunks_exact(2);
    for pair in &mut pairs {
        total += u64::from(u16::from_ne_bytes([pair[0], pair[1]]));
    }
    if let [last] = pairs.remainder() {
        total += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    u16::from_be(total as u16)
}

fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, len: usize) -> u32 {
    let mut bytes = [0_u8; 32];
    let used = match (src, dst) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            bytes[..4].copy_from_slice(&a.octets());
            bytes[4..8].copy_from_slice(&b.octets());
            8
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            bytes[..16].copy_from_slice(&a.octets());
            bytes[16..].copy_from_slice(&b.octets());
            32
        }
        _ => 0,
    };
    u32::from(sum(&bytes[..used])) + u32::from(protocol) + (len as u32 & 0xffff) + (len as u32 >> 16)
}

fn fold(mut total: u32) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// The checksum of a TCP segment or ICMPv6 message whose checksum field is zero.
pub fn transport(src: IpAddr, dst: IpAddr, protocol: u8, segment: &[u8]) -> u16 {
    !fold(pseudo_header(src, dst, protocol, segment.len()) + u32::from(sum(segment)))
}

/// Whether the checksum inside a TCP segment or ICMPv6 message is the right one for these addresses.
pub fn verify_transport(src: IpAddr, dst: IpAddr, protocol: u8, segment: &[u8]) -> bool {
    fold(pseudo_header(src, dst, protocol, segment.len()) + u32::from(sum(segment))) == 0xffff
}

/// The checksum of an ICMPv4 message whose checksum field is zero.
pub fn plain(data: &[u8]) -> u16 {
    !sum(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 word by word.
    fn reference(data: &[u8]) -> u16 {
        let words = data.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0)));
        fold(words.fold(0, |a, w| u32::from(fold(a + w))))
    }

    #[test]
    fn agrees_with_the_plain_loop_at_every_length() {
        let data: Vec<u8> = (0..4000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for len in (0..130).chain([1459, 1460, 1461, 4000]) {
            assert_eq!(sum(&data[..len]), reference(&data[..len]), "length {len}");
        }
        assert_eq!(sum(&[0xff; 1500]), 0xffff);
    }
}
