//! Reads airlink's records of the emulated path, with memory that does not grow with the length of the run.

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

/// Data about an emulated path; empty by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmulatedPath {
    /// The queues and drops, from the file of `airlink --events`.
    pub queues: Option<QueuesAndDrops>,
    /// The radio PDUs, from the file of `airlink --radio-pcap`.
    pub radio: Option<Radio>,
}

/// The number of packets that were dropped for one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct DropCount {
    /// The cause: `congestion` or `radio`.
    pub cause: String,
    /// The number of packets over time.
    pub bins: Bins,
}

/// An error in one of airlink's files.
#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system or of libpcap.
        #[source]
        error: io::Error,
    },
    /// The events cannot be read.
    #[error(transparent)]
    Events(#[from] EventsError),
    /// The file is not a capture of airlink's radio PDUs.
    #[error("{0} is not a capture of radio PDUs; give a file that `airlink --radio-pcap` wrote")]
    NoRadio(PathBuf),
}
