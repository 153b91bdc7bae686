//! Readings of a paper: other values for details that the paper leaves open. Each paper lists its readings in
//! its `readings.rs`, and every claim is judged in each reading. A verdict that changes with a detail names
//! this detail ([`Verdict::DependsOn`]).

use std::collections::{BTreeMap, BTreeSet};

use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;
use serde::{Deserialize, Serialize};

use crate::judge::Judged;

/// A detail that a paper leaves open.
#[derive(Debug)]
pub struct Factor {
    /// The name in "depends on …".
    pub name: &'static str,
    /// The value in the chosen reading.
    pub chosen: &'static str,
    /// Other values that also agree with the paper.
    pub others: &'static [Value],
}

/// Another value of a detail.
#[derive(Debug)]
pub struct Value {
    /// The value in words.
    pub name: &'static str,
    /// Changes a run to this value.
    pub apply: fn(&mut Run) -> Result<(), WorldError>,
}

impl Value {
    /// A value that the figures look up themselves ([`Reading::value`]).
    pub(crate) const fn named(name: &'static str) -> Self {
        Self { name, apply: |_| Ok(()) }
    }
}

/// The combinations of values of several details that become readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Each value of each detail with each value of all other details.
    Product,
    /// One detail at a time.
    OneAtATime,
}

/// One way to read a paper: values of details that differ from the chosen ones.
#[derive(Clone, Debug, Default)]
pub struct Reading(Vec<(&'static Factor, &'static Value)>);

impl Reading {
    /// All readings except the chosen one.
    pub fn others(factors: &'static [Factor], design: Design) -> Vec<Self> {
        let mut readings = vec![Self::default()];
        for factor in factors {
            let values = || factor.others.iter().map(move |value| (factor, value));
            let combined: Vec<Self> = match design {
                Design::Product => {
                    let with = |reading: &Self| values().map(|value| reading.with(value)).collect::<Vec<_>>();
                    readings.iter().flat_map(with).collect()
                }
                Design::OneAtATime => values().map(|value| Self(vec![value])).collect(),
            };
            readings.extend(combined);
        }
        readings.split_off(1)
    }

    fn with(&self, value: (&'static Factor, &'static Value)) -> Self {
        Self(self.0.iter().copied().chain([value]).collect())
    }

    /// Changes a run to this reading.
    pub(crate) fn apply(&self, run: &mut Run) -> Result<(), WorldError> {
        self.0.iter().try_for_each(|(_, value)| (value.apply)(run))
    }

    /// The value of a detail, if it differs from the chosen one.
    pub(crate) fn value(&self, detail: &str) -> Option<&'static str> {
        let of_detail = self.0.iter().find(|(factor, _)| factor.name == detail);
        of_detail.map(|(_, value)| value.name)
    }

    /// The values that differ from the chosen ones.
    pub fn values(&self) -> Values {
        let named = |(factor, value): &(&Factor, &Value)| (factor.name.to_owned(), value.name.to_owned());
        self.0.iter().map(named).collect()
    }
}

/// The detail that decides how far the paper's numbers deviate: its number of runs per point ([`of_repetitions`]).
///
/// [`of_repetitions`]: crate::judge::of_repetitions
pub(crate) const REPETITIONS: &str = "the number of repetitions";

/// The number of repetitions of a paper that does not state it, and other numbers that agree with its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repetitions {
    pub(crate) chosen: u32,
    pub(crate) others: &'static [u32],
}

/// Values of details, by name of the detail. A detail without an entry has its chosen value.
pub type Values = BTreeMap<String, String>;

/// The verdict on a claim in another reading.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ReadingVerdict {
    /// The values that differ from the chosen ones.
    pub reading: Values,
    /// The verdict in this reading.
    #[serde(rename = "verdict")]
    pub judged: Judged,
}

const DEPENDS_ON: &str = "depends on ";
const ONCE: &str = " in a single run";

/// The verdict on a claim over all readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No reading contradicts this verdict.
    Always(Judged),
    /// Readings with other values of these details have opposite verdicts.
    DependsOn(Vec<String>),
}

impl Verdict {
    /// Combines the verdict in the chosen reading with the verdicts in all other readings. An undecided
    /// reading does not contradict any other.
    pub fn of(chosen: Judged, others: &[ReadingVerdict]) -> Self {
        let chosen_reading = ReadingVerdict { reading: Values::new(), judged: chosen };
        let decided: Vec<&ReadingVerdict> = std::iter::once(&chosen_reading)
            .chain(others)
            .filter(|reading| reading.judged != Judged::Undecided)
            .collect();
        let opposite = pairs(&decided).filter(|(one, other)| one.judged != other.judged);
        let differences: Vec<BTreeSet<&str>> =
            opposite.map(|(one, other)| differing(&one.reading, &other.reading)).collect();
        let Some(fewest) = differences.iter().map(BTreeSet::len).min() else { return Self::Always(chosen) };
        // Pairs of readings that differ in one detail show which details matter. If there are none, the pairs with the
        // fewest differences do.
        let nearest = differences.into_iter().filter(|details| details.len() == fewest);
        let details: BTreeSet<&str> = nearest.flatten().collect();
        Self::DependsOn(details.into_iter().map(str::to_owned).collect())
    }

    /// The columns of a tally, one for each kind of verdict. The last two are for figures in which nothing is random,
    /// because a single run is weaker evidence than many seeds.
    pub const COLUMNS: [&str; 7] = [
        "hold",
        "do not hold",
        "depend on a detail",
        "undecided",
        "not testable",
        "hold in a single run",
        "do not hold in a single run",
    ];

    /// The verdict in words.
    pub fn name(&self) -> String {
        match self {
            Self::Always(judged) => judged.name().to_owned(),
            Self::DependsOn(details) => format!("{DEPENDS_ON}{}", details.join(" and ")),
        }
    }

    /// The verdict in words, for a claim about a single run.
    pub(crate) fn name_once(&self) -> String {
        match self {
            Self::Always(Judged::Holds | Judged::DoesNotHold) => format!("{}{ONCE}", self.name()),
            _ => self.name(),
        }
    }

    /// The column in which a verdict with this name counts. `None` for other names.
    pub fn column(name: &str) -> Option<usize> {
        if let Some(verdict) = name.strip_suffix(ONCE) {
            return Self::column(verdict).filter(|column| *column < 2).map(|column| 5 + column);
        }
        let names =
            [Judged::Holds, Judged::DoesNotHold, Judged::Undecided, Judged::NotTestable].map(Judged::name);
        match names.iter().position(|known| *known == name) {
            Some(before @ 0..2) => Some(before),
            Some(after) => Some(after + 1),
            None => name.starts_with(DEPENDS_ON).then_some(2),
        }
    }
}

fn pairs<T: Copy>(all: &[T]) -> impl Iterator<Item = (T, T)> + use<'_, T> {
    all.iter().enumerate().flat_map(|(index, one)| all[index + 1..].iter().map(|other| (*one, *other)))
}

/// The details whose values differ.
fn differing<'a>(one: &'a Values, other: &'a Values) -> BTreeSet<&'a str> {
    let names = one.keys().chain(other.keys());
    names.filter(|name| one.get(*name) != other.get(*name)).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use Judged::{DoesNotHold, Holds, Undecided};

    static TICK: Factor = Factor {
        name: "the tick",
        chosen: "100 ms",
        others: &[Value::named("10 ms"), Value::named("500 ms")],
    };
    static FACTORS: [Factor; 2] = [
        Factor {
            name: "the tick",
            chosen: "100 ms",
            others: &[Value::named("10 ms"), Value::named("500 ms")],
        },
        Factor { name: "delayed ACKs", chosen: "yes", others: &[Value::named("no")] },
    ];

    fn verdict_with(values: &[(&str, &str)], judged: Judged) -> ReadingVerdict {
        let named = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        ReadingVerdict { reading: values.iter().map(named).collect(), judged }
    }

    fn depends_on(details: &[&str]) -> Verdict {
        Verdict::DependsOn(details.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn product_combines_all_values() {
        let all = Reading::others(&FACTORS, Design::Product);
        assert_eq!(all.len(), 3 * 2 - 1);
        assert_eq!(all.iter().filter(|reading| reading.0.len() == 2).count(), 2);
        assert_eq!(Reading::others(&FACTORS, Design::OneAtATime).len(), 3);
        assert_eq!(Reading::others(std::slice::from_ref(&TICK), Design::Product).len(), 2);
    }

    #[test]
    fn every_verdict_has_its_column() {
        let names = [
            Holds.name(),
            DoesNotHold.name(),
            "depends on the tick",
            Undecided.name(),
            Judged::NotTestable.name(),
        ];
        assert_eq!(names.map(Verdict::column), [Some(0), Some(1), Some(2), Some(3), Some(4)]);
        let once = [Holds, DoesNotHold, Undecided].map(|judged| Verdict::Always(judged).name_once());
        assert_eq!(once.map(|name| Verdict::column(&name)), [Some(5), Some(6), Some(3)]);
        assert_eq!(Verdict::column("maybe"), None);
    }

    #[test]
    fn agreeing_or_undecided_readings_keep_verdict() {
        let slow = |judged| verdict_with(&[("the tick", "500 ms")], judged);
        assert_eq!(Verdict::of(Holds, &[]), Verdict::Always(Holds));
        assert_eq!(Verdict::of(Holds, &[slow(Holds)]), Verdict::Always(Holds));
        assert_eq!(Verdict::of(Holds, &[slow(Undecided)]), Verdict::Always(Holds));
        assert_eq!(Verdict::of(Undecided, &[slow(Holds)]), Verdict::Always(Undecided));
    }

    #[test]
    fn opposite_readings_name_detail_that_matters() {
        let slow = verdict_with(&[("the tick", "500 ms")], DoesNotHold);
        let each = verdict_with(&[("delayed ACKs", "no")], Holds);
        let both = verdict_with(&[("the tick", "500 ms"), ("delayed ACKs", "no")], DoesNotHold);
        let verdict = Verdict::of(Holds, &[slow.clone(), each, both.clone()]);
        assert_eq!((&verdict, verdict.name().as_str()), (&depends_on(&["the tick"]), "depends on the tick"));
        assert_eq!(Verdict::of(Holds, &[both]), depends_on(&["delayed ACKs", "the tick"]));
        let each = verdict_with(&[("delayed ACKs", "no")], Holds);
        assert_eq!(Verdict::of(Undecided, &[slow, each]), depends_on(&["delayed ACKs", "the tick"]));
    }
}
