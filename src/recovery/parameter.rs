//! Parameters of algorithms. Each parameter is a constant in its algorithm's file and is listed in the
//! algorithm's row of the catalogue. The constructor reads the value from [`Arguments`].

use crate::profile::Profile;

/// The range of the number that a parameter accepts, as in `iw=4`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// Lower bound.
    pub min: f64,
    /// Upper bound.
    pub max: f64,
    /// Unit, which the user may append to the number. Empty: the number has no unit.
    pub unit: &'static str,
}

/// A word in a recipe that sets one parameter of an algorithm.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    /// The word.
    pub name: &'static str,
    /// The setting that it controls. A recipe may contain only one word per subject.
    pub subject: &'static str,
    /// Range of its number. `None`: the word takes no number.
    pub range: Option<Range>,
    /// Description in one line, with the default.
    pub summary: &'static str,
    /// Source, such as a paper or a standard.
    pub citation: &'static str,
}

impl Parameter {
    /// Creates a word with a number from `min` to `max`. Its name is also its subject.
    pub const fn number(
        name: &'static str,
        (min, max, unit): (f64, f64, &'static str),
        summary: &'static str,
        citation: &'static str,
    ) -> Self {
        Self { name, subject: name, range: Some(Range { min, max, unit }), summary, citation }
    }

    /// Creates a word without a number.
    pub const fn word(
        name: &'static str,
        subject: &'static str,
        summary: &'static str,
        citation: &'static str,
    ) -> Self {
        Self { name, subject, range: None, summary, citation }
    }
}

/// The arguments of an answer's constructor.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    profile: &'a Profile,
    /// The parameters that the recipe names.
    set: &'a [(&'static str, Option<f64>)],
}

impl<'a> Arguments<'a> {
    /// Creates the arguments. `set` lists the parameters that the recipe names, with their numbers.
    pub(crate) fn new(profile: &'a Profile, set: &'a [(&'static str, Option<f64>)]) -> Self {
        Self { profile, set }
    }

    /// Returns the profile, with all options of the recipe applied.
    pub fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// Returns the value of a parameter from the recipe or, if the recipe does not set it, from the profile.
    /// `None`: neither sets it, and the default of the algorithm applies.
    pub fn number(&self, parameter: &Parameter) -> Option<f64> {
        let named = self.set.iter().find(|(name, _)| *name == parameter.name);
        let preset = || self.profile.parameters.iter().find(|(name, _)| *name == parameter.name);
        named.and_then(|(_, value)| *value).or_else(|| preset().map(|(_, value)| *value))
    }

    /// Returns whether the recipe names a parameter.
    pub fn has(&self, parameter: &Parameter) -> bool {
        self.set.iter().any(|(name, _)| *name == parameter.name)
    }
}
