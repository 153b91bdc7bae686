//! Log lines for the records of a path, by the crate `tracing`. `docs/reference/logs.md` lists them.

use std::time::SystemTime;

use airlink::stage::{Event, Incident, IncidentKind, Mark, Record, Recording};
use airlink::views::{Listener, RunInfo};
use airwire::dump::Conversations;
use airwire::time::Instant;
use tracing::{Level, debug, info, trace, warn};

/// A listener whose log lines have the time of the event.
pub(super) struct Log {
    /// Nanoseconds since 1970 at `Instant::ZERO`.
    zero: u64,
    stages: Vec<String>,
    /// Separate state for entering and leaving packets, so that relative numbers match a capture at either
    /// place.
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

    /// Creates the listener. `None`: the log would not show anything.
    pub(super) fn wanted(run: &RunInfo) -> Option<Box<dyn Listener>> {
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
        match incident.kind {
            IncidentKind::RlcReset { direction, cause } => {
                info!(target: "airlink::stage", at, stage, %direction, cause, "RLC reset");
            }
            IncidentKind::RlcFailed { direction } => {
                info!(target: "airlink::stage", at, stage, %direction, "RLC has failed: MaxRST RESETs were not answered");
            }
            IncidentKind::RlcWindow { direction, pdus } => {
                info!(target: "airlink::stage", at, stage, %direction, pdus, "RLC window");
            }
            IncidentKind::RlcSuspended { direction, pdus } => {
                info!(target: "airlink::stage", at, stage, %direction, pdus, "RLC suspended");
            }
            IncidentKind::RlcResumed { direction } => {
                info!(target: "airlink::stage", at, stage, %direction, "RLC resumed");
            }
            IncidentKind::RlcFault { direction, fault } => {
                warn!(target: "airlink::stage", at, stage, %direction, fault, "RLC ignored a PDU that contradicts earlier ones");
            }
            IncidentKind::RlcReestablished => {
                info!(target: "airlink::stage", at, stage, "RLC re-established");
            }
            IncidentKind::Promotion { until } => {
                let takes = until - incident.at;
                info!(target: "airlink::stage", at, stage, takes = %takes, "CELL_FACH to CELL_DCH");
            }
            IncidentKind::RateChanged { direction, rate } => {
                info!(target: "airlink::stage", at, stage, %direction, rate, "rate changed");
            }
            IncidentKind::Outage { direction, until } => {
                let lasts = until - incident.at;
                info!(target: "airlink::stage", at, stage, %direction, lasts = %lasts, "outage");
            }
            IncidentKind::Handover { times } => info!(target: "airlink::stage", at, stage, times, "handover"),
        }
    }

    fn record(&mut self, record: &Record) {
        let at = self.wall(record.at);
        let (packet, direction) = (record.packet.0, record.direction);
        let stage = record.stage.map(|stage| self.stages[stage].as_str());
        let octets = record.bytes.as_deref();
        /// Writes one line with the common fields of all events.
        macro_rules! say {
            ($level:ident, $what:literal $(, $($field:tt)+)?) => {
                $level!(target: "airlink::packet", at, packet, %direction, stage, $($($field)+,)? $what)
            };
        }
        match record.event {
            Event::Dropped { why } => {
                say!(debug, "dropped", why = why.name(), cause = why.cause_name());
            }
            Event::Marked { mark: Mark::Transit { ob, db } } => say!(debug, "marked", ob, db),
            Event::Marked { mark: Mark::Announced } => say!(debug, "marked", announced = true),
            Event::Marked { mark: Mark::Congestion } => say!(debug, "marked", congestion = true),
            Event::Marked { mark: Mark::LossRate { rate } } => say!(debug, "marked", loss_rate = rate),
            Event::Resent { attempt } => say!(debug, "resent", attempt),
            Event::Held { until } => say!(debug, "held", lasts = %(until - record.at)),
            Event::Overtaken { packets } => say!(debug, "overtaken", packets),
            Event::Copied { of } => say!(debug, "copied", of = of.0),
            Event::Corrupted { ref bits, found } => say!(debug, "corrupted", bits = ?bits, found),
            Event::Truncated { from, to } => say!(debug, "truncated", from, to),
            Event::Queued { packets, bytes } => say!(trace, "queued", packets, octets = bytes),
            Event::Sent { waited } => say!(trace, "sent", waited = %waited),
            Event::Entered { bytes } => match octets {
                Some(octets) => say!(trace, "entered", ip = %self.entering.read(octets)),
                None => say!(trace, "entered", octets = bytes),
            },
            Event::Left => match octets {
                Some(octets) => say!(trace, "left", ip = %self.leaving.read(octets)),
                None => say!(trace, "left"),
            },
        }
    }
}
