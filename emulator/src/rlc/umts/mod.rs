//! RLC acknowledged mode (AM), 3GPP TS 25.322, bit for bit.
//!
//! - [`pdu`] is what PDUs say, [`codec`] writes and reads their octets;
//! - `segmentation` fills AMD PDUs with SDUs, [`reassembly`] takes the SDUs out again;
//! - [`status_report`] writes and reads what STATUS PDUs report;
//! - [`entity`] is the protocol, one per end;
//! - [`config`] is what can be set about it, `ranges` which values RRC can configure, and [`dch`] and [`hs`] the
//!   channels that carry it.
//!
//! In this module "§" followed by a number is a clause of TS 25.322, V13.0.0. State variables, timers, protocol
//! parameters and super-fields have the names that the standard gives them: VT(S) is `vt_s`. What earlier releases
//! had and that one has not (Timer_EPC) says so. `Choice:` stands where the standard leaves the matter open,
//! `Deviation:` where the code does not do what it says.

pub mod codec;
pub mod config;
pub mod dch;
pub mod entity;
pub mod hs;
pub mod pdu;
pub(crate) mod ranges;
pub mod reassembly;
pub(crate) mod segmentation;
pub mod status_report;
