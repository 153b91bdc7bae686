//! Radio bearers with a link layer that repeats what the air damages. The `rlc` stage.
//!
//! What is UMTS in bits is in [`umts`]: RLC acknowledged mode, 3GPP TS 25.322. What any radio has stands beside it:
//!
//! - `air` lays TTIs on their grid and carries blocks, and `channel` damages some of them;
//! - [`rrc`] starts the protocol anew, and [`switching`] changes a channel's rate;
//! - `ledger` knows what became of each packet that was handed to the protocol;
//! - [`bearer`], the stage, carries PDUs between two entities of the protocol over two channels (`carrier`);
//! - [`cell`] is the stage where mobiles share the downlink: a bearer for each of them;
//! - `incidents` tells of it beside the packets, and [`config`] is what can be set.

mod air;
pub mod bearer;
mod carrier;
pub mod cell;
pub(crate) mod channel;
pub mod config;
mod incidents;
mod ledger;
pub mod rrc;
pub mod switching;
pub mod umts;
mod values;
