//! `struct virtio_net_hdr` of linux/virtio_net.h.

/// The header that precedes a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Header {
    /// A packet as on the wire.
    Whole,
    /// The checksum must still be computed, from `start` to the end, and written `offset` bytes after
    /// `start`.
    Unsummed {
        /// Start of the transport header.
        start: u16,
        /// Distance from there to the checksum.
        offset: u16,
    },
    /// Several TCP segments in one packet. Their checksums must still be computed.
    Segments {
        /// `true`: IPv4. `false`: IPv6.
        v4: bool,
        /// Bytes of data in each segment except the last.
        mss: u16,
        /// Bytes of the IP and TCP headers.
        headers: u16,
        /// Start of the TCP header.
        start: u16,
    },
}

/// Error for an offload type that was not requested from the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a packet has the offload type {0}, which was not requested")]
pub(crate) struct BadHeader(u8);

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
impl Header {
    /// Offset of the checksum in a TCP header.
    pub(crate) const TCP_CHECKSUM: u16 = 16;
    /// Length in bytes.
    pub(crate) const LEN: usize = 10;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let (flags, kind, headers, mss, start, offset) = match self {
            Self::Whole => (0, GSO_NONE, 0, 0, 0, 0),
            Self::Unsummed { start, offset } => (NEEDS_CSUM, GSO_NONE, 0, 0, start, offset),
            Self::Segments { v4, mss, headers, start } => {
                (NEEDS_CSUM, if v4 { GSO_TCPV4 } else { GSO_TCPV6 }, headers, mss, start, Self::TCP_CHECKSUM)
            }
        };
        let mut bytes = [0; Self::LEN];
        bytes[0] = flags;
        bytes[1] = kind;
        // Native byte order.
        for (at, field) in [(2, headers), (4, mss), (6, start), (8, offset)] {
            bytes[at..at + 2].copy_from_slice(&u16::to_ne_bytes(field));
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::LEN]) -> Result<Self, BadHeader> {
        let field = |at| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let (headers, mss, start, offset) = (field(2), field(4), field(6), field(8));
        match bytes[1] {
            GSO_NONE if bytes[0] & NEEDS_CSUM != 0 => Ok(Self::Unsummed { start, offset }),
            GSO_NONE => Ok(Self::Whole),
            kind @ (GSO_TCPV4 | GSO_TCPV6) if mss > 0 => {
                Ok(Self::Segments { v4: kind == GSO_TCPV4, mss, headers, start })
            }
            other => Err(BadHeader(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips() {
        for header in [
            Header::Whole,
            Header::Unsummed { start: 20, offset: 6 },
            Header::Segments { v4: true, mss: 1448, headers: 52, start: 20 },
            Header::Segments { v4: false, mss: 1428, headers: 72, start: 40 },
        ] {
            assert_eq!(Header::from_bytes(header.to_bytes()), Ok(header));
        }
    }

    #[test]
    fn unrequested_offload_types_are_rejected() {
        const UDP: u8 = 3;
        for (kind, mss) in [(UDP, 1400), (GSO_TCPV4 | 0x80, 1400), (GSO_TCPV6, 0)] {
            let mut bytes = Header::Segments { v4: true, mss, headers: 52, start: 20 }.to_bytes();
            bytes[1] = kind;
            assert_eq!(Header::from_bytes(bytes), Err(BadHeader(kind)));
        }
    }
}
