//! **What does a timeout mean?** The answer says what leaves at the timeout, and what later ACKs say about it.

mod fast_timeout;
pub(crate) mod frto;
mod restart;

pub(crate) use fast_timeout::FastTimeout;
pub(crate) use frto::Frto;
pub use restart::Restart;

use super::undo::Restore;
use super::{Ack, Handshake, View};

/// What to do when the retransmission timer fires.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reaction {
    /// Everything outstanding is lost: go back to SND.UNA and slow-start.
    Restart {
        /// cwnd from here on, in segments.
        cwnd: f64,
    },
    /// Send the first segment again, and look at the next ACKs before believing that more is lost (F-RTO).
    Probe {
        /// cwnd from here on, in segments.
        cwnd: f64,
    },
}

/// What an ACK says about the last timeout. Windows are in segments; each `why` is for people, in the trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Afterwards {
    /// Nothing.
    Nothing,
    /// It was real: go back over the window.
    GoBack {
        /// cwnd from here on.
        cwnd: f64,
        /// Whether the first segment was sent again already, and is not to be sent once more.
        head_sent: bool,
        /// The reason.
        why: &'static str,
    },
    /// Not decided yet: send new segments instead of old ones.
    SendNew {
        /// cwnd from here on.
        cwnd: f64,
        /// The reason.
        why: &'static str,
    },
    /// It was real, but the network delivers: fast recovery from here, with a more cautious timer (P2 Fig. 8).
    Recover {
        /// cwnd from here on.
        cwnd: f64,
        /// ssthresh from here on.
        ssthresh: f64,
        /// The reason.
        why: &'static str,
    },
    /// It was spurious.
    Spurious {
        /// What is taken back.
        restore: Restore,
    },
}

/// An answer to "What does a timeout mean?".
pub trait Timeout: std::fmt::Debug + Send {
    /// Its name in the catalogue, and in the trace of decisions.
    fn name(&self) -> &'static str;

    /// The handshake is over.
    fn on_established(&mut self, _handshake: &Handshake) {}

    /// The retransmission timer fired with data outstanding. Window, phase and `timeouts_in_row` are still what they
    /// were before.
    fn on_timeout(&mut self, view: &View<'_>) -> Reaction;

    /// Every ACK after a timeout, until `recover` is acknowledged.
    fn on_ack(&mut self, _view: &View<'_>, _ack: &Ack) -> Afterwards {
        Afterwards::Nothing
    }

    /// Whether it is not known yet if anything is lost: until then no detector is believed.
    fn is_undecided(&self) -> bool {
        false
    }

    /// It is undecided, everything old has been sent, and there is nothing new to send, or no room for it in the
    /// receiver's window.
    fn on_nothing_new(&mut self, _view: &View<'_>) -> Afterwards {
        Afterwards::Nothing
    }
}
