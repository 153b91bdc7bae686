//! The confusion matrix of a judge: its verdicts compared with the ground truth.

use std::fmt;
use std::ops::AddAssign;

use airwire::Cause;

/// Ground truth about a segment that a judge attributed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Truth {
    /// The segment was lost for this reason.
    Lost(Cause),
    /// Every copy arrived or may still arrive.
    NotLost,
}

impl Truth {
    /// All values, in the order in which tables show them.
    pub const ALL: [Self; 3] = [Self::Lost(Cause::Congestion), Self::Lost(Cause::Radio), Self::NotLost];

    /// Returns the name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost(cause) => cause.name(),
            Self::NotLost => "not lost",
        }
    }

    /// Returns the key used in JSON.
    #[cfg(feature = "serde")]
    const fn key(self) -> &'static str {
        match self {
            Self::Lost(cause) => cause.name(),
            Self::NotLost => "not_lost",
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Lost(cause) => cause as usize,
            Self::NotLost => 2,
        }
    }
}

/// Numbers of verdicts, by verdict and ground truth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Confusion {
    /// Indexed by the judge's verdict (congestion, radio), then by ground truth.
    counts: [[u64; Truth::ALL.len()]; 2],
}

impl Confusion {
    /// Counts one verdict.
    pub fn add(&mut self, judged: Cause, truth: Truth) {
        self.counts[judged as usize][truth.index()] += 1;
    }

    /// Returns the number of verdicts `judged` for which the ground truth was `truth`.
    pub fn count(&self, judged: Cause, truth: Truth) -> u64 {
        self.counts[judged as usize][truth.index()]
    }

    /// Returns the number of all verdicts.
    pub fn total(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// Returns the number of verdicts for which the ground truth was `truth`.
    pub fn of(&self, truth: Truth) -> u64 {
        Cause::ALL.iter().map(|judged| self.count(*judged, truth)).sum()
    }

    /// Returns the share of congestion losses that were attributed correctly, or `None` if none occurred.
    pub fn congestion_accuracy(&self) -> Option<f64> {
        ratio(
            self.count(Cause::Congestion, Truth::Lost(Cause::Congestion)),
            self.of(Truth::Lost(Cause::Congestion)),
        )
    }

    /// Returns the share of losses on the radio link that were attributed correctly, or `None` if none
    /// occurred.
    pub fn radio_accuracy(&self) -> Option<f64> {
        ratio(self.count(Cause::Radio, Truth::Lost(Cause::Radio)), self.of(Truth::Lost(Cause::Radio)))
    }

    /// Returns the share of all losses that were attributed correctly, or `None` if none occurred.
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

/// Serialises a map from ground truth to the counts of both verdicts.
#[cfg(feature = "serde")]
impl serde::Serialize for Confusion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut table = serializer.serialize_map(Some(Truth::ALL.len()))?;
        for truth in Truth::ALL {
            let [congestion, radio] = Cause::ALL.map(|judged| self.count(judged, truth));
            table.serialize_entry(
                truth.key(),
                &std::collections::BTreeMap::from([("congestion", congestion), ("radio", radio)]),
            )?;
        }
        table.end()
    }
}

/// Shows the counts of both verdicts (`c`: congestion, `r`: radio) for each ground truth.
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
