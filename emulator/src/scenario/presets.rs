//! The scenarios that come with the program.

/// A scenario that is known by its name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// What `airlink run -s` and `extends` take.
    pub name: &'static str,
    /// As it was written, with its comments.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        /// In the order in which `airlink show` lists them.
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

/// `None`: there is no such preset.
pub fn find(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}
