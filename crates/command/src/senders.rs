//! Parsers for recipes and profiles on the command line. They accept any valid recipe, and offer the names of
//! the catalogue to shell completion.

use std::ffi::OsStr;

use airhelp::completion::Candidate;
use airtcp::recovery::catalogue;
use airtcp::sender;
use airtcp::{ProfileName, Recipe, SenderSpec};
use clap::builder::{PossibleValue, TypedValueParser};

use crate::failure::usage;

/// Returns the profile that `--recipe RECIPE@PROFILE` or `--profile` names, or `None` if neither does.
///
/// # Errors
/// If they name different profiles.
pub fn one_profile(
    recipe: Option<&SenderSpec>,
    profile: Option<ProfileName>,
) -> anyhow::Result<Option<ProfileName>> {
    let own = recipe.and_then(|spec| spec.profile);
    match (recipe, profile) {
        (Some(recipe), Some(other)) if own.is_some_and(|own| own != other) => {
            Err(usage(format!("{recipe} and --profile {other} name two profiles: leave one of them out")))
        }
        _ => Ok(own.or(profile)),
    }
}

/// Returns the completions of a partly typed recipe. After a `+`, these are the algorithms that are
/// compatible with the text before the `+`. After the `@`, they are the profiles.
pub fn recipes_like(word: &str) -> Vec<Candidate> {
    let like = sender::completions(word).into_iter();
    like.map(|(value, meaning)| Candidate::new(value, meaning)).collect()
}

/// Defines a parser that accepts any valid value, and offers known values to shell completion.
macro_rules! parser {
    ($(#[$doc:meta])* $name:ident, $value:ty, $known:expr) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name;

        impl TypedValueParser for $name {
            type Value = $value;

            fn parse_ref(
                &self,
                command: &clap::Command,
                argument: Option<&clap::Arg>,
                value: &OsStr,
            ) -> Result<$value, clap::Error> {
                let parse = |text: &str| text.parse::<$value>();
                TypedValueParser::parse_ref(&parse, command, argument, value)
            }

            fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
                Some(Box::new($known))
            }
        }
    };
}

parser!(
    /// Parses any recipe, and offers the names of the catalogue to shell completion.
    RecipeParser, Recipe, recipe_names()
);
parser!(
    /// Like [`RecipeParser`], for a recipe with an optional profile.
    SenderParser, SenderSpec, recipe_names()
);
parser!(
    /// Parses the name of a profile, and offers all names to shell completion.
    ProfileParser,
    ProfileName,
    ProfileName::ALL.into_iter().map(|name| PossibleValue::new(name.as_str()).help(name.summary()))
);

fn recipe_names() -> impl Iterator<Item = PossibleValue> {
    catalogue::rows().map(|row| PossibleValue::new(row.name).help(row.summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completions_of(word: &str) -> Vec<String> {
        let all = recipes_like(word).into_iter().map(|candidate| candidate.value);
        all.filter(|value| value.starts_with(word)).collect()
    }

    #[test]
    fn recipe_is_completed_word_by_word() {
        assert_eq!(completions_of("taho"), ["tahoe"]);
        assert_eq!(completions_of("sack+lim"), ["sack+limited-transmit"]);
        assert_eq!(completions_of("sack+tah"), Vec::<String>::new(), "sack and tahoe contradict each other");
        assert_eq!(completions_of("newreno+min-r"), ["newreno+min-rto="]);
        assert_eq!(completions_of("newreno+eifel@l"), ["newreno+eifel@linux"]);
        assert_eq!(completions_of("newreno@").len(), ProfileName::ALL.len());
        assert_eq!(completions_of("newrno@l"), Vec::<String>::new());
        assert!(completions_of("").len() > 40);
    }
}
