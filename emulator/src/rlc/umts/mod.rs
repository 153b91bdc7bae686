//! A bit-exact implementation of RLC acknowledged mode (AM), 3GPP TS 25.322.
//!
//! - [`pdu`] defines PDUs, and [`codec`] encodes and decodes them;
//! - `segmentation` fills AMD PDUs with SDUs, and [`reassembly`] restores the SDUs;
//! - [`status_report`] writes and reads the content of STATUS PDUs;
//! - [`entity`] is the protocol entity at each end, and `room` what the layer below offers it in a TTI;
//! - [`config`] defines the settings, `ranges` the values that RRC can configure, and [`dch`] and [`hs`] the
//!   channels below RLC.
//!
//! In this module, "§" with a number is a clause of TS 25.322 V13.0.0. State variables, timers, protocol
//! parameters and super-fields have the names of the standard: VT(S) is `vt_s`. Comments identify features of
//! earlier releases that this version no longer has (Timer_EPC). `Choice:` marks a decision that the standard
//! leaves open. `Deviation:` marks code that does not follow the standard.

pub(crate) mod capacity;
pub mod codec;
pub mod config;
pub(crate) mod configurable;
pub mod dch;
pub mod entity;
pub mod hs;
pub mod pdu;
pub mod reassembly;
pub(crate) mod segmentation;
pub mod status_report;
