//! The Receiver: reception of AMD PDUs (§11.3.3), status reports (§11.5.2), POLL (§11.5.2) and MRW (§11.6.3).

use std::collections::VecDeque;

use airwire::time::Instant;

use super::discard_signalling::wire;
use super::reporting::{Incoming, Reporting};
use super::window_advertisement::WindowAdvertisement;
use crate::rlc::umts::config::ReceiverConfig;
use crate::rlc::umts::pdu::{Amd, Mrw, MrwAck, Sn, Sufi};
use crate::rlc::umts::reassembly::{Delivery, Faults, Reassembler, Receipt};
use crate::rlc::umts::status_report::{self, Received};

pub(super) struct Receiver {
    reassembler: Reassembler,
    /// VR(R) (§9.4), unwrapped.
    vr_r: u64,
    /// VR(H) (§9.4), unwrapped.
    vr_h: u64,
    pub(super) reporting: Reporting,
    /// The MRW_ACK that waits to be sent.
    mrw_ack: Option<MrwAck>,
    pub(super) advertisement: WindowAdvertisement,
    sdus: VecDeque<Vec<u8>>,
}

/// Result of the reception of an AMD PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reception {
    New,
    /// A PDU with this SN was received before (§11.3.4.8), or the SN is at most one window below VR(R).
    Duplicate,
    /// The SN is outside the interval VR(R) ≤ SN < VR(MR) (§11.3.4.2), and not at most one window below
    /// VR(R).
    OutsideWindow,
}

impl Receiver {
    pub(super) fn new(config: ReceiverConfig, incoming: Incoming, now: Instant) -> Self {
        let delivery = if config.in_sequence { Delivery::InSequence } else { Delivery::AsSoonAsComplete };
        Self {
            reassembler: Reassembler::new(delivery),
            vr_r: 0,
            vr_h: 0,
            advertisement: WindowAdvertisement::new(&config),
            reporting: Reporting::new(config, incoming, now),
            mrw_ack: None,
            sdus: VecDeque::new(),
        }
    }

    /// Discards all received PDUs and resets the state variables (§11.4.3). Complete SDUs are still
    /// delivered.
    pub(super) fn reset(&mut self) {
        self.reassembler.reset();
        (self.vr_r, self.vr_h) = (0, 0);
        self.reporting.reset();
        self.mrw_ack = None;
        self.advertisement.reset();
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

    pub(super) fn recycle(&mut self, sdu: Vec<u8>) {
        self.reassembler.recycle(sdu);
    }

    pub(super) fn reconfigure(&mut self, now: Instant, config: ReceiverConfig, incoming: Incoming) {
        let ReceiverConfig { window, in_sequence, .. } = *self.reporting.config();
        self.advertisement.reconfigure(now, self.reporting.config(), &config);
        let config = ReceiverConfig { window, in_sequence, ..config };
        self.reporting.reconfigure(now, config, incoming);
    }

    /// Handles the reception of an AMD PDU (§11.3.3).
    pub(super) fn handle_amd(&mut self, now: Instant, amd: &Amd<'_>) -> Reception {
        let reception = self.accept(now, amd);
        // §11.5.2, trigger 1: a poll triggers a report, even if the PDU is discarded (§11.3.4.2, §11.3.4.8).
        if amd.poll {
            self.reporting.trigger(now);
        }
        reception
    }

    /// Restores the full sequence number of an AMD PDU. The result is in the reception window, at most one
    /// window below VR(R), or above the reception window.
    pub(super) fn full_sn(&self, sn: Sn) -> u64 {
        let window = self.reporting.config().window;
        let distance = sn.since(self.reassembler.vr_r());
        let behind = Sn::MODULUS - distance;
        if distance >= window && u64::from(behind) <= self.vr_r && behind <= window {
            self.vr_r - u64::from(behind)
        } else {
            self.vr_r + u64::from(distance)
        }
    }

    fn accept(&mut self, now: Instant, amd: &Amd<'_>) -> Reception {
        // §11.3.4.2: an AMD PDU with SN outside the interval VR(R) ≤ SN < VR(MR) is discarded. §9.4: VR(MR) = VR(R)
        // + Configured_Rx_Window_Size.
        let sn = self.full_sn(amd.sn);
        if sn < self.vr_r {
            return Reception::Duplicate;
        }
        if sn - self.vr_r >= u64::from(self.reporting.config().window) {
            return Reception::OutsideWindow;
        }
        let sdus = &mut self.sdus;
        if self.reassembler.receive(amd, |sdu| sdus.push_back(sdu)) == Receipt::Duplicate {
            return Reception::Duplicate;
        }
        self.update_vr_h(now, sn, sn + 1);
        self.update_vr_r();
        Reception::New
    }

    /// Updates VR(H) (§9.4). The peer has sent all PDUs below `below`, and those from `known` on have been
    /// received. §11.5.2, trigger 2: a report is triggered if "Missing PDU Indicator" is configured and a
    /// missing AMD PDU is detected.
    fn update_vr_h(&mut self, now: Instant, known: u64, below: u64) {
        if known > self.vr_h && self.reporting.config().missing_pdu_indicator {
            self.reporting.trigger(now);
        }
        self.vr_h = self.vr_h.max(below);
    }

    /// Updates VR(R) from the reassembler, and maintains VR(H) ≥ VR(R).
    fn update_vr_r(&mut self) {
        self.vr_r += u64::from(self.reassembler.vr_r().since(wire(self.vr_r)));
        self.vr_h = self.vr_h.max(self.vr_r);
    }

    /// Handles a POLL super-field. §11.5.2, trigger 5: the Receiver considers that the Sender has transmitted
    /// Poll_SN. §9.4: if VR(H) ≤ Poll_SN < VR(MR), then VR(H) := Poll_SN + 1.
    pub(super) fn handle_poll(&mut self, now: Instant, poll_sn: Sn) {
        let distance = poll_sn.since(self.reassembler.vr_r());
        if distance < self.reporting.config().window {
            let below = self.vr_r + u64::from(distance) + 1;
            self.update_vr_h(now, below, below);
        }
        self.reporting.trigger(now);
    }

    /// Handles the reception of an MRW (§11.6.3). Returns `true` if the MRW is obsolete (§11.6.6.1). In that
    /// case the window does not move, and the MRW_ACK has SN_ACK = VR(R) and N = 0.
    pub(super) fn handle_mrw(&mut self, mrw: &Mrw) -> bool {
        let window = self.reporting.config().window;
        let vr_r = self.reassembler.vr_r();
        let Some((first, last)) = mrw.sns.first().zip(mrw.sns.last()) else { return true };
        // §11.6.3: with LENGTH = 0, SN_MRW1 is above or equal to VR(R). Otherwise it is less than VR(MR), and
        // may be below VR(R). Later numbers are not lower than earlier ones.
        let distance = first.since(vr_r);
        // Choice: if an MRW_ACK is lost, the MRW is repeated. By then VR(R) may have passed SN_MRW1, even
        // with LENGTH = 0. So an MRW at most one window below VR(R) is obsolete. No Sender is that far ahead
        // as long as two windows fit into the 4096 sequence numbers. With windows above 2047, an MRW far
        // below VR(R) looks like one above VR(R), and moves the window.
        let late = distance > window.saturating_add(1) && Sn::MODULUS - distance <= window;
        let behind = if mrw.long_distance { late } else { distance >= window };
        let ahead = i64::from(distance) - if behind { i64::from(Sn::MODULUS) } else { 0 };
        let target = ahead + i64::from(last.since(*first));
        let obsolete = target < 0;
        let mut n = 0;
        if !obsolete {
            let sdus = &mut self.sdus;
            self.reassembler.move_window(*last, mrw.nlength, |sdu| sdus.push_back(sdu));
            self.update_vr_r();
            if self.reassembler.vr_r() == *last {
                n = mrw.nlength;
            }
        }
        // §11.6.3.1: SN_ACK is the new VR(R). N is NLENGTH if SN_ACK = SN_MRW_LENGTH, else 0.
        self.mrw_ack = Some(MrwAck { n, sn_ack: self.reassembler.vr_r() });
        obsolete
    }

    /// Whether an MRW_ACK or WINDOW waits to be sent. Timer_Status_Prohibit does not delay them (§9.5 f).
    pub(super) fn has_undelayed(&self) -> bool {
        self.mrw_ack.is_some() || self.advertisement.is_queued()
    }

    /// Moves the MRW_ACK and WINDOW that wait to be sent to `sufis`.
    pub(super) fn take_undelayed(&mut self, sufis: &mut Vec<Sufi>) {
        sufis.extend(self.mrw_ack.take().map(Sufi::MrwAck));
        sufis.extend(self.advertisement.take());
    }

    /// Writes the report that is due (§11.5.2.2), as STATUS PDUs of at most `octets` bytes. The first one begins
    /// with `first`.
    pub(super) fn begin_report(&mut self, mut first: Vec<Sufi>, octets: usize, starts: Instant) {
        if !first.iter().any(|sufi| matches!(sufi, Sufi::Window { .. })) {
            first.extend(self.advertisement.sufi());
        }
        let missing = self.reassembler.missing(wire(self.vr_h));
        let received = Received { vr_r: wire(self.vr_r), vr_h: wire(self.vr_h), missing: &missing };
        let parts = status_report::acknowledge(received, first, octets);
        let count = missing.iter().map(|gap| u64::from(gap.count)).sum();
        self.reporting.begin(parts, count, self.vr_h, starts);
    }
}
