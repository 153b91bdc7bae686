//! Table of all kinds of stages.
//!
//! A new kind of stage needs a file and a row here. The file implements [`Settings`] or
//! [`OneWaySettings`](crate::stages::duplex::OneWaySettings), which check the settings and build the stage.

use serde::Deserialize;

use super::de;
use super::error::{Location, Problem};
use super::tree::{Entry, Node, Table, Value};
use super::write;
use crate::drb::config::{LteConfig, NrConfig};
use crate::rlc::config::RlcConfig;
use crate::settings::{Directions, Invalid, InvalidInPath, Position, Settings};
use crate::stages::arq::ArqConfig;
use crate::stages::corrupt::CorruptConfig;
use crate::stages::duplicate::DuplicateConfig;
use crate::stages::link::LinkConfig;
use crate::stages::loss::LossConfig;
use crate::stages::outage::OutageConfig;
use crate::stages::policer::PolicerConfig;
use crate::stages::reorder::ReorderConfig;
use crate::stages::station::StationConfig;
use crate::stages::traffic::TrafficConfig;
use crate::stages::truncate::TruncateConfig;
use crate::suggest::suggest;

/// A row of the table.
#[derive(Debug)]
pub(super) struct StageKind {
    /// Name in a scenario.
    pub(super) name: &'static str,
    /// Whether the settings are in `down` and `up`, for which `both` is a shorthand.
    pub(super) has_both: bool,
    /// Keys in `down` and `up` whose values are file paths. In a scenario they are relative to its own
    /// directory.
    pub(super) paths: &'static [&'static str],
    /// Reads the settings of one stage from a scenario. Returns all errors at once.
    pub(super) read: fn(&Node) -> Result<StageConfig, Vec<Problem>>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($settings:ty) {
        name: $name:literal, has_both: $has_both:literal, paths: $paths:expr, read: $read:ident
    },)*) => {
        /// Settings of one stage. The variant is the `kind` in a scenario.
        #[derive(Clone, Debug, PartialEq)]
        pub enum StageConfig {
            $($(#[$doc])* $variant($settings),)*
        }

        pub(super) static KINDS: &[StageKind] = &[$(StageKind {
            name: $name,
            has_both: $has_both,
            paths: $paths,
            read: |node| $read(node).map(StageConfig::$variant),
        },)*];

        impl StageConfig {
            /// The settings as a trait object, for `Path::reconfigure`.
            pub fn settings(&self) -> &dyn Settings {
                match self {
                    $(Self::$variant(settings) => settings,)*
                }
            }

            /// Name of the `kind` in a scenario.
            pub fn kind_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// All settings, including defaults, in the order of the code.
            pub(super) fn to_table(&self) -> Table {
                match self {
                    $(Self::$variant(settings) => write::to_table(settings),)*
                }
            }
        }
    };
}

kinds! {
    /// A queue, its transmitter, and a wire with a delay.
    Link(Directions<LinkConfig>) { name: "link", has_both: true, paths: &["trace", "follow"], read: read_directions },
    /// A channel that damages packets.
    Loss(Directions<LossConfig>) { name: "loss", has_both: true, paths: &[], read: read_directions },
    /// Periods during which no packet passes.
    Outage(Directions<OutageConfig>) { name: "outage", has_both: true, paths: &[], read: read_directions },
    /// Reordering: some packets are overtaken.
    Reorder(Directions<ReorderConfig>) { name: "reorder", has_both: true, paths: &[], read: read_directions },
    /// Duplication of some packets.
    Duplicate(Directions<DuplicateConfig>) { name: "duplicate", has_both: true, paths: &[], read: read_directions },
    /// Bit errors in some packets.
    Corrupt(Directions<CorruptConfig>) { name: "corrupt", has_both: true, paths: &[], read: read_directions },
    /// Truncation of some packets.
    Truncate(Directions<TruncateConfig>) { name: "truncate", has_both: true, paths: &[], read: read_directions },
    /// Drops packets that exceed a rate.
    Policer(Directions<PolicerConfig>) { name: "policer", has_both: true, paths: &[], read: read_directions },
    /// Local retransmission of packets.
    Arq(Directions<ArqConfig>) { name: "arq", has_both: true, paths: &[], read: read_directions },
    /// An RLC bearer in acknowledged mode. Both directions are one machine.
    Rlc(RlcConfig) { name: "rlc", has_both: true, paths: &[], read: read_whole },
    /// A data radio bearer of LTE. Both directions are one machine.
    Lte(LteConfig) { name: "lte", has_both: true, paths: &[], read: read_whole },
    /// A data radio bearer of 5G NR. Both directions are one machine.
    Nr(NrConfig) { name: "nr", has_both: true, paths: &[], read: read_whole },
    /// A base station that inspects TCP headers.
    Station(StationConfig) { name: "station", has_both: false, paths: &[], read: read_whole },
    /// Sources of background traffic.
    Traffic(Directions<TrafficConfig>) { name: "traffic", has_both: true, paths: &[], read: read_directions },
}

impl StageConfig {
    pub(super) fn kind(&self) -> &'static StageKind {
        find(self.kind_name()).expect("each variant is a row")
    }
}

pub(super) fn find(name: &str) -> Option<&'static StageKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

pub(super) fn names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// Reads the settings as one value.
fn read_whole<T: for<'de> Deserialize<'de>>(settings: &Node) -> Result<T, Vec<Problem>> {
    de::read(settings).map_err(|problem| vec![problem])
}

/// Reads each direction separately, so that problems in one do not hide those in the other.
fn read_directions<T: for<'de> Deserialize<'de>>(settings: &Node) -> Result<Directions<T>, Vec<Problem>> {
    let mut read = Directions { down: None, up: None };
    let mut problems: Vec<Problem> = Vec::new();
    for Entry { key, at, node } in settings.as_table().map(|table| table.0.as_slice()).unwrap_or_default() {
        let result = match key.as_str() {
            "down" => de::read(node).map(|config| read.down = Some(config)),
            "up" => de::read(node).map(|config| read.up = Some(config)),
            other => Err(unknown_key(other, at)),
        };
        // A mistake in `both` occurs in both directions. Report it once.
        problems.extend(result.err().filter(|problem| !problems.contains(problem)));
    }
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

fn unknown_key(key: &str, at: &Location) -> Problem {
    let known = ["kind", "name", "down", "up", "both"];
    Problem::new(format!("unknown key `{key}`")).at(at).help(format!(
        "{}. Settings go into `down`, `up` or `both`, such as both = {{ {key} = … }}",
        suggest(key, "keys of a stage", &known)
    ))
}

/// Performs the checks that serde cannot: invalid values of the right type, names of other stages, traces.
pub(super) fn check(config: &StageConfig, node: &Node, position: Position<'_>) -> Result<(), Problem> {
    let settings = config.settings();
    settings.validate().map_err(|Invalid { key, message }| {
        let setting = node_at(node, &key);
        // If the setting is a list, the message contains the invalid item in quotes.
        let item = message.split('"').nth(1).filter(|_| matches!(setting.value, Value::Array(_)));
        let at = item.and_then(|word| setting.find(word)).unwrap_or(&setting.at);
        let key = key.rsplit('.').next().unwrap_or_default();
        Problem::new(format!("`{key}`: {message}")).at(at)
    })?;
    settings.check_in_path(position).map_err(|InvalidInPath { key, message, help }| {
        let problem = Problem::new(message).at(&node_at(node, &key).at);
        match help {
            Some(help) => problem.help(help),
            None => problem,
        }
    })
}

/// The setting with this dotted key, or the innermost table that would contain it.
fn node_at<'a>(node: &'a Node, key: &str) -> &'a Node {
    let mut current = node;
    for step in key.split('.') {
        let inner = match &current.value {
            Value::Table(table) => table.get(step),
            Value::Array(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
            _ => None,
        };
        match inner {
            Some(inner) => current = inner,
            None => break,
        }
    }
    current
}
