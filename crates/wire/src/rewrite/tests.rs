use smoltcp::wire::{Ipv4Packet, Ipv6Packet};

use super::*;

fn v4(tos: u8) -> Vec<u8> {
    let mut bytes = vec![0; 28];
    let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
    packet.set_version(4);
    packet.set_header_len(20);
    packet.set_total_len(28);
    packet.set_hop_limit(64);
    packet.set_ident(0xbeef);
    packet.set_dscp(tos >> 2);
    packet.set_ecn(tos & 3);
    packet.fill_checksum();
    bytes
}

#[test]
fn mark_changes_only_ecn_field_of_ect_packets() {
    // 0xb8 is the DSCP of expedited forwarding.
    for (tos, after, marking) in [
        (0xb8, 0xb8, Marking::Impossible),
        (0xb9, 0xbb, Marking::Marked),
        (0xba, 0xbb, Marking::Marked),
        (0xbb, 0xbb, Marking::AlreadyMarked),
        (0x01, 0x03, Marking::Marked),
    ] {
        let mut bytes = v4(tos);
        assert_eq!(mark_ce(&mut bytes), marking, "{tos:#x}");
        assert_eq!(bytes, v4(after), "{tos:#x}: the header including its checksum");
        assert!(Ipv4Packet::new_unchecked(&bytes).verify_checksum());
    }
}

#[test]
fn marking_keeps_ipv4_checksum_valid() {
    for ident in 0..=u16::MAX {
        let mut bytes = v4(2);
        let mut packet = Ipv4Packet::new_unchecked(&mut bytes);
        packet.set_ident(ident);
        packet.fill_checksum();
        mark_ce(&mut bytes);
        assert!(Ipv4Packet::new_unchecked(&bytes).verify_checksum(), "{ident:#x}");
    }
}

#[test]
fn ipv6_mark_is_set_in_traffic_class() {
    for (class, after) in [(0xb8_u8, 0xb8), (0xb9, 0xbb), (0xba, 0xbb), (0xbb, 0xbb)] {
        let mut bytes = vec![0; 40];
        let mut packet = Ipv6Packet::new_unchecked(&mut bytes);
        packet.set_version(6);
        packet.set_flow_label(0xfedcb);
        packet.set_traffic_class(class);
        mark_ce(&mut bytes);
        let packet = Ipv6Packet::new_unchecked(&bytes);
        assert_eq!((packet.traffic_class(), packet.flow_label(), packet.version()), (after, 0xfedcb, 6));
    }
}

#[test]
fn incomplete_ip_header_is_not_marked() {
    for bytes in [vec![], vec![0x45; 19], vec![0x66; 39], vec![0x13; 60]] {
        let mut marked = bytes.clone();
        assert_eq!((mark_ce(&mut marked), &marked), (Marking::Impossible, &bytes));
    }
}
