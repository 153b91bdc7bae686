//! Processing of ICMP errors by a connection.

use airwire::seq::Seq;
use airwire::time::Instant;

use super::connection::Connection;
use super::context::Parts;
use super::socket::{Ended, State};
use crate::events::EventKind;
use crate::profile::OpeningErrors;

/// The effect of an ICMP error on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpError {
    /// The packet was too big for a link.
    TooBig {
        /// The link's MTU; 0 if the message does not say.
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
    const fn is_hard(self) -> bool {
        matches!(self, Self::Protocol | Self::Port)
    }

    const fn is_prohibition(self) -> bool {
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
    /// The connection came to a listener and has not been accepted yet.
    Peer,
}

impl Connection {
    /// Processes an ICMP error. Returns false if it was ignored.
    pub(crate) fn handle_icmp(&mut self, now: Instant, seq: Seq, error: IcmpError, opener: Opener) -> bool {
        let believed = self.take_icmp(now, seq, error, opener);
        self.log(|| EventKind::Icmp { says: error, believed });
        believed
    }

    fn take_icmp(&mut self, now: Instant, seq: Seq, error: IcmpError, opener: Opener) -> bool {
        // RFC 5927 §4.1: the error must quote something in flight.
        if !self.sender.is_in_flight(self.context(), seq) {
            return false;
        }
        match error {
            IcmpError::TooBig { mtu } => {
                let Parts { sender, cx, .. } = self.parts();
                sender.lower_pmtu(cx, now, mtu)
            }
            IcmpError::Unreachable(why) if self.ends_opening(why, opener) => {
                let refused = why == Unreachable::Port
                    || (why.is_prohibition() && self.options.opening_errors == OpeningErrors::FreeBsd);
                self.end(Some(if refused { Ended::Refused } else { Ended::Unreachable(why) }));
                true
            }
            // RFC 9293 §3.9.2.2, RFC 5927 §5.2: the connection survives. The error is reported if it times
            // out.
            IcmpError::Unreachable(why) => {
                self.lifecycle.note_soft_error(why);
                true
            }
        }
    }

    fn ends_opening(&self, why: Unreachable, opener: Opener) -> bool {
        let (active, passive) = match (self.state(), opener) {
            // Once the application has the connection, it counts as established (Linux, tcp_v4_err()).
            (State::SynReceived, Opener::Us) if self.is_open_early() => return false,
            (State::SynReceived, Opener::Peer) if self.is_open_early() => (true, false),
            (State::SynSent, _) | (State::SynReceived, Opener::Us) => (true, false),
            (State::SynReceived, Opener::Peer) => (false, true),
            _ => return false,
        };
        // FreeBSD requires a previous error and several timeouts (`tcp_notify`, `syncache_unreach`).
        let again = |least| self.lifecycle.soft_error().is_some() && self.rtt().backoff() >= least;
        match self.options.opening_errors {
            OpeningErrors::Hard => why.is_hard(),
            OpeningErrors::All => active || self.linux_drops_request(why),
            OpeningErrors::FreeBsd if passive => again(3),
            OpeningErrors::FreeBsd => {
                why.is_hard() || why.is_prohibition() || why == Unreachable::TimeExceeded || again(4)
            }
        }
    }

    /// Returns true if `tcp_v4_err` or `tcp_v6_err` lets `tcp_req_err` drop a half-open connection. The two
    /// functions react to different errors.
    fn linux_drops_request(&self, why: Unreachable) -> bool {
        use Unreachable::{BadHeader, Host, Network, Policy, Port, TimeExceeded};
        match self.negotiated.is_ipv4() {
            true => matches!(why, Network | Host | TimeExceeded | BadHeader),
            false => matches!(why, Policy | Port | BadHeader),
        }
    }
}
