//! The receiving side: the window, what it puts together, and what it has to say about it (§11.3.3, §11.5, §11.6.3).

use std::collections::VecDeque;

use airwire::time::Instant;

use super::discard::wire;
use super::reporting::{Incoming, Reporting};
use crate::rlc::config::ReceiverConfig;
use crate::rlc::pdu::{Amd, Sn, Sufi};
use crate::rlc::reassembly::{Delivery, Faults, Reassembler, Receipt};
use crate::rlc::status_report::{self, Mrw, Received};

pub(super) struct Receiver {
    reassembler: Reassembler,
    /// VR(R), without its modulus.
    vr_r: u64,
    /// VR(H), without its modulus.
    vr_h: u64,
    pub(super) reporting: Reporting,
    mrw_ack: Option<Sufi>,
    /// The window that the peer was told to use, if any. A STATUS PDU can be lost, so each further report repeats
    /// it.
    window: Option<u16>,
    window_queued: bool,
    sdus: VecDeque<Vec<u8>>,
}

/// What became of an AMD PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    New,
    /// It was there already: a copy that nobody needed.
    Duplicate,
    /// Not in VR(R) ≤ SN < VR(MR), and no copy of what was received lately either.
    OutsideWindow,
}

impl Receiver {
    pub(super) fn new(config: ReceiverConfig, incoming: Incoming, now: Instant) -> Self {
        let delivery = if config.in_sequence { Delivery::InSequence } else { Delivery::AsSoonAsComplete };
        Self {
            reassembler: Reassembler::new(delivery),
            vr_r: 0,
            vr_h: 0,
            reporting: Reporting::new(config, incoming, now),
            mrw_ack: None,
            window: None,
            window_queued: false,
            sdus: VecDeque::new(),
        }
    }

    /// What was received and not in sequence is gone; what is complete is still handed on.
    pub(super) fn reset(&mut self) {
        self.reassembler.reset();
        (self.vr_r, self.vr_h) = (0, 0);
        self.reporting.reset();
        self.mrw_ack = None;
        self.window = None;
        self.window_queued = false;
    }

    pub(super) fn vr_r(&self) -> u64 {
        self.vr_r
    }

    pub(super) fn faults(&self) -> Faults {
        self.reassembler.faults()
    }

    pub(super) fn poll_sdu(&mut self) -> Option<Vec<u8>> {
        self.sdus.pop_front()
    }

    /// Tells the peer to keep its window this small.
    pub(super) fn advertise_window(&mut self, wsn: u16) {
        self.window = Some(wsn);
        self.window_queued = true;
    }

    pub(super) fn handle_amd(&mut self, amd: Amd) -> Arrival {
        let poll = amd.poll;
        let arrival = self.accept(amd);
        // Outside the window as well: whoever asks from there has missed reports (§9.7.2).
        if poll {
            self.reporting.trigger();
        }
        arrival
    }

    fn accept(&mut self, amd: Amd) -> Arrival {
        let window = self.reporting.config().window;
        let distance = amd.sn.since(self.reassembler.vr_r());
        if distance >= window {
            let behind = Sn::MODULUS - distance;
            return if u64::from(behind) <= self.vr_r && behind <= window {
                Arrival::Duplicate
            } else {
                Arrival::OutsideWindow
            };
        }
        let sn = self.vr_r + u64::from(distance);
        let sdus = &mut self.sdus;
        if self.reassembler.receive(amd, |sdu| sdus.push_back(sdu)) == Receipt::Duplicate {
            return Arrival::Duplicate;
        }
        self.saw(sn, sn + 1);
        self.catch_up();
        Arrival::New
    }

    /// The peer has sent everything below `below`; everything from `known` on was received.
    fn saw(&mut self, known: u64, below: u64) {
        if known > self.vr_h && self.reporting.config().missing_pdu_indicator {
            self.reporting.trigger();
        }
        self.vr_h = self.vr_h.max(below);
    }

    /// The reassembler has moved VR(R).
    fn catch_up(&mut self) {
        self.vr_r += u64::from(self.reassembler.vr_r().since(wire(self.vr_r)));
        self.vr_h = self.vr_h.max(self.vr_r);
    }

    /// POLL SUFI: the peer has sent everything up to POLL_SN, and wants to know.
    pub(super) fn handle_poll(&mut self, poll_sn: Sn) {
        let distance = poll_sn.since(self.reassembler.vr_r());
        if distance < self.reporting.config().window {
            let below = self.vr_r + u64::from(distance) + 1;
            self.saw(below, below);
        }
        self.reporting.trigger();
    }

    /// Whether it was obsolete: VR(R) was there already.
    pub(super) fn handle_mrw(&mut self, mrw: &Mrw) -> bool {
        let window = self.reporting.config().window;
        let vr_r = self.reassembler.vr_r();
        let Some((first, last)) = mrw.sns.first().zip(mrw.sns.last()) else { return true };
        // SN_MRW1 lies below VR(MR), and so may lie below VR(R); unless LENGTH = 0: then it is not below VR(R)
        // (§9.2.2.11.6). The others follow one after the other.
        let distance = first.since(vr_r);
        // One that was repeated because its MRW_ACK was lost can have been overtaken by what it made way for, also
        // if LENGTH = 0. Then it lies at most a window behind VR(R). That is further ahead than any sender has gone,
        // as long as two windows fit the 4096 numbers; with more than 2047 PDUs one that is far behind looks as if
        // it were ahead, and is obeyed.
        let overtaken = distance > window.saturating_add(1) && Sn::MODULUS - distance <= window;
        let behind = if mrw.long_distance { overtaken } else { distance >= window };
        let ahead = i64::from(distance) - if behind { i64::from(Sn::MODULUS) } else { 0 };
        let target = ahead + i64::from(last.since(*first));
        let obsolete = target < 0;
        let mut n = 0;
        if !obsolete {
            let sdus = &mut self.sdus;
            self.reassembler.move_window(*last, mrw.nlength, |sdu| sdus.push_back(sdu));
            self.catch_up();
            if self.reassembler.vr_r() == *last {
                n = mrw.nlength;
            }
        }
        self.mrw_ack = Some(Sufi::MrwAck { n, sn_ack: self.reassembler.vr_r() });
        obsolete
    }

    /// Whether there is something to say that no timer holds back.
    pub(super) fn has_others(&self) -> bool {
        self.mrw_ack.is_some() || self.window_queued
    }

    /// What to say that no timer holds back.
    pub(super) fn take_others(&mut self, others: &mut Vec<Sufi>) {
        others.extend(self.mrw_ack.take());
        if std::mem::take(&mut self.window_queued) {
            others.extend(self.window.map(|wsn| Sufi::Window { wsn }));
        }
    }

    /// Puts the report together, with the `others` before it, in PDUs of so many octets.
    pub(super) fn begin_report(&mut self, mut others: Vec<Sufi>, octets: usize, starts: Instant) {
        if let Some(wsn) = self.window
            && !others.iter().any(|sufi| matches!(sufi, Sufi::Window { .. }))
        {
            others.push(Sufi::Window { wsn });
        }
        let missing = self.reassembler.missing(wire(self.vr_h));
        let received = Received { vr_r: wire(self.vr_r), vr_h: wire(self.vr_h), missing: &missing };
        let parts = status_report::acknowledge(received, others, octets);
        let count = missing.iter().map(|gap| u64::from(gap.count)).sum();
        self.reporting.begin(parts, count, self.vr_h, starts);
    }
}
