//! Segmentation offload. Devices with offload read and write packets that contain several TCP segments. A
//! header of linux/virtio_net.h precedes each packet and describes how to split it. Hosts, and the network on
//! the other side of the kernel, see only the segments.

mod batch;
mod header;
mod segmenter;
#[cfg(test)]
mod tests;

use airwire::piece::Piece;
pub use batch::Batch;
pub(crate) use batch::MAX_PARTS;
pub(crate) use header::Header;
pub use segmenter::Segmenter;
use tcp::Headers;

/// Completes the headers of a piece for the device. Returns the header that must precede it.
pub(crate) fn prepare(piece: &mut Piece) -> Header {
    let (count, size, len) = (piece.count(), piece.segment_size(), piece.len());
    let packet = piece.headers_mut();
    match (size, Headers::of(packet)) {
        (Some(_), Some(headers)) if count == 1 => headers.leave_checksum(packet, len),
        (Some(mss), Some(headers)) => headers.prepare(packet, len, mss),
        _ => Header::Whole,
    }
}

/// Field positions in a TCP packet without IPv6 extension headers, for `batch` and `segmenter`.
mod tcp {
    use airwire::checksum;
    use airwire::view::{TCP, Tcp, View};

    use super::Header;

    pub(super) const FIN: u8 = 0x01;
    pub(super) const SYN: u8 = 0x02;
    pub(super) const RST: u8 = 0x04;
    pub(super) const PSH: u8 = 0x08;
    pub(super) const URG: u8 = 0x20;
    pub(super) const CWR: u8 = 0x80;

    /// Lengths of the headers of a TCP segment.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) struct Headers {
        pub(super) ip: usize,
        pub(super) tcp: usize,
    }

    impl Headers {
        /// `None`: not TCP directly after the IP header, a fragment, or shorter than the headers say.
        pub(super) fn of(packet: &[u8]) -> Option<Self> {
            let view = View::without_extensions(packet).ok()?;
            let is_segment = view.protocol == TCP && view.transport >= 20 && view.fragment.is_none();
            // The length field is not correct before segmentation.
            let tcp = Tcp::read(packet.get(view.transport..)?)?.header.len;
            is_segment.then_some(Self { ip: view.transport, tcp })
        }

        pub(super) const fn len(self) -> usize {
            self.ip + self.tcp
        }

        pub(super) const fn is_v4(self, packet: &[u8]) -> bool {
            packet[0] >> 4 == 4
        }

        pub(super) fn seq(self, packet: &[u8]) -> u32 {
            be32(packet, self.ip + 4)
        }

        pub(super) fn flags(self, packet: &[u8]) -> u8 {
            packet[self.ip + 13]
        }

        /// Whether the lengths and checksums of the whole packet are correct.
        pub(super) fn are_valid(self, packet: &[u8]) -> bool {
            let view = view_of(packet);
            view.end == packet.len()
                && !view.is_header_damaged()
                && checksum::verify_transport(view.source(), view.destination(), TCP, &packet[self.ip..])
        }

        /// Writes the packet length `len` into the IP header, and updates the checksum of IPv4.
        pub(super) fn set_length(self, packet: &mut [u8], len: usize) {
            if self.is_v4(packet) {
                packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                packet[10..12].fill(0);
                let sum = checksum::plain(&packet[..self.ip]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            } else {
                packet[4..6].copy_from_slice(&((len - self.ip) as u16).to_be_bytes());
            }
        }

        /// Prepares a packet of `len` bytes that the kernel splits into segments with `mss` bytes of data.
        pub(super) fn prepare(self, packet: &mut [u8], len: usize, mss: usize) -> Header {
            self.set_partial_checksum(packet, len);
            self.set_length(packet, len);
            let v4 = self.is_v4(packet);
            Header::Segments { v4, mss: mss as u16, headers: self.len() as u16, start: self.ip as u16 }
        }

        /// Leaves the checksum of a packet of `len` bytes to the kernel.
        pub(super) fn leave_checksum(self, packet: &mut [u8], len: usize) -> Header {
            self.set_partial_checksum(packet, len);
            Header::Unsummed { start: self.ip as u16, offset: Header::TCP_CHECKSUM }
        }

        /// Writes the checksum of the segment.
        pub(super) fn set_checksum(self, packet: &mut [u8]) {
            let view = view_of(packet);
            let (src, dst) = (view.source(), view.destination());
            let segment = &mut packet[self.ip..];
            segment[16..18].fill(0);
            let sum = checksum::transport(src, dst, TCP, segment);
            segment[16..18].copy_from_slice(&sum.to_be_bytes());
        }

        /// Writes the pseudo-header sum of a packet of `len` bytes. The kernel adds the rest.
        pub(super) fn set_partial_checksum(self, packet: &mut [u8], len: usize) {
            let view = view_of(packet);
            let sum = checksum::partial(view.source(), view.destination(), TCP, len - self.ip);
            packet[self.ip + 16..self.ip + 18].copy_from_slice(&sum.to_be_bytes());
        }
    }

    fn view_of(packet: &[u8]) -> View<'_> {
        View::without_extensions(packet).expect("`Headers::of` has found the IP header")
    }

    fn be32(packet: &[u8], at: usize) -> u32 {
        u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
    }

    pub(super) fn be16(packet: &[u8], at: usize) -> u16 {
        u16::from_be_bytes([packet[at], packet[at + 1]])
    }
}
