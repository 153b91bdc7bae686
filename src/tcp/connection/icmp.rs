//! The effect of ICMP errors on a connection.

use airwire::seq::Seq;
use airwire::time::Instant;

use super::{Connection, Parts};
use crate::events::EventKind;
use crate::profile::OpeningErrors;
use crate::tcp::icmp::{IcmpError, Opener, Unreachable};
use crate::tcp::socket::{Ended, State};

impl Connection {
    /// Processes an ICMP error. Returns false if it was ignored.
    pub(crate) fn handle_icmp(&mut self, now: Instant, seq: Seq, error: IcmpError, opener: Opener) -> bool {
        let believed = self.process_icmp(now, seq, error, opener);
        self.log(|| EventKind::Icmp { error, believed });
        believed
    }

    fn process_icmp(&mut self, now: Instant, seq: Seq, error: IcmpError, opener: Opener) -> bool {
        // RFC 5927 §4.1: the error must quote something in flight.
        if !self.sender.is_in_flight(&self.cx, seq) {
            return false;
        }
        match error {
            IcmpError::TooBig { mtu } => {
                let Parts { sender, cx, .. } = self.parts();
                sender.lower_pmtu(cx, now, mtu)
            }
            IcmpError::Unreachable(why) if self.ends_opening(why, opener) => {
                let refused = why == Unreachable::Port
                    || (why.is_prohibition() && self.cx.options.opening_errors == OpeningErrors::FreeBsd);
                self.end(Some(if refused { Ended::Refused } else { Ended::Unreachable(why) }));
                true
            }
            // RFC 9293 §3.9.2.2, RFC 5927 §5.2: the connection survives. The error is reported if it times
            // out.
            IcmpError::Unreachable(why) => {
                self.cx.lifecycle.note_soft_error(why);
                true
            }
        }
    }

    /// Returns true if the error aborts a connection that is being opened.
    fn ends_opening(&self, why: Unreachable, opener: Opener) -> bool {
        let (active, passive) = match (self.state(), opener) {
            // After accept(), a connection that was opened early counts as established (Linux, tcp_v4_err()).
            (State::SynReceived, Opener::Us) if self.is_open_early() => return false,
            (State::SynReceived, Opener::Peer) if self.is_open_early() => (true, false),
            (State::SynSent, _) | (State::SynReceived, Opener::Us) => (true, false),
            (State::SynReceived, Opener::Peer) => (false, true),
            _ => return false,
        };
        // FreeBSD requires a previous error and several timeouts (`tcp_notify`, `syncache_unreach`).
        let is_repeated =
            |timeouts| self.cx.lifecycle.soft_error().is_some() && self.rtt().backoff() >= timeouts;
        match self.cx.options.opening_errors {
            OpeningErrors::Hard => why.is_hard(),
            OpeningErrors::All => active || self.linux_drops_request(why),
            OpeningErrors::FreeBsd if passive => is_repeated(3),
            OpeningErrors::FreeBsd => {
                why.is_hard() || why.is_prohibition() || why == Unreachable::TimeExceeded || is_repeated(4)
            }
        }
    }

    /// Returns true if Linux drops a half-open connection after this error (tcp_req_err()). The errors differ
    /// between tcp_v4_err() and tcp_v6_err().
    fn linux_drops_request(&self, why: Unreachable) -> bool {
        use Unreachable::{BadHeader, Host, Network, Policy, Port, TimeExceeded};
        match self.cx.negotiated.is_ipv4() {
            true => matches!(why, Network | Host | TimeExceeded | BadHeader),
            false => matches!(why, Policy | Port | BadHeader),
        }
    }
}
