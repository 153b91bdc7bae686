//! RLC acknowledged mode, 3GPP TS 25.322: real PDUs, bit for bit.
//!
//! `pdu` says what is on the air, `codec` turns it into octets and back, `entity` is the protocol (one per end),
//! `bearer` carries PDUs between two entities in TTIs over a channel with block errors, and is the stage.

pub mod bearer;
pub mod channel;
pub mod codec;
pub mod config;
pub mod entity;
pub mod pdu;
pub mod reassembly;
pub mod segmentation;
pub mod status_report;
