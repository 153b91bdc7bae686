//! The figures of P4.

use super::Figure;

pub const FIGURES: &[Figure] = &[];
