//! Statistics over repeated runs, parsing and formatting of sizes, times and rates, tables of text, and CSV.

#![warn(missing_docs)]

pub mod csv;
pub mod statistics;
pub mod table;
pub mod units;
pub mod verdict;
