//! The hash that assigns packets to flows (RFC 8290 §4.1.1), over addresses, protocol and ports.

use std::hash::Hasher;

use airwire::view::View;
use siphasher::sip::SipHasher13;

/// A keyed flow hash. With another key, other flows collide (§6.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowHash(pub(super) u64);

impl FlowHash {
    /// Returns the flow's index in `0..flows`. The ports are ignored in fragments, so that all fragments of a
    /// packet share a flow. All packets other than IP share one flow.
    pub(super) fn of(self, bytes: &[u8], flows: usize) -> usize {
        let mut hasher = SipHasher13::new_with_keys(self.0, 0x666c_6f77);
        self.write(bytes, &mut hasher);
        ((u128::from(hasher.finish()) * flows as u128) >> 64) as usize
    }

    fn write(self, bytes: &[u8], hasher: &mut SipHasher13) {
        let Some(view) = View::complete(bytes) else { return };
        hasher.write(view.address_bytes());
        hasher.write_u8(view.protocol);
        if view.fragment.is_none()
            && let Some(ports) = view.ports()
        {
            for port in ports {
                hasher.write(&port.to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::queue::testing::{udp, udp6};

    const FLOWS: usize = 1 << 30;

    #[test]
    fn only_five_tuple_and_key_determine_flow() {
        let hash = FlowHash(1);
        let of = |packet: &[u8]| hash.of(packet, FLOWS);
        let base = udp(1, 10, 100);
        assert_eq!(of(&base), of(&udp(1, 10, 1000)), "the length does not matter");
        let mut marked = base.clone();
        marked[1] = 3;
        marked[5] = 9;
        assert_eq!(of(&base), of(&marked), "the ECN codepoint and the identification do not matter");
        for octet in [12, 15, 16, 19, 20, 21, 22, 23] {
            let mut other = base.clone();
            other[octet] ^= 1;
            assert_ne!(of(&base), of(&other), "octet {octet}");
        }
        let mut tcp = base.clone();
        tcp[9] = 6;
        assert_ne!(of(&base), of(&tcp));
        assert_ne!(of(&base), FlowHash(2).of(&base, FLOWS), "the hash key matters");
    }

    #[test]
    fn fragments_of_packet_share_flow() {
        let hash = FlowHash(1);
        let (mut first, mut second) = (udp(1, 10, 100), udp(1, 77, 100));
        first[6] = 0x20;
        second[7] = 12;
        assert_eq!(hash.of(&first, FLOWS), hash.of(&second, FLOWS));
    }

    #[test]
    fn ipv6_flows_are_distinguished() {
        let hash = FlowHash(1);
        assert_ne!(hash.of(&udp6(1, 10, 100), FLOWS), hash.of(&udp6(1, 11, 100), FLOWS));
        assert_ne!(hash.of(&udp6(1, 10, 100), FLOWS), hash.of(&udp6(2, 10, 100), FLOWS));
        assert_eq!(hash.of(&udp6(1, 10, 100), FLOWS), hash.of(&udp6(1, 10, 900), FLOWS));
    }

    #[test]
    fn flows_are_spread_evenly() {
        // 64 queues, 6400 flows: chi-square with 63 degrees of freedom is below 103.4 with a probability of
        // 99.9 %.
        let mut queues = [0_f64; 64];
        for port in 0..6400 {
            queues[FlowHash(7).of(&udp(3, port, 60), 64)] += 1.0;
        }
        let chi_square: f64 = queues.iter().map(|flows| (flows - 100.0).powi(2) / 100.0).sum();
        assert!(chi_square < 103.4, "{chi_square}");
    }

    #[test]
    fn non_ip_packets_share_one_flow() {
        let hash = FlowHash(1);
        assert_eq!(hash.of(&[], FLOWS), hash.of(&[0x45, 1, 2], FLOWS));
        assert_eq!(hash.of(&[], FLOWS), hash.of(&[0xff; 40], FLOWS));
    }
}
