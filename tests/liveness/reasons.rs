//! The exceptions in `reasons.toml`: limits that certain recipes may exceed, with the reason for each.

use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::recovery::catalogue;
use airwire::time::Duration;
use serde::Deserialize;

use crate::path::PATHS;
use crate::transfer::Case;

/// The contents of `reasons.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    slow: Vec<Slow>,
    #[serde(default)]
    patient: Vec<Patient>,
    #[serde(default)]
    known: Vec<Known>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Slow {
    recipe: String,
    paths: Vec<String>,
    profiles: Option<Vec<String>>,
    floor: f64,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patient {
    recipe: String,
    paths: Vec<String>,
    profiles: Option<Vec<String>>,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    own_timers: u32,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    recipe: String,
    paths: Vec<String>,
    profiles: Option<Vec<String>>,
    cause: String,
}

/// An exception for every recipe with these parts, on these paths and with these profiles.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    /// Names joined by `+`, as written in the file.
    pub(crate) recipe: String,
    pub(crate) paths: Vec<&'static str>,
    pub(crate) profiles: Vec<&'static str>,
    pub(crate) allows: Allows,
    pub(crate) why: String,
}

/// The limit that the recipes may exceed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Allows {
    /// Goodput: this fraction of the default recipe's goodput is enough.
    Slow { floor: f64 },
    /// Silence: the sender may be silent for longer than the retransmission timer allows, namely for
    /// `own_timers` times the detector's own timer plus `more`.
    Patient { own_timers: u32, more: Duration },
    /// Any failure: a known bug.
    Anything,
}

impl Allows {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Slow { .. } => "slow",
            Self::Patient { .. } => "patient",
            Self::Anything => "known",
        }
    }
}

impl Reason {
    /// Returns whether the exception applies to the case.
    pub(crate) fn is_about(&self, case: &Case) -> bool {
        self.paths.contains(&case.path.name)
            && self.profiles.contains(&case.profile)
            && self.recipe.split('+').all(|name| has(&case.recipe, name))
    }
}

/// Returns whether the recipe contains the part, explicitly or as the default answer to a question that the
/// recipe leaves out.
fn has(recipe: &Recipe, name: &str) -> bool {
    let answers = |question| recipe.answer(question).is_some_and(|row| row.name == name);
    recipe.parts().any(|(row, _)| row.name == name)
        || catalogue::find(name).is_some_and(|row| answers(row.question()))
}

/// Parses `reasons.toml`.
pub(crate) fn read(text: &str) -> Result<Vec<Reason>, String> {
    let File { slow, patient, known } = toml::from_str(text).map_err(|error| error.to_string())?;
    let slow = slow.into_iter().map(|Slow { recipe, paths, profiles, floor, reason }| {
        if !(0.0..1.0).contains(&floor) {
            return Err(format!("`{recipe}`: `floor` must be at least 0 and less than 1, not {floor}"));
        }
        check(recipe, &paths, profiles.as_deref(), Allows::Slow { floor }, reason)
    });
    let patient =
        patient.into_iter().map(|Patient { recipe, paths, profiles, seconds, own_timers, reason }| {
            if !(0.0..600.0).contains(&seconds) {
                return Err(format!(
                    "`{recipe}`: `seconds` must be at least 0 and less than 600, not {seconds}"
                ));
            }
            let more = Duration::from_secs_f64(seconds);
            check(recipe, &paths, profiles.as_deref(), Allows::Patient { own_timers, more }, reason)
        });
    let known = known.into_iter().map(|Known { recipe, paths, profiles, cause }| {
        check(recipe, &paths, profiles.as_deref(), Allows::Anything, cause)
    });
    slow.chain(patient).chain(known).collect()
}

fn check(
    recipe: String,
    paths: &[String],
    profiles: Option<&[String]>,
    allows: Allows,
    why: String,
) -> Result<Reason, String> {
    let wrong = |what: &str| format!("`{recipe}`: {what}");
    recipe.parse::<Recipe>().map_err(|error| wrong(&error.to_string()))?;
    if why.is_empty() {
        return Err(wrong("the reason is empty"));
    }
    let names = |written: &[String], known: &[&'static str]| {
        let find =
            |name: &String| known.iter().copied().find(|known| known == name).ok_or_else(|| name.clone());
        let found: Result<Vec<_>, String> = written.iter().map(find).collect();
        found.map_err(|name| wrong(&format!("unknown name `{name}`; use one of {}", known.join(", "))))
    };
    let paths = names(paths, &PATHS.iter().map(|path| path.name).collect::<Vec<_>>())?;
    let profiles = match profiles {
        Some(profiles) => names(profiles, &Profile::NAMES)?,
        None => Profile::NAMES.to_vec(),
    };
    Ok(Reason { recipe, paths, profiles, allows, why })
}
