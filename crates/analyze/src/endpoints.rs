//! The two addresses of a connection in a compact form, because each connection stores them twice.

use std::net::{SocketAddr, SocketAddrV4};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Endpoints {
    V4([SocketAddrV4; 2]),
    Other(Box<[SocketAddr; 2]>),
}

impl Endpoints {
    pub(super) fn new(first: SocketAddr, second: SocketAddr) -> Self {
        match (first, second) {
            (SocketAddr::V4(first), SocketAddr::V4(second)) => Self::V4([first, second]),
            _ => Self::Other(Box::new([first, second])),
        }
    }

    /// Returns the pair in an order that does not depend on the direction of the packet.
    pub(super) fn sorted(one: SocketAddr, other: SocketAddr) -> Self {
        if one <= other { Self::new(one, other) } else { Self::new(other, one) }
    }

    /// Returns whether a packet from `one` to `other` belongs to this pair, in either direction.
    pub(super) fn is_between(&self, one: SocketAddr, other: SocketAddr) -> bool {
        match (self, one, other) {
            (Self::V4([first, second]), SocketAddr::V4(one), SocketAddr::V4(other)) => {
                (one == *first && other == *second) || (one == *second && other == *first)
            }
            _ => [[one, other], [other, one]].contains(&self.both()),
        }
    }

    pub(super) fn first(&self) -> SocketAddr {
        let [first, _] = self.both();
        first
    }

    pub(super) fn both(&self) -> [SocketAddr; 2] {
        match self {
            Self::V4(ends) => ends.map(SocketAddr::V4),
            Self::Other(ends) => **ends,
        }
    }

    /// Returns the heap memory in bytes.
    pub(super) fn heap(&self) -> usize {
        match self {
            Self::V4(_) => 0,
            Self::Other(ends) => size_of_val(&**ends),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_match_both_directions_in_ipv4_and_ipv6() {
        for [a, b] in [["10.0.0.2:80", "10.0.0.1:4000"], ["[fd83::2]:80", "[fd83::1]:4000"]] {
            let [a, b] = [a, b].map(|end| end.parse::<SocketAddr>().unwrap());
            assert_eq!(Endpoints::new(a, b).both(), [a, b]);
            assert_eq!(Endpoints::sorted(a, b), Endpoints::sorted(b, a));
            assert!(
                Endpoints::new(a, b).is_between(a, b)
                    && Endpoints::new(a, b).is_between(b, a)
                    && !Endpoints::new(a, b).is_between(a, a)
            );
        }
        assert_eq!(size_of::<Endpoints>(), 16);
    }
}
