//! What RRC (TS 25.331) does with a bearer: it starts RLC anew.
//!
//! An RLC entity that has an unrecoverable error tells its upper layers so (TS 25.322 §11.4.4a). RRC then updates the
//! cell and re-establishes RLC (TS 25.331 §8.3.1), which takes as long as the messages of that procedure.
//!
//! Choice: only the time is modelled, not the messages. Meanwhile the failed entity is silent and hears nothing, and its
//! peer goes on, for nobody has told it.

use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::values::off;
use crate::packet::{Direction, PerDirection};
use crate::settings::Invalid;
use crate::stages::times::Times;

/// What RRC does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RrcConfig {
    /// How RLC is started anew.
    pub reestablishment: ReestablishmentConfig,
    /// A terminal that is idle loses its dedicated channel. Absent: it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactivity: Option<Inactivity>,
}

/// A terminal for which nothing has been transmitted for a while, in neither direction, is in CELL_FACH, as at the start.
/// The first packet waits until it is in CELL_DCH again.
///
/// Choice: nothing is carried in CELL_FACH, not even what would fit its common channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inactivity {
    /// How long nothing has to be transmitted.
    pub after: Duration,
    /// How long the way back to CELL_DCH takes.
    pub promotion: Duration,
}

/// How RLC is started anew. By default at once, and what was begun is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReestablishmentConfig {
    /// From an unrecoverable error until RLC starts anew. Default: 0. Off: it never does.
    #[serde(with = "off")]
    pub after: Option<Duration>,
    /// What becomes of packets of which something was transmitted and that have not arrived.
    pub begun: Begun,
    /// When RLC starts anew though it has not failed. Absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<Scheduled>,
}

/// When RLC starts anew though it has not failed, as after a handover to another RNC, or when the PDU size changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduled {
    /// When, since the start, in ascending order.
    pub at: Vec<Duration>,
    /// All of it begins again after this time, for ever. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// In which directions. Default: both.
    #[serde(default)]
    pub of: Sides,
}

/// In which directions RLC starts anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sides {
    /// Both: the whole of both entities.
    #[default]
    Both,
    /// The sender of the network, and the receiver at its other end: one-sided re-establishment (TS 25.322 §9.7.7).
    Down,
    /// The sender of the terminal, and the receiver at its other end.
    Up,
}

impl Scheduled {
    fn times(&self) -> Times {
        Times { at: self.at.clone(), every: self.every }
    }
}

/// What becomes of packets of which something was transmitted and that have not arrived when RLC starts anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Begun {
    /// They are lost, as TS 25.322 has it.
    #[default]
    Lost,
    /// They go again before the others, in their order, as where PDCP keeps them (lossless relocation, TS 25.323 §5.6). It
    /// knows by its numbers what has arrived: nothing comes twice.
    Requeued,
}

impl Default for ReestablishmentConfig {
    fn default() -> Self {
        Self { after: Some(Duration::ZERO), begun: Begun::default(), scheduled: None }
    }
}

impl RrcConfig {
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        let Some(scheduled) = &self.reestablishment.scheduled else { return Ok(()) };
        let at = |invalid: Invalid| invalid.within("scheduled").within("reestablishment");
        scheduled.times().validate("re-establishment").map_err(at)
    }
}

/// RRC of one bearer.
pub(super) struct Rrc {
    config: RrcConfig,
    /// By the direction in which the failed entity sends.
    senders: PerDirection<Sender>,
    /// The next time that is scheduled.
    scheduled: Option<Instant>,
    terminal: Terminal,
}

/// The RRC state of the terminal, where inactivity counts.
enum Terminal {
    /// CELL_DCH. When it becomes idle, nobody needs to know before there is something to transmit.
    Dch {
        /// When something was transmitted last.
        busy: Instant,
    },
    Fach,
    /// On the way from CELL_FACH to CELL_DCH.
    Promoted {
        /// When it is there.
        at: Instant,
    },
}

/// Whether TTIs may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    /// It takes until then, and that was told.
    From(Instant),
    /// It takes until then, and that is new.
    Called(Instant),
}

#[derive(Clone, Copy, Default)]
enum Sender {
    #[default]
    Works,
    /// It had an unrecoverable error.
    Failed {
        /// When RLC starts anew. `None`: never.
        until: Option<Instant>,
    },
}

impl Rrc {
    pub(super) fn new(config: RrcConfig) -> Self {
        let mut rrc =
            Self { config, senders: PerDirection::default(), scheduled: None, terminal: Terminal::Fach };
        rrc.reschedule(Instant::ZERO);
        rrc
    }

    /// An entity that waits to be started anew goes on waiting as long as it was told to.
    pub(super) fn reconfigure(&mut self, now: Instant, config: RrcConfig) {
        self.config = config;
        self.reschedule(now);
    }

    fn reschedule(&mut self, now: Instant) {
        let scheduled = &self.config.reestablishment.scheduled;
        self.scheduled = scheduled.as_ref().and_then(|scheduled| scheduled.times().after(now));
    }

    /// What becomes of packets of which something was transmitted.
    pub(super) fn begun(&self) -> Begun {
        self.config.reestablishment.begun
    }

    /// There is something to transmit at `now`. From when on can it be?
    pub(super) fn call(&mut self, now: Instant) -> Readiness {
        match (self.config.inactivity, &self.terminal) {
            (Some(Inactivity { promotion, .. }), Terminal::Dch { .. } | Terminal::Fach)
                if !self.is_ready(now) =>
            {
                let at = now + promotion;
                self.terminal = Terminal::Promoted { at };
                Readiness::Called(at)
            }
            (Some(_), Terminal::Promoted { at }) if now < *at => Readiness::From(*at),
            _ => Readiness::Ready,
        }
    }

    /// Whether TTIs may begin.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        let Some(Inactivity { after, .. }) = self.config.inactivity else { return true };
        match self.terminal {
            Terminal::Dch { busy } => now < busy + after,
            Terminal::Fach => false,
            Terminal::Promoted { at } => at <= now,
        }
    }

    /// Something is transmitted until `end`.
    pub(super) fn transmits(&mut self, end: Instant) {
        self.terminal = match self.terminal {
            Terminal::Dch { busy } => Terminal::Dch { busy: end.max(busy) },
            Terminal::Fach | Terminal::Promoted { .. } => Terminal::Dch { busy: end },
        };
    }

    /// The entity that sends in `direction` has an unrecoverable error. True if that is new.
    pub(super) fn failed(&mut self, now: Instant, direction: Direction) -> bool {
        if matches!(self.senders[direction], Sender::Failed { .. }) {
            return false;
        }
        let until = self.config.reestablishment.after.map(|after| now + after);
        self.senders[direction] = Sender::Failed { until };
        true
    }

    /// When RLC starts anew, as far as is known.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let recovers = |(_, sender): (Direction, &Sender)| match sender {
            Sender::Works => None,
            Sender::Failed { until } => *until,
        };
        self.senders.iter().filter_map(recovers).chain(self.scheduled).min()
    }

    /// Of which directions RLC starts anew now. `None`: of neither.
    pub(super) fn due(&mut self, now: Instant) -> Option<Sides> {
        self.next_deadline().filter(|at| *at <= now)?;
        let scheduled = self.scheduled.filter(|at| *at <= now);
        self.reschedule(now);
        let failed = |(_, sender): (Direction, &Sender)| matches!(sender, Sender::Failed { .. });
        let sides = match &self.config.reestablishment.scheduled {
            Some(Scheduled { of, .. }) if scheduled.is_some() && !self.senders.iter().any(failed) => *of,
            _ => Sides::Both,
        };
        self.senders = PerDirection::default();
        Some(sides)
    }
}
