//! The receiving side of an AM entity (§5.2.3.2): reassembly, delivery and STATUS PDUs.

use airwire::time::{Instant, earlier};

use super::{AmConfig, report};
use crate::rlc::am::receive_window::{Placement, ReceiveWindow};
use crate::rlc::am::status_reporting::StatusReporting;
use crate::rlc::am::{AmStats, Generation, ReceiveError};
use crate::rlc::nr::codec::{AmSnLength, Amd, STATUS_HEADER, encode_status, nack_octets};
use crate::rlc::segments::Segment;
use crate::rlc::service::Event;

#[derive(Debug)]
pub(super) struct Receiver {
    sn_length: AmSnLength,
    window: ReceiveWindow,
    reporting: StatusReporting,
}

impl Receiver {
    pub(super) fn new(config: &AmConfig) -> Self {
        let bits = config.sn_length.bits();
        Self {
            sn_length: config.sn_length,
            window: ReceiveWindow::new(Generation::Nr, bits.window(), config.t_reassembly),
            reporting: StatusReporting::new(config.parameters.t_status_prohibit),
        }
    }

    pub(super) fn handle_amd(
        &mut self,
        now: Instant,
        amd: Amd<'_>,
        events: &mut Vec<Event>,
        stats: &mut AmStats,
    ) -> Result<(), ReceiveError> {
        let sn = self.sn_length.bits().restore(self.window.next(), amd.sn);
        let (offset, is_last) = (amd.position.offset(), amd.position.is_last());
        let placement = self.window.receive(now, sn, Segment { offset, octets: amd.data, is_last });
        if amd.poll {
            self.reporting.handle_poll(sn, placement == Placement::Discarded);
        }
        self.reporting.update(self.window.highest_status());
        match placement {
            Placement::Stored => {}
            Placement::Whole => events.push(Event::Delivered(amd.data.to_vec())),
            Placement::Completed(octets) => events.push(Event::Delivered(octets)),
            Placement::Discarded => stats.duplicates += 1,
            Placement::Contradiction => return Err(ReceiveError::Contradiction(amd.sn)),
        }
        Ok(())
    }

    pub(super) fn is_status_due(&self) -> bool {
        self.reporting.is_due()
    }

    /// Size of the STATUS PDU that can be sent now, or 0.
    pub(super) fn status_octets(&self) -> u64 {
        if !self.reporting.is_due() {
            return 0;
        }
        let report = report::build(&self.window, self.sn_length, usize::MAX);
        let nacks = report.iter().flat_map(|status| &status.nacks);
        (STATUS_HEADER + nacks.map(|nack| nack_octets(nack, self.sn_length)).sum::<usize>()) as u64
    }

    /// The STATUS PDU that is due, in at most `room` octets.
    pub(super) fn take_status(&mut self, now: Instant, room: usize) -> Option<Vec<u8>> {
        if !self.reporting.is_due() {
            return None;
        }
        let status = report::build(&self.window, self.sn_length, room)?;
        self.reporting.submit(now);
        Some(encode_status(&status, self.sn_length))
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, stats: &mut AmStats) {
        if self.window.handle_deadline(now) {
            stats.reassembly_timeouts += 1;
            self.reporting.update(self.window.highest_status());
            self.reporting.trigger();
        }
        self.reporting.handle_deadline(now);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        earlier(self.window.next_deadline(), self.reporting.next_deadline())
    }
}
