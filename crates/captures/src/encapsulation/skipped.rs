//! Why a frame is not read.

use crate::other::Other;
use crate::problem::Problem;

/// The reason why a frame does not contain a TCP packet that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skipped {
    Other(Other),
    Problem(Problem),
}

impl From<Other> for Skipped {
    fn from(other: Other) -> Self {
        Self::Other(other)
    }
}

impl From<Problem> for Skipped {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}
