//! The TCP header that a station reads and rewrites.

use airwire::rewrite::TcpInPacket;
use airwire::view::View;

/// The parts of a packet that a station can process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Segment(TcpInPacket),
    /// The first fragment of a TCP segment. The length of the segment is unknown, and the packet stays
    /// unchanged.
    FirstFragment(TcpInPacket),
    /// Not TCP, a later fragment, a truncated packet, or one with an unsupported IPv6 header. It stays
    /// unchanged.
    Other,
}

pub(super) fn parse(packet: &[u8]) -> Parsed {
    // A routing header replaces the connection's addresses.
    let Some(view) = View::of(packet).ok().filter(|view| !view.is_routed) else { return Parsed::Other };
    let is_fragment = view.fragment.is_some_and(|fragment| !fragment.is_atomic());
    match TcpInPacket::of(&view) {
        None => Parsed::Other,
        Some(head) if is_fragment => Parsed::FirstFragment(head),
        Some(segment) => Parsed::Segment(segment),
    }
}

#[cfg(test)]
mod tests {
    use airtcp_testkit::sample::cases;
    use proptest::prelude::*;

    use airwire::segment::Flags;

    use super::*;
    use crate::path::FIXED;
    use crate::stages::station::tests::{ACK, Ip, Tcp, read};

    fn segment(packet: &[u8]) -> TcpInPacket {
        let Parsed::Segment(segment) = parse(packet) else { panic!("not a segment: {packet:02x?}") };
        segment
    }

    /// All possible checksums occur, including 0x0000. The value 0xffff never occurs.
    #[test]
    fn updated_checksum_equals_computed_checksum() {
        let mut seen_zero = false;
        for word in 0..=u16::MAX {
            let mut packet = Tcp::new(Ip::V4, FIXED, ACK, 1, 2).payload(&word.to_be_bytes()).packet();
            let mut segment = segment(&packet);
            segment.set_flags(&mut packet, Flags(ACK | 0xc00));
            segment.set_options(&mut packet, &[1, 1, 1, 1]);
            read(&packet);
            seen_zero |= packet[36..38] == [0, 0];
            assert_ne!(packet[36..38], [0xff, 0xff]);
        }
        assert!(seen_zero);
    }

    #[test]
    fn wrong_checksum_stays_wrong() {
        let mut packet = Tcp::new(Ip::V6, FIXED, ACK, 1, 2).payload(b"payload").packet();
        let right = packet.clone();
        packet[40 + 16] ^= 0x5a;
        let mut wrong_segment = segment(&packet);
        wrong_segment.set_flags(&mut packet, Flags(ACK | 0x800));
        let mut expected = right;
        let mut right_segment = segment(&expected);
        right_segment.set_flags(&mut expected, Flags(ACK | 0x800));
        assert_ne!(packet[56..58], expected[56..58]);
        assert_eq!(packet[..56], expected[..56]);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn rewriting_flags_and_options_updates_checksum_and_lengths(
            v6: bool,
            flags in 0_u16..0x1000,
            new_flags in 0_u16..0x1000,
            before in 0_usize..=10,
            after in prop::collection::vec(any::<[u8; 4]>(), 0..=10),
            payload in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let ip = if v6 { Ip::V6 } else { Ip::V4 };
            let tcp = Tcp::new(ip, FIXED, flags, 1, 2).options(&[1, 2, 3, 4].repeat(before)).payload(&payload);
            let mut packet = tcp.packet();
            let mut segment = segment(&packet);
            segment.set_flags(&mut packet, Flags(new_flags));
            segment.set_options(&mut packet, &after.concat());
            // The result equals a packet that was created with these flags and options.
            let sent = Tcp { flags: new_flags, options: after.concat(), ..tcp }.packet();
            prop_assert_eq!(&packet, &sent);
            let (read, options) = read(&packet);
            prop_assert_eq!(read, segment);
            prop_assert_eq!(options, after.concat());
        }
    }
}
