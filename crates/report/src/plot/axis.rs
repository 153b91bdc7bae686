//! Axes: the positions of values, and the choice of tick labels.

use super::breaks::Breaks;

/// The unit of an axis. Values are written with a suitable prefix, such as ms or kB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time.
    Seconds,
    /// Amounts of data, and positions in data.
    Octets,
    /// Data rates.
    BitPerSecond,
    /// No unit; the caption defines the numbers.
    None,
}

impl Unit {
    /// Returns the prefixes in descending order, each with the smallest value for which it is used.
    fn prefixes(self) -> &'static [(f64, &'static str)] {
        match self {
            Self::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
            Self::Octets => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")],
            Self::BitPerSecond => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
            Self::None => &[(1.0, "")],
        }
    }

    /// Returns the prefix for values up to `max`.
    fn prefix(self, max: f64) -> (f64, &'static str) {
        let prefixes = self.prefixes();
        *prefixes.iter().find(|(factor, _)| max >= *factor).unwrap_or(&prefixes[prefixes.len() - 1])
    }
}

/// The mapping from values to positions on an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Equal differences have equal lengths.
    Linear,
    /// Linear, with spans that are left out.
    Broken(Breaks),
    /// Equal ratios have equal lengths.
    Log,
    /// Names at the values 0, 1, 2 …
    Names(Vec<String>),
}

/// A horizontal or vertical axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity, without the unit.
    pub caption: String,
    /// The unit of all values.
    pub unit: Unit,
    /// The mapping of values to positions.
    pub scale: Scale,
    /// The value at the start of the axis.
    pub min: f64,
    /// The value at the end of the axis.
    pub max: f64,
}

/// A tick at a value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The value.
    pub(crate) at: f64,
    /// The text at the tick; minor ticks have none.
    pub(crate) label: Option<String>,
}

impl Axis {
    /// Creates an axis from 0 to slightly above all `values`.
    pub fn from_zero(caption: &str, unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let largest = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let max = if largest > 0.0 { largest * 1.06 } else { 1.0 };
        Self { caption: caption.to_owned(), unit, scale: Scale::Linear, min: 0.0, max }
    }

    /// Creates an axis around all `values`. It starts at 0 if the values are close to 0.
    pub fn around(caption: &str, unit: Unit, values: impl IntoIterator<Item = f64>) -> Self {
        let (mut min, mut max) = range(values);
        if min > max {
            (min, max) = (0.0, 1.0);
        }
        if min == max {
            let room = if min == 0.0 { 1.0 } else { min.abs() * 0.1 };
            (min, max) = (min - room, max + room);
        }
        let room = (max - min) * 0.04;
        let min = if (0.0..(max - min) * 0.25).contains(&min) { 0.0 } else { min - room };
        Self { caption: caption.to_owned(), unit, scale: Scale::Linear, min, max: max + room }
    }

    /// Creates a logarithmic axis around all `values`. `None` unless all values are above 0.
    pub fn logarithmic(caption: &str, unit: Unit, values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (min, max) = range(values);
        (min > 0.0 && min <= max).then(|| {
            let room = (max / min).powf(0.04).max(1.05);
            let (min, max) = (min / room, max * room);
            Self { caption: caption.to_owned(), unit, scale: Scale::Log, min, max }
        })
    }

    /// Creates an axis with a name at each of 0, 1, 2 …
    pub fn names(caption: &str, names: Vec<String>) -> Self {
        let max = names.len().max(1) as f64 - 0.5;
        Self { caption: caption.to_owned(), unit: Unit::None, scale: Scale::Names(names), min: -0.5, max }
    }

    /// Returns the position of a value: 0 is the start of the axis, 1 its end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        match &self.scale {
            Scale::Broken(breaks) => {
                breaks.distance(value, self.min, self.max) / breaks.length(self.min, self.max)
            }
            Scale::Log if value <= 0.0 => f64::NEG_INFINITY,
            Scale::Log => (value / self.min).ln() / (self.max / self.min).ln(),
            Scale::Linear | Scale::Names(_) => (value - self.min) / (self.max - self.min),
        }
    }

    fn prefix(&self) -> (f64, &'static str) {
        // With the prefix of the largest value, the smallest labels of several decades would be zeros.
        let largest = if self.scale == Scale::Log { (self.min * self.max).sqrt() } else { self.max.abs() };
        self.unit.prefix(largest.max(-self.min))
    }

    /// Returns caption and unit: `time (ms)`.
    pub(crate) fn title(&self) -> String {
        match self.prefix().1 {
            "" => self.caption.clone(),
            unit => format!("{} ({unit})", self.caption),
        }
    }

    /// Returns as many ticks as fit. `fits` receives the ticks and the share of the axis between two labels.
    pub(crate) fn ticks(&self, fits: impl Fn(&[Tick], f64) -> bool) -> Vec<Tick> {
        match &self.scale {
            Scale::Linear => self.linear(&Breaks::default(), fits),
            Scale::Broken(breaks) => self.linear(breaks, fits),
            // Less than a decade contains too few round numbers.
            Scale::Log if self.max < 4.0 * self.min => self.linear(&Breaks::default(), fits),
            Scale::Log => self.decades(fits),
            Scale::Names(names) => {
                let named = |every: usize| -> Vec<Tick> {
                    let label = |index: usize| index.is_multiple_of(every).then(|| names[index].clone());
                    (0..names.len()).map(|index| Tick { at: index as f64, label: label(index) }).collect()
                };
                let share = 1.0 / (self.max - self.min);
                let each = (1..=names.len()).find(|every| fits(&named(*every), share * *every as f64));
                named(each.unwrap_or_else(|| names.len().max(1)))
            }
        }
    }

    fn linear(&self, breaks: &Breaks, fits: impl Fn(&[Tick], f64) -> bool) -> Vec<Tick> {
        let (factor, _) = self.prefix();
        let (min, max) = (self.min / factor, self.max / factor);
        let span = max - min - (self.max - self.min - breaks.visible_length(self.min, self.max)) / factor;
        let length = breaks.length(self.min, self.max) / factor;
        // Try steps of 1, 2 and 5 times a power of ten, starting with far too many ticks.
        let mut exponent = (span / 100.0).log10().floor() as i32;
        loop {
            for digit in [1.0, 2.0, 5.0] {
                let step = digit * 10f64.powi(exponent);
                let places = usize::try_from(-exponent).unwrap_or(0);
                let within = |(from, to): (f64, f64)| {
                    let (from, to) = (from / factor / step, to / factor / step);
                    (from - 1e-6).ceil() as i64..=(to + 1e-6).floor() as i64
                };
                let mut ticks: Vec<Tick> = breaks
                    .parts(self.min, self.max)
                    .flat_map(within)
                    .map(|index| {
                        let value = index as f64 * step;
                        // Avoid the label "-0".
                        let label = format!("{:.places$}", if index == 0 { 0.0 } else { value });
                        Tick { at: value * factor, label: Some(label) }
                    })
                    .collect();
                // If the step exceeds the span, there is at most one label.
                if step > span || fits(&ticks, step / length) {
                    self.part_labels(&mut ticks, step / length);
                    return ticks;
                }
            }
            exponent += 1;
        }
    }

    /// Removes a label after a break if it is closer to the previous label than `share`.
    fn part_labels(&self, ticks: &mut [Tick], share: f64) {
        let mut last = f64::NEG_INFINITY;
        for tick in ticks {
            let position = self.position(tick.at);
            if position - last < share * 0.99 {
                tick.label = None;
            } else {
                last = position;
            }
        }
    }

    fn decades(&self, fits: impl Fn(&[Tick], f64) -> bool) -> Vec<Tick> {
        let (factor, _) = self.prefix();
        let (min, max) = (self.min / factor, self.max / factor);
        let (low, high) = (min.log10().floor() as i32, max.log10().ceil() as i32);
        let ticks = |labelled: &dyn Fn(i32, u32) -> bool| -> Vec<Tick> {
            (low..=high)
                .flat_map(|decade| (1..10).map(move |digit| (decade, digit)))
                .map(|(decade, digit)| (decade, digit, f64::from(digit) * 10f64.powi(decade)))
                .filter(|(.., value)| (min..=max).contains(value))
                .map(|(decade, digit, value)| {
                    let places = usize::try_from(-decade).unwrap_or(0);
                    let label = labelled(decade, digit).then(|| format!("{value:.places$}"));
                    Tick { at: value * factor, label }
                })
                .collect()
        };
        let all = (max / min).log10();
        for (digits, closest) in
            [(&[1, 2, 3, 4, 5, 6, 7, 8, 9][..], 10.0 / 9.0), (&[1, 2, 5], 2.0), (&[1], 10.0)]
        {
            let some = ticks(&|_, digit| digits.contains(&digit));
            if some.iter().filter(|tick| tick.label.is_some()).count() >= 2
                && fits(&some, f64::log10(closest) / all)
            {
                return some;
            }
        }
        let every = (2..).find(|every| {
            fits(&ticks(&|decade, digit| digit == 1 && decade % every == 0), f64::from(*every) / all)
        });
        let every = every.unwrap_or(1);
        ticks(&|decade, digit| digit == 1 && decade % every == 0)
    }
}

/// Returns the minimum and maximum of the finite values. The minimum is larger if there are none.
fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| (min.min(value), max.max(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels of the axis, if at most `most` intervals between labels fit.
    fn labels(axis: &Axis, most: usize) -> Vec<String> {
        let room = |_: &[Tick], share: f64| share >= 1.0 / most as f64;
        axis.ticks(room).into_iter().filter_map(|tick| tick.label).collect()
    }

    fn linear(unit: Unit, min: f64, max: f64) -> Axis {
        Axis { caption: "x".to_owned(), unit, scale: Scale::Linear, min, max }
    }

    #[test]
    fn ticks_have_round_values_and_readable_units() {
        for (unit, min, max, most, title, expected) in [
            (Unit::Seconds, 0.0, 10.0, 6, "x (s)", &["0", "2", "4", "6", "8", "10"][..]),
            (Unit::Seconds, 0.0, 0.45, 5, "x (ms)", &["0", "100", "200", "300", "400"]),
            (
                Unit::Seconds,
                12.31,
                12.42,
                6,
                "x (s)",
                &["12.32", "12.34", "12.36", "12.38", "12.40", "12.42"],
            ),
            (Unit::Octets, 0.0, 2.4e6, 5, "x (MB)", &["0.0", "0.5", "1.0", "1.5", "2.0"]),
            (Unit::Octets, 0.0, 900.0, 4, "x (bytes)", &["0", "500"]),
            (Unit::BitPerSecond, 0.0, 384e3, 4, "x (kbit/s)", &["0", "100", "200", "300"]),
            (Unit::None, 0.0, 0.1, 2, "x", &["0.00", "0.05", "0.10"]),
        ] {
            let axis = linear(unit, min, max);
            assert_eq!(
                (axis.title().as_str(), &labels(&axis, most)[..]),
                (title, &expected.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..])
            );
        }
    }

    #[test]
    fn logarithmic_labels_depend_on_available_space() {
        let axis = Axis::logarithmic("x", Unit::None, [0.001, 0.1]).unwrap();
        assert_eq!(labels(&axis, 3), ["0.001", "0.01", "0.1"]);
        assert_eq!(labels(&axis, 8), ["0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1"]);
        assert_eq!(Axis::logarithmic("x", Unit::None, [0.0, 1.0]), None);
    }

    #[test]
    fn axis_includes_zero_if_data_is_close() {
        assert_eq!(Axis::around("x", Unit::None, [1.0, 10.0]).min, 0.0);
        assert!(Axis::around("x", Unit::None, [99.0, 100.0]).min > 98.0);
        let nothing = Axis::around("x", Unit::None, []);
        assert!(nothing.min < nothing.max);
        let one = Axis::around("x", Unit::None, [5.0]);
        assert!(one.min < 5.0 && one.max > 5.0);
    }

    #[test]
    fn category_names_are_evenly_spaced() {
        let axis = Axis::names("recipe", ["reno", "sack"].map(str::to_owned).to_vec());
        assert_eq!((axis.position(0.0), axis.position(1.0)), (0.25, 0.75));
        assert_eq!(labels(&axis, 4), ["reno", "sack"]);
    }
}
