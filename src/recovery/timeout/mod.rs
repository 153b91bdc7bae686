//! **What does a timeout mean?**

mod fast_timeout;
pub(crate) mod frto;
mod restart;

pub use fast_timeout::FastTimeout;
pub use frto::Frto;
pub use restart::Restart;

use super::undo::Restore;
use super::{Ack, Handshake, View};

/// What to do when the retransmission timer fires.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Plan {
    /// Everything outstanding is lost: slow-start from `cwnd` at SND.UNA.
    Restart { cwnd: f64 },
    /// Send the first segment again and look at the next ACKs before believing it (F-RTO).
    Probe { cwnd: f64 },
}

/// What an ACK says about the last timeout.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Afterwards {
    Nothing,
    /// It was real: go back over the window with this cwnd.
    GoBack {
        cwnd: f64,
        /// The first segment was sent again already and is not to be sent twice.
        head_sent: bool,
        why: &'static str,
    },
    /// Not decided yet: send new segments instead of old ones, up to this cwnd.
    SendNew {
        cwnd: f64,
        why: &'static str,
    },
    /// It was real, but the network delivers: fast recovery from here, with a more cautious timer (P2 Fig. 8).
    Recover {
        cwnd: f64,
        ssthresh: f64,
        why: &'static str,
    },
    /// It was spurious.
    Spurious {
        restore: Restore,
    },
}

pub trait Timeout: std::fmt::Debug + Send {
    fn name(&self) -> &'static str;

    fn on_established(&mut self, _handshake: &Handshake) {}

    fn on_timeout(&mut self, view: &View<'_>) -> Plan;

    /// Every ACK after a timeout until `recover` is acknowledged.
    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) -> Afterwards {
        Afterwards::Nothing
    }

    /// It is not known yet whether anything is lost: until then no detector is believed.
    fn is_undecided(&self) -> bool {
        false
    }

    /// Everything old has been sent, and there is nothing new, or the receiver's window is full.
    fn on_nothing_new(&mut self, _view: &View<'_>) -> Afterwards {
        Afterwards::Nothing
    }
}
