//! SDU discard with explicit signalling, on the Sender's side (§11.6).

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use super::reset::ResetCause;
use crate::rlc::umts::codec::Format;
use crate::rlc::umts::config::{Discard, SenderConfig};
use crate::rlc::umts::pdu::{Mrw, Sn, Sufi};

/// Position at which the Receiver continues if an SDU is the last one to be discarded (§11.6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// SN_MRW_LENGTH: the Receiver discards all PDUs before this one.
    pub(super) sn: u64,
    /// NLENGTH: within that PDU, the Receiver discards the data up to the NLENGTH-th Length Indicator. 0:
    /// none.
    pub(super) nlength: u8,
}

/// End of an SDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The AMD PDU whose Length Indicator or special value of HE marks the end. It is the SN_MRWi of an SDU
    /// that is not the last one of its MRW.
    pub(super) indicated_in: u64,
    pub(super) target: Target,
    /// Index of the SDU in the order of submission.
    pub(super) sdu: u64,
}

/// Maximum number of SN_MRWi in an MRW: LENGTH has four bits (§9.2.2.11.8).
const MAX_SNS: usize = 15;

pub(super) struct DiscardSignalling {
    active: Option<Procedure>,
    /// Discarded SDUs that have not been named in an MRW. §11.6.2: no new MRW is sent during a procedure.
    waiting: VecDeque<End>,
    /// Duration of Timer_MRW.
    timer: Duration,
    max_mrw: u8,
    /// Maximum number of SDUs in an MRW: only the last one, or up to 15 ("Send MRW").
    max_sns: usize,
}

/// A discard procedure, from its initiation to its termination.
struct Procedure {
    /// SN_MRWi.
    sns: Vec<u64>,
    long_distance: bool,
    target: Target,
    /// Index of the last SDU that the procedure discards.
    last_sdu: u64,
    /// VT(MRW): number of expiries of Timer_MRW (§9.4 i).
    vt_mrw: u8,
    /// Time at which Timer_MRW expires. `None` if it is not running.
    timer_mrw: Option<Instant>,
    /// Whether the MRW waits to be sent.
    queued: bool,
}

impl DiscardSignalling {
    pub(super) fn new(config: &SenderConfig, format: Format) -> Self {
        let mut signalling =
            Self { active: None, waiting: VecDeque::new(), timer: Duration::ZERO, max_mrw: 0, max_sns: 1 };
        signalling.reconfigure(config, format);
        signalling
    }

    pub(super) fn reconfigure(&mut self, config: &SenderConfig, format: Format) {
        if let Discard::MrwAfterMaxDat { timer_mrw, max_mrw, .. }
        | Discard::Timer { timer_mrw, max_mrw, .. } = config.discard
        {
            (self.timer, self.max_mrw) = (timer_mrw, max_mrw);
        }
        // A STATUS PDU with an MRW and NO_MORE takes 5 units of 4 bits, and 3 for each SN_MRWi. It must have
        // room for an MRW_ACK (5), a WINDOW (4) and a POLL (4).
        let fits = (format.pdu_size * 2).saturating_sub(5 + 5 + 4 + 4) / 3;
        self.max_sns = if config.send_mrw { fits.clamp(1, MAX_SNS) } else { 1 };
    }

    pub(super) fn reset(&mut self) {
        self.active = None;
        self.waiting.clear();
    }

    /// Adds discarded SDUs of which the Receiver must be informed.
    pub(super) fn discard(&mut self, sdus: impl IntoIterator<Item = End>) {
        self.waiting.extend(sdus);
    }

    /// Assembles the next MRW if discarded SDUs are waiting and no procedure is in progress (§11.6.2). With
    /// "Send MRW" and more SDUs than an MRW can name, the rest waits for the next procedure.
    pub(super) fn start_next(&mut self, vt_a: u64, window: u16) {
        // The peer has acknowledged these SDUs in the meantime.
        while self.waiting.front().is_some_and(|end| end.indicated_in < vt_a) {
            self.waiting.pop_front();
        }
        if self.active.is_some() || self.waiting.is_empty() {
            return;
        }
        let all = self.waiting.len();
        let named = if self.max_sns == 1 { all - 1..all } else { 0..all.min(self.max_sns) };
        let last = self.waiting[named.end - 1];
        let earlier = self.waiting.range(named.start..named.end - 1);
        let sns: Vec<u64> = earlier.map(|end| end.indicated_in).chain([last.target.sn]).collect();
        self.waiting.drain(..named.end);
        // §11.6.2.2: LENGTH = 0 if there is one SN_MRWi, and it is ≥ VT(A) + Configured_Tx_Window_Size.
        let long_distance = sns.len() == 1 && last.target.sn >= vt_a + u64::from(window);
        self.active = Some(Procedure {
            sns,
            long_distance,
            target: last.target,
            last_sdu: last.sdu,
            vt_mrw: 0,
            timer_mrw: None,
            queued: true,
        });
    }

    pub(super) fn queued(&self) -> bool {
        self.active.as_ref().is_some_and(|procedure| procedure.queued)
    }

    /// Returns the MRW if it waits to be sent. Within a procedure it is sent again "as previously
    /// transmitted" (§11.6.5). Timer_MRW starts at `starts` (§9.5 i).
    pub(super) fn take(&mut self, starts: Instant) -> Option<Sufi> {
        let procedure = self.active.as_mut().filter(|procedure| procedure.queued)?;
        procedure.queued = false;
        procedure.timer_mrw = Some(starts + self.timer);
        Some(Sufi::Mrw(Mrw {
            sns: procedure.sns.iter().map(|sn| wire(*sn)).collect(),
            long_distance: procedure.long_distance,
            nlength: procedure.target.nlength,
        }))
    }

    /// Handles an MRW_ACK. Returns the index of the last discarded SDU if the procedure terminates (§11.6.4):
    ///
    /// - SN_ACK > SN_MRW_LENGTH and N = 0; or
    /// - SN_ACK = SN_MRW_LENGTH and N = NLENGTH.
    ///
    /// Any other MRW_ACK is discarded (§11.6.6.3). An MRW_ACK that arrives before the MRW was sent answers an
    /// earlier MRW, and is discarded, too.
    pub(super) fn handle_mrw_ack(&mut self, sn_ack: u64, n: u8) -> Option<u64> {
        let procedure = self.active.as_ref().filter(|procedure| !procedure.queued || procedure.vt_mrw > 0)?;
        let target = procedure.target;
        let terminates = (sn_ack > target.sn && n == 0) || (sn_ack == target.sn && n == target.nlength);
        terminates.then(|| self.terminate()).flatten()
    }

    /// Handles an ACK that has moved VT(A). §11.6.4: the procedure also terminates if all AMD PDUs up to
    /// SN_MRW_LENGTH − 1 are acknowledged.
    ///
    /// Choice: VT(A) must exceed SN_MRW_LENGTH, as in earlier releases. If they are equal, only an MRW_ACK
    /// terminates the procedure.
    pub(super) fn handle_vt_a(&mut self, vt_a: u64) -> Option<u64> {
        let terminates = self.active.as_ref().is_some_and(|procedure| vt_a > procedure.target.sn);
        terminates.then(|| self.terminate()).flatten()
    }

    fn terminate(&mut self) -> Option<u64> {
        self.active.take().map(|procedure| procedure.last_sdu)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.active.as_ref()?.timer_mrw
    }

    /// Handles an expiry of Timer_MRW. §11.6.5: VT(MRW) is incremented by 1. If VT(MRW) < MaxMRW, the MRW is
    /// sent again. §11.6.4a: if VT(MRW) = MaxMRW, the RLC reset procedure is initiated.
    pub(super) fn handle_deadline(&mut self, now: Instant) -> Result<(), ResetCause> {
        let Some(procedure) = &mut self.active else { return Ok(()) };
        if procedure.timer_mrw.take_if(|at| *at <= now).is_some() {
            procedure.vt_mrw += 1;
            if procedure.vt_mrw >= self.max_mrw {
                return Err(ResetCause::MaxMrw);
            }
            procedure.queued = true;
        }
        Ok(())
    }
}

/// Converts an unwrapped sequence number to its representation in PDUs.
pub(super) fn wire(sn: u64) -> Sn {
    Sn::new((sn % 4096) as u16)
}
