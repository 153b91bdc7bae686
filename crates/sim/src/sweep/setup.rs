//! The options of a run, as given to `airtcp sim` or in a sweep file.
//!
//! A setup converted to a command line and parsed again is unchanged.

use std::path::Path;

use airfiles::PathSource;
use airlink::packet::Direction;
use airlink::scenario::{Scenario, ScenarioError, presets};
use airtcp::SenderSpec;
use airtcp::profile::{ProfileName, SackOffer};
use airtcp::recovery::Recipe;
use airtcp_numbers::units;
use airwire::time::{Duration, Instant};

use crate::inputs::{self, ReceiverFeatures};
use crate::run::{Run, Until};
use crate::world::{Flow, HostSpec, Length, MAX_FLOWS, WorldError};

/// The options of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Name of a preset, or path of a file.
    pub scenario: String,
    /// Settings that override the scenario's, in order, as (`STAGE.KEY`, value).
    pub settings: Vec<(String, String)>,
    /// The senders, one flow each. Empty: one flow with the default recipe.
    pub recipes: Vec<SenderSpec>,
    /// How many times [`recipes`](Self::recipes) is repeated; all flows run concurrently.
    pub flows: usize,
    /// Direction of all flows' data.
    pub direction: Direction,
    /// Bytes per flow. `None`: each flow sends until the run ends.
    pub bytes: Option<u64>,
    /// Duration of the run, or with `bytes` its maximum duration. `None`: one minute, or with
    /// `bytes` one hour.
    pub time: Option<Duration>,
    /// Start of the goodput measurement.
    pub from: Duration,
    /// Time between the starts of consecutive flows.
    pub stagger: Duration,
    /// The profile of senders that do not name one.
    pub profile: ProfileName,
    /// The receivers' profile.
    pub receiver: ProfileName,
    /// Recipe options that concern receivers, such as `no-delack`.
    pub receiver_options: Option<Recipe>,
    /// Size of the receive buffer in bytes. `None`: given by the receivers' profile.
    pub receive_buffer: Option<usize>,
    /// Whether to compare the judges' verdicts with the ground truth.
    pub score: bool,
}

impl Setup {
    const DEFAULT_TIME: Duration = Duration::from_secs(60);
    /// Default time limit for finite flows.
    const DEFAULT_LIMIT: Duration = Duration::from_secs(3600);
    /// Maximum duration that the clock can represent.
    const MAX_TIME: Duration = Duration::from_secs(10 * 365 * 86_400);

    /// Creates the default setup for this scenario: one flow down for one minute.
    pub fn new(scenario: &str) -> Self {
        Self {
            scenario: scenario.to_owned(),
            settings: Vec::new(),
            recipes: Vec::new(),
            flows: 1,
            direction: Direction::Down,
            bytes: None,
            time: None,
            from: Duration::ZERO,
            stagger: Duration::ZERO,
            profile: ProfileName::Default,
            receiver: ProfileName::Default,
            receiver_options: None,
            receive_buffer: None,
            score: false,
        }
    }

    /// Loads the scenario and applies the settings. A path is relative to `directory`; `named` is
    /// the origin of the name.
    pub fn scenario(&self, directory: &Path, named: PathSource) -> Result<Scenario, ScenarioError> {
        let preset = presets::find(&self.scenario).is_some();
        let path = directory.join(&self.scenario);
        let mut scenario = match path.to_str() {
            Some(path) if !preset => Scenario::load_named(path, named)?,
            _ => Scenario::load_named(&self.scenario, named)?,
        };
        for (key, value) in &self.settings {
            scenario.edit(key, value)?;
        }
        Ok(scenario)
    }

    /// Checks the options for contradictions.
    pub fn check(&self) -> Result<(), String> {
        let flows = self.recipes.len().max(1).saturating_mul(self.flows);
        if flows > MAX_FLOWS {
            return Err(WorldError::TooManyFlows(flows).to_string());
        }
        let flows = flows as u64;
        let end = match self.until() {
            Until::At(at) => at,
            Until::Complete(limit) => Instant::ZERO + limit.min(Self::MAX_TIME),
        };
        let last = self.stagger.saturating_mul(flows.saturating_sub(1));
        if self.flows == 0 {
            return Err("`flows` is 0, but a run needs at least one flow; write 1 or more".to_owned());
        }
        if Instant::ZERO + self.from.min(Self::MAX_TIME) >= end {
            return Err(format!("no time left to measure: the run ends at {end} s"));
        }
        if Instant::ZERO + last.min(Self::MAX_TIME) >= end {
            return Err(format!("the last flow would start after the end of the run at {end} s"));
        }
        Ok(())
    }

    /// Returns a text that determines the run except for its seed. It does not depend on spelling.
    /// `scenario` must be the result of [`Self::scenario`].
    pub(super) fn canonical(&self, scenario: &Scenario) -> String {
        let default = vec![Recipe::default().into()];
        let time = match self.until() {
            Until::Complete(time) => time,
            Until::At(at) => at.saturating_since(Instant::ZERO),
        };
        let flows = Self {
            scenario: String::new(),
            settings: Vec::new(),
            recipes: if self.recipes.is_empty() { default } else { self.recipes.clone() },
            time: Some(time),
            ..self.clone()
        };
        // The scenario's name and its own seed do not affect the run.
        let path = Scenario { name: String::new(), description: String::new(), seed: 0, ..scenario.clone() };
        flows.canonical_command() + "\n" + &path.to_toml()
    }

    fn until(&self) -> Until {
        match self.bytes {
            Some(_) => Until::Complete(self.time.unwrap_or(Self::DEFAULT_LIMIT)),
            None => Until::At(Instant::ZERO + self.time.unwrap_or(Self::DEFAULT_TIME)),
        }
    }

    /// Returns the run. `scenario` must be the result of [`Self::scenario`].
    pub fn run(&self, scenario: Scenario, seed: u64) -> Run {
        let default = [Recipe::default().into()];
        let senders = if self.recipes.is_empty() { &default[..] } else { &self.recipes };
        let flows = (0..self.flows).flat_map(|_| senders).enumerate().map(|(index, sender)| Flow {
            direction: self.direction,
            start: Instant::ZERO + self.stagger.saturating_mul(index as u64),
            recipe: Some(sender.recipe.clone()),
            profile: sender.profile.map(ProfileName::profile),
            receive_buffer: self.receive_buffer,
            ..Flow::down(self.bytes.map_or(Length::Endless, Length::Octets))
        });
        let sender = HostSpec { profile: self.profile.profile(), recipe: Recipe::default() };
        let receiver = self.receivers();
        let (fixed, mobile) = match self.direction {
            Direction::Down => (sender, receiver),
            Direction::Up => (receiver, sender),
        };
        Run {
            scenario,
            seed,
            fixed,
            mobile,
            flows: flows.collect(),
            until: self.until(),
            from: Instant::ZERO + self.from,
            score: self.score,
        }
    }

    fn receivers(&self) -> HostSpec {
        HostSpec {
            // Like all current kernels, receivers accept SACK from any sender that offers it.
            profile: self.receiver.profile().with(|it| it.handshake.sack = SackOffer::Always),
            recipe: self.receiver_options.clone().unwrap_or_default(),
        }
    }

    /// Returns a warning for each part of a sender's recipe whose information cannot arrive.
    /// `scenario` must be the result of [`Self::scenario`].
    pub fn notices(&self, scenario: &Scenario) -> Vec<String> {
        let HostSpec { profile, recipe } = self.receivers();
        let receivers = ReceiverFeatures::of(&profile, &recipe);
        let mut notices = Vec::new();
        for sender in &self.recipes {
            for notice in inputs::notices(scenario, &[self.direction], receivers, &sender.recipe) {
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
        notices
    }

    /// Returns the arguments of `airtcp sim` that execute this setup.
    pub fn arguments(&self, seed: u64) -> Vec<String> {
        self.arguments_with(seed, SenderSpec::to_string)
    }

    /// Returns the command line with canonical recipe names.
    pub(super) fn canonical_command(&self) -> String {
        let mut words = self.arguments_with(0, SenderSpec::canonical);
        // Existing stores identify runs by a hash that includes the option's old name.
        for word in words.iter_mut().filter(|word| *word == "--receiver-profile") {
            word.truncate("--receiver".len());
        }
        shell_command(words)
    }

    fn arguments_with(&self, seed: u64, named: fn(&SenderSpec) -> String) -> Vec<String> {
        let default = Self::new(&self.scenario);
        let mut arguments = vec!["--scenario".to_owned(), self.scenario.clone()];
        let mut add = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
        for (key, value) in &self.settings {
            add("set", format!("{key}={value}"));
        }
        add("seed", seed.to_string());
        for recipe in &self.recipes {
            add("recipe", named(recipe));
        }
        if self.flows != default.flows {
            add("flows", self.flows.to_string());
        }
        if self.direction != default.direction {
            add("direction", self.direction.to_string());
        }
        if let Some(bytes) = self.bytes {
            add("bytes", bytes.to_string());
        }
        if let Some(time) = self.time {
            add("for", format_time(time));
        }
        for (name, time) in [("from", self.from), ("stagger", self.stagger)] {
            if time > Duration::ZERO {
                add(name, format_time(time));
            }
        }
        for (name, profile) in [("profile", self.profile), ("receiver-profile", self.receiver)] {
            if profile != ProfileName::Default {
                add(name, profile.to_string());
            }
        }
        if let Some(options) = &self.receiver_options {
            add("receiver-options", named(&options.clone().into()));
        }
        if let Some(size) = self.receive_buffer {
            add("receive-buffer", size.to_string());
        }
        if self.score {
            arguments.push("--score".to_owned());
        }
        arguments
    }

    /// Returns the shell command that executes this setup.
    pub fn command(&self, seed: u64) -> String {
        shell_command(self.arguments(seed))
    }
}

fn shell_command(arguments: Vec<String>) -> String {
    let words = arguments.into_iter().map(|word| quoted(&word));
    ["airtcp".to_owned(), "sim".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// An option of a run by its name in sweep files. A name with a dot is a setting of the scenario
/// instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    Scenario,
    Recipe,
    Flows,
    Direction,
    Bytes,
    For,
    From,
    Stagger,
    Profile,
    ReceiverProfile,
    ReceiverOptions,
    ReceiveBuffer,
    Score,
}

impl Key {
    pub(super) const ALL: [(&str, Self); 13] = [
        ("scenario", Self::Scenario),
        ("recipe", Self::Recipe),
        ("flows", Self::Flows),
        ("direction", Self::Direction),
        ("bytes", Self::Bytes),
        ("for", Self::For),
        ("from", Self::From),
        ("stagger", Self::Stagger),
        ("profile", Self::Profile),
        ("receiver-profile", Self::ReceiverProfile),
        ("receiver-options", Self::ReceiverOptions),
        ("receive-buffer", Self::ReceiveBuffer),
        ("score", Self::Score),
    ];

    pub(super) fn by_name(name: &str) -> Option<Self> {
        // Former name, from before `airtcp lab run` had an option `--receiver`.
        let name = if name == "receiver" { "receiver-profile" } else { name };
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, key)| key)
    }
}

impl Setup {
    /// Sets an option. `recipe` may have several values, one for each flow; every other option has
    /// one.
    pub(super) fn assign(&mut self, key: Key, values: &[String]) -> Result<(), String> {
        if key == Key::Recipe {
            let recipes = values.iter().map(|text| text.parse().map_err(|error| format!("{error}")));
            self.recipes = recipes.collect::<Result<_, _>>()?;
            return Ok(());
        }
        let [value] = values else { return Err("expected a single value, not a list".to_owned()) };
        match key {
            Key::Scenario => self.scenario.clone_from(value),
            Key::Recipe => {}
            Key::Flows => self.flows = positive(value)?,
            Key::Direction => self.direction = direction(value)?,
            Key::Bytes => self.bytes = Some(units::bytes(value)?),
            Key::For => self.time = Some(units::duration(value)?),
            Key::From => self.from = units::duration(value)?,
            Key::Stagger => self.stagger = units::duration(value)?,
            Key::Profile => self.profile = value.parse().map_err(|error| format!("{error}"))?,
            Key::ReceiverProfile => self.receiver = value.parse().map_err(|error| format!("{error}"))?,
            Key::ReceiverOptions => {
                self.receiver_options = Some(value.parse().map_err(|error| format!("{error}"))?);
            }
            Key::ReceiveBuffer => self.receive_buffer = Some(units::buffer_size(value)?),
            Key::Score => self.score = value.parse().map_err(|_| "expected true or false".to_owned())?,
        }
        Ok(())
    }
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{text}` is not a number above zero"))
}

/// Parses `down` or `up`.
pub fn direction(text: &str) -> Result<Direction, String> {
    let known = Direction::BOTH.into_iter().find(|direction| direction.to_string() == text);
    known.ok_or_else(|| format!("`{text}` is not a direction; use down or up"))
}

/// Formats a time in the notation of [`units::duration`].
fn format_time(time: Duration) -> String {
    let nanos = time.as_nanos();
    match nanos {
        n if n.is_multiple_of(1_000_000_000) => format!("{}s", n / 1_000_000_000),
        n if n.is_multiple_of(1_000_000) => format!("{}ms", n / 1_000_000),
        n => format!("{}us", n as f64 / 1e3),
    }
}

/// Quotes `word` for a shell if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+%,:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Splits a line of [`quoted`] words.
pub fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut within = false;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (c, within) {
            ('\'', _) => within = !within,
            (' ', false) => words.push(String::new()),
            ('\\', false) => words.last_mut().into_iter().for_each(|word| word.extend(characters.next())),
            (c, _) => words.last_mut().into_iter().for_each(|word| word.push(c)),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_round_trip() {
        let typed = ["radio.down.per=5%", "my links/a.toml", "it's", "", "\\ 'x'", "[1, 2]"];
        assert_eq!(words(&typed.map(quoted).join(" ")), typed);
    }

    #[test]
    fn word_is_quoted_if_shell_would_change_it() {
        assert_eq!(quoted("radio.down.per=5%"), "radio.down.per=5%");
        assert_eq!(quoted("[1, 2]"), "'[1, 2]'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn shown_duration_parses_to_same_value() {
        for nanos in [1_000, 1_500, 2_500_000, 40_000_000, 1_000_000_000, 90_000_000_000, 1_234_567_000] {
            let time = Duration::from_nanos(nanos);
            assert_eq!(units::duration(&format_time(time)), Ok(time), "{}", format_time(time));
        }
    }

    #[test]
    fn receiver_profile_accepts_and_stores_former_name() {
        assert_eq!(Key::by_name("receiver"), Key::by_name("receiver-profile"));
        let setup = Setup { receiver: ProfileName::Linux, ..Setup::new("lossless") };
        assert!(setup.command(1).ends_with(" --receiver-profile linux"), "{}", setup.command(1));
        assert!(setup.canonical_command().ends_with(" --receiver linux"), "{}", setup.canonical_command());
    }

    #[test]
    fn contradictory_times_are_rejected() {
        let mut setup = Setup { time: Some(Duration::from_secs(10)), ..Setup::new("lossless") };
        assert_eq!(setup.check(), Ok(()));
        setup.from = Duration::from_secs(10);
        assert!(setup.check().unwrap_err().contains("no time left to measure"));
        setup.from = Duration::ZERO;
        (setup.flows, setup.stagger) = (3, Duration::from_secs(5));
        assert!(setup.check().unwrap_err().contains("the last flow"));
    }

    #[test]
    fn recipe_without_its_information_is_reported_once() {
        let mut setup = Setup::new("lossless");
        let recipes = ["etcp", "sack+eifel", "newreno+ecn", "etcp"].map(str::to_owned);
        setup.assign(Key::Recipe, &recipes).unwrap();
        // The notices without their reasons.
        let notices = |setup: &Setup| -> Vec<String> {
            let notices = setup.notices(&setup.scenario(Path::new(""), PathSource::User).unwrap());
            notices
                .iter()
                .map(|notice| notice.splitn(4, ": ").take(3).collect::<Vec<_>>().join(": "))
                .collect()
        };
        assert_eq!(
            notices(&setup),
            [
                "etcp: transit-marks: no transit marks will arrive",
                "newreno+ecn: ecn: ECN will not be negotiated"
            ]
        );
        setup.assign(Key::ReceiverOptions, &["ecn+no-sack+no-timestamps".to_owned()]).unwrap();
        assert_eq!(
            notices(&setup),
            [
                "etcp: transit-marks: no transit marks will arrive",
                "sack+eifel: sack: SACK will not be negotiated",
                "sack+eifel: eifel: timestamps will not be negotiated",
                "newreno+ecn: ecn: no ECN marks will arrive"
            ]
        );
    }

    #[test]
    fn recipes_alternate_and_flow_starts_are_staggered() {
        let mut setup = Setup::new("lossless");
        setup.assign(Key::Recipe, &["newreno".to_owned(), "sack".to_owned()]).unwrap();
        setup.assign(Key::Flows, &["2".to_owned()]).unwrap();
        setup.assign(Key::Stagger, &["100ms".to_owned()]).unwrap();
        let run = setup.run(setup.scenario(Path::new(""), PathSource::User).unwrap(), 1);
        let flows: Vec<_> = run
            .flows
            .iter()
            .map(|flow| (flow.recipe.as_ref().unwrap().to_string(), flow.start.as_nanos() / 1_000_000))
            .collect();
        let expected = [("newreno", 0), ("sack", 100), ("newreno", 200), ("sack", 300)];
        assert_eq!(flows, expected.map(|(name, start)| (name.to_owned(), start)));
    }
}
