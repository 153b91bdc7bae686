//! The figures of P1.

use super::Figure;

pub const FIGURES: &[Figure] = &[];
