//! SDU discard with explicit signalling: the sender's side of the MRW procedure (§11.6).

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use crate::rlc::codec::Format;
use crate::rlc::config::{Discard, SenderConfig};
use crate::rlc::pdu::{Sn, Sufi};

/// Where a discarded SDU ends, as an MRW says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// SN_MRW. The receiver forgets everything before it…
    pub(super) sn: u64,
    /// …and this PDU up to the octet that its so-manyth length indicator tells. 0: nothing of it.
    pub(super) nlength: u8,
}

/// Where an SDU that is given up ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The PDU that says where it ends.
    pub(super) said_in: u64,
    pub(super) target: Target,
    /// The SDU's place in the order of submission.
    pub(super) sdu: u64,
}

/// An MRW names at most so many SDUs: LENGTH has four bits.
const MOST: usize = 15;

pub(super) struct Discarding {
    active: Option<Procedure>,
    /// Ends of SDUs that were given up while a procedure was running: "only one MRW procedure at a time".
    waiting: VecDeque<End>,
    timer: Duration,
    max_mrw: u8,
    /// How many SDUs an MRW names: the last one alone, or every one ("Send MRW").
    most: usize,
}

struct Procedure {
    sns: Vec<u64>,
    long_distance: bool,
    target: Target,
    through: u64,
    /// VT(MRW): how often Timer_MRW expired.
    vt_mrw: u8,
    timer_mrw: Option<Instant>,
    queued: bool,
}

/// What the expiry of Timer_MRW leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    Repeat,
    GiveUp,
}

impl Discarding {
    pub(super) fn new(config: &SenderConfig, format: Format) -> Self {
        let mut this =
            Self { active: None, waiting: VecDeque::new(), timer: Duration::ZERO, max_mrw: 0, most: 1 };
        this.reconfigure(config, format);
        this
    }

    pub(super) fn reconfigure(&mut self, config: &SenderConfig, format: Format) {
        if let Discard::MrwAfterMaxDat { timer_mrw, max_mrw, .. }
        | Discard::Timer { timer_mrw, max_mrw, .. } = config.discard
        {
            (self.timer, self.max_mrw) = (timer_mrw, max_mrw);
        }
        // A STATUS PDU with one MRW and NO_MORE: 5 units of 4 bits, and 3 for each SN_MRW. MRW_ACK, WINDOW and POLL may
        // want to go with it.
        let fits = (format.pdu_size * 2).saturating_sub(5 + 5 + 4 + 4) / 3;
        self.most = if config.send_mrw { fits.clamp(1, MOST) } else { 1 };
    }

    pub(super) fn reset(&mut self) {
        self.active = None;
        self.waiting.clear();
    }

    pub(super) fn discard(&mut self, ends: impl Iterator<Item = End>) {
        self.waiting.extend(ends);
    }

    /// Starts the next procedure if one is due and none runs.
    pub(super) fn start_next(&mut self, vt_a: u64, window: u16) {
        // The peer has passed these in the meantime.
        while self.waiting.front().is_some_and(|end| end.said_in < vt_a) {
            self.waiting.pop_front();
        }
        if self.active.is_some() || self.waiting.is_empty() {
            return;
        }
        let all = self.waiting.len();
        let named = if self.most == 1 { all - 1..all } else { 0..all.min(self.most) };
        let last = self.waiting[named.end - 1];
        let earlier = self.waiting.range(named.start..named.end - 1);
        let sns: Vec<u64> = earlier.map(|end| end.said_in).chain([last.target.sn]).collect();
        self.waiting.drain(..named.end);
        // LENGTH = 0 says that the only SN lies beyond the window (§9.2.2.11.6).
        let long_distance = sns.len() == 1 && last.target.sn >= vt_a + u64::from(window);
        self.active = Some(Procedure {
            sns,
            long_distance,
            target: last.target,
            through: last.sdu,
            vt_mrw: 0,
            timer_mrw: None,
            queued: true,
        });
    }

    pub(super) fn queued(&self) -> bool {
        self.active.as_ref().is_some_and(|procedure| procedure.queued)
    }

    /// The MRW, always the same one within a procedure. Timer_MRW runs from `starts`.
    pub(super) fn take(&mut self, starts: Instant) -> Option<Sufi> {
        let procedure = self.active.as_mut().filter(|procedure| procedure.queued)?;
        procedure.queued = false;
        procedure.timer_mrw = Some(starts + self.timer);
        Some(Sufi::Mrw {
            sns: procedure.sns.iter().map(|sn| wire(*sn)).collect(),
            long_distance: procedure.long_distance,
            nlength: procedure.target.nlength,
        })
    }

    /// An MRW_ACK whose SN_ACK is not behind VT(A). The last SDU that the procedure was about, if it ends. Before the
    /// MRW has gone out Timer_MRW does not run, and an MRW_ACK answers another one (§11.6.6).
    pub(super) fn acknowledged(&mut self, sn_ack: u64, n: u8) -> Option<u64> {
        let procedure = self.active.as_ref().filter(|procedure| !procedure.queued || procedure.vt_mrw > 0)?;
        let target = procedure.target;
        let ends = (sn_ack > target.sn && n == 0) || (sn_ack == target.sn && n == target.nlength);
        ends.then(|| self.finish()).flatten()
    }

    /// An ACK of everything below `vt_a`: beyond SN_MRW_LENGTH, it answers as well.
    pub(super) fn acknowledged_up_to(&mut self, vt_a: u64) -> Option<u64> {
        let answers = self.active.as_ref().is_some_and(|procedure| vt_a > procedure.target.sn);
        answers.then(|| self.finish()).flatten()
    }

    fn finish(&mut self) -> Option<u64> {
        self.active.take().map(|procedure| procedure.through)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.active.as_ref()?.timer_mrw
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) -> Option<Expiry> {
        let procedure = self.active.as_mut()?;
        procedure.timer_mrw.filter(|at| *at <= now)?;
        procedure.timer_mrw = None;
        procedure.vt_mrw += 1;
        if procedure.vt_mrw >= self.max_mrw {
            return Some(Expiry::GiveUp);
        }
        procedure.queued = true;
        Some(Expiry::Repeat)
    }
}

/// An unbounded sequence number as the PDUs write it.
pub(super) fn wire(sn: u64) -> Sn {
    Sn::new((sn % 4096) as u16)
}
