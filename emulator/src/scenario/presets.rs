//! The scenarios that are built into the program.

use super::Scenario;

/// A scenario that is identified by its name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name for `airlink run -s` and `extends`.
    pub name: &'static str,
    /// Text as written, with comments.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        /// All presets, in the order in which `airlink show` lists them.
        pub const ALL: &[Preset] =
            &[$(Preset { name: $name, text: include_str!(concat!("../../presets/", $name, ".toml")) }),*];
    };
}

presets![
    "lossless",
    "gprs",
    "wcdma-64",
    "wcdma-384",
    "hsdpa-like",
    "lte-20MHz",
    "lte-drx",
    "nr-fr1-100MHz",
    "nr-two-users",
    "nr-cell-edge",
    "nr-mmwave",
    "nr-handover",
    "leo",
    "geo",
    "sifest-random",
    "sifest-clustered",
    "sifest-tiny-window",
    "sifest-resent",
    "sifest-heavy",
    "sifest-fairness",
    "rtt-last-hop",
    "rtt-last-hop-markov",
    "rtt-last-hop-congestion",
    "rtt-broad-backbone-long",
    "rtt-broad-backbone-short",
    "rtt-narrow-backbone",
    "wcdma-384-tsp",
    "wcdma-384-maxdat",
    "wcdma-384-jitter",
    "fast-timeout",
    "tax-rebate",
    "tax-rebate-llrtx",
    "tax-rebate-fairness",
    "etcp-fixed-mobile",
    "etcp-mobile-fixed",
    "etcp-mobile-mobile",
    "etcp-handover",
];

/// Finds a preset by its name.
pub fn find(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}

/// Completions of a scenario name, each with a short description: presets, scenario files, and directories
/// that may contain scenario files.
pub fn complete_name(word: &str) -> Vec<(String, String)> {
    let presets = ALL.iter().filter(|preset| preset.name.starts_with(word)).map(|preset| {
        let meaning = Scenario::load(preset.name).map(|scenario| scenario.description);
        (preset.name.to_owned(), meaning.unwrap_or_default())
    });
    let (directory, start) = word.rsplit_once('/').map_or((".", word), |(directory, start)| {
        (if directory.is_empty() { "/" } else { directory }, start)
    });
    let before = &word[..word.len() - start.len()];
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !start.starts_with('.');
            if hidden || !name.starts_with(start) {
                return None;
            }
            match entry.path().is_dir() {
                true => Some((format!("{before}{name}/"), String::new())),
                false => name.ends_with(".toml").then(|| (format!("{before}{name}"), "a file".to_owned())),
            }
        })
        .collect();
    files.sort();
    presets.chain(files).collect()
}
