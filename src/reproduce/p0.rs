//! The figures of P0.

use super::Figure;

pub const FIGURES: &[Figure] = &[];
