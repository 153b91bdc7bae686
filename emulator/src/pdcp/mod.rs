//! PDCP of data radio bearers over RLC acknowledged mode, for LTE (3GPP TS 36.323) and NR (TS 38.323).
//!
//! PDCP gives each IP packet a COUNT. The PDU header carries the low bits of the COUNT. Lossless handover and
//! in-order delivery rely on the COUNT. Ciphering, integrity protection, header compression and split bearers
//! are not included, so a data PDU is a header of two or three octets and the packet.
//!
//! - [`pdu`] contains the formats of data PDUs and status reports;
//! - [`transmitter`] numbers SDUs and keeps them until RLC has confirmed their delivery;
//! - [`nr_receiver`] and [`lte_receiver`] deliver SDUs.
//!
//! All three are sans-I/O machines.

pub mod lte_receiver;
pub mod nr_receiver;
pub mod pdu;
pub mod transmitter;

/// Number of an SDU in one direction of a bearer: the hyper frame number followed by the sequence number.
///
/// The standards limit it to 32 bits and require new keys before it wraps. Bearers in this crate are not
/// ciphered, so it continues.
pub type Count = u64;
