//! Numbers for people: what repeated runs say, and sizes, times and rates as a person types and reads them.

pub mod statistics;
pub mod units;
