//! RLC of LTE, 3GPP TS 36.322: acknowledged mode (AM) and unacknowledged mode (UM).
//!
//! A sequence number counts PDUs. A PDU is as large as its grant and carries octets of any number of SDUs, and
//! the receiver delivers SDUs in sequence.
//!
//! In this module, "§" with a number is a clause of TS 36.322 V13.2.0. State variables and timers have the
//! names of the standard. `Choice:` marks a decision that the standard leaves open.
