//! The figures of P0.

pub mod setting;

use super::Figure;

pub const FIGURES: &[Figure] = &[];
