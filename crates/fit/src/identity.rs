//! Identification of a packet at both ends of a path, by the fields that routers do not change.

use std::hash::Hasher;
use std::net::IpAddr;

use airwire::view::{TCP, View};
use siphasher::sip::SipHasher13;

/// Bytes after the IP header that are compared: the TCP header, and its timestamps if they come first, as on
/// most hosts. Captures contain at least this many bytes.
const COUNTED: usize = 32;
/// Offset of the TCP options, and the start of a timestamps option after two bytes of padding (RFC 7323,
/// appendix A).
const OPTIONS: usize = 20;
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

/// Identity of a packet, independent of the place of capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) flow: (IpAddr, IpAddr),
    /// Hash of the fields that do not change.
    pub(crate) hash: u64,
    /// Packet length according to the header.
    pub(crate) octets: u32,
}

/// Identifies a packet. `None`: not an IP packet, or the header is incomplete.
pub(crate) fn identify(packet: &[u8]) -> Option<Identity> {
    let view = View::without_extensions(packet).ok()?;
    let mut hasher = SipHasher13::new();
    // Skip the type of service or traffic class, the flow label, the length, the time to live and the
    // checksum.
    if view.is_v4() {
        hasher.write(&packet[4..8]);
    }
    hasher.write_u8(view.protocol);
    hasher.write(view.address_bytes());
    let octets = view.end as u32;
    let behind = packet.get(view.transport..).unwrap_or_default();
    let mut counted = [0; COUNTED];
    let kept = behind.len().min(COUNTED);
    counted[..kept].copy_from_slice(&behind[..kept]);
    // Length of the TCP payload, because base stations add options. For other protocols, the whole length.
    let mut length = octets.saturating_sub(view.transport as u32);
    if view.protocol == TCP {
        length = length.saturating_sub(u32::from(counted[12] >> 4) * 4);
        // Clear the data offset, the reserved bits (which base stations change), the ECN flags and the
        // checksum (which the sender's device may fill in).
        counted[12] = 0;
        counted[13] &= 0x3f;
        counted[16..18].fill(0);
        if counted[OPTIONS..].first_chunk() != Some(&TIMESTAMPS) {
            counted[OPTIONS..].fill(0);
        }
    } else {
        // Clear the UDP checksum, for the same reason.
        counted[6..8].fill(0);
    }
    hasher.write(&length.to_be_bytes());
    hasher.write(&counted);
    let flow = (view.source(), view.destination());
    Some(Identity { flow, hash: hasher.finish(), octets })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> Vec<u8> {
        let mut packet =
            vec![0x45, 0, 0, 72, 0x12, 0x34, 0x40, 0, 64, 6, 0xaa, 0xbb, 10, 0, 0, 1, 10, 1, 0, 1];
        packet.extend((0..OPTIONS as u8).map(|octet| octet * 3));
        packet[32] = 0x80;
        packet.extend(TIMESTAMPS);
        packet.extend((0..28).map(|octet| octet * 7));
        packet
    }

    #[test]
    fn identity_ignores_fields_changed_in_transit() {
        let same = identify(&packet()).unwrap();
        // Type of service, time to live, header checksum, reserved bits, ECN, TCP checksum, payload.
        for (at, mask) in [
            (1, 0xff),
            (8, 0xff),
            (10, 0xff),
            (11, 0xff),
            (32, 0x0f),
            (33, 0xc0),
            (36, 0xff),
            (37, 0xff),
            (55, 0xff),
        ] {
            let mut other = packet();
            other[at] ^= mask;
            assert_eq!(identify(&other).unwrap(), same, "octet {at}");
        }
    }

    #[test]
    fn identity_ignores_option_added_by_base_station() {
        let mut more = packet();
        more.splice(52..52, [253, 4, 0x3a, 0x5d]);
        (more[3], more[32]) = (76, 0x90);
        let (same, more) = (identify(&packet()).unwrap(), identify(&more).unwrap());
        assert_eq!((more.hash, more.octets), (same.hash, same.octets + 4));
    }

    #[test]
    fn identity_changes_with_each_distinguishing_field() {
        let same = identify(&packet()).unwrap();
        // Length, identification, source, port, sequence number, ACK number, flags, window, timestamp.
        for at in [3, 4, 15, 20, 24, 31, 33, 34, 47] {
            let mut other = packet();
            other[at] ^= 1;
            assert_ne!(identify(&other).unwrap().hash, same.hash, "octet {at}");
        }
    }

    #[test]
    fn truncated_header_or_non_ip_has_no_identity() {
        let whole = packet();
        for len in 0..whole.len() {
            assert_eq!(identify(&whole[..len]).is_some(), len >= 20, "{len}");
        }
        assert_eq!(identify(&[0x60; 39]), None);
        assert_eq!(identify(&[0x75; 60]), None);
    }
}
