//! RRC (TS 25.331) of a bearer: re-establishment of RLC, and the RRC state of the terminal.
//!
//! An RLC entity reports an unrecoverable error to upper layers (TS 25.322 §11.4.4a). RRC then performs a
//! cell update and re-establishes RLC (TS 25.331 §8.3.1), which takes as long as the messages of that
//! procedure.
//!
//! Choice: only the duration of the procedure is modelled, not its messages. During this time the failed
//! entity does not send and ignores what it receives. Its peer has not been informed, and continues.

use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::values::off;
use crate::packet::{Direction, PerDirection};
use crate::settings::Invalid;
use crate::stages::times::Times;

/// Settings of RRC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RrcConfig {
    /// The re-establishment of RLC.
    pub reestablishment: ReestablishmentConfig,
    /// The inactivity after which a terminal loses its dedicated channel. Absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactivity: Option<Inactivity>,
}

/// Release of the dedicated channel. If nothing has been transmitted in either direction for a while, the
/// terminal moves to CELL_FACH. It also starts in CELL_FACH. The next packet waits until the terminal has
/// returned to CELL_DCH.
///
/// Choice: no data is carried in CELL_FACH, even if it would fit the common channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inactivity {
    /// Idle time before the move to CELL_FACH.
    pub after: Duration,
    /// Duration of the return to CELL_DCH.
    pub promotion: Duration,
}

/// Settings of RLC re-establishment. By default it is immediate, and packets whose transmission has begun are
/// lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReestablishmentConfig {
    /// Time from an unrecoverable error to the re-establishment. Default: 0. Off: RLC is not re-established.
    #[serde(with = "off")]
    pub after: Option<Duration>,
    /// Treatment of undelivered packets whose transmission has begun.
    pub begun: BegunPackets,
    /// Re-establishments without a failure. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<Scheduled>,
}

/// Times of re-establishments without a failure, as after a handover to another RNC or a change of the PDU
/// size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduled {
    /// Times since the start, in ascending order.
    pub at: Vec<Duration>,
    /// Period after which all times repeat, without end. Absent: they do not repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// The directions that are re-established. Default: both.
    #[serde(default)]
    pub of: Sides,
}

/// Directions of an RLC re-establishment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sides {
    /// Both directions: both entities are re-established as a whole.
    #[default]
    Both,
    /// The sender of the network and the receiver of the terminal: one-sided re-establishment (TS 25.322
    /// §9.7.7).
    Down,
    /// The sender of the terminal and the receiver of the network.
    Up,
}

impl Scheduled {
    fn times(&self) -> Times {
        Times { at: self.at.clone(), every: self.every }
    }
}

/// Treatment, at a re-establishment, of undelivered packets whose transmission has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BegunPackets {
    /// The packets are lost, as specified in TS 25.322.
    #[default]
    Lost,
    /// The packets are transmitted again in order, before other packets, as if PDCP had kept them (lossless
    /// relocation, TS 25.323 §5.6). PDCP knows from its sequence numbers which packets have arrived, so no
    /// packet is delivered twice.
    Requeued,
}

impl Default for ReestablishmentConfig {
    fn default() -> Self {
        Self { after: Some(Duration::ZERO), begun: BegunPackets::default(), scheduled: None }
    }
}

impl RrcConfig {
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        let Some(scheduled) = &self.reestablishment.scheduled else { return Ok(()) };
        let at = |invalid: Invalid| invalid.within("scheduled").within("reestablishment");
        scheduled.times().validate("re-establishment").map_err(at)
    }
}

/// State of RRC for one bearer.
pub(super) struct Rrc {
    config: RrcConfig,
    /// Indexed by the direction in which an entity sends.
    senders: PerDirection<SenderState>,
    /// Next scheduled re-establishment.
    scheduled: Option<Instant>,
    terminal: TerminalState,
}

/// RRC state of the terminal. Only used if `inactivity` is set.
enum TerminalState {
    /// CELL_DCH. The transition to CELL_FACH is evaluated only when there is something to transmit.
    Dch {
        /// End of the last transmission.
        last_end: Instant,
    },
    Fach,
    /// Moving from CELL_FACH to CELL_DCH.
    Promoted {
        /// Time of arrival in CELL_DCH.
        at: Instant,
    },
}

/// When TTIs may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    /// From this time on. The promotion has been reported.
    From(Instant),
    /// From this time on. The promotion has just begun and must be reported.
    PromotionStarted(Instant),
}

#[derive(Clone, Copy, Default)]
enum SenderState {
    #[default]
    Working,
    /// The entity has had an unrecoverable error.
    Failed {
        /// Time of the re-establishment. `None`: never.
        until: Option<Instant>,
    },
}

impl Rrc {
    pub(super) fn new(config: RrcConfig) -> Self {
        let mut rrc =
            Self { config, senders: PerDirection::default(), scheduled: None, terminal: TerminalState::Fach };
        rrc.reschedule(Instant::ZERO);
        rrc
    }

    /// Applies new settings. The time at which a failed entity is re-established does not change.
    pub(super) fn reconfigure(&mut self, now: Instant, config: RrcConfig) {
        self.config = config;
        self.reschedule(now);
    }

    fn reschedule(&mut self, now: Instant) {
        let scheduled = &self.config.reestablishment.scheduled;
        self.scheduled = scheduled.as_ref().and_then(|scheduled| scheduled.times().after(now));
    }

    /// Treatment of undelivered packets whose transmission has begun.
    pub(super) fn begun_packets(&self) -> BegunPackets {
        self.config.reestablishment.begun
    }

    /// Returns when TTIs may begin, and starts a promotion if necessary. Called when there is something to
    /// transmit.
    pub(super) fn request_channel(&mut self, now: Instant) -> Readiness {
        let Some(Inactivity { promotion, .. }) = self.config.inactivity.filter(|_| !self.is_ready(now))
        else {
            return Readiness::Ready;
        };
        if let TerminalState::Promoted { at } = self.terminal {
            return Readiness::From(at);
        }
        let at = now + promotion;
        self.terminal = TerminalState::Promoted { at };
        Readiness::PromotionStarted(at)
    }

    /// Whether TTIs may begin at `now`.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        let Some(Inactivity { after, .. }) = self.config.inactivity else { return true };
        match self.terminal {
            TerminalState::Dch { last_end } => now < last_end + after,
            TerminalState::Fach => false,
            TerminalState::Promoted { at } => at <= now,
        }
    }

    /// Records a transmission that ends at `end`.
    pub(super) fn record_transmission(&mut self, end: Instant) {
        let last_end = match self.terminal {
            TerminalState::Dch { last_end } => end.max(last_end),
            TerminalState::Fach | TerminalState::Promoted { .. } => end,
        };
        self.terminal = TerminalState::Dch { last_end };
    }

    /// Records an unrecoverable error of the entity that sends in `direction`. Returns `false` if the entity
    /// had failed before.
    pub(super) fn record_failure(&mut self, now: Instant, direction: Direction) -> bool {
        if matches!(self.senders[direction], SenderState::Failed { .. }) {
            return false;
        }
        let until = self.config.reestablishment.after.map(|after| now + after);
        self.senders[direction] = SenderState::Failed { until };
        true
    }

    /// Time of the next known re-establishment.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let recovers = |(_, sender): (Direction, &SenderState)| match sender {
            SenderState::Working => None,
            SenderState::Failed { until } => *until,
        };
        self.senders.iter().filter_map(recovers).chain(self.scheduled).min()
    }

    /// Directions in which RLC is re-established now. `None` if no re-establishment is due.
    pub(super) fn take_due_reestablishment(&mut self, now: Instant) -> Option<Sides> {
        self.next_deadline().filter(|at| *at <= now)?;
        let scheduled = self.scheduled.filter(|at| *at <= now);
        self.reschedule(now);
        let failed = |(_, sender): (Direction, &SenderState)| matches!(sender, SenderState::Failed { .. });
        let sides = match &self.config.reestablishment.scheduled {
            Some(Scheduled { of, .. }) if scheduled.is_some() && !self.senders.iter().any(failed) => *of,
            _ => Sides::Both,
        };
        self.senders = PerDirection::default();
        Some(sides)
    }
}
