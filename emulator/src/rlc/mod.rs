//! Radio bearers with a link layer that retransmits damaged blocks: the `rlc` stage.
//!
//! [`umts`], [`lte`] and [`nr`] are bit-exact implementations of RLC for three generations (3GPP TS 25.322,
//! 36.322 and 38.322). LTE and NR share [`am`], the windows, polls and reports of acknowledged mode, and
//! [`service`], their interface to the layers above and below.
//!
//! The other modules carry the PDUs of [`umts`] and connect it to the path:
//!
//! - `transport_channel` carries blocks. `dedicated_channel` is one with its own TTIs, and `block_errors`
//!   decides which of its blocks are damaged;
//! - [`rrc`] re-establishes RLC, and [`switching`] changes the rate of a channel, both as in UMTS;
//! - `ledger` records the outcome of each packet that was submitted to RLC;
//! - [`bearer`] is the stage: it carries PDUs between two RLC entities over two transport channels;
//! - [`cell`] is the stage in which several mobiles share the downlink, with one bearer each;
//! - `incidents` reports events that do not belong to a packet, and [`config`] defines the settings.

pub mod am;
pub mod bearer;
pub(crate) mod block_errors;
pub mod cell;
pub mod config;
mod dedicated_channel;
mod incidents;
pub(crate) mod ledger;
pub mod lte;
pub mod nr;
pub mod rrc;
mod sdu_queue;
mod segments;
pub mod service;
mod sn;
pub mod switching;
mod transport_channel;
pub mod umts;
pub(crate) mod values;

use bearer::Bearer;
use cell::Cell;
use config::RlcConfig;

use crate::settings::{Invalid, Position, Settings};
use crate::stage::Stage;

impl Settings for RlcConfig {
    fn validate(&self) -> Result<(), Invalid> {
        // Not a recursion: an inherent function takes precedence over a trait's function.
        Self::validate(self)
    }

    fn build(&self, position: Position<'_>, seed: u64) -> Result<Box<dyn Stage>, String> {
        let stage: Result<Box<dyn Stage>, Invalid> = match &self.hsdpa {
            None => Bearer::new(self, seed, position.name()).map(|bearer| Box::new(bearer) as _),
            Some(_) => Cell::new(self, seed, position.name()).map(|cell| Box::new(cell) as _),
        };
        stage.map_err(|invalid| invalid.to_string())
    }
}
