//! The layers of a frame, and the values that parsers pass on.

use std::net::IpAddr;

use airwire::segment::Ecn;
use airwire::view::Fragment;

use super::bytes::Bytes;
use crate::link_layer::LinkType;

/// The fields of the IP header around a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ip {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) ecn: Ecn,
    /// The identification field. IPv4 only.
    pub(crate) ident: Option<u16>,
}

/// The type of the next header in a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layer {
    Link(LinkType),
    Ethernet,
    /// The data after an EtherType, or after an 802.3 length field.
    EtherType(u16),
    Llc,
    Ppp,
    Mpls,
    Wlan,
    Ip,
    /// The data after an IP header, with its protocol.
    Transport(u8, Ip),
}

/// The result of parsing one header.
pub(crate) enum Step<'a> {
    Layer(Layer, Bytes<'a>),
    End(End<'a>),
}

/// The last header of interest in a frame.
pub(crate) enum End<'a> {
    Tcp(Ip, Bytes<'a>),
    Fragment(IpFragment<'a>),
}

/// A fragment of an IP packet.
pub(crate) struct IpFragment<'a> {
    pub(crate) ip: Ip,
    pub(crate) protocol: u8,
    pub(crate) header: Fragment,
    pub(crate) bytes: Bytes<'a>,
}

/// Observations about the headers of one frame.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    /// Whether a header promises more data than there was on the wire.
    pub(crate) exceeds_frame: bool,
    /// Whether the checksum of an IP header is wrong.
    pub(crate) is_damaged: bool,
    /// Whether a tunnel was assumed only because of its UDP port.
    pub(crate) is_guess: bool,
}

impl Observations {
    /// Limits the bytes to the `len` bytes that a header promises, or fewer if fewer were on the wire.
    pub(super) fn limit<'a>(&mut self, bytes: Bytes<'a>, len: usize) -> Bytes<'a> {
        self.exceeds_frame |= len > bytes.len();
        bytes.to(len)
    }
}
