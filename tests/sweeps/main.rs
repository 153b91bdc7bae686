//! Sweeps in virtual time, the papers' figures, and the README's statements about both.

mod cluster;
mod growth;
mod helpers;
mod readme;
mod reproduce;
mod seeds;
mod stopped;
mod sweep;
