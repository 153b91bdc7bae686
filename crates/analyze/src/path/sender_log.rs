//! Compares the retransmissions in a capture with the sender's own counters. The counters are in the log of
//! `airtcp send --json`, which the lab saves as `sender.jsonl`.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use airfiles::{PathSource, limits};
use serde::Serialize;
use serde_json::Value;

use crate::connection::findings::ConnectionFindings;

/// The reason why a sender's log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SenderError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The log does not contain the end of a transfer.
    #[error(
        "{} has no complete transfer in it; give the output of `airtcp send --json`, or the sender.jsonl of a lab \
         transfer with a recipe", .0.display()
    )]
    NoEnd(PathBuf),
}

/// The counters of a sender at the end of one transfer.
#[derive(Clone, Debug)]
pub struct SenderLog {
    ends: [SocketAddr; 2],
    counters: Value,
}

/// The sender's counters compared with the capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SenderComparison {
    /// The sender's address.
    pub from: SocketAddr,
    /// The receiver's address.
    pub to: SocketAddr,
    /// The counts, in a fixed order.
    pub counts: Vec<Compared>,
}

/// One count from both sources.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// A description of the count.
    pub what: &'static str,
    /// The sender's count.
    pub sender: u64,
    /// The capture's count.
    pub capture: u64,
}

impl SenderLog {
    /// Reads the last completed transfer in the file.
    pub fn read(path: &Path) -> Result<Self, SenderError> {
        let text = airfiles::read_text(path, PathSource::User, limits::RESULT);
        let text = text.map_err(|error| SenderError::Read { path: path.to_owned(), error })?;
        let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut ends = lines.filter(|line| line["event"] == "end");
        let end = ends.find_map(|line| Self::of(&line["data"]));
        end.ok_or_else(|| SenderError::NoEnd(path.to_owned()))
    }

    fn of(data: &Value) -> Option<Self> {
        let end = |name: &str| data[name].as_str()?.parse().ok();
        data["retransmissions"]["segments"].as_u64()?;
        Some(Self { ends: [end("local")?, end("remote")?], counters: data.clone() })
    }

    /// Compares the counters with a connection. Returns `None` if the log belongs to another connection.
    pub fn compare(&self, connection: &ConnectionFindings) -> Option<SenderComparison> {
        let [from, to] = self.ends;
        let direction = connection.directions.iter().find(|it| (it.from, it.to) == (from, to))?;
        let again = &direction.retransmissions;
        let count = |pointer: &str| self.counters.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let resent = |kind: &str| count(&format!("/retransmissions/{kind}"));
        let [none, one, two, more] = again.timeouts_by_dupacks;
        let by_dupacks = |at: usize| count(&format!("/timeouts/timeouts_by_dupacks/{at}"));
        let counts = [
            ("retransmitted packets", resent("segments").saturating_sub(resent("handshake")), again.packets),
            ("fast retransmissions", resent("fast") + resent("recovery"), again.fast),
            ("retransmissions by timeout", resent("timeout"), again.timeout),
            ("retransmissions as tail probes", resent("probe"), again.tail),
            (
                "losses detected without a timeout",
                count("/timeouts/fast_retransmits"),
                again.fast_retransmits,
            ),
            ("timeouts", count("/timeouts/timeouts"), again.timeouts),
            ("timeouts after no duplicate ACK", by_dupacks(0), none),
            ("timeouts after 1", by_dupacks(1), one),
            ("timeouts after 2", by_dupacks(2), two),
            ("timeouts after 3 or more", by_dupacks(3), more),
            ("timeouts after all possible ones", count("/timeouts/failed_dupack"), again.failed_dupack),
        ];
        let counts = counts.map(|(what, sender, capture)| Compared { what, sender, capture });
        Some(SenderComparison { from, to, counts: counts.into() })
    }
}
