//! ICMP errors, as a connection takes them.

use airwire::seq::Seq;
use airwire::time::Instant;

use super::connection::Connection;
use super::socket::{Ended, State};

/// What an ICMP error means to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IcmpError {
    /// The packet was too big for a link with this MTU (0: not said).
    TooBig { mtu: u32 },
    /// The protocol or port does not exist there: the end of a connection that is being opened.
    NoService(&'static str),
    /// The path does not work at present.
    Unreachable(&'static str),
}

/// A path that says less is taken to have this MTU: the least but one in Table 7-1 of RFC 1191.
const MIN_MTU_V4: usize = 296;
/// RFC 8200 §5: no link may have less.
const MIN_MTU_V6: usize = 1280;

impl Connection {
    /// Returns false if the error was not believed.
    pub(crate) fn handle_icmp(&mut self, now: Instant, seq: Seq, error: IcmpError) -> bool {
        // RFC 5927 §4.1: it must quote something that is in flight.
        let in_flight = seq
            .offset(self.snd.iss, self.flight.una())
            .is_some_and(|offset| offset >= self.flight.una() && offset < self.flight.max());
        if !in_flight {
            return false;
        }
        match error {
            IcmpError::TooBig { mtu } => self.lower_pmtu(now, mtu as usize),
            IcmpError::NoService(_) if self.state == State::SynSent => {
                self.end(Some(Ended::Refused));
                true
            }
            IcmpError::Unreachable(why) if matches!(self.state, State::SynSent | State::SynReceived) => {
                self.end(Some(Ended::Unreachable(why)));
                true
            }
            // RFC 5461 §4: an established connection survives; the reason is told if it times out.
            IcmpError::NoService(why) | IcmpError::Unreachable(why) => {
                self.soft_error = Some(why);
                true
            }
        }
    }

    fn lower_pmtu(&mut self, now: Instant, mtu: usize) -> bool {
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
