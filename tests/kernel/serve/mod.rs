//! `airtcp serve`: ordinary servers and ordinary clients, with our TCP between them.
//!
//! These tests make network namespaces and fail, saying so, when they are not run as root.

#![expect(clippy::disallowed_methods, reason = "real programs take their time")]

mod costs;
mod faults;
mod machine;
mod programs;
mod stand;
mod strangers;
mod streams;
