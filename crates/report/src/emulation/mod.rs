//! What airlink wrote about the path below a connection, read in bounded memory however long the run was.

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

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmulatedPath {
    /// Of `--events`.
    pub queues: Option<QueuesAndDrops>,
    /// Of `--radio-pcap`.
    pub radio: Option<Radio>,
}

/// How often something happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    pub what: String,
    pub bins: Bins,
}

#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Events(#[from] EventsError),
    #[error("{0} is no capture of radio PDUs: name the file that `airlink --radio-pcap` wrote")]
    NoRadio(PathBuf),
}
