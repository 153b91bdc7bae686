//! Senders: a recipe over a TUN device, or this kernel's TCP.

mod program;
mod retransmissions;

use std::fmt;
use std::fs;
use std::str::FromStr;

use airtcp::profile::ProfileName;
use airtcp::recovery::Recipe;
use airtcp::sender::{SenderSpec, shared};
pub use retransmissions::RetransmissionCounts;

use super::LabError;

/// A sender as typed by the user: a recipe, optionally with a profile (`newreno@linux`), or `linux:` and a
/// congestion control.
#[derive(Clone, Debug, PartialEq)]
pub enum TypedSender {
    /// A recipe of this project.
    Recipe(SenderSpec),
    /// This kernel, with a congestion control that `sysctl net.ipv4.tcp_available_congestion_control` lists.
    Kernel(String),
}

impl FromStr for TypedSender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("linux", control)) if is_word(control) => Ok(Self::Kernel(control.to_owned())),
            Some(_) => Err(format!(
                "`{text}` is not a kernel sender; use for example linux:cubic, linux:reno or linux:bbr"
            )),
            None => text.parse().map(Self::Recipe).map_err(|error| error.to_string()),
        }
    }
}

/// Parses the name of a kernel sender.
///
/// # Errors
///
/// Returns an error for any other text. Recipes have an option of their own.
pub fn parse_kernel_sender(text: &str) -> Result<TypedSender, String> {
    match text.parse() {
        Ok(TypedSender::Recipe(_)) => {
            Err(format!("`{text}` is a recipe; use --recipe {text}, or linux:{text} for the kernel sender"))
        }
        Ok(kernel @ TypedSender::Kernel(_)) => Ok(kernel),
        Err(_) if text.contains(':') => text.parse(),
        Err(_) => Err(format!("`{text}` is not a kernel sender; use for example linux:{text}")),
    }
}

/// Checks that this kernel has a congestion control of this name.
///
/// # Errors
///
/// Returns an error that lists the available algorithms if this one is not available.
pub fn check_congestion_control(name: &str) -> Result<(), LabError> {
    let available =
        fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    if available.split_whitespace().any(|other| other == name) {
        return Ok(());
    }
    Err(LabError::Environment(format!(
        "this kernel has no congestion control `{name}`, only {}; try modprobe tcp_{name}",
        available.trim()
    )))
}

/// Formats the sender so that it can be parsed again.
impl fmt::Display for TypedSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recipe(spec) => spec.fmt(f),
            Self::Kernel(control) => write!(f, "linux:{control}"),
        }
    }
}

/// A sender of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sender {
    /// The unique name in tables, files and directories.
    pub name: String,
    /// The kind of sender.
    pub kind: Kind,
}

/// The kind of a sender.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `airtcp send` with this recipe and profile.
    Recipe {
        /// The loss recovery.
        recipe: Recipe,
        /// The TCP stack that the sender imitates in all other respects.
        profile: ProfileName,
    },
    /// `airtcp source`: this kernel with this congestion control.
    Kernel(String),
}

/// Determines the name and the profile of each sender of an experiment.
///
/// A sender keeps the profile that it names. The others get `profile`. If that is `None`, they get `linux` if
/// the experiment has a kernel sender, so that both are comparable, and `default` otherwise. If all recipes
/// have the same profile, their names omit it.
///
/// # Errors
///
/// Returns an error if a sender is given twice, even in different spellings.
pub fn resolve(typed: &[TypedSender], profile: Option<ProfileName>) -> Result<Vec<Sender>, String> {
    let profile = profile.unwrap_or_else(|| default_profile(typed));
    let kinds: Vec<_> = typed.iter().map(|typed| typed.kind(profile)).collect();
    if let Some((_, kind)) = kinds.iter().enumerate().find(|(index, kind)| kinds[..*index].contains(kind)) {
        return Err(format!(
            "the sender {kind} is given twice; omit one of them, or use another profile for it"
        ));
    }
    let common = shared(kinds.iter().filter_map(Kind::profile));
    let name = |kind: &Kind| match kind {
        Kind::Recipe { recipe, .. } if common.is_some() => recipe.to_string(),
        kind => kind.to_string(),
    };
    Ok(kinds.into_iter().map(|kind| Sender { name: name(&kind), kind }).collect())
}

/// The profile of recipes that do not name one, if the user does not set it.
pub fn default_profile<'a>(typed: impl IntoIterator<Item = &'a TypedSender>) -> ProfileName {
    let has_kernel_sender = typed.into_iter().any(|typed| matches!(typed, TypedSender::Kernel(_)));
    if has_kernel_sender { ProfileName::Linux } else { ProfileName::Default }
}

/// The competitors of an experiment. The same sender may occur several times. Each name includes its profile.
pub fn competitors(typed: &[TypedSender], profile: ProfileName) -> Vec<Sender> {
    let kinds = typed.iter().map(|typed| typed.kind(profile));
    kinds.map(|kind| Sender { name: kind.to_string(), kind }).collect()
}

impl TypedSender {
    fn kind(&self, profile: ProfileName) -> Kind {
        match self {
            Self::Recipe(spec) => {
                Kind::Recipe { recipe: spec.recipe.clone(), profile: spec.profile_or(profile) }
            }
            Self::Kernel(control) => Kind::Kernel(control.clone()),
        }
    }
}

/// Returns the index of the typed sender among the senders of an experiment.
///
/// # Errors
///
/// Returns an error if no sender matches.
pub fn index_of(senders: &[Sender], typed: &TypedSender) -> Result<usize, String> {
    senders.iter().position(|sender| sender.kind.matches(typed)).ok_or_else(|| {
        let names: Vec<_> = senders.iter().map(|sender| sender.name.as_str()).collect();
        format!("unknown sender {typed}; the senders of this experiment are {}", names.join(", "))
    })
}

impl Kind {
    /// The profile, or `None` for a kernel sender.
    pub fn profile(&self) -> Option<ProfileName> {
        match self {
            Self::Recipe { profile, .. } => Some(*profile),
            Self::Kernel(_) => None,
        }
    }

    /// Returns true if `typed` describes this sender. The order of the recipe's parts does not matter, and
    /// the profile may be missing.
    fn matches(&self, typed: &TypedSender) -> bool {
        match (typed, self) {
            (TypedSender::Recipe(spec), Self::Recipe { recipe, profile }) => {
                spec.recipe == *recipe && spec.profile_or(*profile) == *profile
            }
            (TypedSender::Kernel(typed), Self::Kernel(control)) => typed == control,
            _ => false,
        }
    }
}

/// Formats the sender without relying on any default.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recipe { recipe, profile } => write!(f, "{recipe}@{profile}"),
            Self::Kernel(control) => write!(f, "linux:{control}"),
        }
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

impl Sender {
    /// The name of the profile for files, or `None` for a kernel sender.
    pub(crate) fn profile(&self) -> Option<String> {
        self.kind.profile().map(|profile| profile.to_string())
    }

    /// Returns true if `text` describes this sender, with or without its profile. Older files may use other
    /// spellings.
    pub(crate) fn matches(&self, text: &str) -> bool {
        text.parse().is_ok_and(|typed| self.kind.matches(&typed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name and the kind of each sender.
    fn resolved(senders: &[&str], profile: Option<ProfileName>) -> Vec<(String, String)> {
        let typed: Vec<TypedSender> = senders.iter().map(|text| text.parse().unwrap()).collect();
        let senders = resolve(&typed, profile).unwrap();
        senders.into_iter().map(|sender| (sender.name, sender.kind.to_string())).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|&(name, kind)| (name.to_owned(), kind.to_owned())).collect()
    }

    #[test]
    fn recipes_next_to_kernel_senders_use_linux_profile() {
        let expected = [("newreno", "newreno@linux"), ("linux:cubic", "linux:cubic")];
        assert_eq!(resolved(&["newreno", "linux:cubic"], None), pairs(&expected));
        assert_eq!(resolved(&["newreno"], None), pairs(&[("newreno", "newreno@default")]));
    }

    #[test]
    fn sender_profile_overrides_option_and_option_overrides_default() {
        let said = Some(ProfileName::FreeBsd);
        let expected = [("newreno", "newreno@freebsd"), ("linux:bbr", "linux:bbr")];
        assert_eq!(resolved(&["newreno", "linux:bbr"], said), pairs(&expected));
        let expected = [("newreno@ns2", "newreno@ns2"), ("sack@freebsd", "sack@freebsd")];
        assert_eq!(resolved(&["newreno@ns2", "sack"], said), pairs(&expected));
    }

    #[test]
    fn sender_is_found_by_name_with_profile() {
        let typed: Vec<TypedSender> =
            ["newreno@linux", "newreno", "linux:cubic"].iter().map(|text| text.parse().unwrap()).collect();
        let senders = resolve(&typed, Some(ProfileName::Default)).unwrap();
        let index_of = |text: &str| index_of(&senders, &text.parse().unwrap());
        let indices = ["newreno@linux", "newreno@default", "linux:cubic"].map(|text| index_of(text).unwrap());
        assert_eq!(indices, [0, 1, 2]);
        assert_eq!(
            index_of("linux:bbr").unwrap_err(),
            "unknown sender linux:bbr; the senders of this experiment are newreno@linux, newreno@default, linux:cubic"
        );
    }

    #[test]
    fn names_include_profile_only_when_ambiguous() {
        let expected = [("newreno@linux", "newreno@linux"), ("newreno@default", "newreno@default")];
        assert_eq!(resolved(&["newreno@linux", "newreno"], None), pairs(&expected));
        let expected = [("newreno", "newreno@linux"), ("sack", "sack@linux")];
        assert_eq!(resolved(&["newreno@linux", "sack@linux"], None), pairs(&expected));
    }

    #[test]
    fn sender_under_two_names_is_rejected() {
        let typed = ["newreno", "newreno@linux", "linux:reno"].map(|text| text.parse().unwrap());
        assert!(resolve(&typed, None).unwrap_err().contains("newreno@linux is given twice"));
        assert!(resolve(&typed, Some(ProfileName::Default)).is_ok());
    }

    #[test]
    fn sender_matches_name_with_or_without_profile() {
        let typed = ["sack".parse().unwrap(), "linux:cubic".parse().unwrap()];
        let [sack, cubic] = resolve(&typed, None).unwrap().try_into().unwrap();
        assert!(
            sack.matches("sack")
                && sack.matches("sack@linux")
                && !sack.matches("sack@default")
                && !sack.matches("newreno")
        );
        assert!(cubic.matches("linux:cubic") && !cubic.matches("linux:reno"));
        let typed = ["newreno+limited-transmit".parse().unwrap()];
        let [sender] = resolve(&typed, None).unwrap().try_into().unwrap();
        assert!(sender.matches("limited-transmit+newreno") && sender.matches("limited-transmit@default"));
    }
}
