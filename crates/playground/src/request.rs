//! The page's requests. The user's input arrives as text, and the functions that parse the command line parse
//! it.

use airlink::scenario::{Scenario, ScenarioError, parse_assignment, presets};
use airtcp::SenderSpec;
use airtcp_numbers::units;
use airtcp_sim::sweep::setup::{self, Setup};
use serde::Deserialize;

use crate::Trouble;

#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Returns the completions of a partly typed sender.
    Completions { word: String },
    /// Explains the recipe of a sender.
    Explain { sender: String },
    /// Checks a setup, and returns the equivalent command lines.
    Check { setup: SetupFields },
    /// Runs these senders once, given by their indices in the setup. Several senders share the path. The run
    /// is kept in a slot.
    Run { slot: usize, setup: SetupFields, senders: Vec<usize> },
    /// Runs one sender once, and returns its goodput. The seed is the setup's plus `ahead`.
    Goodput { setup: SetupFields, sender: usize, ahead: u64 },
    /// Returns statistics over many runs.
    Compare { names: Vec<String>, goodputs: Vec<Vec<f64>> },
    /// Returns the state of a sender at a time, in microseconds since its first packet.
    Moment { slot: usize, flow: usize, micros: f64 },
    /// Returns the file that `airtcp sim --pcap` writes.
    Capture { slot: usize },
    /// Returns the file that `airtcp sim --decisions` writes.
    Decisions { slot: usize },
}

/// A setup as the user entered it in the fields of the page.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SetupFields {
    /// The selected preset.
    pub(crate) preset: String,
    /// Text of the scenario, if it differs from the preset's.
    pub(crate) text: Option<String>,
    /// Settings to change: `STAGE.KEY=VALUE`.
    pub(crate) set: Vec<String>,
    pub(crate) senders: Vec<String>,
    /// Whether all senders share one path.
    pub(crate) shared: bool,
    pub(crate) seed: String,
    /// Empty: no limit.
    pub(crate) bytes: String,
    /// Empty: the default of the command line.
    pub(crate) time: String,
    pub(crate) direction: String,
    /// Recipe options for the receivers. Empty: none.
    pub(crate) receiver: String,
    /// Receive buffer size of the receivers. Empty: the profile's.
    pub(crate) buffer: String,
}

/// A setup that was read without errors.
pub(crate) struct CheckedSetup {
    setup: Setup,
    pub(crate) scenario: Scenario,
    pub(crate) senders: Vec<SenderSpec>,
    pub(crate) seed: u64,
    shared: bool,
    /// Text of a scenario that is not a preset.
    text: Option<String>,
}

/// Maximum number of senders. A link with more would keep the browser busy.
const MAX_SENDERS: usize = 100;
/// Name of an edited scenario in errors and in commands.
const FILE: &str = "./scenario.toml";

impl SetupFields {
    /// Reads the setup.
    ///
    /// # Errors
    /// All errors in the setup, each with its field.
    pub(crate) fn read(&self) -> Result<CheckedSetup, Vec<Trouble>> {
        let mut troubles = Vec::new();
        let mut setup = Setup::new(if self.text.is_some() { FILE } else { &self.preset });
        let seed = self.read_fields(&mut setup, &mut troubles);
        let senders = self.read_senders(&mut troubles);
        let scenario = self.read_scenario(&mut setup, &mut troubles);
        match (scenario, senders, seed) {
            (Some(scenario), Some(senders), Some(seed)) if troubles.is_empty() => {
                setup.recipes.clone_from(&senders);
                setup.check().map_err(|error| vec![Trouble::new("time", 0, error)])?;
                Ok(CheckedSetup {
                    setup,
                    scenario,
                    senders,
                    seed,
                    shared: self.shared,
                    text: self.text.clone(),
                })
            }
            _ => Err(troubles),
        }
    }

    fn read_fields(&self, setup: &mut Setup, troubles: &mut Vec<Trouble>) -> Option<u64> {
        let typed = |text: &String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let mut report = |field, result: Result<(), String>| {
            troubles.extend(result.err().map(|error| Trouble::new(field, 0, error)));
        };
        let bytes = typed(&self.bytes).map(|text| units::bytes(&text)).transpose();
        report("bytes", bytes.map(|bytes| setup.bytes = bytes));
        let time = typed(&self.time).map(|text| units::duration(&text)).transpose();
        report("time", time.map(|time| setup.time = time));
        let direction = typed(&self.direction).map(|text| setup::direction(&text)).transpose();
        report("direction", direction.map(|it| setup.direction = it.unwrap_or(setup.direction)));
        let options =
            typed(&self.receiver).map(|text| text.parse().map_err(|error| format!("{error}"))).transpose();
        report("receiver", options.map(|options| setup.receiver_options = options));
        let buffer = typed(&self.buffer).map(|text| units::buffer_size(&text)).transpose();
        report("buffer", buffer.map(|buffer| setup.receive_buffer = buffer));
        let seed = typed(&self.seed).unwrap_or_else(|| "1".to_owned());
        let seed = seed.parse().map_err(|_| format!("`{seed}` is not a whole number of 0 or more"));
        seed.map_err(|error| report("seed", Err(error))).ok()
    }

    fn read_senders(&self, troubles: &mut Vec<Trouble>) -> Option<Vec<SenderSpec>> {
        if self.senders.is_empty() {
            troubles.push(Trouble::new("senders", 0, "no sender given; add one, for example newreno"));
        }
        let count = self.senders.len();
        if count > MAX_SENDERS {
            let message = format!("{count} senders given; the page runs at most {MAX_SENDERS}");
            troubles.push(Trouble::new("senders", 0, message));
            return None;
        }
        let senders = self.senders.iter().enumerate().map(|(index, text)| {
            text.parse::<SenderSpec>()
                .map_err(|error| troubles.push(Trouble::new("senders", index, error)))
                .ok()
        });
        // Parse all senders, to report the errors of all.
        senders.collect::<Vec<_>>().into_iter().collect()
    }

    fn read_scenario(&self, setup: &mut Setup, troubles: &mut Vec<Trouble>) -> Option<Scenario> {
        let preset = || {
            let find =
                |name: &str| presets::find(name).map(|preset| Scenario::parse(preset.text, preset.name));
            let unknown = || Trouble::new("scenario", 0, format!("unknown preset `{}`", self.preset));
            find(&self.preset)
                .ok_or_else(|| vec![unknown()])?
                .map_err(|error| scenario_troubles("scenario", 0, &error))
        };
        let read = match &self.text {
            Some(text) => {
                Scenario::parse(text, FILE).map_err(|error| scenario_troubles("scenario", 0, &error))
            }
            None => preset(),
        };
        let mut scenario = read.map_err(|found| troubles.extend(found)).ok()?;
        for (index, typed) in self.set.iter().enumerate() {
            let set = parse_assignment(typed).map_err(|error| vec![Trouble::new("set", index, error)]);
            let set = set.and_then(|(key, value)| {
                scenario.edit(&key, &value).map_err(|error| scenario_troubles("set", index, &error))?;
                setup.settings.push((key, value));
                Ok(())
            });
            troubles.extend(set.err().into_iter().flatten());
        }
        Some(scenario)
    }
}

fn scenario_troubles(field: &'static str, index: usize, error: &ScenarioError) -> Vec<Trouble> {
    let trouble = |problem: &airlink::scenario::Problem| Trouble {
        help: problem.help.clone(),
        // The user typed a single line, so a position does not help.
        line: problem.position.as_ref().filter(|_| field == "scenario").map(|position| position.line),
        column: problem.position.as_ref().filter(|_| field == "scenario").map(|position| position.column),
        ..Trouble::new(field, index, &problem.message)
    };
    error.problems().iter().map(trouble).collect()
}

impl CheckedSetup {
    /// Returns the setup with only these senders.
    pub(crate) fn with_senders(&self, senders: &[usize]) -> Result<Setup, Vec<Trouble>> {
        let recipes = senders.iter().map(|index| {
            let missing = || vec![Trouble::new("senders", *index, "unknown sender")];
            self.senders.get(*index).cloned().ok_or_else(missing)
        });
        Ok(Setup { recipes: recipes.collect::<Result<_, _>>()?, ..self.setup.clone() })
    }

    /// Returns warnings about the path, and about senders whose information cannot arrive on it.
    pub(crate) fn remarks(&self) -> Vec<String> {
        [self.scenario.warnings(), self.setup.notices(&self.scenario)].concat()
    }

    /// Returns shell commands that run the senders: one per sender, or one for all if they share the path.
    pub(crate) fn commands(&self) -> Vec<String> {
        let per_run = if self.shared { self.senders.len() } else { 1 };
        let runs = self.senders.chunks(per_run).map(<[_]>::to_vec);
        let runs = runs.map(|recipes| Setup { recipes, ..self.setup.clone() });
        let file = self.text.iter().map(|text| {
            let newline = if text.ends_with('\n') { "" } else { "\n" };
            let end = unused_delimiter(text);
            format!("cat > {FILE} <<'{end}'\n{text}{newline}{end}")
        });
        file.chain(runs.map(|setup| setup.command(self.seed))).collect()
    }
}

/// Returns a here-document delimiter that is not a line of the text. Otherwise, a part of a foreign scenario
/// could be executed as a command.
fn unused_delimiter(text: &str) -> String {
    let mut word = "END".to_owned();
    while text.lines().any(|line| line.trim() == word) {
        word.push('_');
    }
    word
}
