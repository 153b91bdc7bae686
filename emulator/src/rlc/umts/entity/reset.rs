//! The RLC reset procedure (§11.4), on both sides.

use airwire::time::{Duration, Instant};

use crate::rlc::umts::config::SenderConfig;
use crate::rlc::umts::pdu::Reset;

/// Cause of an RLC reset procedure (§11.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetCause {
    /// 1) "No_discard after MaxDAT number of transmissions" is configured, and VT(DAT) equals MaxDAT.
    MaxDat,
    /// 2) VT(MRW) equals MaxMRW.
    MaxMrw,
    /// 3) A STATUS PDU included an "erroneous Sequence Number" (§10.1).
    ErroneousSn,
}

impl ResetCause {
    /// All causes, in the order of their numbers (`ResetCause as usize`).
    pub const ALL: [Self; 3] = [Self::MaxDat, Self::MaxMrw, Self::ErroneousSn];

    /// Name in settings and statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxDat => "max-dat",
            Self::MaxMrw => "max-mrw",
            Self::ErroneousSn => "erroneous-sn",
        }
    }
}

/// Meaning of a received RESET PDU. A RESET ACK answers it in all cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResetReceipt {
    /// §11.4.3: the first RESET since establishment, or one with an RSN other than the last one. The entity
    /// is reset.
    New,
    /// §11.4.3: a RESET with the same RSN as the last one. The entity is not reset.
    Repeated,
    /// §11.4.5.3: a RESET in RESET_PENDING, where the RSN is not compared. The entity is reset, and stays in
    /// RESET_PENDING.
    Crossing,
}

/// §11.4.4a, unrecoverable error: VT(RST) = MaxRST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unrecoverable;

pub(super) struct ResetProcedure {
    max_rst: u8,
    /// Duration of Timer_RST.
    timer: Duration,
    /// RSN of the next RESET of this entity (§11.4.2.1). The first RSN is 0, and each new RSN differs from
    /// the previous one.
    next_rsn: bool,
    pending: Option<Pending>,
    /// VT(RST) (§9.4 h). Only a RESET ACK resets it.
    vt_rst: u8,
    /// RSN of the last RESET received. `None` if there was none since establishment.
    last_rsn: Option<bool>,
    /// The RESET ACK that waits to be sent.
    ack: Option<Reset>,
}

/// A reset procedure that this entity has initiated.
struct Pending {
    /// §11.4.5.1: the RESET is repeated as previously transmitted.
    reset: Reset,
    queued: bool,
    /// Time at which Timer_RST expires. `None` if it is not running.
    timer_rst: Option<Instant>,
}

impl ResetProcedure {
    pub(super) fn new(config: &SenderConfig) -> Self {
        Self::with_limits(config.max_rst, config.timer_rst)
    }

    const fn with_limits(max_rst: u8, timer: Duration) -> Self {
        Self { max_rst, timer, next_rsn: false, pending: None, vt_rst: 0, last_rsn: None, ack: None }
    }

    pub(super) fn reconfigure(&mut self, config: &SenderConfig) {
        self.max_rst = config.max_rst;
        self.timer = config.timer_rst;
    }

    /// Aborts an ongoing procedure. RSN and VT(RST) restart at 0 (§9.7.7).
    pub(super) fn reestablish(&mut self) {
        *self = Self::with_limits(self.max_rst, self.timer);
    }

    /// Whether the entity is in RESET_PENDING (§9.3.3.3).
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Initiates the reset procedure (§11.4.2). With MaxRST = 1 it fails immediately, because a RESET is
    /// transmitted at most MaxRST − 1 times (§9.6 e).
    pub(super) fn start(&mut self, hfni: u32) -> Result<(), Unrecoverable> {
        self.pending =
            Some(Pending { reset: Reset { rsn: self.next_rsn, hfni }, queued: false, timer_rst: None });
        self.next_rsn = !self.next_rsn;
        self.schedule()
    }

    /// Queues the RESET PDU. §11.4.2, §11.4.5.1: VT(RST) is incremented by 1. If VT(RST) < MaxRST, the RESET PDU
    /// is transmitted.
    fn schedule(&mut self) -> Result<(), Unrecoverable> {
        self.vt_rst = self.vt_rst.saturating_add(1);
        if self.vt_rst >= self.max_rst {
            return Err(Unrecoverable);
        }
        if let Some(pending) = &mut self.pending {
            pending.queued = true;
            pending.timer_rst = None;
        }
        Ok(())
    }

    /// Handles a timeout of Timer_RST (§11.4.5.1).
    pub(super) fn handle_deadline(&mut self, now: Instant) -> Result<(), Unrecoverable> {
        if self.next_deadline().is_some_and(|at| at <= now) { self.schedule() } else { Ok(()) }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.pending.as_ref()?.timer_rst
    }

    /// Meaning of a RESET PDU with this RSN.
    pub(super) fn receipt(&self, rsn: bool) -> ResetReceipt {
        if self.pending.is_some() {
            ResetReceipt::Crossing
        } else if self.last_rsn == Some(rsn) {
            ResetReceipt::Repeated
        } else {
            ResetReceipt::New
        }
    }

    /// Records the RSN of a received RESET PDU, and queues a RESET ACK with the HFNI `hfni` (§11.4.3.1).
    pub(super) fn acknowledge(&mut self, rsn: bool, hfni: u32) {
        self.last_rsn = Some(rsn);
        self.ack = Some(Reset { rsn, hfni });
    }

    /// Handles a RESET ACK (§11.4.4). Returns `true` if its RSN is that in the RESET of this entity. Any
    /// other RESET ACK is discarded.
    pub(super) fn handle_reset_ack(&mut self, ack: Reset) -> bool {
        let answers = self.pending.as_ref().is_some_and(|pending| pending.reset.rsn == ack.rsn);
        if answers {
            self.pending = None;
            self.vt_rst = 0;
        }
        answers
    }

    /// Number of RESET and RESET ACK PDUs that wait to be sent.
    pub(super) fn queued(&self) -> usize {
        let reset = self.pending.as_ref().is_some_and(|pending| pending.queued);
        usize::from(self.ack.is_some()) + usize::from(reset)
    }

    pub(super) fn take_ack(&mut self) -> Option<Reset> {
        self.ack.take()
    }

    /// Returns the RESET PDU if it waits to be sent. Timer_RST starts at `starts` (§9.5 h).
    pub(super) fn take_reset(&mut self, starts: Instant) -> Option<Reset> {
        let pending = self.pending.as_mut().filter(|pending| pending.queued)?;
        pending.queued = false;
        pending.timer_rst = Some(starts + self.timer);
        Some(pending.reset)
    }
}
