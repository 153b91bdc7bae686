//! `airtcp-serve`: ordinary servers and clients, with our TCP between them.
//!
//! These tests create network namespaces. Without root privileges they fail and say so.

#![expect(clippy::disallowed_methods, reason = "other programs are given time")]

mod costs;
mod faults;
mod machine;
mod programs;
mod setup;
mod strangers;
mod streams;
