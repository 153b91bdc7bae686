//! The parts of the receiving side of AM that the generations share: the window and STATUS reporting.

use airwire::time::{Duration, Instant, earlier};

use super::receive_window::{Placement, ReceiveWindow};
use super::report::{self, ReportFormat};
use super::status::Status;
use super::status_reporting::StatusReporting;
use super::{AmStats, Generation};
use crate::rlc::segments::Segment;
use crate::rlc::sn::SnBits;

#[derive(Debug)]
pub(in crate::rlc) struct Receiver {
    bits: SnBits,
    format: ReportFormat,
    pub(in crate::rlc) window: ReceiveWindow,
    reporting: StatusReporting,
}

impl Receiver {
    /// `timer_length` is t-Reordering (LTE) or t-Reassembly (NR).
    pub(in crate::rlc) fn new(
        generation: Generation,
        bits: SnBits,
        format: ReportFormat,
        timer_length: Duration,
        t_status_prohibit: Duration,
    ) -> Self {
        Self {
            bits,
            format,
            window: ReceiveWindow::new(generation, bits.window(), timer_length),
            reporting: StatusReporting::new(t_status_prohibit),
        }
    }

    /// Handles a segment of the unit with the sequence number `wire`. Returns the unwrapped number.
    pub(in crate::rlc) fn receive(
        &mut self,
        now: Instant,
        wire: u32,
        polls: bool,
        segment: Segment<'_>,
    ) -> (u64, Placement) {
        let sn = self.bits.restore(self.window.next(), wire);
        let placement = self.window.receive(now, sn, segment);
        if polls && placement != Placement::Contradiction {
            self.reporting.handle_poll(sn, placement == Placement::Discarded);
        }
        self.reporting.update(self.window.highest_status());
        (sn, placement)
    }

    pub(in crate::rlc) fn is_status_due(&self) -> bool {
        self.reporting.is_due()
    }

    /// Size of the STATUS PDU that can be sent now, or 0.
    pub(in crate::rlc) fn status_octets(&self) -> u64 {
        let report = self.reporting.is_due().then(|| report::build(&self.window, self.format, usize::MAX));
        report.flatten().map_or(0, |status| self.format.octets(&status) as u64)
    }

    /// The STATUS PDU that is due, in at most `room` octets.
    pub(in crate::rlc) fn take_status(
        &mut self,
        now: Instant,
        room: usize,
        stats: &mut AmStats,
    ) -> Option<Status> {
        if !self.reporting.is_due() {
            return None;
        }
        let status = report::build(&self.window, self.format, room)?;
        self.reporting.submit(now);
        stats.statuses_sent += 1;
        Some(status)
    }

    pub(in crate::rlc) fn handle_deadline(&mut self, now: Instant, stats: &mut AmStats) {
        if self.window.handle_deadline(now) {
            stats.reassembly_timeouts += 1;
            self.reporting.update(self.window.highest_status());
            self.reporting.trigger();
        }
        self.reporting.handle_deadline(now);
    }

    pub(in crate::rlc) fn next_deadline(&self) -> Option<Instant> {
        earlier(self.window.next_deadline(), self.reporting.next_deadline())
    }
}
