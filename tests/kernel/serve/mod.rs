//! `airtcp-serve`: ordinary servers and clients, connected through our TCP.
//!
//! The tests create network namespaces. Without root privileges they fail with this reason.

#![expect(clippy::disallowed_methods, reason = "other programs are given time")]

mod costs;
mod faults;
mod machine;
mod programs;
mod setup;
mod strangers;
mod streams;
