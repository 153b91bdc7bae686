//! Log lines for the events of a path. `docs/reference/logs.md` lists them.

use std::time::SystemTime;

use airlink::stage::{Event, Incident, IncidentKind, Mark, Record, Recording};
use airlink::views::{Listener, RunInfo};
use airwire::dump::Conversations;
use airwire::time::Instant;
use tracing::{Level, debug, info, trace, warn};

/// A listener that logs each event with the time at which it happened.
pub(super) struct Log {
    /// Nanoseconds since 1970 at `Instant::ZERO`.
    zero: u64,
    stages: Vec<String>,
    /// Entering and leaving packets have separate state, so that relative numbers match a capture at either end.
    entering: Conversations,
    leaving: Conversations,
}

impl Log {
    /// The recording that the log level requires.
    pub(super) fn recording() -> Recording {
        if tracing::enabled!(target: "airlink::packet", Level::TRACE) {
            Recording::Bytes
        } else if tracing::enabled!(target: "airlink::packet", Level::DEBUG) {
            Recording::Events
        } else if tracing::enabled!(target: "airlink::stage", Level::INFO) {
            Recording::Incidents
        } else {
            Recording::Off
        }
    }

    /// Creates the listener. `None`: the log level shows none of the events.
    pub(super) fn if_enabled(run: &RunInfo) -> Option<Box<dyn Listener>> {
        let zero = run.wall_zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        (Self::recording() > Recording::Off).then(|| -> Box<dyn Listener> {
            Box::new(Self {
                zero: zero.as_nanos() as u64,
                stages: run.stages.clone(),
                entering: Conversations::default(),
                leaving: Conversations::default(),
            })
        })
    }

    fn wall(&self, at: Instant) -> u64 {
        self.zero + at.as_nanos()
    }
}

impl Listener for Log {
    fn incident(&mut self, incident: &Incident) {
        let at = self.wall(incident.at);
        let stage = self.stages[incident.stage].as_str();
        /// Writes one line with the common fields of all incidents.
        macro_rules! log {
            ($level:ident, $message:literal $(, $($field:tt)+)?) => {
                $level!(target: "airlink::stage", at, stage, $($($field)+,)? $message)
            };
        }
        match incident.kind {
            IncidentKind::RlcReset { direction, cause } => log!(info, "RLC reset", %direction, cause),
            IncidentKind::RlcFailed { direction } => {
                log!(info, "RLC has failed: MaxRST RESETs were not answered", %direction);
            }
            IncidentKind::RlcWindow { direction, pdus } => log!(info, "RLC window", %direction, pdus),
            IncidentKind::RlcSuspended { direction, pdus } => log!(info, "RLC suspended", %direction, pdus),
            IncidentKind::RlcResumed { direction } => log!(info, "RLC resumed", %direction),
            IncidentKind::RlcFault { direction, fault } => {
                log!(warn, "RLC ignored a PDU that contradicts earlier ones", %direction, fault);
            }
            IncidentKind::RlcReestablished => log!(info, "RLC re-established"),
            IncidentKind::RadioLinkFailure { direction, until } => {
                log!(warn, "radio link failure", %direction, lasts = %(until - incident.at));
            }
            IncidentKind::HandoverCommand { until } => {
                log!(info, "handover command", lasts = %(until - incident.at));
            }
            IncidentKind::Promotion { until } => {
                log!(info, "CELL_FACH to CELL_DCH", takes = %(until - incident.at));
            }
            IncidentKind::RateChanged { direction, rate } => log!(info, "rate changed", %direction, rate),
            IncidentKind::Outage { direction, until } => {
                log!(info, "outage", %direction, lasts = %(until - incident.at));
            }
            IncidentKind::Handover { times } => log!(info, "handover", times),
        }
    }

    fn record(&mut self, record: &Record) {
        let at = self.wall(record.at);
        let (packet, direction) = (record.packet.0, record.direction);
        let stage = record.stage.map(|stage| self.stages[stage].as_str());
        let octets = record.bytes.as_deref();
        /// Writes one line with the common fields of all events.
        macro_rules! log {
            ($level:ident, $message:literal $(, $($field:tt)+)?) => {
                $level!(target: "airlink::packet", at, packet, %direction, stage, $($($field)+,)? $message)
            };
        }
        match record.event {
            Event::Dropped { why } => {
                log!(debug, "dropped", why = why.name(), cause = why.cause_name());
            }
            Event::Marked { mark: Mark::Transit { ob, db } } => log!(debug, "marked", ob, db),
            Event::Marked { mark: Mark::Announced } => log!(debug, "marked", announced = true),
            Event::Marked { mark: Mark::Congestion } => log!(debug, "marked", congestion = true),
            Event::Marked { mark: Mark::LossRate { rate } } => log!(debug, "marked", loss_rate = rate),
            Event::Resent { attempt } => log!(debug, "resent", attempt),
            Event::Held { until } => log!(debug, "held", lasts = %(until - record.at)),
            Event::Overtaken { packets } => log!(debug, "overtaken", packets),
            Event::Copied { of } => log!(debug, "copied", of = of.0),
            Event::Corrupted { ref bits, found } => log!(debug, "corrupted", bits = ?bits, found),
            Event::Truncated { from, to } => log!(debug, "truncated", from, to),
            Event::Queued { packets, bytes } => log!(trace, "queued", packets, octets = bytes),
            Event::Sent { waited } => log!(trace, "sent", waited = %waited),
            Event::Entered { bytes } => match octets {
                Some(octets) => log!(trace, "entered", ip = %self.entering.read(octets)),
                None => log!(trace, "entered", octets = bytes),
            },
            Event::Left => match octets {
                Some(octets) => log!(trace, "left", ip = %self.leaving.read(octets)),
                None => log!(trace, "left"),
            },
        }
    }
}
