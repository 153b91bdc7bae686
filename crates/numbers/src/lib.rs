//! Statistics over repeated runs, parsing and formatting of sizes, times and rates, and tables of text.

#![warn(missing_docs)]

pub mod statistics;
pub mod table;
pub mod units;
pub mod verdict;
