//! The figures of P2.

use super::Figure;

pub const FIGURES: &[Figure] = &[];
