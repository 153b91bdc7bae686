//! Fits a scenario to captures of both ends of a path.
//!
//! A [`Recording`] contains the times at which each packet entered and left. [`match_captures`] creates one from two
//! captures. [`fit`] derives for each direction:
//!
//! - the delay of the wire: the smallest delay of a packet or, in a direction without a queue, the current
//!   delay (`service`);
//! - the rate as a function of time: while packets wait, packets leave at the rate of the path (`service`);
//! - the limit of the queue: losses occur when it is longest (`losses`);
//! - the losses that a queue does not explain: their share and burst length (`losses`);
//! - reordered and duplicated packets.
//!
//! Unobserved properties cannot be fitted. If no packet waits, the rate is unknown, and the average of the
//! surrounding seconds is used. [`compare`] shows how similar a recording is to the same packets over the
//! fitted path.
//!
//! Choice: no standard defines a method, so the whole method is this crate's own.
//!
//! ```
//! use airlink_fit::{Crossing, Options, Recorded, Recording, fit};
//! use airwire::direction::PerDirection;
//! use airwire::time::{Duration, Instant};
//!
//! // A packet every 20 ms, each of which spends 30 ms on the path.
//! let crossing = |number: u64| {
//!     let entered = Instant::from_millis(20 * number);
//!     Crossing { entered, octets: 1250, left: Some(entered + Duration::from_millis(30)) }
//! };
//! let packets = Recorded { crossings: (0..500).map(crossing).collect(), copies: 0 };
//! let directions = PerDirection { down: packets.clone(), up: packets };
//! let fitted = fit(&Recording { directions, duration: Duration::from_secs(10) }, Options::default())?;
//! assert_eq!(fitted.directions.down.delay.as_constant(), Some(Duration::from_millis(30)));
//! # Ok::<(), airlink_fit::FitError>(())
//! ```

#![warn(missing_docs)]

pub mod clock;
mod comparison;
mod identity;
mod losses;
mod matching;
mod scenario;
mod service;

use airwire::direction::{Direction, PerDirection};
use airwire::time::{Duration, Instant};
use airwire::units::Rate;
use serde::{Serialize, Serializer};

pub use self::comparison::{Comparison, Outcome, compare};
use self::losses::LossAnalysis;
pub use self::losses::{Bound, Burst, Losses};
pub use self::matching::{Matched, NoCommonPackets, Observed, match_captures};
pub use self::scenario::{FittedFiles, files};

/// A packet that entered a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Time of entry, from the start of the recording.
    pub entered: Instant,
    /// Length in bytes, including the IP header.
    pub octets: u32,
    /// Time at which it left at the other end. `None`: it was lost.
    pub left: Option<Instant>,
}

impl Crossing {
    /// Time that the packet spent on the path.
    pub fn delay(&self) -> Option<Duration> {
        self.left.map(|left| left.saturating_since(self.entered))
    }
}

/// Recorded packets of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The packets in order of entry.
    pub crossings: Vec<Crossing>,
    /// Number of copies: packets that left in addition to those that entered.
    pub copies: u64,
}

impl Recorded {
    fn arrived(&self) -> usize {
        self.crossings.iter().filter(|crossing| crossing.left.is_some()).count()
    }

    /// Copies per packet that arrived.
    fn copied(&self) -> f64 {
        self.copies as f64 / self.arrived().max(1) as f64
    }
}

/// Recorded packets of both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Packets per direction. `down` starts at the end of the first capture.
    pub directions: PerDirection<Recorded>,
    /// Time from the first packet to the last.
    pub duration: Duration,
}

/// Options of the fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Interval over which the rate is measured.
    pub step: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { step: Duration::from_millis(20) }
    }
}

/// A piecewise constant function of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PiecewiseConstant<T>(Vec<(Instant, T)>);

impl<T: Copy + PartialEq> PiecewiseConstant<T> {
    /// Creates a function from pieces in order of time, the first one at zero. Equal neighbours are merged.
    fn new(pieces: impl IntoIterator<Item = (Instant, T)>) -> Self {
        let mut merged: Vec<(Instant, T)> = Vec::new();
        for (from, value) in pieces {
            if merged.last().is_none_or(|(_, last)| *last != value) {
                merged.push((from, value));
            }
        }
        Self(merged)
    }

    fn constant(value: T) -> Self {
        Self(vec![(Instant::ZERO, value)])
    }

    /// The value, if it is constant.
    pub fn as_constant(&self) -> Option<T> {
        match self.0[..] {
            [(_, value)] => Some(value),
            _ => None,
        }
    }

    /// The values, each with its start time.
    pub fn pieces(&self) -> &[(Instant, T)] {
        &self.0
    }

    /// The value at this time.
    pub fn at(&self, now: Instant) -> T {
        let next = self.0.partition_point(|(from, _)| *from <= now);
        self.0[next.max(1) - 1].1
    }
}

impl<T: Serialize> Serialize for PiecewiseConstant<T> {
    /// Serializes a list of `{ from, value }`.
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

/// Properties of one direction that the packets reveal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedDirection {
    /// Delay of the wire, without queueing.
    pub delay: PiecewiseConstant<Duration>,
    /// Upper bound on the additional random delay, if a queue does not explain the variation of delays.
    pub jitter: Duration,
    /// The rate. `None`: no packet ever waited for another one, so the rate is unknown.
    pub rate: Option<MeasuredRate>,
    /// Losses and their causes.
    pub losses: Losses,
    /// Packets that were overtaken.
    pub overtaken: Option<Overtaken>,
    /// Copies per packet.
    pub copied: f64,
}

/// Rate at which packets left.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredRate {
    /// Rate in bits per second, including IP headers.
    #[serde(rename = "course")]
    pub over_time: PiecewiseConstant<Rate>,
    /// Mean rate while packets waited.
    pub mean: Rate,
    /// Share of the time in which packets waited. The rate can be observed only while packets wait.
    #[serde(rename = "seen")]
    pub measured: f64,
}

/// Packets that were overtaken by others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Overtaken {
    /// Share among the packets that arrived.
    pub share: f64,
    /// Mean time by which they arrived after the first packet that overtook them.
    pub late: Duration,
}

/// Both directions of a fitted path.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Properties of each direction.
    pub directions: PerDirection<FittedDirection>,
    /// Length of the recording. After this time, the changes of rate and delay repeat from the beginning.
    pub duration: Duration,
}

/// Reason why a path cannot be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Too few packets arrived in one direction.
    #[error(
        "only {arrived} packets crossed {}, and {MIN_PACKETS} are needed: record a longer transfer, in both directions",
        if *.direction == Direction::Down { "from the first capture to the second" } else { "from the second capture to the first" }
    )]
    Packets {
        /// The direction.
        direction: Direction,
        /// Number of packets that arrived.
        arrived: usize,
    },
    /// The recording is too short.
    #[error("the recording lasts only {0}, and at least one second is needed")]
    Short(Duration),
    /// The schedule would have too many steps. One possible reason is a clock that was set during the
    /// recording.
    #[error(
        "the recording lasts {duration}, which is more than {MAX_STEPS} steps of {step}: use longer steps (--step), or \
         cut out a part of the recording (editcap -A FROM -B TO)"
    )]
    Long {
        /// Time from the first packet to the last.
        duration: Duration,
        /// The requested step.
        step: Duration,
    },
}

/// With fewer packets, the smallest delay of a direction is not meaningful.
const MIN_PACKETS: usize = 20;
const MIN_DURATION: Duration = Duration::from_secs(1);
/// More than a day in steps of 20 ms.
const MAX_STEPS: u64 = 5_000_000;

/// Derives the properties of a path from a recording.
pub fn fit(recording: &Recording, options: Options) -> Result<Fitted, FitError> {
    if recording.duration < MIN_DURATION {
        return Err(FitError::Short(recording.duration));
    }
    if recording.duration.as_nanos() / options.step.as_nanos() > MAX_STEPS {
        return Err(FitError::Long { duration: recording.duration, step: options.step });
    }
    for (direction, recorded) in recording.directions.iter() {
        let arrived = recorded.arrived();
        if arrived < MIN_PACKETS {
            return Err(FitError::Packets { direction, arrived });
        }
    }
    let busiest = PerDirection::from_fn(|direction| {
        service::busiest_second(&recording.directions[direction].crossings)
    });
    let directions = PerDirection::from_fn(|direction| {
        let has_no_queue = busiest[direction] * service::MIN_ASYMMETRY < busiest[direction.reversed()];
        fit_direction(&recording.directions[direction], recording.duration, has_no_queue, options)
    });
    Ok(Fitted { directions, duration: recording.duration })
}

fn fit_direction(
    recorded: &Recorded,
    duration: Duration,
    has_no_queue: bool,
    options: Options,
) -> FittedDirection {
    let crossings = &recorded.crossings;
    if has_no_queue {
        let delay = service::delay(crossings, options.step);
        let losses = losses::losses(crossings, &delay).losses;
        return FittedDirection {
            jitter: service::jitter(crossings, &delay),
            delay,
            rate: None,
            losses,
            overtaken: service::overtaken(crossings),
            copied: recorded.copied(),
        };
    }
    let least_delay = service::least_delay(crossings);
    // Queue lengths show which losses occurred in the queue. The other lost packets were transmitted, so the
    // second measurement of the rate includes them.
    let arrived: Vec<bool> = crossings.iter().map(|crossing| crossing.left.is_some()).collect();
    let rate = service::rate(crossings, &least_delay, &arrived, duration, options.step);
    let wire = service::without_transmission(crossings, &least_delay, rate.as_ref());
    let LossAnalysis { losses, was_sent } = losses::losses(crossings, &wire);
    let rate = service::rate(crossings, &least_delay, &was_sent, duration, options.step);
    let jitter = if rate.is_none() { service::jitter(crossings, &least_delay) } else { Duration::ZERO };
    FittedDirection {
        delay: service::without_transmission(crossings, &least_delay, rate.as_ref()),
        jitter,
        rate,
        losses,
        overtaken: service::overtaken(crossings),
        copied: recorded.copied(),
    }
}
