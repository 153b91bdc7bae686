//! ICMP errors about a connection.

/// The effect of an ICMP error on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpError {
    /// The packet was too big for a link.
    TooBig {
        /// The link's MTU; 0 if the message does not contain it.
        mtu: u32,
    },
    /// The packet was not delivered.
    Unreachable(Unreachable),
}

/// The reason why a packet was not delivered, as reported by a router or the destination through ICMP (RFC
/// 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1) or ICMPv6 (RFC 4443 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unreachable {
    /// No route to the network.
    #[error("no route to the network")]
    Network,
    /// The host does not answer on its network.
    #[error("no route to the host")]
    Host,
    /// The destination does not support TCP.
    #[error("protocol unreachable")]
    Protocol,
    /// No listener on the port.
    #[error("port unreachable")]
    Port,
    /// A source route failed.
    #[error("source route failed")]
    SourceRoute,
    /// The network does not exist.
    #[error("network unknown")]
    NetworkUnknown,
    /// The host does not exist.
    #[error("host unknown")]
    HostUnknown,
    /// The source host is isolated.
    #[error("source host isolated")]
    Isolated,
    /// Communication with the network is administratively prohibited.
    #[error("network administratively prohibited")]
    NetworkProhibited,
    /// Communication with the host is administratively prohibited.
    #[error("host administratively prohibited")]
    HostProhibited,
    /// No route to the network for this type of service.
    #[error("no route to the network for this type of service")]
    NetworkTos,
    /// No route to the host for this type of service.
    #[error("no route to the host for this type of service")]
    HostTos,
    /// A filter forbids it.
    #[error("administratively prohibited")]
    Prohibited,
    /// The precedence is not allowed, or below the minimum.
    #[error("precedence not allowed")]
    Precedence,
    /// The destination is beyond the scope of the source address (ICMPv6).
    #[error("beyond the scope of the source address")]
    Scope,
    /// An administrator or a policy forbids it, or the route is a reject route (ICMPv6).
    #[error("rejected by a policy")]
    Policy,
    /// The hop limit or the reassembly time was exceeded.
    #[error("time exceeded in transit")]
    TimeExceeded,
    /// A router reported an invalid header.
    #[error("bad header reported by a router")]
    BadHeader,
}

impl Unreachable {
    /// Returns true for hard errors (RFC 9293 §3.9.2.2): codes 2 and 3 of "destination unreachable", and
    /// their ICMPv6 counterparts. The third one, code 4, belongs to path MTU discovery.
    pub(super) const fn is_hard(self) -> bool {
        matches!(self, Self::Protocol | Self::Port)
    }

    pub(super) const fn is_prohibition(self) -> bool {
        matches!(
            self,
            Self::NetworkProhibited
                | Self::HostProhibited
                | Self::Prohibited
                | Self::Precedence
                | Self::Policy
        )
    }
}

/// The side that opened the connection that an ICMP error refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opener {
    Us,
    /// The peer has opened the connection, and it has not been accepted yet.
    Peer,
}
