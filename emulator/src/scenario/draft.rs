//! A scenario file merged with those that it extends. Names are resolved, but settings are not interpreted
//! yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use airfiles::{PathSource, limits};

use super::error::{Location, Problem, Quoting, ScenarioError, Source};
use super::kinds::{self, StageKind};
use super::tree::{self, Entry, Node, Table, Value};
use super::{Addresses, SCHEMA, Scenario, StageSettings, de, presets, write};
use crate::prefix::Prefix;
use crate::settings::Position;
use crate::suggest::suggest;

const KEYS: [&str; 7] = ["schema", "description", "seed", "extends", "mtu", "addresses", "stage"];
/// Upper bounds on the chain of `extends` and on the stages of a file. Larger numbers are considered
/// mistakes.
const MAX_DEPTH: usize = 16;
const MAX_STAGES: usize = 1000;
/// Upper bound on the unknown keys to report.
const MAX_UNKNOWN_KEYS: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Top-level values other than stages.
    top: Table,
    stages: Vec<StageDraft>,
    /// Problems found so far.
    problems: Vec<Problem>,
}

#[derive(Clone, Debug)]
struct StageDraft {
    name: String,
    kind: &'static StageKind,
    /// Position where the stage begins.
    at: Location,
    settings: Table,
}

/// Position of a stage in the list of the extended scenario.
enum Placement {
    /// Changes the stage of the same name, or appends a new one.
    Default,
    /// Like `Default`, but with `remove = false` in the text.
    Kept,
    Before(usize),
    After(usize),
    Removed,
}

/// Loads the text of a preset or file.
pub(super) fn find(name: &str, named: PathSource) -> Result<Arc<Source>, Problem> {
    if let Some(preset) = presets::find(name) {
        return Ok(Source::new(name, preset.text));
    }
    match airfiles::read_text(name, named, limits::WRITTEN_BY_HAND) {
        Ok(text) => Ok(Source::of_file(name, text)),
        Err(error) => {
            let names: Vec<&str> = presets::ALL.iter().map(|preset| preset.name).collect();
            let looks_like_a_path = name.contains('/') || name.ends_with(".toml");
            let is_missing = error.kind() == std::io::ErrorKind::NotFound;
            let problem = if looks_like_a_path || !is_missing {
                Problem::new(format!("{name} cannot be read: {error}"))
            } else {
                Problem::new(format!("there is no preset or file named `{name}`"))
            };
            Err(if is_missing { problem.help(suggest(name, "presets", &names)) } else { problem })
        }
    }
}

impl Draft {
    pub(super) fn read(source: &Arc<Source>) -> Result<Self, Problem> {
        read(source, &mut vec![source.name.clone()])
    }

    pub(super) fn finish(&self, name: &str) -> Result<Scenario, ScenarioError> {
        let mut problems = self.problems.clone();
        // After earlier problems, these checks would only report the same problems again.
        let is_valid = problems.is_empty();
        let mut note = |result: Result<(), Vec<Problem>>| problems.extend(result.err().into_iter().flatten());
        let one = |problem| vec![problem];
        let mut scenario = Scenario {
            name: name.to_owned(),
            description: String::new(),
            seed: 1,
            mtu: 1500,
            addresses: None,
            stages: Vec::new(),
        };
        note(self.description().map(|description| scenario.description = description).map_err(one));
        note(self.seed().map(|seed| scenario.seed = seed).map_err(one));
        note(self.mtu().map(|mtu| scenario.mtu = mtu).map_err(one));
        note(self.addresses().map(|addresses| scenario.addresses = addresses).map_err(one));
        let names = self.names();
        for (index, StageDraft { name, kind, at, settings }) in self.stages.iter().enumerate() {
            let node = Node { value: Value::Table(settings.clone()), at: at.clone() };
            note((kind.read)(&node).and_then(|config| {
                if is_valid {
                    kinds::check(&config, &node, Position { index, names: &names }).map_err(one)?;
                }
                scenario.stages.push(StageSettings { name: name.clone(), config });
                Ok(())
            }));
        }
        problems
            .sort_by_key(|problem| problem.position.as_ref().map(|at| (at.file.clone(), at.line, at.column)));
        if problems.is_empty() { Ok(scenario) } else { Err(ScenarioError::several(problems)) }
    }

    fn description(&self) -> Result<String, Problem> {
        self.top.get("description").map_or(Ok(String::new()), de::read)
    }

    fn seed(&self) -> Result<u64, Problem> {
        self.top.get("seed").map_or(Ok(1), de::read)
    }

    fn mtu(&self) -> Result<u16, Problem> {
        let Some(node) = self.top.get("mtu") else { return Ok(1500) };
        let mtu = de::read(node)?;
        // RFC 791 requires that every link can carry packets of 68 bytes.
        if mtu < 68 {
            return Err(
                Problem::new(format!("an MTU of {mtu} is too small: IPv4 needs at least 68")).at(&node.at)
            );
        }
        Ok(mtu)
    }

    fn addresses(&self) -> Result<Option<Addresses>, Problem> {
        let Some(node) = self.top.get("addresses") else { return Ok(None) };
        let Some(table) = node.as_table() else {
            return Err(Problem::new("`addresses` must be a table").at(&node.at).help(
                "write [addresses], followed by fixed = [\"10.0.0.1/24\"] and mobile = [\"10.0.0.2/24\"]",
            ));
        };
        let mut addresses = Addresses::default();
        for Entry { key, at, node } in &table.0 {
            let side = match key.as_str() {
                "fixed" => &mut addresses.fixed,
                "mobile" => &mut addresses.mobile,
                other => {
                    return Err(Problem::new(format!("unknown key `{other}`")).at(at).help(suggest(
                        other,
                        "keys",
                        &["fixed", "mobile"],
                    )));
                }
            };
            let texts = match &node.value {
                Value::Array(items) => items.as_slice(),
                _ => std::slice::from_ref(node),
            };
            for text in texts {
                let prefix: String = de::read(text)?;
                let prefix =
                    prefix.parse::<Prefix>().map_err(|error| Problem::new(error.to_string()).at(&text.at))?;
                side.push(prefix);
            }
        }
        let missing = match (addresses.fixed.is_empty(), addresses.mobile.is_empty()) {
            (false, false) => return Ok(Some(addresses)),
            (true, true) => "either side",
            (true, false) => "the fixed side",
            (false, true) => "the mobile side",
        };
        Err(Problem::new(format!("there is no address for {missing}")).at(&node.at).help(
            "write both, such as fixed = \"10.0.0.1/24\" and mobile = \"10.0.0.2/24\", or omit [addresses]",
        ))
    }
}

/// Reads a scenario and those that it extends. `chain` lists the scenarios that led to this one.
fn read(source: &Arc<Source>, chain: &mut Vec<String>) -> Result<Draft, Problem> {
    let mut top = tree::parse(source)?;
    let schema = schema(&mut top, source);
    if let (Err(problem), Quoting::Positions) = (&schema, source.quoting) {
        // The file is not a scenario, so errors must not reveal its keys.
        return Err(problem.clone());
    }
    let mut problems: Vec<Problem> = Vec::new();
    let unknown = top.0.iter().filter(|entry| !KEYS.contains(&entry.key.as_str()));
    problems.extend(unknown.take(MAX_UNKNOWN_KEYS).map(|entry| {
        let mut help = suggest(&entry.key, "top-level keys", &KEYS);
        if kinds::find(&entry.key).is_some() {
            help = format!("to add a stage, write [[stage]], followed by kind = \"{}\"", entry.key);
        }
        Problem::new(format!("unknown top-level key `{}`", entry.key)).at(&entry.at).help(help)
    }));
    problems.extend(schema.err());
    let base = top.take("extends").map(|entry| read_base(&entry.node, source, chain)).transpose()?;
    let extends = base.is_some();
    let mut draft = base.unwrap_or_default();
    match top.take("stage") {
        Some(entry) => problems.extend(draft.add_stages(&entry, source, extends)),
        None if extends => {}
        None => problems.push(Problem::new("the scenario has no stages").at(&Location::new(source, 0..0)).help(
            "list them from the fixed side to the mobile side, each under [[stage]]; stage = [] is a perfect wire",
        )),
    }
    top.0.retain(|entry| KEYS.contains(&entry.key.as_str()));
    draft.top.overlay(&top);
    draft.problems.extend(problems);
    Ok(draft)
}

fn schema(top: &mut Table, source: &Arc<Source>) -> Result<(), Problem> {
    let first_line = || format!("begin the file with the line: schema = {SCHEMA}");
    let Some(entry) = top.take("schema") else {
        return Err(Problem::new("`schema` is missing").at(&Location::new(source, 0..0)).help(first_line()));
    };
    match entry.node.value {
        Value::Integer(SCHEMA) => Ok(()),
        Value::Integer(other) => Err(Problem::new(format!(
            "this scenario uses version {other} of the format, but this program reads version {SCHEMA}"
        ))
        .at(&entry.node.at)
        .help(format!("write schema = {SCHEMA}, or use a newer version of the program"))),
        _ => Err(Problem::new("`schema` is not a number").at(&entry.node.at).help(first_line())),
    }
}

/// Reads the scenario that `extends` names.
fn read_base(node: &Node, source: &Arc<Source>, chain: &mut Vec<String>) -> Result<Draft, Problem> {
    let wanted: String = de::read(node)?;
    let name = match presets::find(&wanted) {
        Some(preset) => preset.name.to_owned(),
        None => resolve(source, Path::new(&wanted)).display().to_string(),
    };
    if chain.contains(&name) {
        let round = chain.iter().chain([&name]).cloned().collect::<Vec<_>>().join(" → ");
        return Err(Problem::new(format!("the scenarios extend each other in a cycle: {round}")).at(&node.at));
    }
    if chain.len() >= MAX_DEPTH {
        return Err(Problem::new(format!(
            "this is the {MAX_DEPTH}th `extends` in the chain; the limit is {}",
            MAX_DEPTH - 1
        ))
        .at(&node.at)
        .help(format!("merge some of the files; the chain begins with {}", chain[0])));
    }
    let base = find(&name, PathSource::File).map_err(|problem| problem.at(&node.at))?;
    chain.push(name);
    let draft = read(&base, chain);
    chain.pop();
    draft
}

/// Resolves a path relative to the file in which it is written.
fn resolve(source: &Source, path: &Path) -> PathBuf {
    Path::new(&source.name).parent().map_or_else(|| path.to_owned(), |directory| directory.join(path))
}

impl Draft {
    fn add_stages(&mut self, entry: &Entry, source: &Source, extends: bool) -> Vec<Problem> {
        let Value::Array(items) = &entry.node.value else {
            let help = "use double brackets: [[stage]]";
            return vec![Problem::new("`stage` must be a list of tables").at(&entry.node.at).help(help)];
        };
        if items.len() > MAX_STAGES {
            let message = format!("the file has {} stages; the limit is {MAX_STAGES}", items.len());
            return vec![Problem::new(message).at(&entry.at)];
        }
        let mut problems = Vec::new();
        let mut names_in_file: Vec<String> = Vec::new();
        for item in items {
            problems.extend(self.add_stage(item, source, extends, &mut names_in_file).err());
        }
        problems
    }

    /// Adds a stage. `names_in_file` lists the names that this file has used so far.
    fn add_stage(
        &mut self,
        item: &Node,
        source: &Source,
        extends: bool,
        names_in_file: &mut Vec<String>,
    ) -> Result<(), Problem> {
        let Some(mut settings) = item.as_table().cloned() else {
            return Err(Problem::new("a stage must be a table").at(&item.at).help("write it as [[stage]]"));
        };
        let kind = settings.take("kind");
        let name = settings.take("name");
        let placement = self.placement(&mut settings, extends)?;
        let kind = kind.map(|entry| kind_of(&entry.node)).transpose()?;
        let name_at = name.as_ref().map_or(&item.at, |entry| &entry.node.at).clone();
        let name = match name {
            Some(entry) => valid_name(&entry.node)?,
            None => match kind {
                Some(kind) => self.free_name(kind.name),
                None => return Err(Problem::new("this stage has no kind").at(&item.at).help(kinds_help())),
            },
        };
        if names_in_file.contains(&name) {
            return Err(Problem::new(format!("there are two stages named `{name}`"))
                .at(&name_at)
                .help("give each stage a unique name: name = \"…\""));
        }
        names_in_file.push(name.clone());
        let old = self.stages.iter().position(|stage| stage.name == name);
        let Some(kind) = kind.or_else(|| old.map(|index| self.stages[index].kind)) else {
            let names = self.names();
            let help = if extends {
                suggest(&name, "stages of the extended scenario", &names)
            } else {
                kinds_help()
            };
            return Err(Problem::new(format!("the stage `{name}` has no kind")).at(&name_at).help(help));
        };
        if kind.has_both {
            settings.spread_both();
        }
        resolve_paths(&mut settings, kind.paths, source);
        let new = StageDraft { name, kind, at: item.at.clone(), settings };
        match (placement, old) {
            (Placement::Removed, Some(index)) => drop(self.stages.remove(index)),
            (Placement::Removed, None) => {
                return Err(Problem::new(format!("there is no stage `{}` to remove", new.name)).at(&name_at));
            }
            (Placement::Default | Placement::Kept, Some(index)) => self.stages[index].change(new),
            (Placement::Default | Placement::Kept, None) => self.stages.push(new),
            (Placement::Before(_) | Placement::After(_), Some(_)) => {
                let message = format!("the stage `{}` exists already and cannot be moved", new.name);
                return Err(Problem::new(message).at(&name_at));
            }
            (Placement::Before(index), None) => self.stages.insert(index, new),
            (Placement::After(index), None) => self.stages.insert(index + 1, new),
        }
        Ok(())
    }

    /// Reads `before`, `after` and `remove`, which are valid only in a scenario that extends another one.
    fn placement(&self, settings: &mut Table, extends: bool) -> Result<Placement, Problem> {
        let mut placement = Placement::Default;
        for key in ["before", "after", "remove"] {
            let Some(entry) = settings.take(key) else { continue };
            if !extends {
                return Err(Problem::new(format!(
                    "`{key}` is valid only in a scenario that extends another one"
                ))
                .at(&entry.at)
                .help("without `extends`, packets pass the stages in the order of the file"));
            }
            if !matches!(placement, Placement::Default) {
                return Err(
                    Problem::new("only one of `before`, `after` and `remove` is allowed").at(&entry.at)
                );
            }
            placement = if key == "remove" {
                if de::read::<bool>(&entry.node)? { Placement::Removed } else { Placement::Kept }
            } else {
                let other: String = de::read(&entry.node)?;
                let names = self.names();
                let Some(index) = names.iter().position(|name| *name == other) else {
                    return Err(Problem::new(format!("unknown stage `{other}`"))
                        .at(&entry.node.at)
                        .help(suggest(&other, "stages", &names)));
                };
                if key == "before" { Placement::Before(index) } else { Placement::After(index) }
            };
        }
        Ok(placement)
    }

    fn names(&self) -> Vec<&str> {
        self.stages.iter().map(|stage| stage.name.as_str()).collect()
    }

    /// The first unused name of `link`, `link-2`, `link-3`, …
    fn free_name(&self, kind: &str) -> String {
        let is_free = |name: &String| self.stages.iter().all(|stage| stage.name != *name);
        let numbered = (2..).map(|number| format!("{kind}-{number}"));
        std::iter::once(kind.to_owned()).chain(numbered).find(is_free).expect("numbers do not end")
    }
}

fn kinds_help() -> String {
    format!("add kind = \"…\", with one of: {}", kinds::names().join(", "))
}

fn kind_of(node: &Node) -> Result<&'static StageKind, Problem> {
    let name: String = de::read(node)?;
    kinds::find(&name).ok_or_else(|| {
        Problem::new(format!("unknown kind of stage `{name}`")).at(&node.at).help(suggest(
            &name,
            "kinds",
            &kinds::names(),
        ))
    })
}

impl StageDraft {
    fn change(&mut self, new: Self) {
        if self.kind.name == new.kind.name {
            self.settings.overlay(&new.settings);
        } else {
            self.settings = new.settings;
            self.kind = new.kind;
        }
        self.at = new.at;
    }
}

/// Reads the name of a stage. Names are part of keys for `airlink ctl set`, so they must not contain dots or
/// spaces.
fn valid_name(node: &Node) -> Result<String, Problem> {
    let name: String = de::read(node)?;
    if write::is_bare(&name) {
        Ok(name)
    } else {
        Err(Problem::new(format!("{} is not a valid name", node.describe()))
            .at(&node.at)
            .help("names consist of letters, digits, - and _"))
    }
}

/// Makes paths absolute. `keys` are the keys of each direction whose values are paths.
fn resolve_paths(settings: &mut Table, keys: &[&str], source: &Source) {
    for entry in &mut settings.0 {
        let Value::Table(direction) = &mut entry.node.value else { continue };
        for entry in direction.0.iter_mut().filter(|entry| keys.contains(&entry.key.as_str())) {
            if let Value::Text(path) = &mut entry.node.value {
                // Absolute, since the output of `airlink show` may be read in another directory.
                let resolved = resolve(source, Path::new(path));
                *path = std::path::absolute(&resolved).unwrap_or(resolved).display().to_string();
            }
        }
    }
}
