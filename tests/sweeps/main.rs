//! Many runs in virtual time, the papers' figures, and what the README says of both.

mod cluster;
mod growth;
mod helpers;
mod readme;
mod reproduce;
mod stopped;
mod sweep;
