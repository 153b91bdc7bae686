//! A second bearer, for packets with priority.

use airwire::view::View;
use serde::{Deserialize, Serialize};

use super::generation::Generation;
use super::layers::Layer;
use super::transport::{validate_layers, violations};
use super::{BearerDirection, BearerSettings};
use crate::packet::PerDirection;
use crate::settings::Invalid;
use crate::stages::queue::QueueConfig;

/// Expedited forwarding (RFC 3246).
const EF: u8 = 46;
/// Largest DSCP (RFC 2474).
const MAX_DSCP: u8 = 63;

/// Settings of a bearer with priority over the default bearer. They apply to both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, bound = "G: Generation")]
pub struct DedicatedConfig<G: Generation> {
    /// The bearer carries packets with one of these DSCPs. Default: 46.
    pub dscp: Vec<u8>,
    /// It also carries packets with one of these ports as source or destination.
    pub ports: Vec<u16>,
    /// RLC.
    pub rlc: G::Rlc,
    /// PDCP.
    pub pdcp: G::Pdcp,
    /// Queue of the packets whose transmission has not begun. Default: no bound.
    pub queue: QueueConfig,
}

impl<G: Generation> Default for DedicatedConfig<G> {
    fn default() -> Self {
        Self {
            dscp: vec![EF],
            ports: Vec::new(),
            rlc: G::Rlc::default(),
            pdcp: G::Pdcp::default(),
            queue: QueueConfig::default(),
        }
    }
}

impl<G: Generation> DedicatedConfig<G> {
    pub(super) fn validate(&self, strict: bool) -> Result<(), Invalid> {
        if self.dscp.is_empty() && self.ports.is_empty() {
            return Err(Invalid::new("dscp", "no packet would use the bearer: write `dscp` or `ports`"));
        }
        if let Some(dscp) = self.dscp.iter().find(|dscp| **dscp > MAX_DSCP) {
            return Err(Invalid::new("dscp", format!("{dscp} is not a DSCP: write 0 to {MAX_DSCP}")));
        }
        validate_layers::<G>(&self.rlc, &self.pdcp)?;
        if strict && let Some((key, message)) = self.violations().into_iter().next() {
            return Err(Invalid::new(key, message));
        }
        self.queue.validate().map_err(|invalid| invalid.within("queue"))
    }

    /// Returns the settings that RRC cannot configure, with their keys.
    pub(super) fn violations(&self) -> Vec<(String, String)> {
        violations::<G>(&self.rlc, &self.pdcp)
    }

    pub(super) fn settings(&self) -> BearerSettings {
        BearerSettings {
            technology: G::KIND,
            filter: Some(Filter { dscp: self.dscp.clone(), ports: self.ports.clone() }),
            directions: PerDirection::from_fn(|_| BearerDirection {
                rlc: self.rlc.settings(),
                pdcp: self.pdcp.settings(),
                queue: self.queue,
            }),
        }
    }
}

/// The packets of a bearer.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::drb) struct Filter {
    dscp: Vec<u8>,
    ports: Vec<u16>,
}

impl Filter {
    /// Whether the bearer carries this packet. Fragments after the first have no ports.
    pub(in crate::drb) fn matches(&self, packet: &[u8]) -> bool {
        let Ok(view) = View::of(packet) else { return false };
        let ports = if self.ports.is_empty() { None } else { view.ports() };
        self.dscp.contains(&view.dscp())
            || ports.is_some_and(|ports| ports.iter().any(|port| self.ports.contains(port)))
    }
}
