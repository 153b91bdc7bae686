//! Metrics: named numbers of a run, and any other number in its report.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::suggestion::suggestion;

/// A number of a run. A run may lack it; for example, an incomplete flow has no duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    subject: Subject,
    /// Number of the flow, from 1. `None`: all flows.
    flow: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Named(&'static NamedMetric),
    /// How often a judge was right, for all losses or only for losses with this true cause.
    Accuracy {
        truth: Option<&'static str>,
        judge: String,
    },
    /// A path in the report.
    Path(String),
}

struct NamedMetric {
    name: &'static str,
    unit: Unit,
    meaning: &'static str,
    better: Option<Better>,
    of: Source,
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A rate.
    BitPerSecond,
    /// A time.
    Seconds,
    /// An amount of data.
    Octets,
    /// A number of events in a run.
    Number,
    /// A fraction, or a number without a known unit.
    None,
}

impl Unit {
    /// Returns the unit symbol. Numbers of events have none.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::BitPerSecond => "bit/s",
            Self::Seconds => "s",
            Self::Octets => "bytes",
            Self::Number | Self::None => "",
        }
    }
}

/// The preferred direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Higher is better.
    More,
    /// Lower is better.
    Less,
}

/// The source of a number: a path in the report, or in the report of each flow.
enum Source {
    Run(&'static str),
    Sum(&'static str),
    Min(&'static str),
    /// The maximum, if all flows have the number.
    Max(&'static str),
    Resent,
}

const fn named(
    name: &'static str,
    unit: Unit,
    better: Option<Better>,
    meaning: &'static str,
    of: Source,
) -> NamedMetric {
    NamedMetric { name, unit, meaning, better, of }
}

/// Defines a number of events of which fewer are better.
const fn fewer(name: &'static str, meaning: &'static str, of: Source) -> NamedMetric {
    named(name, Unit::Number, LESS, meaning, of)
}

/// Defines a number of events without a preferred direction.
const fn number_of(name: &'static str, meaning: &'static str, of: Source) -> NamedMetric {
    named(name, Unit::Number, None, meaning, of)
}

const MORE: Option<Better> = Some(Better::More);
const LESS: Option<Better> = Some(Better::Less);

const NAMED: &[NamedMetric] = &[
    named("goodput", Unit::BitPerSecond, MORE, "of all flows", Source::Sum("goodput_bit_per_s")),
    named("goodput-least", Unit::BitPerSecond, MORE, "of the slowest flow", Source::Min("goodput_bit_per_s")),
    named("took", Unit::Seconds, LESS, "until the last flow was complete", Source::Max("took_seconds")),
    named("delivered", Unit::Octets, MORE, "read by the receiving applications", Source::Sum("delivered")),
    named("acked", Unit::Octets, MORE, "acknowledged to the senders", Source::Sum("acked")),
    number_of("segments", "with data, including retransmissions", Source::Sum("data_segments")),
    fewer("timeouts", "of the retransmission timer", Source::Sum("counters/timeouts")),
    number_of(
        "fast-retransmits",
        "losses detected without a timeout",
        Source::Sum("counters/fast_retransmits"),
    ),
    fewer(
        "failed-dupack",
        "timeouts after all possible duplicate ACKs",
        Source::Sum("counters/failed_dupack"),
    ),
    fewer("resent", "retransmitted segments", Source::Resent),
    number_of("dupacks", "duplicate ACKs", Source::Sum("counters/dupacks")),
    fewer("spurious-timeouts", "without a lost segment", Source::Sum("counters/spurious_timeouts")),
    fewer(
        "spurious-fast-retransmits",
        "without a lost segment",
        Source::Sum("counters/spurious_fast_retransmits"),
    ),
    number_of("undone", "window reductions undone", Source::Sum("counters/undone")),
    number_of("window-reductions", "of the congestion window", Source::Sum("counters/window_reductions")),
    named("jain", Unit::None, MORE, "fairness between the flows, at most 1", Source::Run("jain")),
    named("complete", Unit::None, MORE, "1 if all flows are complete, else 0", Source::Run("complete")),
    number_of("dropped-by-queues", "packets", Source::Run("dropped_by_queues")),
    number_of("dropped-by-radio", "packets", Source::Run("dropped_by_radio")),
];

/// Names of the accuracy metrics, with the true cause of the losses that they cover.
const ACCURACIES: [(&str, Option<&str>); 3] =
    [("accuracy", None), ("accuracy-congestion", Some("congestion")), ("accuracy-radio", Some("radio"))];

impl Metric {
    /// Returns the default metrics: goodput, timeouts, fast retransmissions and retransmitted
    /// segments.
    pub fn defaults() -> Vec<Self> {
        ["goodput", "timeouts", "fast-retransmits", "resent"].iter().flat_map(|name| name.parse()).collect()
    }

    /// Returns all named metrics.
    pub fn known() -> impl Iterator<Item = Self> {
        NAMED.iter().map(|named| Self { subject: Subject::Named(named), flow: None })
    }

    /// Returns a short description. Empty for numbers given by their path.
    pub fn meaning(&self) -> &'static str {
        match (&self.subject, self.flow) {
            (Subject::Named(named), None) => named.meaning,
            (Subject::Named(_), Some(_)) => "of this flow",
            (Subject::Accuracy { .. }, _) => "share of the losses with the correct cause",
            (Subject::Path(_), _) => "",
        }
    }

    /// Returns the unit.
    pub fn unit(&self) -> Unit {
        match &self.subject {
            Subject::Named(named) => named.unit,
            Subject::Accuracy { .. } | Subject::Path(_) => Unit::None,
        }
    }

    /// Returns the preferred direction. `None` if the metric has none.
    pub fn better(&self) -> Option<Better> {
        match &self.subject {
            Subject::Named(named) => named.better,
            Subject::Accuracy { .. } => Some(Better::More),
            Subject::Path(_) => None,
        }
    }

    /// Extracts the number from `report`, a [`Report`](crate::run::Report) as JSON. `None` if the
    /// run does not have it.
    pub fn of(&self, report: &Value) -> Option<f64> {
        let flows = report["flows"].as_array()?;
        let flows = match self.flow {
            Some(flow) => flows.get(flow - 1..flow)?,
            None => flows,
        };
        match &self.subject {
            Subject::Path(path) => {
                number(report.pointer(&format!("/{}", path.replace('~', "~0").replace('.', "/")))?)
            }
            Subject::Accuracy { truth, judge } => accuracy(flows, *truth, judge),
            Subject::Named(NamedMetric { of, .. }) => {
                let each = |pointer: &str| -> Option<Vec<f64>> {
                    flows.iter().map(|flow| number(flow.pointer(&format!("/{pointer}"))?)).collect()
                };
                match of {
                    Source::Run(name) => number(&report[*name]),
                    Source::Sum(pointer) => Some(each(pointer)?.iter().sum()),
                    Source::Min(pointer) => each(pointer)?.into_iter().reduce(f64::min),
                    Source::Max(pointer) => each(pointer)?.into_iter().reduce(f64::max),
                    Source::Resent => ["fast", "recovery", "timeout", "probe"]
                        .iter()
                        .map(|how| Some(each(&format!("counters/resent_{how}"))?.iter().sum::<f64>()))
                        .sum(),
                }
            }
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|yes| f64::from(u8::from(yes))))
}

fn accuracy(flows: &[Value], truth: Option<&str>, judge: &str) -> Option<f64> {
    let judges = flows.iter().flat_map(|flow| flow["judges"].as_array().into_iter().flatten());
    let mine: Vec<&Value> = judges.filter(|entry| entry["name"] == judge).collect();
    let (mut correct, mut all) = (0, 0);
    for cause in ["congestion", "radio"].into_iter().filter(|cause| truth.is_none_or(|truth| truth == *cause))
    {
        for entry in &mine {
            let counts = &entry["confusion"][cause];
            correct += counts[cause].as_u64()?;
            all += counts["congestion"].as_u64()? + counts["radio"].as_u64()?;
        }
    }
    (all > 0).then(|| correct as f64 / all as f64)
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, flow) = match text.split_once('@') {
            None => (text, None),
            Some((name, number)) => match number.parse() {
                Ok(flow @ 1..) => (name, Some(flow)),
                _ => return Err(format!("`{text}`: expected a flow number (1 or higher) after @")),
            },
        };
        if let Some(named) = NAMED.iter().find(|named| named.name == name) {
            if matches!(named.of, Source::Run(_)) && flow.is_some() {
                return Err(format!("`{name}` is a metric of the whole run; omit the @ and the flow number"));
            }
            return Ok(Self { subject: Subject::Named(named), flow });
        }
        if let Some((kind, judge)) = name.split_once('.') {
            let accuracy = ACCURACIES.iter().find(|(name, _)| *name == kind);
            return match (accuracy, kind, flow) {
                (Some((_, truth)), ..) => {
                    Ok(Self { subject: Subject::Accuracy { truth: *truth, judge: judge.to_owned() }, flow })
                }
                (None, "flows" | "stages", None) => {
                    Ok(Self { subject: Subject::Path(name.to_owned()), flow: None })
                }
                _ => Err(format!(
                    "unknown metric `{text}`; numbers of the report have the form flows.0.counters.dsacks or \
                     stages.STAGE.COUNTER"
                )),
            };
        }
        let known = NAMED.iter().map(|named| named.name);
        Err(format!("unknown metric `{name}`{}", suggestion(name, known)))
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Named(named) => f.write_str(named.name)?,
            Subject::Path(path) => f.write_str(path)?,
            Subject::Accuracy { truth, judge } => {
                let named = ACCURACIES.iter().find(|(_, of)| of == truth);
                write!(f, "{}.{judge}", named.map_or("accuracy", |(name, _)| name))?;
            }
        }
        match self.flow {
            Some(flow) => write!(f, "@{flow}"),
            None => Ok(()),
        }
    }
}

impl PartialEq for NamedMetric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for NamedMetric {}

impl fmt::Debug for NamedMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Value {
        let flow = |goodput: f64, took: Value| {
            json!({
                "goodput_bit_per_s": goodput,
                "took_seconds": took,
                "counters": { "timeouts": 3, "resent_fast": 1, "resent_recovery": 2, "resent_timeout": 4, "resent_probe": 0 },
                "judges": [{ "name": "vegas", "confusion": {
                    "congestion": { "congestion": 3, "radio": 1 },
                    "radio": { "congestion": 2, "radio": 2 },
                    "not_lost": { "congestion": 9, "radio": 9 },
                } }],
            })
        };
        json!({
            "flows": [flow(1000.0, json!(2.5)), flow(500.0, Value::Null)],
            "jain": 0.9, "complete": false, "stages": { "radio": { "down": { "pdus": 17 } } },
        })
    }

    fn of(name: &str) -> Option<f64> {
        name.parse::<Metric>().unwrap().of(&report())
    }

    #[test]
    fn metric_sums_flows_or_selects_one() {
        assert_eq!((of("goodput"), of("goodput@2"), of("goodput@3")), (Some(1500.0), Some(500.0), None));
        assert_eq!((of("goodput-least"), of("timeouts"), of("resent")), (Some(500.0), Some(6.0), Some(14.0)));
        assert_eq!((of("jain"), of("complete")), (Some(0.9), Some(0.0)));
    }

    #[test]
    fn incomplete_flow_has_no_completion_time() {
        assert_eq!((of("took"), of("took@1")), (None, Some(2.5)));
    }

    #[test]
    fn metric_path_selects_any_report_number() {
        assert_eq!((of("stages.radio.down.pdus"), of("stages.radio.up.pdus")), (Some(17.0), None));
        assert_eq!(of("flows.1.counters.timeouts"), Some(3.0));
    }

    #[test]
    fn judge_accuracy_ignores_segments_not_lost() {
        assert_eq!(of("accuracy.vegas"), Some(10.0 / 16.0));
        assert_eq!(of("accuracy-congestion.vegas"), Some(0.75));
        assert_eq!((of("accuracy-radio.vegas@1"), of("accuracy.ndg")), (Some(0.5), None));
    }

    #[test]
    fn metric_names_round_trip() {
        for name in ["goodput", "took@2", "accuracy.vegas", "accuracy-radio.ndg@1", "stages.radio.x"] {
            assert_eq!(name.parse::<Metric>().unwrap().to_string(), name);
        }
        for (name, words) in [
            ("goodputs", "did you mean `goodput`?"),
            ("jain@1", "of the whole run"),
            ("goodput@0", "1 or higher"),
            ("radio.x", "stages.STAGE.COUNTER"),
        ] {
            let error = name.parse::<Metric>().unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
