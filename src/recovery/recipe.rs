//! Recipes: the named answers and options that make up a sender.
//!
//! `newreno+limited-transmit+liw` selects NewReno as the answer to "What to retransmit?" and two options. All
//! other questions get their default answers. The canonical form orders the parts as in the catalogue and
//! omits defaults, so a sender has the same name in every log and file, however the user spelled it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use airwire::time::Duration;
use airwire::units::Rate;

use super::attribute::Attribute;
use super::catalogue::{self, Answer, Build, Need, Question, Row};
use super::engine::{Answers, Recovery};
use super::parameter::{Arguments, Range};
use crate::profile::Profile;
use crate::profile::recovery::SackDialect;

/// The algorithms of a sender: at most one answer per question, and any number of options. See
/// [`recovery`](super).
///
/// A recipe is parsed from names joined by `+` (`sack+limited-transmit+iw=4`) and displayed in the typed
/// form. Recipes with the same meaning have the same [`canonical`](Self::canonical) name and compare equal.
/// By default, every question has its default answer: NewReno.
#[derive(Clone, Default)]
pub struct Recipe {
    /// In catalogue order, at most one per subject.
    parts: Vec<Part>,
    /// The words that the user typed, in their order. Empty: the recipe was not parsed.
    typed: String,
}

#[derive(Clone, Copy)]
struct Part {
    row: &'static Row,
    value: Option<f64>,
    /// See [`Named::typed`].
    typed: Option<&'static str>,
}

impl Part {
    fn named(&self) -> Named {
        Named { name: self.row.name, typed: self.typed }
    }

    fn is(&self, other: &Self) -> bool {
        self.row.name == other.row.name && self.value == other.value
    }
}

/// A part of a recipe that an error is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    /// The name of the part.
    pub name: &'static str,
    /// The name in the recipe that includes this part: an alias, or an algorithm that works only with this
    /// part. `None`: the recipe names the part itself.
    pub typed: Option<&'static str>,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.typed {
            Some(typed) => write!(f, "`{typed}` (which includes `{}`)", self.name),
            None => write!(f, "`{}`", self.name),
        }
    }
}

/// The reason why a recipe cannot be parsed or assembled. The message names the correction.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecipeError {
    /// The recipe is empty.
    #[error("empty recipe; name at least one algorithm, for example `newreno` (see `airtcp algorithms`)")]
    Empty,
    /// The catalogue does not contain the name.
    #[error("unknown algorithm `{name}`{}", hint(.nearest))]
    Unknown {
        /// The unknown name, in lower case.
        name: String,
        /// The most similar known name. `None`: no known name is similar.
        nearest: Option<&'static str>,
    },
    /// The name of a kernel sender of `airtcp lab`.
    #[error(
        "`{typed}` is a kernel sender, not a recipe: use its model `{model}`, or \
         `airtcp lab run --sender {typed}`"
    )]
    Kernel {
        /// The name, in lower case.
        typed: String,
        /// The recipe that models this kernel sender, or `linux`.
        model: &'static str,
    },
    /// Two answers to the same question.
    #[error("{first} and {second} both answer \"{question}\": choose one")]
    TwoAnswers {
        /// The answer that was named first.
        first: Named,
        /// The other answer.
        second: Named,
        /// The question in words.
        question: &'static str,
    },
    /// Two options with the same subject.
    #[error("{first} and {second} contradict each other on {subject}: choose one")]
    Contradiction {
        /// The option that was named first.
        first: Named,
        /// The other option.
        second: Named,
        /// The setting that both change.
        subject: &'static str,
    },
    /// The same part twice.
    #[error("{}", twice(.first, .second))]
    Twice {
        /// The first mention of the part.
        first: Named,
        /// The second mention of the part.
        second: Named,
    },
    /// A number after a name that takes none.
    #[error("`{name}` takes no number")]
    NoNumber {
        /// The name.
        name: &'static str,
    },
    /// A number that is missing or out of range.
    #[error("`{name}` needs a number between {min} and {max}{unit}, for example `{name}={min}`")]
    Number {
        /// The name.
        name: &'static str,
        /// Lower bound.
        min: String,
        /// Upper bound.
        max: String,
        /// Unit with a leading space; empty without a unit.
        unit: String,
    },
    /// An algorithm that works only with a certain answer to another question, together with a different
    /// answer.
    #[error("`{name}` works only with `{needed}`, not with {named}; use `{needed}+{name}`")]
    WorksWith {
        /// The algorithm.
        name: &'static str,
        /// The answer that the algorithm needs.
        needed: &'static str,
        /// The answer that the recipe names.
        named: Named,
    },
    /// An algorithm together with an option that switches off something it needs.
    #[error("{name} needs {need}, which `{without}` switches off")]
    Needs {
        /// The algorithm.
        name: Named,
        /// The missing feature.
        need: &'static str,
        /// The option that switches it off.
        without: &'static str,
    },
}

fn hint(nearest: &Option<&'static str>) -> String {
    match nearest {
        Some(name) => format!(": did you mean `{name}`?"),
        None => " (see `airtcp algorithms`)".to_owned(),
    }
}

fn twice(first: &Named, second: &Named) -> String {
    let name = first.name;
    match (first.typed, second.typed) {
        (Some(one), Some(other)) if one != other => {
            format!("`{one}` and `{other}` both include `{name}`: choose one")
        }
        (Some(alias), Some(_)) => format!("`{alias}` is named twice"),
        (Some(alias), None) | (None, Some(alias)) => {
            format!("`{alias}` already includes `{name}`: omit `{name}`")
        }
        (None, None) => format!("`{name}` is named twice"),
    }
}

impl Recipe {
    fn of(mut parts: Vec<Part>, typed: String) -> Result<Self, RecipeError> {
        add_required_answers(&mut parts)?;
        check_needs(&parts)?;
        let count = catalogue::rows().count();
        let position =
            |part: &Part| catalogue::rows().position(|row| std::ptr::eq(row, part.row)).unwrap_or(count);
        parts.sort_by_key(position);
        Ok(Self { parts, typed })
    }

    /// Adds a row that is not in the catalogue: a custom answer. Its name comes last in the name of the
    /// recipe. Such a name cannot be parsed, because the catalogue does not contain the row.
    ///
    /// # Errors
    /// Returns an error if the row contradicts another part of the recipe, or if the recipe switches off
    /// something that the row needs.
    pub fn with(mut self, row: &'static Row) -> Result<Self, RecipeError> {
        let new = Part { row, value: None, typed: None };
        for part in &self.parts {
            contradiction(part, &new)?;
        }
        self.parts.push(new);
        let typed = [self.typed.as_str(), row.name].into_iter().filter(|words| !words.is_empty());
        Self::of(self.parts, typed.collect::<Vec<_>>().join("+"))
    }

    /// Returns the name that all recipes with the same meaning share. The repair comes first, then all parts
    /// that are not defaults, in catalogue order. If the recipe contains all parts of a named sender such as
    /// `linux`, that name replaces them.
    pub fn canonical(&self) -> String {
        let known = self.known_sender();
        // The repair comes first, because TCP variants have the names of their repairs.
        let repair = self.answer(Question::Repair).map_or("", |row| row.name);
        let mut name = known.as_ref().map_or(repair, |(name, _)| name).to_owned();
        for part in &self.parts {
            let is_repair = part.row.is_answer() && part.row.question() == Question::Repair;
            let is_included =
                known.as_ref().is_some_and(|(_, parts)| parts.iter().any(|included| included.is(part)));
            if part.row.is_default || is_repair || is_included {
                continue;
            }
            name = name + "+" + part.row.name;
            if let Some(value) = part.value {
                name = name + "=" + &value.to_string();
            }
        }
        name
    }

    /// Returns the row that answers `question` in this recipe: the answer that it names, or the default.
    /// `None` only for [`Question::Option`], which has no answer.
    pub fn answer(&self, question: Question) -> Option<&'static Row> {
        let named = self.parts.iter().find(|p| p.row.question() == question && p.row.is_answer());
        named.map(|part| part.row).or_else(|| catalogue::default_answer(question))
    }

    /// Returns all parts that it names, in catalogue order, each with its number if it has one.
    pub fn parts(&self) -> impl Iterator<Item = (&'static Row, Option<f64>)> {
        self.parts.iter().map(|part| (part.row, part.value))
    }

    /// Returns `profile` with the options of the recipe applied. Timestamps are on if a part needs them. The
    /// scoreboard follows RFC 6675 if the detector marks single segments as lost.
    pub fn tune(&self, profile: &Profile) -> Profile {
        let mut tuned = profile.clone();
        if self.answer(Question::Detect).is_some_and(|row| row.marks_segments) {
            tuned.recovery.dialects.sack = SackDialect::Rfc6675;
        }
        for part in &self.parts {
            tuned.handshake.timestamps |= part.row.needs.contains(&Need::Timestamps);
            match part.row.build {
                Build::Option(set) => set(&mut tuned),
                Build::Number(_, set) => set(&mut tuned, part.value.unwrap_or_default()),
                _ => {}
            }
        }
        tuned
    }

    /// Builds the sender. `profile` is the result of [`Recipe::tune`].
    pub fn build(&self, profile: &Arc<Profile>) -> Recovery {
        Recovery::new(Arc::clone(profile), self.answers(profile), self.wants_sack())
    }

    /// Builds only the judges, which can evaluate a connection without a sender.
    pub fn judges(&self, profile: &Profile) -> Vec<Answer<dyn Attribute>> {
        self.answers(profile).into_judges()
    }

    fn answers(&self, profile: &Profile) -> Answers {
        let set = self.parts.iter().filter(|part| part.row.is_parameter());
        let set: Vec<_> = set.map(|part| (part.row.name, part.value)).collect();
        let parts = self.parts.iter().map(|part| part.row);
        Answers::new(|question| self.answer(question), parts, &Arguments::new(profile, &set))
    }

    /// Returns the name and the parts of the first named sender whose parts are all in this recipe.
    fn known_sender(&self) -> Option<(&'static str, Vec<Part>)> {
        let mut rows = catalogue::rows().filter(|row| row.names_a_sender.is_some());
        rows.find_map(|row| {
            let Build::Alias(meaning) = row.build else { return None };
            let meaning = meaning.parse::<Self>().ok()?.parts;
            let is_named = |wanted: &Part| self.parts.iter().any(|part| part.is(wanted));
            meaning.iter().all(is_named).then_some((row.name, meaning))
        })
    }

    /// Returns the first part that needs to know the true causes of losses ([`Truth`](super::Truth)). Such a
    /// recipe runs only in virtual time.
    pub fn needs_truth(&self) -> Option<&'static str> {
        self.parts.iter().find(|part| part.row.needs.contains(&Need::Truth)).map(|part| part.row.name)
    }

    /// Returns whether any part uses SACK or D-SACK blocks.
    pub fn wants_sack(&self) -> bool {
        let repair = self.answer(Question::Repair);
        let rows = self.parts.iter().map(|part| part.row).chain(repair);
        rows.into_iter().any(|row| row.needs.contains(&Need::Sack))
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let mut parts: Vec<Part> = Vec::new();
        let words = || text.split('+').map(str::trim).filter(|word| !word.is_empty());
        for word in words() {
            let part = parse_part(word)?;
            let named: Vec<Part> = match part.row.build {
                Build::Alias(meaning) => {
                    let typed = Some(part.row.name);
                    meaning.parse::<Self>()?.parts.into_iter().map(|part| Part { typed, ..part }).collect()
                }
                _ => vec![part],
            };
            for part in named {
                for other in &parts {
                    contradiction(other, &part)?;
                }
                parts.push(part);
            }
        }
        if parts.is_empty() {
            return Err(RecipeError::Empty);
        }
        let typed = words().map(str::to_ascii_lowercase).collect::<Vec<_>>();
        Self::of(parts, typed.join("+"))
    }
}

fn parse_part(word: &str) -> Result<Part, RecipeError> {
    let (name, number) = match word.split_once('=') {
        Some((name, number)) => (name, Some(number)),
        None => (word, None),
    };
    let name = name.to_ascii_lowercase();
    if let Some(control) = name.strip_prefix("linux:") {
        let model = match control {
            "reno" => "reno-linux",
            "bbr" => "bbr-linux",
            _ => "linux",
        };
        return Err(RecipeError::Kernel { typed: name, model });
    }
    let Some(row) = catalogue::find(&name) else {
        let nearest = catalogue::nearest(&name);
        return Err(RecipeError::Unknown { name, nearest });
    };
    let value = match (row.range(), number) {
        (Some(Range { min, max, unit }), number) => {
            let value = number.and_then(|number| quantity(number, unit));
            let Some(value) = value.filter(|v| (min..=max).contains(v)) else {
                let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
                return Err(RecipeError::Number {
                    name: row.name,
                    min: min.to_string(),
                    max: max.to_string(),
                    unit,
                });
            };
            Some(value)
        }
        (None, Some(_)) => return Err(RecipeError::NoNumber { name: row.name }),
        (None, None) => None,
    };
    Ok(Part { row, value, typed: None })
}

/// Parses a number with or without its unit. Times and rates may have any of their usual units.
fn quantity(text: &str, unit: &str) -> Option<f64> {
    let bare = text.strip_suffix(unit).unwrap_or(text).trim().parse::<f64>();
    let with_unit = || match unit {
        "ms" => Some(text.trim().parse::<Duration>().ok()?.as_nanos() as f64 / 1e6),
        "kbit/s" => {
            let rate = text.trim().strip_suffix("/s").unwrap_or(text).parse::<Rate>().ok()?;
            Some(rate.as_bits_per_second() as f64 / 1e3)
        }
        _ => None,
    };
    bare.ok().or_else(with_unit)
}

fn contradiction(one: &Part, other: &Part) -> Result<(), RecipeError> {
    let (first, second) = (one.named(), other.named());
    let (one, other) = (one.row, other.row);
    let question = one.question();
    if one.name == other.name {
        Err(RecipeError::Twice { first, second })
    } else if one.is_answer() && other.is_answer() && question == other.question() {
        Err(RecipeError::TwoAnswers { first, second, question: question.text() })
    } else if ends_no_slow_start(one, other) || ends_no_slow_start(other, one) {
        // A model has its own rule for the end of Startup.
        Err(RecipeError::Contradiction { first, second, subject: "the end of slow start" })
    } else if !one.subject.is_empty() && one.subject == other.subject {
        Err(RecipeError::Contradiction { first, second, subject: one.subject })
    } else {
        Ok(())
    }
}

/// Returns whether `one` ends slow start early, while `other` is a model-based window without a slow start.
fn ends_no_slow_start(one: &Row, other: &Row) -> bool {
    matches!(one.build, Build::SlowStart(_))
        && matches!(other.build, Build::Window(_))
        && !other.subject.is_empty()
}

/// Some algorithms work only with a certain answer to another question. Adds this answer if the recipe names
/// none, and fails if it names a different one.
fn add_required_answers(parts: &mut Vec<Part>) -> Result<(), RecipeError> {
    // An added answer may have such a requirement itself.
    let mut index = 0;
    while let Some(part) = parts.get(index).copied() {
        index += 1;
        let Some(row) = part.row.with.and_then(catalogue::find) else { continue };
        let answers_it = |other: &&Part| other.row.is_answer() && other.row.question() == row.question();
        match parts.iter().find(answers_it) {
            Some(named) if named.row.name == row.name => {}
            Some(named) => {
                let (name, needed, named) = (part.row.name, row.name, named.named());
                return Err(RecipeError::WorksWith { name, needed, named });
            }
            None => parts.push(Part { row, value: None, typed: part.typed.or(Some(part.row.name)) }),
        }
    }
    Ok(())
}

fn check_needs(parts: &[Part]) -> Result<(), RecipeError> {
    let named = |name: &str| parts.iter().any(|part| part.row.name == name);
    for part in parts {
        for need in part.row.needs {
            let (need, without) = match need {
                Need::Sack | Need::Dsack => ("SACK", "no-sack"),
                Need::Timestamps => ("timestamps", "no-timestamps"),
                Need::Ecn | Need::EcnMarks | Need::TransitMarks | Need::LossReports | Need::Truth => continue,
            };
            if named(without) {
                return Err(RecipeError::Needs { name: part.named(), need, without });
            }
        }
    }
    Ok(())
}

/// Displays the recipe as typed.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.typed.as_str() {
            "" => f.pad(&self.canonical()),
            typed => f.pad(typed),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Recipe {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Recipe {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recipe({self})")
    }
}

impl PartialEq for Recipe {
    fn eq(&self, other: &Self) -> bool {
        self.canonical() == other.canonical()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        match text.parse::<Recipe>() {
            Ok(recipe) => recipe.canonical(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn canonical_name_is_independent_of_part_order() {
        assert_eq!(canonical("liw+Reno+limited-transmit"), "reno+limited-transmit+liw");
        assert_eq!(canonical("newreno+three-dupacks"), "newreno");
        assert_eq!(canonical("limited-transmit"), "newreno+limited-transmit");
        assert_eq!(canonical("tahoe+min-rto=0.2s"), "tahoe+min-rto=200");
        assert_eq!(canonical("sack + iw=4"), "sack+iw=4");
        assert_eq!(canonical("tahoe+min-rto=200ms"), "tahoe+min-rto=200");
        assert_eq!(canonical("frto+sack+rack+tso-defer+cubic+undo-linux+prr+hystart"), "linux");
        assert_eq!(canonical("linux+pacing"), "linux+pacing");
        for rate in ["1500", "1500kbit/s", "1.5Mbit/s", "1.5 Mbit"] {
            assert_eq!(canonical(&format!("max-rate={rate}+linux")), "linux+max-rate=1500");
        }
        assert_eq!(canonical("sack+rack+prr+frto+undo-linux+beta=0.5+tso-defer"), "reno-linux");
        assert_eq!(canonical("sack+rack+prr+frto+dsack+beta=0.6"), "sack+rack+prr+frto+dsack+beta=0.6");
        assert_eq!(canonical("sack+rack+cubic+prr+frto"), "sack+rack+cubic+prr+frto");
        for row in catalogue::rows().filter(|row| row.range().is_none()) {
            let once = canonical(row.name);
            assert_eq!(canonical(&once), once);
        }
    }

    #[test]
    fn kernel_sender_is_refused_with_its_model() {
        for (typed, model) in
            [("linux:cubic", "linux"), ("linux:reno", "reno-linux"), ("linux:bbr", "bbr-linux")]
        {
            let message = format!(
                "error: `{typed}` is a kernel sender, not a recipe: use its model `{model}`, or \
                 `airtcp lab run --sender {typed}`"
            );
            assert_eq!(canonical(typed), message);
            assert_eq!(canonical(model), model);
        }
    }

    #[test]
    fn parse_errors_name_the_typed_alias() {
        for (recipe, message) in [
            (
                "sack+rack+etcp",
                "`sack` and `etcp` (which includes `reno`) both answer \"What to retransmit?\": choose one",
            ),
            (
                "etcp+rack",
                "`rack` works only with `sack`, not with `etcp` (which includes `reno`); use `sack+rack`",
            ),
            ("linux+sack", "`linux` already includes `sack`: omit `sack`"),
            ("sack+linux", "`linux` already includes `sack`: omit `sack`"),
            ("linux+bbr-linux", "`linux` and `bbr-linux` both include `sack`: choose one"),
            ("etcp+etcp", "`etcp` is named twice"),
            ("linux+no-sack", "`linux` (which includes `sack`) needs SACK, which `no-sack` switches off"),
            ("rack+no-sack", "`rack` (which includes `sack`) needs SACK, which `no-sack` switches off"),
        ] {
            assert_eq!(canonical(recipe), format!("error: {message}"), "{recipe}");
        }
    }

    #[test]
    fn parse_errors_quote_input_and_suggest_fix() {
        assert_eq!(canonical("newrno"), "error: unknown algorithm `newrno`: did you mean `newreno`?");
        assert_eq!(
            canonical("newreno+min-rto=0.2"),
            "error: `min-rto` needs a number between 1 and 60000 ms, for example `min-rto=1`"
        );
        assert_eq!(
            canonical("reno+sack"),
            "error: `reno` and `sack` both answer \"What to retransmit?\": choose one"
        );
        assert_eq!(
            canonical("reno+liw+iw10"),
            "error: `liw` and `iw10` contradict each other on initial window: choose one"
        );
        assert_eq!(
            canonical("sack+prr+bbr"),
            "error: `prr` and `bbr` contradict each other on the window in fast recovery: choose one"
        );
        assert_eq!(
            canonical("bbr3+hystart"),
            "error: `bbr3` and `hystart` contradict each other on the end of slow start: choose one"
        );
        assert_eq!(canonical("sack+no-sack"), "error: `sack` needs SACK, which `no-sack` switches off");
        assert_eq!(
            canonical("reno+iw=0"),
            "error: `iw` needs a number between 1 and 1000 segments, for example `iw=1`"
        );
        assert_eq!(canonical("reno=3"), "error: `reno` takes no number");
        assert_eq!(canonical("liw+liw"), "error: `liw` is named twice");
        assert!(canonical("").contains("empty"));
    }
}
