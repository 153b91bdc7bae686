//! What `kind` can be, and how the settings of each kind are read, checked, written and built.

use std::path::Path;

use airwire::rng::Stream;
use serde::{Deserialize, Serialize};

use super::de;
use super::error::{Location, Problem, Source, suggest};
use super::tree::{self, Entry, Node, Table, Value};
use crate::packet::Direction;
use crate::rlc::bearer::Bearer;
use crate::stage::Stage;
use crate::stages::arq::{Arq, ArqConfig};
use crate::stages::duplex::Duplex;
use crate::stages::link::{Link, LinkConfig};
use crate::stages::loss::{Loss, LossConfig};
use crate::stages::outage::{Outage, OutageConfig};
use crate::stages::station::Station;
use crate::stages::trace::{Trace, TraceError};
use crate::stages::traffic::{Traffic, TrafficConfig};
use crate::stages::{Directions, Invalid, StageConfig};

pub(super) const KINDS: [&str; 7] = ["link", "loss", "outage", "arq", "rlc", "station", "traffic"];

/// The settings of one stage as a scenario says them.
pub(super) fn read(kind: &str, settings: &Node) -> Result<StageConfig, Vec<Problem>> {
    Ok(match kind {
        "link" => StageConfig::Link(directions(settings)?),
        "loss" => StageConfig::Loss(directions(settings)?),
        "outage" => StageConfig::Outage(directions(settings)?),
        "arq" => StageConfig::Arq(directions(settings)?),
        "rlc" => StageConfig::Rlc(Box::new(one(settings)?)),
        "station" => StageConfig::Station(one(settings)?),
        "traffic" => StageConfig::Traffic(directions(settings)?),
        _ => {
            return Err(vec![
                Problem::new(format!("there is no kind of stage `{kind}`"))
                    .at(&settings.at)
                    .help(suggest(kind, "kinds", &KINDS)),
            ]);
        }
    })
}

pub(super) const fn name(config: &StageConfig) -> &'static str {
    match config {
        StageConfig::Link(_) => "link",
        StageConfig::Loss(_) => "loss",
        StageConfig::Outage(_) => "outage",
        StageConfig::Arq(_) => "arq",
        StageConfig::Rlc(_) => "rlc",
        StageConfig::Station(_) => "station",
        StageConfig::Traffic(_) => "traffic",
    }
}

/// Kinds whose settings stand in `down`, `up` or `both`.
pub(super) fn has_directions(kind: &str) -> bool {
    kind != "station"
}

fn one<T: for<'de> Deserialize<'de>>(settings: &Node) -> Result<T, Vec<Problem>> {
    de::read(settings).map_err(|problem| vec![problem])
}

fn directions<T: for<'de> Deserialize<'de>>(settings: &Node) -> Result<Directions<T>, Vec<Problem>> {
    let mut read = Directions { down: None, up: None };
    let mut problems: Vec<Problem> = Vec::new();
    for Entry { key, at, node } in settings.as_table().map(|table| table.0.as_slice()).unwrap_or_default() {
        let result = match key.as_str() {
            "down" => de::read(node).map(|config| read.down = Some(config)),
            "up" => de::read(node).map(|config| read.up = Some(config)),
            other => Err(misplaced(other, at)),
        };
        // What `both` says wrong is wrong in both.
        problems.extend(result.err().filter(|problem| !problems.contains(problem)));
    }
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

fn misplaced(key: &str, at: &Location) -> Problem {
    let known = ["kind", "name", "down", "up", "both"];
    Problem::new(format!("there is no key `{key}` here")).at(at).help(format!(
        "{}. Settings belong into one of the last three, such as both = {{ {key} = … }}",
        suggest(key, "keys of this stage", &known)
    ))
}

/// Every setting, defaults included, in the order of the code.
pub(super) fn write(config: &StageConfig) -> Table {
    match config {
        StageConfig::Link(directions) => to_table(directions),
        StageConfig::Loss(directions) => to_table(directions),
        StageConfig::Outage(directions) => to_table(directions),
        StageConfig::Arq(directions) => to_table(directions),
        StageConfig::Rlc(rlc) => to_table(rlc),
        StageConfig::Station(station) => to_table(station),
        StageConfig::Traffic(directions) => to_table(directions),
    }
}

fn to_table(settings: &impl Serialize) -> Table {
    let text = toml::to_string(settings).expect("settings have no maps with odd keys and no odd numbers");
    tree::parse(&Source::new("settings", &text)).expect("what was written can be read")
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

/// As TOML, on one line.
pub(super) fn inline(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Bool(value) => value.to_string(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Table(table) if table.0.is_empty() => "{}".to_owned(),
        Value::Table(table) => {
            let entries: Vec<_> = table
                .0
                .iter()
                .map(|entry| format!("{} = {}", bare(&entry.key), inline(&entry.node)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn bare(key: &str) -> String {
    if is_bare(key) { key.to_owned() } else { quoted(key) }
}

/// Needs no quotes as a key.
pub(super) fn is_bare(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// `down.queue.packets = 50`, a line for each leaf: what stands to the left is what `airlink ctl set` takes.
pub(super) fn lines(table: &Table, prefix: &str, out: &mut String) {
    for entry in &table.0 {
        let key = format!("{prefix}{}", bare(&entry.key));
        match &entry.node.value {
            Value::Table(inner) if !inner.0.is_empty() => lines(inner, &format!("{key}."), out),
            _ => out.push_str(&format!("{key} = {}\n", inline(&entry.node))),
        }
    }
}

pub(super) fn to_json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Text(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Bool(value) => (*value).into(),
        Value::Array(items) => items.iter().map(to_json).collect(),
        Value::Table(table) => table_to_json(table).into(),
    }
}

pub(super) fn table_to_json(table: &Table) -> serde_json::Map<String, serde_json::Value> {
    table.0.iter().map(|entry| (entry.key.clone(), to_json(&entry.node))).collect()
}

/// What serde cannot know: numbers that fit their type and still make no sense, names of other stages, traces.
/// `names`: of all stages of the path; this one is at `index`.
pub(super) fn check(config: &StageConfig, node: &Node, index: usize, names: &[&str]) -> Result<(), Problem> {
    let invalid = |invalid: Invalid| {
        let key = invalid.key.rsplit('.').next().unwrap_or_default();
        let place = place_of(node, &invalid.key);
        // Which one of a list is meant says the message, in quotes.
        let item = invalid.message.split('"').nth(1).filter(|_| matches!(place.value, Value::Array(_)));
        let at = item.and_then(|word| place.find(word)).unwrap_or(&place.at);
        Problem::new(format!("`{key}`: {}", invalid.message)).at(at)
    };
    match config {
        StageConfig::Link(link) => {
            link.validate(LinkConfig::validate).map_err(invalid)?;
            for (direction, config) in link.as_ref().iter() {
                let Some(path) = config.and_then(|config| config.trace.as_deref()) else { continue };
                load_trace(path).map_err(|message| {
                    Problem::new(message).at(&place_of(node, &format!("{direction}.trace")).at)
                })?;
            }
            Ok(())
        }
        StageConfig::Loss(loss) => loss.validate(LossConfig::validate).map_err(invalid),
        StageConfig::Outage(outage) => outage.validate(OutageConfig::validate).map_err(invalid),
        StageConfig::Arq(arq) => arq.validate(ArqConfig::validate).map_err(invalid),
        StageConfig::Rlc(rlc) => rlc.validate().map_err(invalid),
        StageConfig::Station(_) => Ok(()),
        StageConfig::Traffic(traffic) => {
            traffic.validate(TrafficConfig::validate).map_err(invalid)?;
            for (direction, config) in traffic.as_ref().iter() {
                let Some(config) = config else { continue };
                leaves_after(&config.leaves_after, direction, index, names).map_err(|problem| {
                    problem.at(&place_of(node, &format!("{direction}.leaves_after")).at)
                })?;
            }
            Ok(())
        }
    }
}

/// The stage behind which background packets leave lies in the direction in which they go.
fn leaves_after(name: &str, direction: Direction, index: usize, names: &[&str]) -> Result<usize, Problem> {
    let Some(last) = names.iter().position(|other| *other == name) else {
        return Err(Problem::new(format!("there is no stage `{name}` behind which to leave"))
            .help(suggest(name, "stages", names)));
    };
    let (before, ahead) = match direction {
        Direction::Down => (last < index, &names[index + 1..]),
        Direction::Up => (last > index, &names[..index]),
    };
    if before || last == index {
        return Err(Problem::new(format!(
            "packets that go {direction} from here never come to the stage `{name}`"
        ))
        .help(format!("stages ahead of them: {}", ahead.join(", "))));
    }
    Ok(last)
}

fn load_trace(path: &Path) -> Result<Trace, String> {
    Trace::load(path).map_err(|error| match error {
        TraceError::Line { line, wrong } => format!("{}:{line}: {wrong}", path.display()),
        TraceError::Unreadable(..) => error.to_string(),
        other => format!("{}: {other}", path.display()),
    })
}

/// `name` is that of the stage: its streams are named after it.
pub(super) fn build(
    config: &StageConfig,
    seed: u64,
    name: &str,
    names: &[&str],
) -> Result<Box<dyn Stage>, String> {
    let stream = |direction: Direction, what: &str| Stream::new(seed, &format!("{name}/{direction}/{what}"));
    let invalid = |invalid: Invalid| invalid.to_string();
    let index = names.iter().position(|other| *other == name).unwrap_or_default();
    Ok(match config {
        StageConfig::Link(link) => Box::new(Duplex::build(link, |direction, config: &LinkConfig| {
            let trace = config.trace.as_deref().map(load_trace).transpose()?;
            Link::new(config, trace, stream(direction, "jitter")).map_err(invalid)
        })?),
        StageConfig::Loss(loss) => Box::new(Duplex::build(loss, |direction, config| {
            Loss::new(config, stream(direction, "damage"), stream(direction, "state")).map_err(invalid)
        })?),
        StageConfig::Outage(outage) => {
            Box::new(Duplex::build(outage, |_, config| Outage::new(config).map_err(invalid))?)
        }
        StageConfig::Arq(arq) => Box::new(Duplex::build(arq, |direction, config| {
            Arq::new(config, stream(direction, "damage")).map_err(invalid)
        })?),
        StageConfig::Station(station) => Box::new(Station::new(station)),
        StageConfig::Rlc(rlc) => Box::new(Bearer::new(rlc, seed, name).map_err(invalid)?),
        StageConfig::Traffic(traffic) => {
            Box::new(Duplex::build(traffic, |direction, config: &TrafficConfig| {
                let last = leaves_after(&config.leaves_after, direction, index, names)
                    .map_err(|problem| problem.message)?;
                Traffic::new(config, direction, last, stream(direction, "traffic")).map_err(invalid)
            })?)
        }
    })
}
