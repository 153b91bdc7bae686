//! Recipes and profiles as arguments: any that can be read is taken, and shell completion is offered the names.

use std::ffi::OsStr;

use airtcp::recovery::catalogue;
use airtcp::{ProfileName, Recipe, SenderSpec};
use clap::builder::{PossibleValue, TypedValueParser};

use super::failure::usage;

/// The profile that `--recipe RECIPE@PROFILE` or `--profile` names. `None`: neither does.
///
/// # Errors
/// If they name different ones.
pub(crate) fn one_profile(
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

/// Takes any recipe; offers the names of the catalogue to shell completion.
#[derive(Clone)]
pub(crate) struct RecipeParser;

impl TypedValueParser for RecipeParser {
    type Value = Recipe;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Recipe, clap::Error> {
        let parse = |text: &str| text.parse::<Recipe>();
        TypedValueParser::parse_ref(&parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(catalogue::rows().map(|row| PossibleValue::new(row.name).help(row.summary))))
    }
}

/// The same for a recipe that may name its profile.
#[derive(Clone)]
pub(crate) struct SenderParser;

impl TypedValueParser for SenderParser {
    type Value = SenderSpec;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<SenderSpec, clap::Error> {
        let parse = |text: &str| text.parse::<SenderSpec>();
        TypedValueParser::parse_ref(&parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        RecipeParser.possible_values()
    }
}

/// The same for the name of a profile.
#[derive(Clone)]
pub(crate) struct ProfileParser;

impl TypedValueParser for ProfileParser {
    type Value = ProfileName;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<ProfileName, clap::Error> {
        let parse = |text: &str| text.parse::<ProfileName>();
        TypedValueParser::parse_ref(&parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = ProfileName::ALL.into_iter();
        Some(Box::new(names.map(|name| PossibleValue::new(name.as_str()).help(name.summary()))))
    }
}
