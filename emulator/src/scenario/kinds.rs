//! The one table of what `kind` can be.
//!
//! A new kind of stage is a file and a row here. The file says, by [`Settings`] or
//! [`OneWaySettings`](crate::stages::duplex::OneWaySettings), how its settings are checked and built.

use serde::Deserialize;

use super::de;
use super::error::{Location, Problem};
use super::tree::{Entry, Node, Table, Value};
use super::write;
use crate::rlc::config::RlcConfig;
use crate::settings::{Directions, Invalid, Misplaced, Position, Settings};
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
    /// As a scenario writes it.
    pub(super) name: &'static str,
    /// Settings stand in `down` and `up`, and `both` stands for the two.
    pub(super) has_both: bool,
    /// Keys below `down` and `up` that are paths of files. In a scenario they start in its own directory.
    pub(super) paths: &'static [&'static str],
    /// The settings of one stage as a scenario says them, or everything that is wrong with them.
    pub(super) read: fn(&Node) -> Result<StageConfig, Vec<Problem>>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($settings:ty) {
        name: $name:literal, has_both: $has_both:literal, paths: $paths:expr, read: $read:ident
    },)*) => {
        /// The settings of one stage: what `kind` says in a scenario, and what belongs to it.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(clippy::large_enum_variant, reason = "a scenario has a handful of them")]
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
            /// What is common to all kinds: `Path::reconfigure` takes it.
            pub fn settings(&self) -> &dyn Settings {
                match self {
                    $(Self::$variant(settings) => settings,)*
                }
            }

            /// As `kind` says it in a scenario.
            pub fn kind_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// Every setting, defaults included, in the order of the code.
            pub(super) fn to_table(&self) -> Table {
                match self {
                    $(Self::$variant(settings) => write::to_table(settings),)*
                }
            }
        }
    };
}

kinds! {
    /// A queue, the transmitter that empties it, and the wire behind that.
    Link(Directions<LinkConfig>) { name: "link", has_both: true, paths: &["trace", "follow"], read: each_direction },
    /// A channel that damages packets.
    Loss(Directions<LossConfig>) { name: "loss", has_both: true, paths: &[], read: each_direction },
    /// Times at which nothing gets through.
    Outage(Directions<OutageConfig>) { name: "outage", has_both: true, paths: &[], read: each_direction },
    /// Some packets are overtaken.
    Reorder(Directions<ReorderConfig>) { name: "reorder", has_both: true, paths: &[], read: each_direction },
    /// Some packets come more than once.
    Duplicate(Directions<DuplicateConfig>) { name: "duplicate", has_both: true, paths: &[], read: each_direction },
    /// Bits of some packets are turned over.
    Corrupt(Directions<CorruptConfig>) { name: "corrupt", has_both: true, paths: &[], read: each_direction },
    /// Some packets lose their end.
    Truncate(Directions<TruncateConfig>) { name: "truncate", has_both: true, paths: &[], read: each_direction },
    /// Drops what is beyond a rate.
    Policer(Directions<PolicerConfig>) { name: "policer", has_both: true, paths: &[], read: each_direction },
    /// Local retransmission of packets.
    Arq(Directions<ArqConfig>) { name: "arq", has_both: true, paths: &[], read: each_direction },
    /// An RLC bearer in acknowledged mode. Its two directions are one machine.
    Rlc(RlcConfig) { name: "rlc", has_both: true, paths: &[], read: whole },
    /// A base station that looks at TCP headers.
    Station(StationConfig) { name: "station", has_both: false, paths: &[], read: whole },
    /// Sources of background packets.
    Traffic(Directions<TrafficConfig>) { name: "traffic", has_both: true, paths: &[], read: each_direction },
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
fn whole<T: for<'de> Deserialize<'de>>(settings: &Node) -> Result<T, Vec<Problem>> {
    de::read(settings).map_err(|problem| vec![problem])
}

/// Reads each direction on its own: problems in the one do not hide those in the other.
fn each_direction<T: for<'de> Deserialize<'de>>(settings: &Node) -> Result<Directions<T>, Vec<Problem>> {
    let mut read = Directions { down: None, up: None };
    let mut problems: Vec<Problem> = Vec::new();
    for Entry { key, at, node } in settings.as_table().map(|table| table.0.as_slice()).unwrap_or_default() {
        let result = match key.as_str() {
            "down" => de::read(node).map(|config| read.down = Some(config)),
            "up" => de::read(node).map(|config| read.up = Some(config)),
            other => Err(misplaced(other, at)),
        };
        // What is wrong in `both` is wrong in each, and said once.
        problems.extend(result.err().filter(|problem| !problems.contains(problem)));
    }
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

fn misplaced(key: &str, at: &Location) -> Problem {
    let known = ["kind", "name", "down", "up", "both"];
    Problem::new(format!("unknown key `{key}`")).at(at).help(format!(
        "{}. Settings go into `down`, `up` or `both`, such as both = {{ {key} = … }}",
        suggest(key, "keys of a stage", &known)
    ))
}

/// What serde cannot know: numbers that fit their type and still make no sense, names of other stages, traces.
pub(super) fn check(config: &StageConfig, node: &Node, position: Position<'_>) -> Result<(), Problem> {
    let settings = config.settings();
    settings.validate().map_err(|Invalid { key, message }| {
        let place = place_of(node, &key);
        // In a list, the message names the item in quotes.
        let item = message.split('"').nth(1).filter(|_| matches!(place.value, Value::Array(_)));
        let at = item.and_then(|word| place.find(word)).unwrap_or(&place.at);
        let key = key.rsplit('.').next().unwrap_or_default();
        Problem::new(format!("`{key}`: {message}")).at(at)
    })?;
    settings.check_in_path(position).map_err(|Misplaced { key, message, help }| {
        let problem = Problem::new(message).at(&place_of(node, &key).at);
        match help {
            Some(help) => problem.help(help),
            None => problem,
        }
    })
}

/// The setting of this dotted key, or else the innermost table around it.
fn place_of<'a>(node: &'a Node, key: &str) -> &'a Node {
    let mut place = node;
    for step in key.split('.') {
        let inner = match &place.value {
            Value::Table(table) => table.get(step),
            Value::Array(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
            _ => None,
        };
        match inner {
            Some(inner) => place = inner,
            None => break,
        }
    }
    place
}
