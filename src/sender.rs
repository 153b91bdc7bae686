//! Names of senders: a recipe and, after an `@`, the profile it sends with.

use std::fmt;
use std::str::FromStr;

use crate::profile::{Profile, ProfileName};
use crate::recovery::catalogue::{self, nearest_of};
use crate::recovery::{Recipe, RecipeError};

/// A sender, such as `newreno+eifel@linux`: a recipe, and the profile that sets all other behaviour.
///
/// `Display` prints the sender in the typed form: with the profile if the user typed one, unless the recipe's
/// alias already implies it (`linux`).
#[derive(Clone, PartialEq, Debug)]
pub struct SenderSpec {
    /// The loss recovery.
    pub recipe: Recipe,
    /// The profile. `None`: the text names none, and the experiment's profile applies.
    pub profile: Option<ProfileName>,
}

impl SenderSpec {
    /// Returns the canonical name, which is the same for all spellings of the sender.
    pub fn canonical(&self) -> String {
        let recipe = self.recipe.canonical();
        self.profile.map_or_else(|| recipe.clone(), |profile| format!("{recipe}@{profile}"))
    }

    /// Returns the named profile, or `default` if the text names none.
    pub fn profile_or(&self, default: ProfileName) -> ProfileName {
        self.profile.unwrap_or(default)
    }
}

impl From<Recipe> for SenderSpec {
    fn from(recipe: Recipe) -> Self {
        Self { recipe, profile: None }
    }
}

/// Returns completions for the partly typed sender `word`, each with a one-line summary: parts that fit the
/// recipe before the last `+`, or the profiles after an `@`. They are not filtered by the prefix already
/// typed.
pub fn completions(word: &str) -> Vec<(String, &'static str)> {
    if let Some((recipe, _)) = word.split_once('@') {
        let profiles = ProfileName::ALL.into_iter().filter(|_| recipe.parse::<Recipe>().is_ok());
        return profiles.map(|name| (format!("{recipe}@{name}"), name.summary())).collect();
    }
    let before = word.rfind('+').map_or("", |at| &word[..=at]);
    let fits = catalogue::rows().filter_map(|row| {
        let (number, least) = match row.range() {
            Some(range) => ("=", format!("={}", range.min)),
            None => ("", String::new()),
        };
        let goes_with = format!("{before}{}{least}", row.name).parse::<Recipe>().is_ok();
        goes_with.then(|| (format!("{before}{}{number}", row.name), row.summary))
    });
    fits.collect()
}

/// The reason why a sender cannot be parsed. Its message names the correction.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SenderError {
    /// The part before the `@` is not a valid recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The part after the `@` is not a profile.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// Nothing follows the `@`.
    #[error("no profile after the `@`; use for example `{recipe}@linux`, or omit the `@`")]
    NoProfile {
        /// The recipe before the `@`.
        recipe: String,
    },
}

impl FromStr for SenderSpec {
    type Err = SenderError;

    fn from_str(text: &str) -> Result<Self, SenderError> {
        let Some((recipe, profile)) = text.split_once('@') else {
            let recipe: Recipe = text.parse()?;
            let profile = implied_by(&recipe);
            return Ok(Self { recipe, profile });
        };
        let recipe: Recipe = recipe.parse()?;
        if profile.trim().is_empty() {
            return Err(SenderError::NoProfile { recipe: recipe.to_string() });
        }
        Ok(Self { recipe, profile: Some(profile.parse()?) })
    }
}

impl fmt::Display for SenderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.profile.filter(|profile| implied_by(&self.recipe) != Some(*profile)) {
            Some(profile) => f.pad(&format!("{}@{profile}", self.recipe)),
            None => self.recipe.fmt(f),
        }
    }
}

/// Returns the profile that an alias for a whole sender implies, such as `linux`.
fn implied_by(recipe: &Recipe) -> Option<ProfileName> {
    recipe.to_string().split('+').find_map(|word| catalogue::find(word)?.names_a_sender)
}

/// The error for an unknown profile name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown profile `{name}`{}; the profiles are {}", hint(.name), Profile::NAMES.join(", "))]
pub struct UnknownProfile {
    /// The name that was typed, in lower case.
    pub name: String,
}

fn hint(name: &str) -> String {
    match nearest_of(name, Profile::NAMES) {
        Some(nearest) => format!(" (did you mean `{nearest}`?)"),
        None => String::new(),
    }
}

impl FromStr for ProfileName {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        let name = text.trim().to_ascii_lowercase();
        let known = Self::ALL.into_iter().find(|known| known.as_str() == name);
        known.ok_or(UnknownProfile { name })
    }
}

/// Returns the common value if all items are equal, so that a table can print it once instead of in each row.
pub fn shared<T: PartialEq>(profiles: impl IntoIterator<Item = T>) -> Option<T> {
    let mut profiles = profiles.into_iter();
    let first = profiles.next()?;
    profiles.all(|profile| profile == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        match text.parse::<SenderSpec>() {
            Ok(sender) => sender.canonical(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn canonical_form_appends_named_profile() {
        assert_eq!(canonical("cubic+SACK@linux"), "sack+cubic@linux");
        assert_eq!(canonical("sack+cubic"), "sack+cubic");
        assert_eq!(canonical("newreno @ Linux"), "newreno@linux");
        assert_eq!(canonical("newreno@default"), "newreno@default");
        for name in Profile::NAMES {
            let sender: SenderSpec = format!("newreno@{name}").parse().unwrap();
            assert_eq!(sender.profile.map(|profile| profile.profile().name), Some(name));
        }
    }

    #[test]
    fn display_keeps_recipe_as_typed() {
        for text in [
            "cubic+sack@linux",
            "limited-transmit+newreno",
            "sack+rack+cubic+prr+hystart+frto+undo-linux+tso-defer",
            "pacing+linux",
            "linux@default",
            "newreno+min-rto=0.2s@ns2",
            "etcp",
        ] {
            let sender: SenderSpec = text.parse().unwrap();
            assert_eq!(sender.to_string(), text);
            assert_eq!(sender.canonical().parse::<SenderSpec>().unwrap().recipe, sender.recipe);
        }
        assert_eq!(
            " Newreno + IW=4 @ Linux".parse::<SenderSpec>().unwrap().to_string(),
            "newreno+iw=4@linux"
        );
        assert_eq!("linux@linux".parse::<SenderSpec>().unwrap().to_string(), "linux");
    }

    #[test]
    fn alias_implies_its_profile() {
        assert_eq!(canonical("linux"), "linux@linux");
        assert_eq!(canonical("pacing+linux"), "linux+pacing@linux");
        assert_eq!(canonical("linux@default"), "linux@default");
        assert_eq!(canonical("sack+rack+cubic+prr+hystart+frto+undo-linux+tso-defer"), "linux");
    }

    #[test]
    fn missing_profile_defaults_to_experiment_profile() {
        let profile = |text: &str| text.parse::<SenderSpec>().unwrap().profile_or(ProfileName::Linux);
        assert_eq!(profile("newreno"), ProfileName::Linux);
        assert_eq!(profile("newreno@ns2"), ProfileName::Ns2);
    }

    #[test]
    fn parse_errors_name_wrong_half_and_suggest_fix() {
        assert_eq!(
            canonical("newreno@linus"),
            "error: unknown profile `linus` (did you mean `linux`?); the profiles are default, linux, freebsd, ns2"
        );
        assert_eq!(
            canonical("newreno@solaris"),
            "error: unknown profile `solaris`; the profiles are default, linux, freebsd, ns2"
        );
        assert_eq!(
            canonical("newreno@"),
            "error: no profile after the `@`; use for example `newreno@linux`, or omit the `@`"
        );
        assert_eq!(canonical("newrno@linux"), "error: unknown algorithm `newrno`: did you mean `newreno`?");
        assert!(canonical("@linux").contains("empty recipe"));
        assert!(canonical("newreno@linux@ns2").contains("unknown profile `linux@ns2`"));
    }

    #[test]
    fn shared_returns_value_only_if_all_equal() {
        assert_eq!(shared(["linux", "linux"]), Some("linux"));
        assert_eq!(shared(["linux", "default"]), None);
        assert_eq!(shared::<&str>([]), None);
    }
}
