//! From what a path did to a path that does the same: what both ends have recorded becomes a scenario.
//!
//! A [`Recording`] says when each packet entered and when it left; [`find`] makes one of what was captured at both ends.
//! [`fit`] reads from it, for each direction,
//!
//! - the delay of the wire: the least that a packet took, or where no queue stands what they take just then (`service`);
//! - the rate, as a function of time: while packets wait, what leaves is what the path can carry (`service`);
//! - how long the queue may be: packets are lost where it is longest (`losses`);
//! - the losses that no queue explains: how many, and in bursts of which length (`losses`);
//! - packets that others overtook, and copies.
//!
//! What has not been seen cannot be fitted: where no packet waits, the rate is unknown, and the one of the seconds around
//! it is taken. [`carry`] sends the recorded packets over the fitted path, and [`compare`] tells how far it does the same.
//!
//! Choice, all of it: no standard says how. Where numbers decide, they stand beside the function.

pub mod clock;
mod identity;
mod losses;
mod matching;
mod replay;
mod scenario;
mod service;
#[cfg(test)]
mod tests;

use airwire::time::{Duration, Instant};
use airwire::units::Rate;
use serde::{Serialize, Serializer};

use self::losses::Judged;
pub use self::losses::{Bound, Burst, Losses};
pub use self::matching::{Matched, NothingFound, Observed, find};
pub use self::replay::{Comparison, Outcome, carry, compare};
pub use self::scenario::{FittedFiles, files};
use crate::packet::{Direction, PerDirection};

/// A packet that entered a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// When, from the beginning of the recording.
    pub entered: Instant,
    /// Its length, IP header included.
    pub octets: u32,
    /// When it left at the other end. `None`: it was lost.
    pub left: Option<Instant>,
}

impl Crossing {
    /// How long it took.
    pub fn delay(&self) -> Option<Duration> {
        self.left.map(|left| left.saturating_since(self.entered))
    }
}

/// What happened in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// In the order in which they entered.
    pub crossings: Vec<Crossing>,
    /// How many packets left more often than they entered.
    pub copies: u64,
}

impl Recorded {
    fn arrived(&self) -> usize {
        self.crossings.iter().filter(|crossing| crossing.left.is_some()).count()
    }

    /// Copies for each packet that arrived.
    fn copied(&self) -> f64 {
        self.copies as f64 / self.arrived().max(1) as f64
    }
}

/// What happened to the packets of both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// `down` is from the end that is recorded first.
    pub directions: PerDirection<Recorded>,
    /// From the first packet to the last.
    pub lasts: Duration,
}

/// How the fitting is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The rate is that of so much time, again and again.
    pub step: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { step: Duration::from_millis(20) }
    }
}

/// A value that changes with time: each holds from its time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course<T>(Vec<(Instant, T)>);

impl<T: Copy + PartialEq> Course<T> {
    /// `pieces` in the order of time, the first one at zero. What does not change is one piece.
    fn new(pieces: impl IntoIterator<Item = (Instant, T)>) -> Self {
        let mut course: Vec<(Instant, T)> = Vec::new();
        for (from, value) in pieces {
            if course.last().is_none_or(|(_, last)| *last != value) {
                course.push((from, value));
            }
        }
        Self(course)
    }

    fn constant(value: T) -> Self {
        Self(vec![(Instant::ZERO, value)])
    }

    /// What holds all the time, if it does not change.
    pub fn as_constant(&self) -> Option<T> {
        match self.0[..] {
            [(_, value)] => Some(value),
            _ => None,
        }
    }

    /// From when on which value holds.
    pub fn pieces(&self) -> &[(Instant, T)] {
        &self.0
    }

    fn at(&self, now: Instant) -> T {
        let next = self.0.partition_point(|(from, _)| *from <= now);
        self.0[next.max(1) - 1].1
    }
}

impl<T: Serialize> Serialize for Course<T> {
    /// A list of `{ from, value }`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Piece<'a, T> {
            from: Duration,
            value: &'a T,
        }
        let pieces = self.0.iter();
        serializer.collect_seq(pieces.map(|(from, value)| Piece { from: *from - Instant::ZERO, value }))
    }
}

/// What a direction's packets have told about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// Of the wire, without what packets wait.
    pub delay: Course<Duration>,
    /// Up to so much more, where no queue explains why packets do not take equally long.
    pub jitter: Duration,
    /// `None`: no packet has ever waited for another, so that nothing can be said.
    pub rate: Option<RateSeen>,
    /// What is lost, and why.
    pub losses: Losses,
    /// How many of the packets were overtaken, and how late they are then.
    pub overtaken: Option<Overtaken>,
    /// How many copies there are for each packet.
    pub copied: f64,
}

/// How fast packets left.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateSeen {
    /// Bits per second, IP headers included.
    pub course: Course<Rate>,
    /// On average, while packets waited.
    pub mean: Rate,
    /// In which share of the time packets waited: elsewhere the rate was not seen.
    pub seen: f64,
}

/// Packets that others overtook.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Overtaken {
    /// Of those that arrived.
    pub share: f64,
    /// How much longer they took than the packet behind which they should have been, on average.
    pub late: Duration,
}

/// Both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// What is known of each.
    pub ways: PerDirection<Way>,
    /// How long the recording was: then what changes with time begins again.
    pub lasts: Duration,
}

/// Why nothing can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A direction's packets are too few.
    #[error(
        "only {arrived} packets crossed {}, and {FEWEST} are needed: record a longer transfer, in both directions",
        if *.direction == Direction::Down { "from the first capture to the second" } else { "from the second capture to the first" }
    )]
    Packets {
        /// Which.
        direction: Direction,
        /// How many arrived.
        arrived: usize,
    },
    /// It is over at once.
    #[error("the recording lasts only {0}, and at least one second is needed")]
    Short(Duration),
    /// There are more steps than anybody wants in a schedule; or a clock was set while the recording was made.
    #[error(
        "the recording lasts {lasts}, which is more than {MOST_STEPS} steps of {step}: use longer steps (--step), or \
         cut out a part of the recording (editcap -A FROM -B TO)"
    )]
    Long {
        /// From its first packet to its last.
        lasts: Duration,
        /// What was asked for.
        step: Duration,
    },
}

/// With fewer packets a direction's least delay says nothing.
const FEWEST: usize = 20;
const SHORTEST: Duration = Duration::from_secs(1);
/// A day of 20 ms each has less.
const MOST_STEPS: u64 = 5_000_000;

/// Reads from a recording what the path is like.
pub fn fit(recording: &Recording, options: Options) -> Result<Fitted, Unfit> {
    if recording.lasts < SHORTEST {
        return Err(Unfit::Short(recording.lasts));
    }
    if recording.lasts.as_nanos() / options.step.as_nanos() > MOST_STEPS {
        return Err(Unfit::Long { lasts: recording.lasts, step: options.step });
    }
    for (direction, recorded) in recording.directions.iter() {
        let arrived = recorded.arrived();
        if arrived < FEWEST {
            return Err(Unfit::Packets { direction, arrived });
        }
    }
    let busiest = PerDirection::from_fn(|direction| {
        service::busiest_second(&recording.directions[direction].crossings)
    });
    let ways = PerDirection::from_fn(|direction| {
        let is_thin = busiest[direction] * service::THIN < busiest[direction.reversed()];
        way(&recording.directions[direction], recording.lasts, is_thin, options)
    });
    Ok(Fitted { ways, lasts: recording.lasts })
}

fn way(recorded: &Recorded, lasts: Duration, is_thin: bool, options: Options) -> Way {
    let crossings = &recorded.crossings;
    if is_thin {
        let delay = service::delay(crossings, options.step);
        let losses = losses::losses(crossings, &delay).losses;
        return Way {
            jitter: service::jitter(crossings, &delay),
            delay,
            rate: None,
            losses,
            overtaken: service::overtaken(crossings),
            copied: recorded.copied(),
        };
    }
    let alone = service::least_delay(crossings);
    // How long the queue was tells which losses are its own, which tells what has been sent, lost or not.
    let arrived: Vec<bool> = crossings.iter().map(|crossing| crossing.left.is_some()).collect();
    let rate = service::rate(crossings, &alone, &arrived, lasts, options.step);
    let wire = service::of_the_wire(crossings, &alone, rate.as_ref());
    let Judged { losses, was_sent } = losses::losses(crossings, &wire);
    let rate = service::rate(crossings, &alone, &was_sent, lasts, options.step);
    let jitter = if rate.is_none() { service::jitter(crossings, &alone) } else { Duration::ZERO };
    Way {
        delay: service::of_the_wire(crossings, &alone, rate.as_ref()),
        jitter,
        rate,
        losses,
        overtaken: service::overtaken(crossings),
        copied: recorded.copied(),
    }
}
