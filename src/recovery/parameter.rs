//! Parameters of algorithms: each is a constant in the algorithm's file and is named in its row of the catalogue. The
//! algorithm's constructor asks [`Given`] for its value.

use crate::profile::Profile;

/// The numbers that a word may be given: `iw=4`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The number's unit, which a person may write behind it. Empty: it has none.
    pub unit: &'static str,
}

/// A word by which a recipe sets something of one algorithm.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    /// The word.
    pub name: &'static str,
    /// What it sets: a recipe may have one word of each subject.
    pub subject: &'static str,
    /// `None`: the word stands alone.
    pub range: Option<Range>,
    /// What it does, in one line, with the default.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
}

impl Parameter {
    /// A word with a number from `min` to `max`; its subject is its name.
    pub const fn number(
        name: &'static str,
        (min, max, unit): (f64, f64, &'static str),
        summary: &'static str,
        citation: &'static str,
    ) -> Self {
        Self { name, subject: name, range: Some(Range { min, max, unit }), summary, citation }
    }

    /// A word without a number.
    pub const fn word(
        name: &'static str,
        subject: &'static str,
        summary: &'static str,
        citation: &'static str,
    ) -> Self {
        Self { name, subject, range: None, summary, citation }
    }
}

/// What an answer's constructor is given.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    profile: &'a Profile,
    /// The parameters that the recipe names.
    set: &'a [(&'static str, Option<f64>)],
}

impl<'a> Given<'a> {
    /// `set`: the parameters that the recipe names, with their numbers.
    pub(crate) fn new(profile: &'a Profile, set: &'a [(&'static str, Option<f64>)]) -> Self {
        Self { profile, set }
    }

    /// The profile, with all options of the recipe applied.
    pub fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// The value of a parameter: what the recipe says or, if it says nothing, what the profile says. `None`: neither
    /// says anything, and the algorithm's own default holds.
    pub fn number(&self, parameter: &Parameter) -> Option<f64> {
        let named = self.set.iter().find(|(name, _)| *name == parameter.name);
        let preset = || self.profile.parameters.iter().find(|(name, _)| *name == parameter.name);
        named.and_then(|(_, value)| *value).or_else(|| preset().map(|(_, value)| *value))
    }

    /// Whether the recipe names a parameter.
    pub fn has(&self, parameter: &Parameter) -> bool {
        self.set.iter().any(|(name, _)| *name == parameter.name)
    }
}
