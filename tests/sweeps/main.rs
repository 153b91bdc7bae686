//! Many runs in virtual time, the papers' figures, and what the README says of both.

mod readme;
mod reproduce;
mod sweep;
