//! Statistics over repeated runs, parsing and formatting of sizes, times and rates, tables of text, and CSV. All
//! programs use this crate for their results. Comparisons are paired: runs with the same seed are compared with each
//! other.
//!
//! ```
//! use airtcp_numbers::statistics::{Mean, gains};
//!
//! // The goodput of two senders in kbit/s, with the same three seeds.
//! let gain = Mean::of(&gains(&[110.0, 121.0, 99.0], &[100.0, 110.0, 90.0])).expect("there are samples");
//! assert!((gain.mean - 0.1).abs() < 1e-9);
//! ```

#![warn(missing_docs)]

pub mod csv;
pub mod statistics;
pub mod table;
pub mod units;
pub mod verdict;
