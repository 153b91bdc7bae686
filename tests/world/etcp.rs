//! The paths of E-TCP: the rows of P4's Table 1.

use airlink::scenario::Scenario;
use airtcp_sim::world::{Flow, HostSpec, Length, Watch, World, WorldConfig};
use airwire::time::Instant;

/// A row of P4's Table 1: the preset, its base stations, its radio links, the stages that lose data, and the
/// direction of the data.
pub(crate) struct EtcpPath {
    pub(crate) preset: &'static str,
    pub(crate) stations: &'static [&'static str],
    pub(crate) radios: &'static [&'static str],
    pub(crate) errors: &'static [&'static str],
    direction: &'static str,
}

pub(crate) static FIXED_TO_MOBILE: EtcpPath = EtcpPath {
    preset: "etcp-fixed-mobile",
    stations: &["station"],
    radios: &["radio"],
    errors: &["radio-errors"],
    direction: "down",
};
static MOBILE_TO_FIXED: EtcpPath = EtcpPath {
    preset: "etcp-mobile-fixed",
    stations: &["station"],
    radios: &["radio"],
    errors: &["radio-errors-up"],
    direction: "up",
};
static MOBILE_TO_MOBILE: EtcpPath = EtcpPath {
    preset: "etcp-mobile-mobile",
    stations: &["station-1", "station-2"],
    radios: &["radio-1", "radio-2"],
    errors: &["radio-errors-1", "radio-errors-2"],
    direction: "down",
};

impl EtcpPath {
    pub(crate) const ALL: [&'static Self; 3] = [&FIXED_TO_MOBILE, &MOBILE_TO_FIXED, &MOBILE_TO_MOBILE];

    /// Returns P4's path with this packet error rate on each radio link. The rate is 1 Mbit/s, so that there
    /// is a window to reduce. The errors of the wire are removed, because they are neither congestion nor the
    /// radio link.
    pub(crate) fn scenario(&self, per: &str) -> String {
        let mut text = extended(
            self.preset,
            "[[stage]]\nname = \"wire-errors\"\nremove = true\n[[stage]]\nname = \"wire\"\nboth.rate = \"1Mbit\"\n",
        );
        for stage in self.errors {
            text += &format!("[[stage]]\nname = \"{stage}\"\n{}.per = \"{per}\"\n", self.direction);
        }
        text
    }

    pub(crate) fn flow(&self) -> Flow {
        if self.direction == "up" { Flow::up(Length::Endless) } else { Flow::down(Length::Endless) }
    }
}

/// Returns a preset with changes.
pub(crate) fn extended(preset: &str, changes: &str) -> String {
    format!("schema = 1\nextends = \"{preset}\"\n{changes}")
}

/// Runs a flow between two hosts that both use the recipe.
pub(crate) fn run(scenario: &str, recipe: &str, flow: Flow, seed: u64, seconds: u64) -> World {
    let host = || HostSpec::sender(recipe.parse().unwrap());
    let config = WorldConfig {
        scenario: Scenario::parse(scenario, "test").unwrap(),
        seed,
        fixed: host(),
        mobile: host(),
        flows: vec![Flow { watch: Watch::Decisions, ..flow }],
    };
    let mut world = World::new(config).unwrap();
    if let Err(error) = world.run_until(Instant::from_secs(seconds)) {
        panic!("{error}\n{}", world.time_sequence(0));
    }
    world
}
