//! Settings of one direction: transport blocks, HARQ, grants and queue.

use std::marker::PhantomData;

use airwire::time::Duration;
use airwire::units::{Probability, Size};
use serde::{Deserialize, Serialize};

use super::generation::Generation;
use super::layers::Layer;
use super::{BearerDirection, Blocks, ChannelSettings, TechnologyKind};
use crate::mac::grants::GrantConfig;
use crate::mac::harq::HarqConfig;
use crate::mac::link_adaptation::State;
use crate::mac::transport_block::{MAX_PRB, NrBlock, lte_octets};
use crate::packet::Direction;
use crate::rlc::config::BlockErrors;
use crate::rlc::values::off;
use crate::settings::Invalid;
use crate::stages::queue::QueueConfig;

/// Settings of one direction.
///
/// The size of transport blocks is given by `tbs`, by `states`, or by resources and coding: `prb`, `mcs`,
/// `mcs_table` and `layers` in NR, `prb` and `i_tbs` in LTE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, bound = "G: Generation")]
pub struct DirectionConfig<G: Generation> {
    /// Size of a transport block in a full slot. `"0B"` blocks the direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tbs: Option<Size>,
    /// Physical resource blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prb: Option<u32>,
    /// NR: index into the MCS table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcs: Option<u32>,
    /// NR: MCS table 1 (64QAM) or 2 (256QAM). Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcs_table: Option<u32>,
    /// NR: layers of spatial multiplexing. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<u32>,
    /// LTE: row of the table of transport block sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub i_tbs: Option<u32>,
    /// Transport blocks in each slot: carriers, or codewords of LTE. Default: 1 (LTE down: 2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<usize>,
    /// States of a channel that varies. From each state, the channel moves to the previous or the next one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StateConfig>,
    /// HARQ, and the errors of its transmissions.
    pub harq: HarqSettings<G>,
    /// Time from the end of a slot to the arrival of its packets at the other end. Default: 2 ms.
    pub delay: Duration,
    /// Grants. Only in `up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantSettings<G>>,
    /// RLC of this direction.
    pub rlc: G::Rlc,
    /// PDCP of this direction.
    pub pdcp: G::Pdcp,
    /// Queue of the packets whose transmission has not begun. Default: no bound.
    pub queue: QueueConfig,
    /// Whether values that RRC cannot configure are errors. Otherwise they cause warnings. Default: false.
    pub strict: bool,
}

/// A state of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateConfig {
    /// Size of a transport block in a full slot. `"0B"` blocks the direction.
    pub tbs: Size,
    /// Mean time in this state, which has an exponential distribution.
    pub mean: Duration,
}

/// HARQ of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, bound = "G: Generation")]
pub struct HarqSettings<G: Generation> {
    /// Number of processes for each transport block of a slot. Default: 16 in NR, 8 in LTE.
    pub processes: usize,
    /// Time from a transmission to its retransmission. Default: 5 ms in NR, 8 ms in LTE.
    pub round_trip: Duration,
    /// Maximum number of transmissions of a block, including the first. Default: 5 in NR, 4 in LTE.
    pub transmissions: u32,
    /// Errors of first transmissions. Default: none.
    pub bler: BlockErrors,
    /// Probability that a retransmission fails. Default: 10 %.
    pub retx_bler: Probability,
    /// Probability that a NACK is read as an ACK. Default: 0.
    pub nack_to_ack: Probability,
    #[serde(skip)]
    #[doc(hidden)]
    pub generation: PhantomData<G>,
}

/// Grants of the uplink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, bound = "G: Generation")]
pub struct GrantSettings<G: Generation> {
    /// Period of the opportunities for scheduling requests. Off: every slot is granted without a request.
    /// Default: 10 ms.
    #[serde(with = "off")]
    pub sr_period: Option<Duration>,
    /// Time from a request or a buffer status report to the granted slot. Default: 4 ms in NR, 8 ms in LTE.
    pub delay: Duration,
    /// Maximum size of the first grant after a request. Absent: a whole transport block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Size>,
    #[serde(skip)]
    #[doc(hidden)]
    pub generation: PhantomData<G>,
}

impl<G: Generation> Default for DirectionConfig<G> {
    fn default() -> Self {
        Self {
            tbs: None,
            prb: None,
            mcs: None,
            mcs_table: None,
            layers: None,
            i_tbs: None,
            blocks: None,
            states: Vec::new(),
            harq: HarqSettings::default(),
            delay: Duration::from_millis(2),
            grant: None,
            rlc: G::Rlc::default(),
            pdcp: G::Pdcp::default(),
            queue: QueueConfig::default(),
            strict: false,
        }
    }
}

impl<G: Generation> Default for HarqSettings<G> {
    fn default() -> Self {
        let HarqConfig { processes, round_trip, transmissions } = G::HARQ;
        Self {
            processes,
            round_trip,
            transmissions,
            bler: BlockErrors::default(),
            retx_bler: Probability::new(0.1),
            nack_to_ack: Probability::ZERO,
            generation: PhantomData,
        }
    }
}

impl<G: Generation> Default for GrantSettings<G> {
    fn default() -> Self {
        let (sr_period, delay) = G::GRANT;
        Self { sr_period: Some(sr_period), delay, first: None, generation: PhantomData }
    }
}

impl<G: Generation> DirectionConfig<G> {
    /// Returns the settings that RRC cannot configure, with their keys.
    pub(super) fn violations(&self) -> Vec<(String, String)> {
        violations::<G>(&self.rlc, &self.pdcp)
    }

    /// Size of a transport block from resources and coding. `None`: they are not set.
    fn coded(&self) -> Result<Option<usize>, Invalid> {
        let nr = [("mcs", self.mcs), ("mcs_table", self.mcs_table), ("layers", self.layers)];
        let lte = [("i_tbs", self.i_tbs)];
        let (foreign, kind) = match G::KIND {
            TechnologyKind::Nr => (&lte[..], "lte"),
            TechnologyKind::Lte => (&nr[..], "nr"),
        };
        if let Some((key, _)) = foreign.iter().find(|(_, value)| value.is_some()) {
            return Err(Invalid::new(*key, format!("valid only with the kind \"{kind}\": remove it")));
        }
        let coding = match G::KIND {
            TechnologyKind::Nr => self.mcs,
            TechnologyKind::Lte => self.i_tbs,
        };
        let (Some(prb), Some(coding)) = (self.prb, coding) else {
            let set = nr.into_iter().chain(lte).chain([("prb", self.prb)]).find(|(_, value)| value.is_some());
            return match set {
                None => Ok(None),
                Some((key, _)) => {
                    let message = match G::KIND {
                        TechnologyKind::Nr => "needs both `prb` and `mcs`: add them, or remove it",
                        TechnologyKind::Lte => "needs both `prb` and `i_tbs`: add them, or remove it",
                    };
                    Err(Invalid::new(key, message))
                }
            };
        };
        match G::KIND {
            TechnologyKind::Nr => self.nr_octets(prb, coding).map(Some),
            TechnologyKind::Lte => lte_octets(prb, coding).map(Some).ok_or_else(|| {
                let message = "no known size of an LTE transport block: write 50 or 100 for `prb` and 0 to 26 for `i_tbs`, or `tbs`";
                Invalid::new("i_tbs", message)
            }),
        }
    }

    fn nr_octets(&self, prb: u32, mcs: u32) -> Result<usize, Invalid> {
        let (table, layers) = (self.mcs_table.unwrap_or(2), self.layers.unwrap_or(1));
        for (key, value, most) in [("prb", prb, MAX_PRB), ("mcs_table", table, 2), ("layers", layers, 8)] {
            if !(1..=most).contains(&value) {
                return Err(Invalid::new(key, format!("{value} is not possible: write 1 to {most}")));
            }
        }
        // Choice: one symbol of a slot carries control channels, and one carries the DM-RS.
        let block = NrBlock { prb, mcs, table, layers, symbols: 13, dmrs: 12 };
        let last = if table == 1 { 28 } else { 27 };
        block.octets().ok_or_else(|| {
            Invalid::new("mcs", format!("{mcs} is not in MCS table {table}: write 0 to {last}"))
        })
    }

    pub(super) fn transport_blocks(&self, direction: Direction) -> Blocks {
        let (octets, per_slot) = G::transport_blocks(direction);
        let is_default = self.tbs.is_none() && self.states.is_empty() && self.prb.is_none();
        let per_slot = self.blocks.unwrap_or(if is_default { per_slot } else { 1 });
        let coded = self.coded().ok().flatten().unwrap_or(octets);
        let states = if self.states.is_empty() {
            let octets = self.tbs.map_or(coded, |tbs| tbs.as_bytes() as usize);
            vec![State { octets, mean: Duration::ZERO }]
        } else {
            let state =
                |state: &StateConfig| State { octets: state.tbs.as_bytes() as usize, mean: state.mean };
            self.states.iter().map(state).collect()
        };
        Blocks { per_slot, states }
    }

    /// The settings of the bearer of this direction.
    pub(super) fn bearer(&self) -> BearerDirection {
        BearerDirection { rlc: self.rlc.settings(), pdcp: self.pdcp.settings(), queue: self.queue }
    }

    /// The settings of the channel, which all bearers share.
    pub(super) fn channel(&self) -> ChannelSettings {
        let grant = self.grant.clone().unwrap_or_default();
        let HarqSettings { processes, round_trip, transmissions, .. } = self.harq;
        ChannelSettings {
            harq: HarqConfig { processes, round_trip, transmissions },
            bler: self.harq.bler.clone(),
            retx_bler: self.harq.retx_bler.value(),
            nack_to_ack: self.harq.nack_to_ack.value(),
            delay: self.delay,
            grant: GrantConfig {
                sr_period: grant.sr_period,
                delay: grant.delay,
                first: grant.first.map(|first| first.as_bytes() as usize),
            },
        }
    }

    pub(super) fn validate(&self, direction: Direction) -> Result<(), Invalid> {
        let coded = self.coded()?;
        let sources =
            [("tbs", self.tbs.is_some()), ("states", !self.states.is_empty()), ("prb", coded.is_some())];
        if let [(first, _), (second, _), ..] = *Vec::from_iter(sources.into_iter().filter(|(_, set)| *set)) {
            let message = format!("`{first}` also sets the size of transport blocks: remove one of them");
            return Err(Invalid::new(second, message));
        }
        for (n, state) in self.states.iter().enumerate() {
            if state.mean.is_zero() {
                let message = "must be above 0: write for example \"200ms\"";
                return Err(Invalid::new(format!("states.{n}.mean"), message));
            }
        }
        if self.blocks.is_some_and(|blocks| !(1..=32).contains(&blocks)) {
            return Err(Invalid::new("blocks", "not a number of carriers or codewords: write 1 to 32"));
        }
        self.harq.validate().map_err(|invalid| invalid.within("harq"))?;
        match &self.grant {
            Some(_) if direction == Direction::Down => {
                return Err(Invalid::new("grant", "only the uplink needs grants: move it to `up`"));
            }
            Some(grant) if grant.sr_period.is_some_and(Duration::is_zero) => {
                let message = "must be above 0: write for example \"10ms\", or \"off\"";
                return Err(Invalid::new("grant.sr_period", message));
            }
            _ => {}
        }
        validate_layers::<G>(&self.rlc, &self.pdcp)?;
        if self.strict
            && let Some((key, message)) = self.violations().into_iter().next()
        {
            return Err(Invalid::new(key, message));
        }
        self.queue.validate().map_err(|invalid| invalid.within("queue"))
    }
}

/// Checks the layers of a bearer.
pub(super) fn validate_layers<G: Generation>(rlc: &G::Rlc, pdcp: &G::Pdcp) -> Result<(), Invalid> {
    rlc.validate().map_err(|invalid| invalid.within("rlc"))?;
    pdcp.validate().map_err(|invalid| invalid.within("pdcp"))?;
    pdcp.settings().validate_with(rlc.settings().mode).map_err(|invalid| invalid.within("pdcp"))
}

/// The settings of the layers that RRC cannot configure, with their keys.
pub(super) fn violations<G: Generation>(rlc: &G::Rlc, pdcp: &G::Pdcp) -> Vec<(String, String)> {
    let within = |layer: &'static str| move |(key, message)| (format!("{layer}.{key}"), message);
    let rlc = rlc.violations().into_iter().map(within("rlc"));
    rlc.chain(pdcp.violations().into_iter().map(within("pdcp"))).collect()
}

impl<G: Generation> HarqSettings<G> {
    fn validate(&self) -> Result<(), Invalid> {
        if !(1..=32).contains(&self.processes) {
            return Err(Invalid::new("processes", "not a number of HARQ processes: write 1 to 32"));
        }
        if self.transmissions == 0 {
            return Err(Invalid::new("transmissions", "must be at least 1"));
        }
        if self.round_trip.is_zero() {
            return Err(Invalid::new("round_trip", "must be above 0: write for example \"5ms\""));
        }
        self.bler.validate().map_err(|invalid| invalid.within("bler"))
    }
}
