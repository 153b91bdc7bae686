//! Settings of LTE and NR data radio bearers, with their meanings and defaults.
//!
//! A setting that a scenario leaves out has its default. The text `"off"` switches off an optional feature, or
//! sets a timer or limit to infinity.

mod dedicated;
mod generation;
mod layers;
mod rrc_values;
#[cfg(test)]
mod tests;
mod transport;

use airwire::time::Duration;
use airwire::units::{Rate, Size};
use serde::{Deserialize, Serialize};

pub use dedicated::DedicatedConfig;
pub(super) use dedicated::Filter;
pub use generation::{Generation, Lte, Nr};
pub use layers::{
    CountAt, Layer, LtePdcpConfig, LteRlcConfig, NrPdcpConfig, NrRlcConfig, PdcpSettings, RlcMode,
    RlcSettings,
};
pub use transport::{DirectionConfig, GrantSettings, HarqSettings, StateConfig};

use crate::mac::drx::DrxConfig;
use crate::mac::grants::GrantConfig;
use crate::mac::grid::{Grid, Pattern};
use crate::mac::harq::HarqConfig;
use crate::mac::link_adaptation::State;
use crate::mac::scheduler::Scheduling;
use crate::packet::{Direction, PerDirection};
use crate::rlc::config::BlockErrors;
use crate::settings::Invalid;
use crate::stage::Technology;
use crate::stages::queue::QueueConfig;
use crate::stages::times::Times;

/// Settings of an NR bearer.
pub type NrConfig = DrbConfig<Nr>;
/// Settings of an LTE bearer.
pub type LteConfig = DrbConfig<Lte>;

/// Settings of a terminal and its bearers: the cell, the two directions, and what happens to the connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, bound = "G: Generation")]
pub struct DrbConfig<G: Generation> {
    /// Length of a slot (LTE: of a subframe). Default: 500 µs in NR; always 1 ms in LTE.
    pub slot: Duration,
    /// TDD pattern, such as `DDDSU`. Default: `DDDSU` in NR, and in LTE `D`, which is FDD.
    pub pattern: Pattern,
    /// The direction from the network to the terminal.
    pub down: DirectionConfig<G>,
    /// The direction from the terminal to the network.
    pub up: DirectionConfig<G>,
    /// A second bearer, with priority over the first. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedicated: Option<DedicatedConfig<G>>,
    /// Changes of the cell. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handover: Option<HandoverConfig>,
    /// Radio link failures.
    pub rlf: RlfConfig,
    /// Discontinuous reception. Absent: the terminal is always active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drx: Option<DrxConfig>,
    /// Other terminals, which share the downlink. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersConfig>,
}

/// Handovers. RLC and PDCP are re-established, and nothing is transmitted during the interruption.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoverConfig {
    /// Times since the start, in ascending order. Default: one period after the start.
    #[serde(default)]
    pub at: Vec<Duration>,
    /// Period after which all times repeat. Absent: they do not repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Time from the command to the first transmission in the other cell.
    pub interruption: Duration,
    /// Whether the source cell forwards the unconfirmed packets of the downlink to the target. Default: true.
    #[serde(default = "yes")]
    pub forwarding: bool,
    /// The other cell, which alternates with the stage's own cell. Absent: both cells are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<CellConfig>,
}

const fn yes() -> bool {
    true
}

/// The cell after a handover.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellConfig {
    /// Length of a slot.
    pub slot: Duration,
    /// TDD pattern.
    pub pattern: Pattern,
    /// Transport blocks of the downlink.
    pub down: CellBlocks,
    /// Transport blocks of the uplink.
    pub up: CellBlocks,
}

/// Transport blocks of one direction of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellBlocks {
    /// Size of a transport block in a full slot.
    pub tbs: Size,
    /// Transport blocks in each slot. Default: 1.
    #[serde(default = "one")]
    pub blocks: usize,
}

const fn one() -> usize {
    1
}

/// Reaction to a radio link failure, which occurs when RLC reaches maxRetxThreshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RlfConfig {
    /// Time until the connection is re-established. Default: 300 ms.
    pub recovery: Duration,
}

impl Default for RlfConfig {
    fn default() -> Self {
        Self { recovery: Duration::from_millis(300) }
    }
}

/// Other terminals of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OthersConfig {
    /// Number of other terminals.
    pub users: u32,
    /// Rate at which each terminal receives data. Absent: each terminal always has data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Size of their transport blocks. Absent: the size that the bearer on the path has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tbs: Option<Size>,
    /// The assignment of slots. Default: round robin.
    #[serde(default)]
    pub scheduler: Scheduling,
    /// Number of slots over which `proportional-fair` averages rates. Default: 1000.
    #[serde(default = "average")]
    pub average: u32,
}

const fn average() -> u32 {
    1000
}

impl<G: Generation> Default for DrbConfig<G> {
    fn default() -> Self {
        Self {
            slot: G::SLOT,
            pattern: G::pattern(),
            down: DirectionConfig::default(),
            up: DirectionConfig::default(),
            dedicated: None,
            handover: None,
            rlf: RlfConfig::default(),
            drx: None,
            others: None,
        }
    }
}

/// The settings of both generations in one form.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DrbSettings {
    pub(super) technology: TechnologyKind,
    /// The first cell, and the cell that alternates with it.
    pub(super) cells: Vec<Cell>,
    pub(super) channels: PerDirection<ChannelSettings>,
    /// In the order of their priority. The last one is the default bearer.
    pub(super) bearers: Vec<BearerSettings>,
    pub(super) handover: Option<(Times, HandoverConfig)>,
    pub(super) rlf: RlfConfig,
    pub(super) drx: Option<DrxConfig>,
    pub(super) others: Option<OthersConfig>,
}

/// Name of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TechnologyKind {
    /// 4G.
    Lte,
    /// 5G.
    Nr,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) slot: Duration,
    pub(super) pattern: Pattern,
    pub(super) blocks: PerDirection<Blocks>,
}

/// Transport blocks of one direction of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Blocks {
    pub(super) per_slot: usize,
    pub(super) states: Vec<State>,
}

/// Settings of a bearer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BearerSettings {
    pub(super) technology: TechnologyKind,
    /// The packets that the bearer carries. `None`: the packets that no other bearer carries.
    pub(super) filter: Option<Filter>,
    pub(super) directions: PerDirection<BearerDirection>,
}

/// Settings of one direction of a bearer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BearerDirection {
    pub(super) rlc: RlcSettings,
    pub(super) pdcp: PdcpSettings,
    pub(super) queue: QueueConfig,
}

/// The settings of a channel that do not depend on the cell. A channel has one direction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChannelSettings {
    pub(super) harq: HarqConfig,
    pub(super) bler: BlockErrors,
    pub(super) retx_bler: f64,
    pub(super) nack_to_ack: f64,
    pub(super) delay: Duration,
    pub(super) grant: GrantConfig,
}

impl BearerSettings {
    /// The format of the radio PDUs.
    pub(super) fn format(&self, direction: Direction) -> Technology {
        let RlcSettings { mode, sn, .. } = self.directions[direction].rlc;
        let sn = sn as u8;
        match (self.technology, mode) {
            (TechnologyKind::Lte, RlcMode::Am) => Technology::Lte { sn },
            (TechnologyKind::Lte, RlcMode::Um) => Technology::LteUm { sn },
            (TechnologyKind::Nr, RlcMode::Am) => Technology::Nr { sn },
            (TechnologyKind::Nr, RlcMode::Um) => Technology::NrUm { sn },
        }
    }

    /// Mode of RLC, which is the same in both directions.
    pub(super) fn mode(&self) -> RlcMode {
        self.directions.down.rlc.mode
    }
}

impl<G: Generation> DrbConfig<G> {
    /// Returns the settings of one direction.
    pub fn direction(&self, direction: Direction) -> &DirectionConfig<G> {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// Checks the settings. The error names the invalid setting and the possible values.
    pub fn validate(&self) -> Result<(), Invalid> {
        slot("slot", self.slot)?;
        if let Some(only) = G::ONLY_SLOT.filter(|only| *only != self.slot) {
            return Err(Invalid::new("slot", format!("an LTE subframe has {only}: remove it")));
        }
        for direction in Direction::BOTH {
            let config = self.direction(direction);
            config.validate(direction).map_err(|invalid| invalid.within(direction.name()))?;
        }
        let [down, up] = Direction::BOTH.map(|direction| self.direction(direction).bearer().rlc);
        if down.mode != up.mode {
            return Err(Invalid::new("up.rlc.mode", "`down` has another mode: write `both`"));
        }
        if down.sn != up.sn {
            let message = format!(
                "{} bits differ from the {} of `down`: RLC has one length, so write `both`",
                up.sn, down.sn
            );
            return Err(Invalid::new("up.rlc.sn", message));
        }
        if let Some(dedicated) = &self.dedicated {
            dedicated.validate(self.is_strict()).map_err(|invalid| invalid.within("dedicated"))?;
        }
        if let Some(handover) = &self.handover {
            handover.validate().map_err(|invalid| invalid.within("handover"))?;
        }
        if let Some(drx) = &self.drx {
            drx.validate().map_err(|invalid| invalid.within("drx"))?;
        }
        match &self.others {
            Some(others) => others.validate().map_err(|invalid| invalid.within("others")),
            None => Ok(()),
        }
    }

    /// Returns a warning for each value that RRC cannot configure or that has no effect.
    pub fn warnings(&self) -> Vec<String> {
        let warnings = Direction::BOTH.into_iter().flat_map(|direction| {
            let violations = self.direction(direction).violations();
            violations.into_iter().map(move |(key, message)| format!("{direction}.{key}: {message}"))
        });
        let dedicated = self.dedicated.iter().flat_map(DedicatedConfig::violations);
        warnings.chain(dedicated.map(|(key, message)| format!("dedicated.{key}: {message}"))).collect()
    }

    fn is_strict(&self) -> bool {
        self.down.strict || self.up.strict
    }

    /// Describes the rate of transport blocks in one direction.
    pub fn remark(&self, direction: Direction) -> String {
        let Blocks { per_slot, states } = self.direction(direction).transport_blocks(direction);
        let share = Grid::new(self.slot, self.pattern.clone()).share(direction);
        let rate = |state: &State| {
            let bits = 8.0 * (state.octets * per_slot) as f64 * share / self.slot.as_secs_f64();
            format!("{:.1}", bits / 1e6)
        };
        let rates: Vec<_> = states.iter().map(rate).collect();
        format!("transport blocks carry {} Mbit/s before retransmissions", rates.join(", "))
    }

    pub(super) fn settings(&self) -> DrbSettings {
        let own = Cell {
            slot: self.slot,
            pattern: self.pattern.clone(),
            blocks: PerDirection::from_fn(|direction| self.direction(direction).transport_blocks(direction)),
        };
        let other = self
            .handover
            .as_ref()
            .map(|handover| handover.cell.as_ref().map_or_else(|| own.clone(), Cell::from));
        let default = BearerSettings {
            technology: G::KIND,
            filter: None,
            directions: PerDirection::from_fn(|direction| self.direction(direction).bearer()),
        };
        DrbSettings {
            technology: G::KIND,
            cells: std::iter::once(own).chain(other).collect(),
            channels: PerDirection::from_fn(|direction| self.direction(direction).channel()),
            bearers: self.dedicated.iter().map(DedicatedConfig::settings).chain([default]).collect(),
            handover: self.handover.as_ref().map(|handover| (handover.times(), handover.clone())),
            rlf: self.rlf,
            drx: self.drx,
            others: self.others,
        }
    }
}

fn slot(key: &str, slot: Duration) -> Result<(), Invalid> {
    let allowed = [62_500, 125_000, 250_000, 500_000, 1_000_000].map(Duration::from_nanos);
    if allowed.contains(&slot) {
        return Ok(());
    }
    let message = format!(
        "{slot} is not the length of a slot: write \"1ms\", \"500us\", \"250us\", \"125us\" or \"62.5us\""
    );
    Err(Invalid::new(key, message))
}

impl From<&CellConfig> for Cell {
    fn from(config: &CellConfig) -> Self {
        let CellConfig { slot, pattern, down, up } = config;
        let blocks = PerDirection { down, up };
        Self {
            slot: *slot,
            pattern: pattern.clone(),
            blocks: PerDirection::from_fn(|direction| Blocks {
                per_slot: blocks[direction].blocks,
                states: vec![State {
                    octets: blocks[direction].tbs.as_bytes() as usize,
                    mean: Duration::ZERO,
                }],
            }),
        }
    }
}

impl HandoverConfig {
    fn times(&self) -> Times {
        let at = if self.at.is_empty() { self.every.into_iter().collect() } else { self.at.clone() };
        Times { at, every: self.every }
    }

    fn validate(&self) -> Result<(), Invalid> {
        // Without times, `airlink ctl` triggers the first handover.
        if !self.times().at.is_empty() {
            self.times().validate("handover")?;
        }
        if self.every.is_some_and(|every| every <= self.interruption) {
            return Err(Invalid::new("interruption", "must be shorter than the time between handovers"));
        }
        match &self.cell {
            Some(cell) => slot("cell.slot", cell.slot),
            None => Ok(()),
        }
    }
}

impl OthersConfig {
    fn validate(&self) -> Result<(), Invalid> {
        if self.average == 0 {
            return Err(Invalid::new("average", "must be at least 1"));
        }
        if self.users > 1000 {
            return Err(Invalid::new("users", "at most 1000 terminals are possible"));
        }
        Ok(())
    }
}
