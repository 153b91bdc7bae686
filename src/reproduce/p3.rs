//! The figures of P3.

use super::Figure;

pub const FIGURES: &[Figure] = &[];
