//! Reads what airlink wrote about the emulated path below a connection, in bounded memory however long the run was.

mod bins;
mod queues;
mod radio;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use airtcp_analyze::airlink_events::EventsError;
pub use bins::Bins;
pub use queues::{Queue, QueuesAndDrops};
pub use radio::{Radio, RadioDirection};

/// What is known about an emulated path; nothing by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmulatedPath {
    /// From the file of `airlink --events`.
    pub queues: Option<QueuesAndDrops>,
    /// From the file of `airlink --radio-pcap`.
    pub radio: Option<Radio>,
}

/// How often something happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// What is counted.
    pub what: String,
    /// How often, over time.
    pub bins: Bins,
}

/// Why a file of airlink's cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system or libpcap says.
        error: io::Error,
    },
    /// The events cannot be read.
    #[error(transparent)]
    Events(#[from] EventsError),
    /// It is a capture of something else than airlink's radio PDUs.
    #[error("{0} is not a capture of radio PDUs; give a file that `airlink --radio-pcap` wrote")]
    NoRadio(PathBuf),
}
