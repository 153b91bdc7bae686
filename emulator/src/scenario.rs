//! A scenario: the file that says of which stages a path is made, and with which settings.
//!
//! `docs/reference/scenario/README.md` describes the format. On its way from text to a [`Scenario`] a file passes through these
//! modules: `tree` (values with their places in the text), `draft` (what `extends`, `before`, `after` and `remove`
//! make of several texts), `de` (from values to settings, by serde), `kinds` (what each kind of stage has to say).
//! `write` goes the other way, and [`compare`] holds two scenarios against each other.

pub mod compare;
mod de;
mod draft;
mod error;
mod kinds;
pub mod presets;
mod tree;
mod write;

use std::fmt::Write;

use airwire::time::Instant;
use draft::Draft;
use error::{Location, Source};
pub use error::{Place, Problem, ScenarioError};
pub use kinds::StageConfig;
use serde_json::{Value as Json, json};
use tree::{Node, Table, Value};

use crate::packet::Direction;
use crate::path::{Named, Path};
use crate::prefix::Prefix;
use crate::rlc::config::DirectionConfig;
use crate::rlc::umts::hs::framing::Framing;
use crate::settings::Position;
use crate::stage::Recording;
use crate::stages::loss::LossConfig;
use crate::suggest::suggest;

/// The version of the format.
pub const SCHEMA: i64 = 1;

/// What a scenario file says, in full: extended scenarios are merged, and defaults are filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The preset's name, or the file's.
    pub name: String,
    /// One line for people. May be empty.
    pub description: String,
    /// All randomness comes from here, unless the command line says otherwise.
    pub seed: u64,
    /// Largest packet of the devices at both ends, in octets.
    pub mtu: u16,
    /// Of the devices at both ends. `None`: whatever is free.
    pub addresses: Option<Addresses>,
    /// In their order from the fixed side to the mobile.
    pub stages: Vec<StageSettings>,
}

/// One stage of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct StageSettings {
    /// Unique in its scenario.
    pub name: String,
    /// Its kind and its settings.
    pub config: StageConfig,
}

/// IPv4, IPv6 or both, at each end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Of the fixed side's device.
    pub fixed: Vec<Prefix>,
    /// Of the mobile side's device.
    pub mobile: Vec<Prefix>,
}

/// Reads `STAGE.KEY=VALUE` as a person types it, for [`Scenario::set`].
pub fn assigned(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| "write STAGE.KEY=VALUE, for example wire.down.rate=64kbit".to_owned())?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

impl Scenario {
    /// A preset by its name, or a file by its path. Write `./name` for a file that has the name of a preset.
    pub fn load(name_or_path: &str) -> Result<Self, ScenarioError> {
        Self::load_named(name_or_path, airfiles::By::Person)
    }

    /// The same, where `named` says who names it: a person may name a pipe.
    pub fn load_named(name_or_path: &str, named: airfiles::By) -> Result<Self, ScenarioError> {
        Self::from_source(&draft::find(name_or_path, named)?)
    }

    /// The text of a preset or file, as it was written.
    pub fn source(name_or_path: &str) -> Result<String, ScenarioError> {
        Ok(draft::find(name_or_path, airfiles::By::Person)?.text.clone())
    }

    /// `file` is what errors call the text, and relative paths in it start in its directory.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::from_source(&Source::new(file, text))
    }

    fn from_source(source: &std::sync::Arc<Source>) -> Result<Self, ScenarioError> {
        Draft::read(source)?.finish(&source.name)
    }

    /// The machine, at the start of time. Every stage has random streams of its own, named after it, so one more draw
    /// in one stage shifts nothing in another.
    ///
    /// `seed` takes the place of the scenario's. What `recording` and `radio` mean: [`Path::new`]. An error is a file
    /// that cannot be read any more, or settings changed in code and not valid.
    pub fn build(&self, seed: Option<u64>, recording: Recording, radio: bool) -> Result<Path, ScenarioError> {
        let seed = seed.unwrap_or(self.seed);
        let names: Vec<&str> = self.stages.iter().map(|stage| stage.name.as_str()).collect();
        let mut stages = Vec::new();
        for (index, StageSettings { name, config }) in self.stages.iter().enumerate() {
            let stage = config
                .settings()
                .build(Position { index, names: &names }, seed)
                .map_err(|message| Problem::new(format!("stage `{name}`: {message}")))?;
            stages.push(Named { name: name.clone(), stage });
        }
        Ok(Path::new(stages, recording, radio))
    }

    /// Every setting, defaults included. Read again, it is the same scenario.
    pub fn to_toml(&self) -> String {
        let mut out = format!("schema = {SCHEMA}\n");
        let append = |out: &mut String, line: std::fmt::Arguments<'_>| {
            out.write_fmt(line).expect("a String takes everything");
        };
        append(&mut out, format_args!("description = {}\n", write::quoted(&self.description)));
        append(&mut out, format_args!("seed = {}\nmtu = {}\n", self.seed, self.mtu));
        if let Some(Addresses { fixed, mobile }) = &self.addresses {
            let list = |prefixes: &[Prefix]| {
                prefixes.iter().map(|prefix| format!("\"{prefix}\"")).collect::<Vec<_>>().join(", ")
            };
            append(
                &mut out,
                format_args!("\n[addresses]\nfixed = [{}]\nmobile = [{}]\n", list(fixed), list(mobile)),
            );
        }
        if self.stages.is_empty() {
            out.insert_str(out.find("\n[addresses]").unwrap_or(out.len()), "stage = []\n");
        }
        for StageSettings { name, config } in &self.stages {
            append(
                &mut out,
                format_args!("\n[[stage]]\nkind = \"{}\"\nname = \"{name}\"\n", config.kind_name()),
            );
            write::lines(&config.to_table(), "", &mut out);
        }
        out
    }

    /// What is to be known of its stages beside the settings: each remark with the stage and direction that it is about.
    pub fn remarks(&self) -> Vec<String> {
        let each = self.stages.iter().flat_map(|stage| {
            let [down, up] = match &stage.config {
                StageConfig::Loss(directions) => [&directions.down, &directions.up]
                    .map(|side| side.as_ref().map(LossConfig::remarks).unwrap_or_default()),
                StageConfig::Rlc(rlc) => {
                    let framing = Framing::of(&rlc.down.format);
                    let shared = rlc.hsdpa.iter().map(|hsdpa| hsdpa.remark(framing));
                    let down = rlc.down.channel.remarks().into_iter().chain(shared).collect();
                    [down, rlc.up.channel.remarks()]
                }
                _ => [const { Vec::new() }; 2],
            };
            let with_place =
                |side: &'static str| move |remark: String| format!("{}.{side}: {remark}", stage.name);
            let down: Vec<_> = down.into_iter().map(with_place("down")).collect();
            down.into_iter().chain(up.into_iter().map(with_place("up")))
        });
        each.collect()
    }

    /// What no real link does, and what may make a run stand still that was not meant to: each with the stage and direction
    /// that it is about.
    pub fn warnings(&self) -> Vec<String> {
        let each = self.stages.iter().flat_map(|StageSettings { name, config }| match config {
            StageConfig::Loss(directions) => {
                let warning = |(direction, config): (Direction, &LossConfig)| {
                    Some(format!("{name}.{direction}: {}", config.warning()?))
                };
                directions.iter().filter_map(warning).collect()
            }
            StageConfig::Rlc(rlc) => {
                let of = |side: &str, config: &DirectionConfig| -> Vec<String> {
                    config.warnings().iter().map(|warning| format!("{name}.{side}.{warning}")).collect()
                };
                [of("down", &rlc.down), of("up", &rlc.up)].concat()
            }
            _ => Vec::new(),
        });
        each.collect()
    }

    /// The same as [`to_toml`](Self::to_toml), for programs.
    pub fn to_json(&self) -> Json {
        let stages: Vec<Json> = self
            .stages
            .iter()
            .map(|StageSettings { name, config }| {
                let mut stage = write::table_to_json(&config.to_table());
                stage.insert("kind".to_owned(), config.kind_name().into());
                stage.insert("name".to_owned(), name.as_str().into());
                stage.into()
            })
            .collect();
        let mut json = json!({
            "schema": SCHEMA,
            "name": self.name,
            "description": self.description,
            "seed": self.seed,
            "mtu": self.mtu,
            "stage": stages,
        });
        if let Some(Addresses { fixed, mobile }) = &self.addresses {
            let list = |prefixes: &[Prefix]| prefixes.iter().map(Prefix::to_string).collect::<Vec<_>>();
            json["addresses"] = json!({ "fixed": list(fixed), "mobile": list(mobile) });
        }
        json
    }

    /// Changes one setting, such as `"radio.down.channel.errors.bler"` to `"5%"`: the name of a stage, then the keys
    /// as in the file. `value` is as in the file; quotes may be left out. Returns what [`Path::reconfigure`] needs:
    /// the index of the stage, and its new settings. After an error nothing has changed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(usize, StageConfig), ScenarioError> {
        let (index, rest) = self.stage_of(key)?;
        if !rest.split('.').all(write::is_bare) {
            return Err(self.no_such_key(index, key, rest).into());
        }
        let node = assignment(key, value)?;
        let keys = Location { end: key.len(), ..node.at.clone() };
        let over = node.as_table().and_then(|table| table.get(&self.stages[index].name)?.as_table());
        let mut over = over.cloned().ok_or_else(|| self.no_such_key(index, key, rest))?;
        let kind = self.stages[index].config.kind();
        if kind.has_both {
            over.spread_both();
        }
        let mut settings = self.stages[index].config.to_table();
        settings.overlay(&over);
        let node = Node { value: Value::Table(settings), at: keys };
        let config = (kind.read)(&node).map_err(ScenarioError::several)?;
        let names: Vec<&str> = self.stages.iter().map(|stage| stage.name.as_str()).collect();
        kinds::check(&config, &node, Position { index, names: &names })?;
        self.stages[index].config = config.clone();
        Ok((index, config))
    }

    /// [`set`](Self::set)s in a path that runs already, as `airlink ctl` does, and returns the new value. Either the scenario
    /// and the stage change or neither, so that the scenario always says what the stages run with.
    pub fn change(&mut self, path: &mut Path, now: Instant, key: &str, value: &Json) -> Result<Json, String> {
        let text = match value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut scenario = self.clone();
        let (stage, config) = scenario.set(key, &text).map_err(|error| error.to_string())?;
        path.reconfigure(now, stage, config.settings()).map_err(|error| error.to_string())?;
        *self = scenario;
        self.get(key).map_err(|error| error.to_string())
    }

    /// One setting (`"wire.down.rate"`), a group of them (`"wire.down"`), or a whole stage (`"wire"`). With `both` in
    /// place of a direction: the value if the two directions have the same, or else an object with `down` and `up`.
    pub fn get(&self, key: &str) -> Result<Json, ScenarioError> {
        let (index, rest) = self.stage_of(key)?;
        if let Some(rest) = rest.strip_prefix("both").filter(|rest| rest.is_empty() || rest.starts_with('.'))
            && self.stages[index].config.kind().has_both
        {
            let stage = &self.stages[index].name;
            let of = |direction: &str| self.get(&format!("{stage}.{direction}{rest}"));
            return match (of("down"), of("up")) {
                (Ok(down), Ok(up)) if down == up => Ok(down),
                (Ok(down), Ok(up)) => Ok(json!({ "down": down, "up": up })),
                // A stage may have one direction only.
                (Ok(only), Err(_)) | (Err(_), Ok(only)) => Ok(only),
                (Err(error), Err(_)) => Err(error),
            };
        }
        let settings = self.stages[index].config.to_table();
        let mut node = Node {
            value: Value::Table(settings),
            at: Location { source: Source::new("", ""), start: 0, end: 0 },
        };
        for step in rest.split('.').filter(|_| !rest.is_empty()) {
            let inner = node.as_table().and_then(|table| table.get(step)).cloned();
            let Some(inner) = inner else {
                let source = Source::new("key", key);
                let start = (step.as_ptr() as usize).saturating_sub(key.as_ptr() as usize);
                let at = Location { source, start, end: start + step.len() };
                let known = node.as_table().map(keys_of).unwrap_or_default();
                return Err(Problem::new(format!("`{step}` is not set"))
                    .at(&at)
                    .help(suggest(step, "keys", &known))
                    .into());
            };
            node = inner;
        }
        Ok(write::to_json(&node))
    }

    /// Index of the stage that a dotted key begins with, and what follows.
    fn stage_of<'a>(&self, key: &'a str) -> Result<(usize, &'a str), ScenarioError> {
        let (first, rest) = key.split_once('.').unwrap_or((key, ""));
        let index = self.stages.iter().position(|stage| stage.name == first);
        index.map(|index| (index, rest)).ok_or_else(|| {
            let names: Vec<&str> = self.stages.iter().map(|stage| stage.name.as_str()).collect();
            let at = Location { source: Source::new("key", key), start: 0, end: first.len() };
            Problem::new(format!("unknown stage `{first}`"))
                .at(&at)
                .help(suggest(first, "stages", &names))
                .into()
        })
    }

    /// `rest` of the `key` is not words with dots between them.
    fn no_such_key(&self, index: usize, key: &str, rest: &str) -> Problem {
        let settings = self.stages[index].config.to_table();
        let message = match rest {
            "" => "expected a key after the name of the stage, as in `wire.down.rate`".to_owned(),
            _ => format!("`{rest}` is not a key: keys are words separated by dots"),
        };
        Problem::new(message)
            .at(&Location { source: Source::new("key", key), start: 0, end: key.len() })
            .help(suggest(rest, "keys of this stage", &keys_of(&settings)))
    }
}

fn keys_of(table: &Table) -> Vec<&str> {
    table.0.iter().map(|entry| entry.key.as_str()).collect()
}

/// `key = value` as TOML. What is not a TOML value is taken for a text without its quotes.
fn assignment(key: &str, value: &str) -> Result<Node, Problem> {
    let written = Source::new("value", value.trim());
    let literal = if tree::parse_value(&written).is_some() {
        value.trim().to_owned()
    } else {
        write::quoted(value.trim())
    };
    let source = Source::new("set", &format!("{key} = {literal}"));
    let end = source.text.len();
    let table = tree::parse(&source)?;
    Ok(Node { value: Value::Table(table), at: Location { source, start: 0, end } })
}
