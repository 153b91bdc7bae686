//! The result of a transfer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::Received;
use crate::capture::Findings;
use crate::connection::{Connection, Interaction};
use crate::counters::Counters;
use crate::sender::RetransmissionCounts;
use crate::workload::Role;

/// The result of a transfer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The name of the sender in the experiment.
    pub sender: String,
    /// The profile. `None` for a kernel sender, or if the file is older than this field.
    #[serde(default)]
    pub profile: Option<String>,
    /// The name of the receiver on the command line.
    pub receiver: String,
    /// The seed of the path.
    pub seed: u64,
    /// The reason for a failure. `None` if exactly the sent bytes arrived.
    pub failure: Option<String>,
    /// The reason why the transfer is invalid: the machine disturbed it. `None` if it is valid.
    #[serde(default)]
    pub invalid: Option<String>,
    /// The reason for each repetition: the machine disturbed the earlier attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<String>,
    /// Acknowledged bytes of all connections of the sender.
    pub bytes: u64,
    /// Goodput from the first SYN to the ACK for the last byte, or within the time limit (`capture` has the
    /// seconds, `connections` the bytes); 0 if no data was acknowledged.
    pub kbit_per_s: f64,
    /// The sender's own counts for all its connections. `None` if another kernel sender shared the counters,
    /// or if they could not be read.
    pub repair: Option<RetransmissionCounts>,
    /// Findings from the capture on the sender's side, for all its connections.
    pub capture: Findings,
    /// SHA-256 of the data sent on the first connection, if the sender reported it.
    pub sent: Option<String>,
    /// The data received on the first connection, if the receiver reported it.
    pub received: Option<Received>,
    /// The interaction of several connections.
    #[serde(default)]
    pub together: Interaction,
    /// All connections of the tested sender and of the competitors. Empty if the transfer failed before they
    /// were read, or if the file is older than this field.
    #[serde(default)]
    pub connections: Vec<Connection>,
    /// The increase of the counters in both namespaces, by side (`fixed`, `mobile`) and nstat's name.
    #[serde(default)]
    pub counters: BTreeMap<String, Counters>,
}

impl Outcome {
    /// Returns true if the result counts: exactly the sent bytes arrived, and the transfer is valid.
    pub fn counts(&self) -> bool {
        self.failure.is_none() && self.invalid.is_none()
    }

    /// The notices of all connections, each once. Those of a competitor begin with its name.
    pub(crate) fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        for Connection { role, sender, notices: own, .. } in &self.connections {
            for notice in own {
                let notice = match role {
                    Role::Tested => notice.clone(),
                    Role::Competitor => format!("competitor {sender}: {notice}"),
                };
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
        notices
    }

    /// Returns true if the goodput of every connection refers to its time limit.
    pub(crate) fn is_measured_in_time(&self) -> bool {
        self.connections.iter().all(|connection| connection.bytes_in_time.is_some())
    }

    /// Marks the transfer as failed. A failure is never attributed to the machine.
    pub(super) fn mark_failed(&mut self, why: String) {
        (self.failure, self.invalid) = (Some(why), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_clears_invalid_reason() {
        let mut outcome = Outcome { invalid: Some("late".to_owned()), ..Outcome::default() };
        assert!(!outcome.counts());
        outcome.mark_failed("not the same bytes".to_owned());
        assert_eq!(
            (outcome.failure.as_deref(), outcome.invalid.as_deref()),
            (Some("not the same bytes"), None)
        );
        assert!(!outcome.counts() && Outcome::default().counts());
    }
}
