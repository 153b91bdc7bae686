//! Scenario files, which define the stages of a path and their settings.
//!
//! `docs/reference/scenario/README.md` describes the format. A text becomes a [`Scenario`] in several steps:
//! `tree` parses it into values with positions, `draft` merges the texts that `extends`, `before`, `after`
//! and `remove` combine, `de` converts values into settings with serde, and `kinds` defines the kinds of
//! stages. `write` converts a scenario into text, and [`compare`] compares two scenarios.

pub mod compare;
mod de;
mod draft;
mod error;
mod kinds;
pub mod presets;
mod tree;
mod write;

use airwire::time::Instant;
use draft::Draft;
use error::{Location, Source};
pub use error::{Problem, ScenarioError, TextPosition};
pub use kinds::StageConfig;
use serde_json::{Value as Json, json};
use tree::{Node, Table, Value};

use crate::packet::Direction;
use crate::path::{NamedStage, Path};
use crate::prefix::Prefix;
use crate::rlc::config::DirectionConfig;
use crate::rlc::umts::hs::framing::Framing;
use crate::settings::{InvalidInPath, Position};
use crate::stage::Recording;
use crate::stages::loss::LossConfig;
use crate::suggest::suggest;

/// Reads settings like a scenario, for tests.
#[cfg(test)]
pub(crate) fn settings<T: for<'de> serde::Deserialize<'de>>(text: &str) -> Result<T, Problem> {
    let source = Source::new("settings", text);
    let value = Value::Table(tree::parse(&source)?);
    de::read(&Node { value, at: Location::new(&source, 0..0) })
}

/// Writes settings like a scenario, for tests.
#[cfg(test)]
pub(crate) fn to_text(settings: &dyn erased_serde::Serialize) -> String {
    write::to_text(settings)
}

/// Version of the format.
pub const SCHEMA: i64 = 1;

/// A complete scenario: extended scenarios are merged, and defaults are filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name of the preset or file.
    pub name: String,
    /// One-line description for people. May be empty.
    pub description: String,
    /// Seed of all randomness, unless the command line sets another one.
    pub seed: u64,
    /// Largest packet of the devices at both ends, in bytes.
    pub mtu: u16,
    /// Addresses of the devices at both ends. `None`: unused addresses are chosen.
    pub addresses: Option<Addresses>,
    /// Stages in order from the fixed side to the mobile side.
    pub stages: Vec<StageSettings>,
}

/// One stage of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct StageSettings {
    /// Name, unique in the scenario.
    pub name: String,
    /// Kind and settings.
    pub config: StageConfig,
}

/// Addresses of both ends: IPv4, IPv6 or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Addresses of the fixed side's device.
    pub fixed: Vec<Prefix>,
    /// Addresses of the mobile side's device.
    pub mobile: Vec<Prefix>,
}

/// Parses `STAGE.KEY=VALUE` as a user types it, for [`Scenario::set`].
pub fn parse_assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| "write STAGE.KEY=VALUE, for example wire.down.rate=64kbit".to_owned())?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

impl Scenario {
    /// Loads a preset by its name, or a file by its path. Write `./name` for a file with the name of a
    /// preset.
    pub fn load(name_or_path: &str) -> Result<Self, ScenarioError> {
        Self::load_named(name_or_path, airfiles::PathSource::User)
    }

    /// Like [`load`](Self::load). `named` is the origin of the name: only a user may name a pipe.
    pub fn load_named(name_or_path: &str, named: airfiles::PathSource) -> Result<Self, ScenarioError> {
        Self::from_source(&draft::find(name_or_path, named)?)
    }

    /// Returns the text of a preset or file, as written.
    pub fn source(name_or_path: &str) -> Result<String, ScenarioError> {
        Ok(draft::find(name_or_path, airfiles::PathSource::User)?.text.clone())
    }

    /// Parses a text. `file` is its name in errors. Relative paths in the text start in the directory of
    /// `file`.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::from_source(&Source::new(file, text))
    }

    fn from_source(source: &std::sync::Arc<Source>) -> Result<Self, ScenarioError> {
        Draft::read(source)?.finish(&source.name)
    }

    /// Builds the path in its initial state. Each stage has its own random streams, which depend on its name,
    /// so that an additional draw in one stage does not affect other stages.
    ///
    /// `seed` overrides the scenario's seed. For `recording` and `radio` see [`Path::new`]. An error means
    /// that a file can no longer be read, or that settings changed in code are invalid.
    pub fn build(&self, seed: Option<u64>, recording: Recording, radio: bool) -> Result<Path, ScenarioError> {
        let seed = seed.unwrap_or(self.seed);
        let names = names(&self.stages);
        let mut stages = Vec::new();
        for (index, StageSettings { name, config }) in self.stages.iter().enumerate() {
            let stage = config
                .settings()
                .build(Position { index, names: &names }, seed)
                .map_err(|message| Problem::new(format!("stage `{name}`: {message}")))?;
            stages.push(NamedStage { name: name.clone(), stage });
        }
        Ok(Path::new(stages, recording, radio))
    }

    /// Returns all settings as TOML, including defaults. Parsing it again yields the same scenario.
    pub fn to_toml(&self) -> String {
        let mut out = format!(
            "schema = {SCHEMA}\ndescription = {}\nseed = {}\nmtu = {}\n",
            write::quoted(&self.description),
            self.seed,
            self.mtu
        );
        if self.stages.is_empty() {
            out += "stage = []\n";
        }
        if let Some(Addresses { fixed, mobile }) = &self.addresses {
            let [fixed, mobile] = [fixed, mobile].map(|side| write::prefixes(side));
            out += &format!("\n[addresses]\nfixed = {fixed}\nmobile = {mobile}\n");
        }
        for StageSettings { name, config } in &self.stages {
            out += &format!("\n[[stage]]\nkind = \"{}\"\nname = \"{name}\"\n", config.kind_name());
            write::leaves(&config.to_table(), "", &mut |key, value| out += &format!("{key} = {value}\n"));
        }
        out
    }

    /// Remarks on the effect of the settings, each with its stage and direction.
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
                StageConfig::Lte(lte) => Direction::BOTH.map(|direction| vec![lte.remark(direction)]),
                StageConfig::Nr(nr) => Direction::BOTH.map(|direction| vec![nr.remark(direction)]),
                _ => [const { Vec::new() }; 2],
            };
            let with_place =
                |side: &'static str| move |remark: String| format!("{}.{side}: {remark}", stage.name);
            let down: Vec<_> = down.into_iter().map(with_place("down")).collect();
            down.into_iter().chain(up.into_iter().map(with_place("up")))
        });
        each.collect()
    }

    /// Warnings about stages that do nothing, and about settings that no real link has or that may stop a run
    /// unintentionally. Each has its stage and direction. The source of a preset justifies its settings, so
    /// only changed settings are reported.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.all_warnings();
        if !warnings.is_empty()
            && let Some(preset) = presets::find(&self.name)
            && let Ok(preset) = Self::parse(preset.text, preset.name)
        {
            let of_preset = preset.all_warnings();
            warnings.retain(|warning| !of_preset.contains(warning));
        }
        warnings
    }

    fn all_warnings(&self) -> Vec<String> {
        let of_settings = |StageSettings { name, config }: &StageSettings| match config {
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
            StageConfig::Lte(lte) => with_name(name, lte.warnings()),
            StageConfig::Nr(nr) => with_name(name, nr.warnings()),
            _ => Vec::new(),
        };
        let idle = |StageSettings { name, config }: &StageSettings| {
            let why = config.settings().does_nothing()?;
            Some(format!("{name}: the stage does nothing: {why}"))
        };
        self.stages.iter().flat_map(|stage| idle(stage).into_iter().chain(of_settings(stage))).collect()
    }

    /// Returns whether a queue marks ECN-capable packets in this direction (RFC 3168).
    pub fn marks_ecn(&self, direction: Direction) -> bool {
        self.stages.iter().any(|stage| match &stage.config {
            StageConfig::Link(links) => links.get(direction).is_some_and(|link| link.queue.marks_ecn()),
            StageConfig::Arq(links) => links.get(direction).is_some_and(|link| link.queue.marks_ecn()),
            StageConfig::Rlc(rlc) => {
                let side = if direction == Direction::Down { &rlc.down } else { &rlc.up };
                side.queue.marks_ecn()
            }
            StageConfig::Lte(lte) => lte.direction(direction).queue.marks_ecn(),
            StageConfig::Nr(nr) => nr.direction(direction).queue.marks_ecn(),
            _ => false,
        })
    }

    /// Returns the same as [`to_toml`](Self::to_toml) as JSON.
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

    /// Changes one setting, such as `"radio.down.channel.errors.bler"` to `"5%"`. The key is the name of a
    /// stage, then the keys as in the file. `value` is written as in the file, but quotes may be omitted.
    /// Returns the arguments for [`Path::reconfigure`]: the index of the stage and its new settings. After an
    /// error nothing has changed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(usize, StageConfig), ScenarioError> {
        let (index, rest) = self.stage_of(key)?;
        if !rest.split('.').all(write::is_bare) {
            return Err(self.no_such_key(index, key, rest).into());
        }
        let node = assignment(key, value)?;
        let keys = Location { end: key.len(), ..node.at.clone() };
        let changes = node.as_table().and_then(|table| table.get(&self.stages[index].name)?.as_table());
        let mut changes = changes.cloned().ok_or_else(|| self.no_such_key(index, key, rest))?;
        let kind = self.stages[index].config.kind();
        if kind.has_both {
            changes.spread_both();
        }
        let mut settings = self.stages[index].config.to_table();
        settings.overlay(&changes);
        let node = Node { value: Value::Table(settings), at: keys };
        let config = (kind.read)(&node).map_err(ScenarioError::several)?;
        kinds::check(&config, &node, Position { index, names: &names(&self.stages) })?;
        self.stages[index].config = config.clone();
        Ok((index, config))
    }

    /// Applies a setting of a command line or a sweep file before the path is built. Unlike
    /// [`set`](Self::set), it can remove a stage: `STAGE.remove` is `true`, as in a file that extends another
    /// one. After an error nothing has changed.
    pub fn edit(&mut self, key: &str, value: &str) -> Result<(), ScenarioError> {
        if !matches!(key.split_once('.'), Some((_, "remove"))) {
            return self.set(key, value).map(drop);
        }
        let (index, _) = self.stage_of(key)?;
        let at = Location::new(&Source::new("set", &format!("{key} = {value}")), 0..key.len());
        match value {
            "true" => {}
            "false" => return Ok(()),
            other => {
                let message = format!("`remove` is true or false, not `{other}`");
                return Err(Problem::new(message).at(&at).into());
            }
        }
        let mut stages = self.stages.clone();
        let removed = stages.remove(index);
        let names = names(&stages);
        for (index, StageSettings { name, config }) in stages.iter().enumerate() {
            let checked = config.settings().check_in_path(Position { index, names: &names });
            checked.map_err(|InvalidInPath { message, .. }| {
                Problem::new(format!(
                    "`{}` cannot be removed, because of stage `{name}`: {message}",
                    removed.name
                ))
                .at(&at)
                .help(format!("remove or change `{name}` first"))
            })?;
        }
        self.stages = stages;
        Ok(())
    }

    /// Returns the completions of `word`, an argument of `--set` that is partly typed. A key has its current
    /// value as its meaning. After the `=`, the completion is this value.
    pub fn complete_setting(&self, word: &str) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        for StageSettings { name, config } in &self.stages {
            write::leaves(&config.to_table(), &format!("{name}."), &mut |key: String, value: String| {
                settings.push((key, value.trim_matches('"').to_owned()));
            });
            settings.push((format!("{name}.remove"), "true".to_owned()));
        }
        let completions = settings.into_iter().map(|(key, value)| match word.contains('=') {
            true => (format!("{key}={value}"), String::new()),
            false => (key + "=", value),
        });
        completions.filter(|(completion, _)| completion.starts_with(word)).collect()
    }

    /// [`set`](Self::set)s a value in a path that is already running, as `airlink ctl` does, and returns the
    /// new value. Scenario and stage change together or not at all, so that the scenario always shows the
    /// settings in use.
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

    /// Returns one setting (`"wire.down.rate"`), a group of settings (`"wire.down"`) or a whole stage
    /// (`"wire"`). If `both` replaces the direction, the result is the common value of both directions. If
    /// the values differ, the result is an object with `down` and `up`.
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
                // A stage may have settings for one direction only.
                (Ok(only), Err(_)) | (Err(_), Ok(only)) => Ok(only),
                (Err(error), Err(_)) => Err(error),
            };
        }
        let settings = self.stages[index].config.to_table();
        let mut node = Node { value: Value::Table(settings), at: Location::new(&Source::new("", ""), 0..0) };
        for step in rest.split('.').filter(|_| !rest.is_empty()) {
            let inner = node.as_table().and_then(|table| table.get(step)).cloned();
            let Some(inner) = inner else {
                let start = (step.as_ptr() as usize).saturating_sub(key.as_ptr() as usize);
                let at = Location::new(&Source::new("setting", key), start..start + step.len());
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

    /// Index of the stage at the start of a dotted key, and the rest of the key.
    fn stage_of<'a>(&self, key: &'a str) -> Result<(usize, &'a str), ScenarioError> {
        let (first, rest) = key.split_once('.').unwrap_or((key, ""));
        let index = self.stages.iter().position(|stage| stage.name == first);
        index.map(|index| (index, rest)).ok_or_else(|| {
            Problem::new(format!("unknown stage `{first}`"))
                .at(&Location::new(&Source::new("setting", key), 0..first.len()))
                .help(suggest(first, "stages", &names(&self.stages)))
                .into()
        })
    }

    /// Error for a `key` whose part `rest` is not a sequence of words separated by dots.
    fn no_such_key(&self, index: usize, key: &str, rest: &str) -> Problem {
        let settings = self.stages[index].config.to_table();
        let message = match rest {
            "" => "expected a key after the name of the stage, as in `wire.down.rate`".to_owned(),
            _ => format!("`{rest}` is not a key: keys are words separated by dots"),
        };
        Problem::new(message).at(&Location::new(&Source::new("setting", key), 0..key.len())).help(suggest(
            rest,
            "keys of this stage",
            &keys_of(&settings),
        ))
    }
}

fn names(stages: &[StageSettings]) -> Vec<&str> {
    stages.iter().map(|stage| stage.name.as_str()).collect()
}

fn keys_of(table: &Table) -> Vec<&str> {
    table.0.iter().map(|entry| entry.key.as_str()).collect()
}

/// Parses `key = value` as TOML. A value that is not valid TOML is taken as a string without quotes.
fn assignment(key: &str, value: &str) -> Result<Node, Problem> {
    let written = Source::new("value", value.trim());
    let is_toml = tree::parse_value(&written).is_some();
    let literal = if is_toml { value.trim().to_owned() } else { write::quoted(value.trim()) };
    let source = Source::new("set", &format!("{key} = {literal}"));
    let table = tree::parse(&source)?;
    Ok(Node { value: Value::Table(table), at: Location::new(&source, 0..source.text.len()) })
}

fn with_name(stage: &str, warnings: Vec<String>) -> Vec<String> {
    warnings.into_iter().map(|warning| format!("{stage}.{warning}")).collect()
}
