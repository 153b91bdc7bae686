//! How well a judge told why segments were lost: what it judged against what was true.

use std::fmt;
use std::ops::AddAssign;

use airwire::Cause;

/// What a judge ought to have said.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Truth {
    /// It was lost, for this reason.
    Lost(Cause),
    /// Every copy arrived, or still may.
    NotLost,
}

impl Truth {
    /// In the order in which tables show them.
    pub const ALL: [Self; 3] = [Self::Lost(Cause::Congestion), Self::Lost(Cause::Radio), Self::NotLost];

    /// As tables and JSON have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost(cause) => cause.name(),
            Self::NotLost => "not lost",
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Lost(cause) => cause as usize,
            Self::NotLost => 2,
        }
    }
}

/// Counts of judgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Confusion {
    /// Judged congestion and judged radio, each by truth.
    counts: [[u64; Truth::ALL.len()]; 2],
}

impl Confusion {
    /// Counts one judgement.
    pub fn add(&mut self, judged: Cause, truth: Truth) {
        self.counts[judged as usize][truth.index()] += 1;
    }

    /// How often it judged so when this was the truth.
    pub fn count(&self, judged: Cause, truth: Truth) -> u64 {
        self.counts[judged as usize][truth.index()]
    }

    /// All judgements.
    pub fn total(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// How often this was the truth, whatever was judged.
    pub fn of(&self, truth: Truth) -> u64 {
        Cause::ALL.iter().map(|judged| self.count(*judged, truth)).sum()
    }

    /// The share judged right of the segments that congestion lost. `None`: there were none.
    pub fn congestion_accuracy(&self) -> Option<f64> {
        ratio(
            self.count(Cause::Congestion, Truth::Lost(Cause::Congestion)),
            self.of(Truth::Lost(Cause::Congestion)),
        )
    }

    /// The share judged right of the segments that the radio lost. `None`: there were none.
    pub fn radio_accuracy(&self) -> Option<f64> {
        ratio(self.count(Cause::Radio, Truth::Lost(Cause::Radio)), self.of(Truth::Lost(Cause::Radio)))
    }

    /// The share judged right of the segments that were lost. `None`: there were none.
    pub fn accuracy(&self) -> Option<f64> {
        let right = self.count(Cause::Congestion, Truth::Lost(Cause::Congestion))
            + self.count(Cause::Radio, Truth::Lost(Cause::Radio));
        ratio(right, self.of(Truth::Lost(Cause::Congestion)) + self.of(Truth::Lost(Cause::Radio)))
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl AddAssign for Confusion {
    fn add_assign(&mut self, other: Self) {
        for (mine, its) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *mine += its;
        }
    }
}

/// As a table: for each truth, the counts of both judgements.
#[cfg(feature = "serde")]
impl serde::Serialize for Confusion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut table = serializer.serialize_map(Some(Truth::ALL.len()))?;
        for truth in Truth::ALL {
            let [congestion, radio] = Cause::ALL.map(|judged| self.count(judged, truth));
            table.serialize_entry(
                truth.name(),
                &std::collections::BTreeMap::from([("congestion", congestion), ("radio", radio)]),
            )?;
        }
        table.end()
    }
}

/// For each truth: how many were judged congestion, and how many radio.
impl fmt::Display for Confusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, truth) in Truth::ALL.into_iter().enumerate() {
            let [congestion, radio] = Cause::ALL.map(|judged| self.count(judged, truth));
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}: {congestion} c {radio} r", truth.name())?;
        }
        match self.accuracy() {
            Some(accuracy) => write!(f, " ({:.1} % right)", 100.0 * accuracy),
            None => Ok(()),
        }
    }
}
