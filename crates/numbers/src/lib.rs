//! Numbers for people: what repeated runs say, and sizes, times and rates as a person types and reads them.

#![warn(missing_docs)]

pub mod statistics;
pub mod units;
pub mod verdict;
