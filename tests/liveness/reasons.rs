//! What some recipes may do that no other may, and why: `reasons.toml`.

use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::recovery::catalogue;
use airwire::time::Duration;
use serde::Deserialize;

use crate::path::PATHS;
use crate::transfer::Case;

/// The file.
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

/// What is said about every recipe with these parts, on these paths and with these profiles.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    /// As it is written: names joined by `+`.
    pub(crate) recipe: String,
    pub(crate) paths: Vec<&'static str>,
    pub(crate) profiles: Vec<&'static str>,
    pub(crate) allows: Allows,
    pub(crate) why: String,
}

/// What they may do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Allows {
    /// Be slow, as long as this fraction of the ordinary recipe's goodput is left.
    Slow { floor: f64 },
    /// Be silent for longer than the retransmission timer allows: so many times the detector's own timer, and so much
    /// more.
    Patient { own_timers: u32, more: Duration },
    /// Fail: it is a known bug.
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
    /// It is about this case.
    pub(crate) fn is_about(&self, case: &Case) -> bool {
        self.paths.contains(&case.path.name)
            && self.profiles.contains(&case.profile)
            && self.recipe.split('+').all(|name| has(&case.recipe, name))
    }
}

/// The recipe names this part, or it is the ordinary answer to a question that the recipe leaves out.
fn has(recipe: &Recipe, name: &str) -> bool {
    let answers = |question| recipe.answer(question).is_some_and(|row| row.name == name);
    recipe.parts().any(|(row, _)| row.name == name)
        || catalogue::find(name).is_some_and(|row| answers(row.question()))
}

/// Reads the file.
pub(crate) fn read(text: &str) -> Result<Vec<Reason>, String> {
    let File { slow, patient, known } = toml::from_str(text).map_err(|error| error.to_string())?;
    let slow = slow.into_iter().map(|Slow { recipe, paths, profiles, floor, reason }| {
        if !(0.0..1.0).contains(&floor) {
            return Err(format!("`{recipe}`: the floor is a fraction of the ordinary recipe's goodput"));
        }
        check(recipe, &paths, profiles.as_deref(), Allows::Slow { floor }, reason)
    });
    let patient =
        patient.into_iter().map(|Patient { recipe, paths, profiles, seconds, own_timers, reason }| {
            if !(0.0..600.0).contains(&seconds) {
                return Err(format!("`{recipe}`: nobody waits {seconds} s"));
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
        return Err(wrong("say why"));
    }
    let names = |written: &[String], known: &[&'static str]| {
        let find =
            |name: &String| known.iter().copied().find(|known| known == name).ok_or_else(|| name.clone());
        let found: Result<Vec<_>, String> = written.iter().map(find).collect();
        found.map_err(|name| wrong(&format!("there is no `{name}`: there are {}", known.join(", "))))
    };
    let paths = names(paths, &PATHS.iter().map(|path| path.name).collect::<Vec<_>>())?;
    let profiles = match profiles {
        Some(profiles) => names(profiles, &Profile::NAMES)?,
        None => Profile::NAMES.to_vec(),
    };
    Ok(Reason { recipe, paths, profiles, allows, why })
}
