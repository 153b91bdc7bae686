//! The receiving side of PDCP of either generation.

use airwire::time::Instant;

use super::config::PdcpSettings;
use crate::pdcp::Count;
use crate::pdcp::lte_receiver::{DeliveredBy, LteReceiver};
use crate::pdcp::nr_receiver::{NrReceiver, NrReceiverConfig, ReceiverCounters, Reception};
use crate::pdcp::pdu::{Format, StatusReport};

pub(super) enum PdcpReceiver {
    Lte(LteReceiver<Vec<u8>>),
    Nr(NrReceiver<Vec<u8>>),
}

/// Calls a method of the receiver of either generation.
macro_rules! either {
    ($receiver:expr, $name:ident => $call:expr) => {
        match $receiver {
            PdcpReceiver::Lte($name) => $call,
            PdcpReceiver::Nr($name) => $call,
        }
    };
}

impl PdcpReceiver {
    pub(super) fn new(settings: &PdcpSettings) -> Self {
        match settings.format {
            Format::Lte12 | Format::Lte15 | Format::Lte18 => Self::Lte(LteReceiver::new(settings.format)),
            Format::Nr12 | Format::Nr18 => Self::Nr(NrReceiver::new(settings.format, nr_config(settings))),
        }
    }

    pub(super) fn reconfigure(&mut self, now: Instant, settings: &PdcpSettings) {
        if let Self::Nr(receiver) = self {
            receiver.reconfigure(now, nr_config(settings));
        }
    }

    pub(super) fn receive(&mut self, now: Instant, sn: u32, pdu: Vec<u8>, by: DeliveredBy) -> Reception {
        match self {
            Self::Lte(receiver) => receiver.receive(now, sn, pdu, by),
            Self::Nr(receiver) => receiver.receive(now, sn, pdu),
        }
    }

    pub(super) fn poll_pdu(&mut self) -> Option<(Count, Vec<u8>)> {
        either!(self, receiver => receiver.poll_pdu())
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if let Self::Nr(receiver) = self { receiver.next_deadline() } else { None }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        if let Self::Nr(receiver) = self {
            receiver.handle_deadline(now);
        }
    }

    pub(super) fn status_report(&self) -> StatusReport {
        either!(self, receiver => receiver.status_report())
    }

    /// COUNT of the first SDU for which the receiver waits.
    pub(super) fn next_count(&self) -> Count {
        either!(self, receiver => receiver.next_count())
    }

    /// Whether PDCP waits for missing SDUs.
    pub(super) fn reorders(&self) -> bool {
        matches!(self, Self::Nr(_))
    }

    /// Delivers all SDUs that wait for earlier ones.
    pub(super) fn flush(&mut self, now: Instant) {
        if let Self::Nr(receiver) = self {
            receiver.flush(now);
        }
    }

    /// Expects COUNT 0 next.
    pub(super) fn restart(&mut self) {
        either!(self, receiver => receiver.restart());
    }

    pub(super) fn holds(&self, count: Count) -> bool {
        either!(self, receiver => receiver.holds(count))
    }

    pub(super) fn held(&self) -> usize {
        either!(self, receiver => receiver.held())
    }

    pub(super) fn counters(&self) -> ReceiverCounters {
        either!(self, receiver => receiver.counters())
    }
}

fn nr_config(settings: &PdcpSettings) -> NrReceiverConfig {
    NrReceiverConfig { t_reordering: settings.t_reordering, out_of_order: settings.out_of_order }
}
