//! The Receiver: reception of AMD PDUs (§11.3.3), status reports (§11.5.2), POLL (§11.5.2) and MRW (§11.6.3).

use std::collections::VecDeque;

use airwire::time::Instant;

use super::advertising::Advertising;
use super::discard::wire;
use super::reporting::{Incoming, Reporting};
use crate::rlc::umts::config::ReceiverConfig;
use crate::rlc::umts::pdu::{Amd, Sn, Sufi};
use crate::rlc::umts::reassembly::{Delivery, Faults, Reassembler, Receipt};
use crate::rlc::umts::status_report::{self, Mrw, Received};

pub(super) struct Receiver {
    reassembler: Reassembler,
    /// VR(R), §9.4, without its modulus.
    vr_r: u64,
    /// VR(H), §9.4, without its modulus.
    vr_h: u64,
    pub(super) reporting: Reporting,
    /// The MRW_ACK that waits to be sent.
    mrw_ack: Option<Sufi>,
    pub(super) advertising: Advertising,
    sdus: VecDeque<Vec<u8>>,
}

/// What became of an AMD PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    New,
    /// One with its number was received before (§11.3.4.8), or just behind the reception window.
    Duplicate,
    /// Outside the interval VR(R) ≤ SN < VR(MR), and not within a window behind it (§11.3.4.2).
    OutsideWindow,
}

impl Receiver {
    pub(super) fn new(config: ReceiverConfig, incoming: Incoming, now: Instant) -> Self {
        let delivery = if config.in_sequence { Delivery::InSequence } else { Delivery::AsSoonAsComplete };
        Self {
            reassembler: Reassembler::new(delivery),
            vr_r: 0,
            vr_h: 0,
            advertising: Advertising::new(&config),
            reporting: Reporting::new(config, incoming, now),
            mrw_ack: None,
            sdus: VecDeque::new(),
        }
    }

    /// §11.4.3: discards all PDUs received, and resets the state variables. SDUs that are complete are still delivered.
    pub(super) fn reset(&mut self) {
        self.reassembler.reset();
        (self.vr_r, self.vr_h) = (0, 0);
        self.reporting.reset();
        self.mrw_ack = None;
        self.advertising.reset();
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

    pub(super) fn reconfigure(&mut self, now: Instant, config: ReceiverConfig, incoming: Incoming) {
        let ReceiverConfig { window, in_sequence, .. } = *self.reporting.config();
        self.advertising.reconfigure(now, self.reporting.config(), &config);
        let config = ReceiverConfig { window, in_sequence, ..config };
        self.reporting.reconfigure(now, config, incoming);
    }

    /// §11.3.3: reception of an AMD PDU.
    pub(super) fn handle_amd(&mut self, now: Instant, amd: Amd<'_>) -> Arrival {
        let poll = amd.poll;
        let arrival = self.accept(now, amd);
        // §11.5.2, trigger 1; also if the PDU is discarded (§11.3.4.2, §11.3.4.8).
        if poll {
            self.reporting.trigger(now);
        }
        arrival
    }

    /// The number of an AMD PDU without its modulus: within the reception window, just behind it, or else ahead of it.
    pub(super) fn place(&self, sn: Sn) -> u64 {
        let window = self.reporting.config().window;
        let distance = sn.since(self.reassembler.vr_r());
        let behind = Sn::MODULUS - distance;
        if distance >= window && u64::from(behind) <= self.vr_r && behind <= window {
            self.vr_r - u64::from(behind)
        } else {
            self.vr_r + u64::from(distance)
        }
    }

    fn accept(&mut self, now: Instant, amd: Amd<'_>) -> Arrival {
        // §11.3.4.2: outside the interval VR(R) ≤ SN < VR(MR), where VR(MR) = VR(R) + Configured_Rx_Window_Size.
        let sn = self.place(amd.sn);
        if sn < self.vr_r {
            return Arrival::Duplicate;
        }
        if sn - self.vr_r >= u64::from(self.reporting.config().window) {
            return Arrival::OutsideWindow;
        }
        let sdus = &mut self.sdus;
        if self.reassembler.receive(amd, |sdu| sdus.push_back(sdu)) == Receipt::Duplicate {
            return Arrival::Duplicate;
        }
        self.saw(now, sn, sn + 1);
        self.catch_up();
        Arrival::New
    }

    /// Updates VR(H), §9.4: the peer has sent all PDUs below `below`, and of these at least the ones from `known` on
    /// were received. §11.5.2, trigger 2: "Missing PDU Indicator" is configured, and a missing AMD PDU is detected.
    fn saw(&mut self, now: Instant, known: u64, below: u64) {
        if known > self.vr_h && self.reporting.config().missing_pdu_indicator {
            self.reporting.trigger(now);
        }
        self.vr_h = self.vr_h.max(below);
    }

    /// Updates VR(R) from the reassembler, and with it VR(H) ≥ VR(R).
    fn catch_up(&mut self) {
        self.vr_r += u64::from(self.reassembler.vr_r().since(wire(self.vr_r)));
        self.vr_h = self.vr_h.max(self.vr_r);
    }

    /// POLL. §11.5.2, trigger 5: considers that the Sender has transmitted Poll_SN. §9.4: if VR(H) ≤ Poll_SN < VR(MR),
    /// then VR(H) := Poll_SN + 1.
    pub(super) fn handle_poll(&mut self, now: Instant, poll_sn: Sn) {
        let distance = poll_sn.since(self.reassembler.vr_r());
        if distance < self.reporting.config().window {
            let below = self.vr_r + u64::from(distance) + 1;
            self.saw(now, below, below);
        }
        self.reporting.trigger(now);
    }

    /// §11.6.3: reception of an MRW. True if it was obsolete (§11.6.6.1): then nothing moves, and MRW_ACK has SN_ACK =
    /// VR(R) and N = 0.
    pub(super) fn handle_mrw(&mut self, mrw: &Mrw) -> bool {
        let window = self.reporting.config().window;
        let vr_r = self.reassembler.vr_r();
        let Some((first, last)) = mrw.sns.first().zip(mrw.sns.last()) else { return true };
        // §11.6.3: with LENGTH = 0 SN_MRW1 is above or equal to VR(R), otherwise it is less than VR(MR), and may be
        // below VR(R). Each of the others is above or equal to the one before it.
        let distance = first.since(vr_r);
        // Choice: an MRW is repeated if its MRW_ACK is lost, and by then VR(R) may have passed it, also with LENGTH =
        // 0. So one at most a window behind VR(R) is obsolete. No Sender is that far ahead while two windows fit the
        // 4096 numbers. With windows above 2047 an MRW far behind looks as if it were ahead, and is obeyed.
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
        // §11.6.3.1: SN_ACK = the new VR(R); N = NLENGTH if that is SN_MRW_LENGTH, else 0.
        self.mrw_ack = Some(Sufi::MrwAck { n, sn_ack: self.reassembler.vr_r() });
        obsolete
    }

    /// Whether an MRW_ACK or WINDOW waits to be sent. No timer delays these (§9.5 f).
    pub(super) fn has_others(&self) -> bool {
        self.mrw_ack.is_some() || self.advertising.is_queued()
    }

    /// The MRW_ACK and WINDOW that wait to be sent.
    pub(super) fn take_others(&mut self, others: &mut Vec<Sufi>) {
        others.extend(self.mrw_ack.take());
        others.extend(self.advertising.take());
    }

    /// Writes the report that is due (§11.5.2.2), in STATUS PDUs of at most `octets`. `others` go first.
    pub(super) fn begin_report(&mut self, mut others: Vec<Sufi>, octets: usize, starts: Instant) {
        if !others.iter().any(|sufi| matches!(sufi, Sufi::Window { .. })) {
            others.extend(self.advertising.sufi());
        }
        let missing = self.reassembler.missing(wire(self.vr_h));
        let received = Received { vr_r: wire(self.vr_r), vr_h: wire(self.vr_h), missing: &missing };
        let parts = status_report::acknowledge(received, others, octets);
        let count = missing.iter().map(|gap| u64::from(gap.count)).sum();
        self.reporting.begin(parts, count, self.vr_h, starts);
    }
}
