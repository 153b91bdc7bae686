//! The RESET procedure (§11.4), both sides.

use airwire::time::{Duration, Instant};

use crate::rlc::config::SenderConfig;
use crate::rlc::pdu::Reset;

/// Why an entity starts the RESET procedure (§11.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetCause {
    /// VT(DAT) of a PDU became MaxDAT, with No_discard.
    MaxDat,
    /// VT(MRW) became MaxMRW.
    MaxMrw,
    /// The peer acknowledged or asked for what was never sent, or is long acknowledged (§10).
    ErroneousSn,
}

/// What to do about a RESET PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResetReceipt {
    New,
    /// The peer did not get the RESET ACK: repeat it, and reset nothing.
    Repeated,
}

/// What the expiry of Timer_RST leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    Repeat,
    Unrecoverable,
}

pub(super) struct Resetting {
    max_rst: u8,
    timer: Duration,
    /// RSN of the next RESET of our own: the first is 0, and each new one differs from the one before.
    next_rsn: bool,
    pending: Option<Pending>,
    /// VT(RST): a RESET that the peer began does not touch it.
    vt_rst: u8,
    /// The answer to the last RESET that came; `None` since establishment.
    last_ack: Option<Reset>,
    ack_queued: bool,
}

struct Pending {
    reset: Reset,
    queued: bool,
    timer_rst: Option<Instant>,
}

impl Resetting {
    pub(super) fn new(config: &SenderConfig) -> Self {
        Self {
            max_rst: config.max_rst,
            timer: config.timer_rst,
            next_rsn: false,
            pending: None,
            vt_rst: 0,
            last_ack: None,
            ack_queued: false,
        }
    }

    pub(super) fn reconfigure(&mut self, config: &SenderConfig) {
        self.max_rst = config.max_rst;
        self.timer = config.timer_rst;
    }

    pub(super) fn reestablish(&mut self) {
        self.next_rsn = false;
        self.pending = None;
        self.vt_rst = 0;
        self.last_ack = None;
        self.ack_queued = false;
    }

    /// RESET_PENDING.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// `Unrecoverable` at once with MaxRST = 1: no RESET may then be transmitted at all.
    pub(super) fn start(&mut self, hfni: u32) -> Expiry {
        self.pending =
            Some(Pending { reset: Reset { rsn: self.next_rsn, hfni }, queued: false, timer_rst: None });
        self.next_rsn = !self.next_rsn;
        self.schedule()
    }

    fn schedule(&mut self) -> Expiry {
        self.vt_rst = self.vt_rst.saturating_add(1);
        if self.vt_rst >= self.max_rst {
            return Expiry::Unrecoverable;
        }
        if let Some(pending) = &mut self.pending {
            pending.queued = true;
            pending.timer_rst = None;
        }
        Expiry::Repeat
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) -> Option<Expiry> {
        let expired = self.next_deadline().is_some_and(|at| at <= now);
        expired.then(|| self.schedule())
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.pending.as_ref()?.timer_rst
    }

    /// `hfni`: what a RESET ACK of ours says.
    pub(super) fn handle_reset(&mut self, reset: Reset, hfni: u32) -> ResetReceipt {
        self.ack_queued = true;
        let repeated = self.last_ack.is_some_and(|last| last.rsn == reset.rsn) && self.pending.is_none();
        if repeated {
            return ResetReceipt::Repeated;
        }
        self.last_ack = Some(Reset { rsn: reset.rsn, hfni });
        ResetReceipt::New
    }

    /// Whether it answers the RESET that is pending. Any other is discarded (§11.4.4).
    pub(super) fn handle_reset_ack(&mut self, ack: Reset) -> bool {
        let answers = self.pending.as_ref().is_some_and(|pending| pending.reset.rsn == ack.rsn);
        if answers {
            self.pending = None;
            self.vt_rst = 0;
        }
        answers
    }

    pub(super) fn queued(&self) -> usize {
        let reset = self.pending.as_ref().is_some_and(|pending| pending.queued);
        usize::from(self.ack_queued) + usize::from(reset)
    }

    pub(super) fn take_ack(&mut self) -> Option<Reset> {
        std::mem::take(&mut self.ack_queued).then_some(self.last_ack).flatten()
    }

    /// Timer_RST runs from `starts`.
    pub(super) fn take_reset(&mut self, starts: Instant) -> Option<Reset> {
        let pending = self.pending.as_mut().filter(|pending| pending.queued)?;
        pending.queued = false;
        pending.timer_rst = Some(starts + self.timer);
        Some(pending.reset)
    }
}
