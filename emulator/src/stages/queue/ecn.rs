//! Marking a packet instead of dropping it (RFC 3168).

/// The result of an attempt to mark a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marking {
    /// The codepoint was ECT(0) or ECT(1) and is now CE.
    Marked,
    /// An earlier queue marked the packet. It is unchanged.
    WasMarked,
    /// The packet cannot be marked: it is Not-ECT, or not an IP packet.
    Impossible,
}

const CE: u8 = 3;

/// Sets the CE codepoint if the packet is ECN-capable.
pub(super) fn mark(packet: &mut [u8]) -> Marking {
    match packet.first().map(|octet| octet >> 4) {
        Some(4) if packet.len() >= 20 => match packet[1] & CE {
            0 => Marking::Impossible,
            CE => Marking::WasMarked,
            _ => {
                let old = u16::from_be_bytes([packet[0], packet[1]]);
                packet[1] |= CE;
                let new = u16::from_be_bytes([packet[0], packet[1]]);
                let checksum = updated(u16::from_be_bytes([packet[10], packet[11]]), old, new);
                packet[10..12].copy_from_slice(&checksum.to_be_bytes());
                Marking::Marked
            }
        },
        // The traffic class begins in the middle of the first byte. Its last two bits are the codepoint.
        Some(6) if packet.len() >= 40 => match packet[1] >> 4 & CE {
            0 => Marking::Impossible,
            CE => Marking::WasMarked,
            _ => {
                packet[1] |= CE << 4;
                Marking::Marked
            }
        },
        _ => Marking::Impossible,
    }
}

/// Updates the checksum after a change of one word (RFC 1624, equation 3). A wrong checksum stays wrong.
fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use smoltcp::wire::{Ipv4Packet, Ipv6Packet};

    use super::*;

    fn v4(tos: u8) -> Vec<u8> {
        let mut octets = vec![0; 28];
        let mut packet = Ipv4Packet::new_unchecked(&mut octets);
        packet.set_version(4);
        packet.set_header_len(20);
        packet.set_total_len(28);
        packet.set_hop_limit(64);
        packet.set_ident(0xbeef);
        packet.set_dscp(tos >> 2);
        packet.set_ecn(tos & 3);
        packet.fill_checksum();
        octets
    }

    #[test]
    fn mark_changes_only_ecn_field_of_ect_packets() {
        // 0xb8 is the DSCP of expedited forwarding.
        for (tos, after, marking) in [
            (0xb8, 0xb8, Marking::Impossible),
            (0xb9, 0xbb, Marking::Marked),
            (0xba, 0xbb, Marking::Marked),
            (0xbb, 0xbb, Marking::WasMarked),
            (0x01, 0x03, Marking::Marked),
        ] {
            let mut octets = v4(tos);
            assert_eq!(mark(&mut octets), marking, "{tos:#x}");
            assert_eq!(octets, v4(after), "{tos:#x}: the header including its checksum");
            assert!(Ipv4Packet::new_unchecked(&octets).verify_checksum());
        }
    }

    #[test]
    fn marking_keeps_ipv4_checksum_valid() {
        for ident in 0..=u16::MAX {
            let mut octets = v4(2);
            let mut packet = Ipv4Packet::new_unchecked(&mut octets);
            packet.set_ident(ident);
            packet.fill_checksum();
            mark(&mut octets);
            assert!(Ipv4Packet::new_unchecked(&octets).verify_checksum(), "{ident:#x}");
        }
    }

    #[test]
    fn ipv6_mark_is_set_in_traffic_class() {
        for (class, after) in [(0xb8_u8, 0xb8), (0xb9, 0xbb), (0xba, 0xbb), (0xbb, 0xbb)] {
            let mut octets = vec![0; 40];
            let mut packet = Ipv6Packet::new_unchecked(&mut octets);
            packet.set_version(6);
            packet.set_flow_label(0xfedcb);
            packet.set_traffic_class(class);
            mark(&mut octets);
            let packet = Ipv6Packet::new_unchecked(&octets);
            assert_eq!((packet.traffic_class(), packet.flow_label(), packet.version()), (after, 0xfedcb, 6));
        }
    }

    #[test]
    fn incomplete_ip_header_is_not_marked() {
        for octets in [vec![], vec![0x45; 19], vec![0x66; 39], vec![0x13; 60]] {
            let mut marked = octets.clone();
            assert_eq!((mark(&mut marked), &marked), (Marking::Impossible, &octets));
        }
    }
}
