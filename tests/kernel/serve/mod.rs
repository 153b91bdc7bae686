//! `airtcp-serve`: ordinary servers and clients, with our TCP between them.
//!
//! These tests create network namespaces. Without root privileges they fail and say so.

#![expect(clippy::disallowed_methods, reason = "real programs take their time")]

mod costs;
mod faults;
mod machine;
mod programs;
mod stand;
mod strangers;
mod streams;
