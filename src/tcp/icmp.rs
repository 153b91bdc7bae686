//! ICMP errors, as a connection takes them.

use airwire::seq::Seq;
use airwire::time::Instant;

use super::connection::Connection;
use super::socket::{Ended, State};
use crate::events::What;
use crate::profile::OpeningErrors;

/// What an ICMP error means to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpError {
    /// The packet was too big for a link.
    TooBig {
        /// The link's MTU; 0: not said.
        mtu: u32,
    },
    /// It was not delivered.
    Unreachable(Unreachable),
}

/// Why a packet was not delivered, as a router or the destination said by ICMP (RFC 792, RFC 1122 §3.2.2.1,
/// RFC 1812 §5.2.7.1) or ICMPv6 (RFC 4443 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unreachable {
    /// No route to the network.
    #[error("no route to the network")]
    Network,
    /// The host does not answer on its network.
    #[error("no route to the host")]
    Host,
    /// The destination does not speak TCP.
    #[error("protocol unreachable")]
    Protocol,
    /// Nothing listens on the port.
    #[error("port unreachable")]
    Port,
    /// A source route failed.
    #[error("source route failed")]
    SourceRoute,
    /// There is no such network.
    #[error("network unknown")]
    NetworkUnknown,
    /// There is no such host.
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
    /// The precedence is not allowed, or below what is required.
    #[error("precedence not allowed")]
    Precedence,
    /// The destination lies beyond the scope of the source address (ICMPv6).
    #[error("beyond the scope of the source address")]
    Scope,
    /// An administrator or a policy forbids it, or the route is a reject route (ICMPv6).
    #[error("rejected by a policy")]
    Policy,
    /// The hop limit, or the time for reassembly, ran out.
    #[error("time exceeded in transit")]
    TimeExceeded,
    /// A router found something wrong in the header.
    #[error("bad header reported by a router")]
    BadHeader,
}

impl Unreachable {
    /// RFC 9293 §3.9.2.2: codes 2 and 3 of "destination unreachable", and what corresponds to them in ICMPv6. Code 4,
    /// the third, is path MTU discovery's.
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

/// Who began the connection that an ICMP error is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opener {
    Us,
    /// It came to a listener, and was not accepted yet.
    Peer,
}

/// A path that says less is taken to have this MTU: the least but one in Table 7-1 of RFC 1191.
const MIN_MTU_V4: u32 = 296;
/// RFC 8200 §5: no link may have less.
const MIN_MTU_V6: u32 = 1280;

impl Connection {
    /// Returns false if the error was not believed.
    pub(crate) fn handle_icmp(&mut self, now: Instant, seq: Seq, error: IcmpError, opener: Opener) -> bool {
        let believed = self.take_icmp(now, seq, error, opener);
        self.tell(|| What::Icmp { says: error, believed });
        believed
    }

    fn take_icmp(&mut self, now: Instant, seq: Seq, error: IcmpError, opener: Opener) -> bool {
        // RFC 5927 §4.1: it must quote something that is in flight.
        let in_flight = seq
            .offset(self.snd.iss, self.flight.una())
            .is_some_and(|offset| offset >= self.flight.una() && offset < self.flight.max());
        if !in_flight {
            return false;
        }
        match error {
            IcmpError::TooBig { mtu } => self.lower_pmtu(now, mtu),
            IcmpError::Unreachable(why) if self.ends_opening(why, opener) => {
                let refused = why == Unreachable::Port
                    || (why.is_prohibition() && self.options.opening_errors == OpeningErrors::FreeBsd);
                self.end(Some(if refused { Ended::Refused } else { Ended::Unreachable(why) }));
                true
            }
            // RFC 9293 §3.9.2.2, RFC 5927 §5.2: the connection survives; the reason is told if it times out.
            IcmpError::Unreachable(why) => {
                self.soft_error = Some(why);
                true
            }
        }
    }

    fn ends_opening(&self, why: Unreachable, opener: Opener) -> bool {
        let (active, passive) = match (self.state, opener) {
            (State::SynSent, _) | (State::SynReceived, Opener::Us) => (true, false),
            (State::SynReceived, Opener::Peer) => (false, true),
            _ => return false,
        };
        // FreeBSD has had enough of errors and of timeouts both (`tcp_notify`, `syncache_unreach`).
        let again = |least| self.soft_error.is_some() && self.rtt.backoff() >= least;
        match self.options.opening_errors {
            OpeningErrors::Hard => why.is_hard(),
            OpeningErrors::All => active || self.linux_drops_request(why),
            OpeningErrors::FreeBsd if passive => again(3),
            OpeningErrors::FreeBsd => {
                why.is_hard() || why.is_prohibition() || why == Unreachable::TimeExceeded || again(4)
            }
        }
    }

    /// What `tcp_v4_err` and `tcp_v6_err` have `tcp_req_err` drop a half-open connection for. They do not agree.
    fn linux_drops_request(&self, why: Unreachable) -> bool {
        use Unreachable::{BadHeader, Host, Network, Policy, Port, TimeExceeded};
        match self.local.is_ipv4() {
            true => matches!(why, Network | Host | TimeExceeded | BadHeader),
            false => matches!(why, Policy | Port | BadHeader),
        }
    }

    /// What the last ICMP error said that has not ended the connection (RFC 9293 §3.9.2.2, SHLD-25). It is told once
    /// here, and then no more when the connection times out.
    pub fn take_soft_error(&mut self) -> Option<Unreachable> {
        self.soft_error.take()
    }

    fn lower_pmtu(&mut self, now: Instant, mtu: u32) -> bool {
        if !self.options.pmtu_discovery {
            return false;
        }
        let least = if self.local.is_ipv4() { MIN_MTU_V4 } else { MIN_MTU_V6 };
        // RFC 1191 §5: an old router says 0; take the next common size below.
        let said = match mtu {
            0 => [1492, 1006, 576, 296].into_iter().find(|plateau| *plateau < self.pmtu).unwrap_or(least),
            _ => mtu,
        };
        let mtu = said.max(least);
        if mtu >= self.pmtu {
            return false;
        }
        self.pmtu = mtu;
        self.update_smss();
        // RFC 1191 §6.4: send again at once, in smaller pieces, and do not take it for congestion.
        if self.state.is_synchronized() && !self.flight.is_empty() {
            self.flight.rewind();
            self.restart_rto(now);
        }
        true
    }
}
