//! Evaluates the captures and the programs' files after a transfer.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use aircaptures::capture::Capture;
use airtcp_analyze::comments::Comments;
use airtcp_analyze::connections::Traces;
use airtcp_analyze::decisions::Log;
use airtcp_analyze::survey;
use serde_json::Value;

use super::outcome::Outcome;
use super::plan::Transfer;
use crate::LabError;
use crate::agent::Received;
use crate::capture::Findings;
use crate::connection::{self, Connection, kbit_per_s};
use crate::counters::Counters;
use crate::difference;
use crate::sender::{Kind, RetransmissionCounts};
use crate::testbed::PathSide;
use crate::workload::{Role, Stream};

impl Outcome {
    /// Reads the results of the transfer from its files.
    pub(super) fn read(
        &mut self,
        directory: &Path,
        streams: &[Stream<'_>],
        time: Option<Duration>,
        received: Vec<Option<Received>>,
    ) -> Result<(), LabError> {
        let measured = connection::read(directory, streams, time)?;
        let while_all_sent = connection::time_together(&measured);
        let bytes_together: Option<Vec<_>> = while_all_sent.map(|(from, to)| {
            measured.iter().map(|it| it.acked_until(to).saturating_sub(it.acked_until(from))).collect()
        });
        for (index, stream) in streams.iter().enumerate() {
            let end = end_of(&stream.file(directory, "sender", "jsonl"))?;
            let findings = measured[index].findings.clone();
            self.connections.push(Connection {
                sender: stream.sender.name.clone(),
                role: stream.role,
                direction: stream.direction,
                port: stream.port(),
                bytes: findings.acked_bytes,
                bytes_in_time: time.map(|_| measured[index].measured()),
                kbit_per_s: kbit_per_s(measured[index].measured(), findings.seconds),
                bytes_together: bytes_together.as_ref().map(|bytes| bytes[index]),
                capture: findings,
                sent: end["sha256"].as_str().map(str::to_owned),
                received: received[index].clone().or_else(|| received_by_sink(directory, stream)),
                notices: notices(&end),
                difference: None,
            });
        }
        let tested = streams.iter().zip(&measured).filter(|(stream, _)| stream.role == Role::Tested);
        let tested: Vec<_> = tested.map(|(_, connection)| connection).collect();
        let first = &self.connections[0];
        (self.sent, self.received) = (first.sent.clone(), first.received.clone());
        self.capture = Findings::sum(tested.iter().map(|connection| &connection.findings));
        self.capture.seconds = connection::seconds(&tested);
        self.bytes = self.capture.acked_bytes;
        let measured_bytes = tested.iter().map(|connection| connection.measured()).sum();
        self.kbit_per_s = kbit_per_s(measured_bytes, self.capture.seconds);
        self.together = connection::interaction(streams, &measured, bytes_together.as_deref());
        self.repair = retransmission_counts(directory, streams, &self.counters)?;
        Ok(())
    }
}

/// The tested sender's own counts. `None` if another kernel sender shared the counters, or if they could not
/// be read.
fn retransmission_counts(
    directory: &Path,
    streams: &[Stream<'_>],
    counters: &BTreeMap<String, Counters>,
) -> Result<Option<RetransmissionCounts>, LabError> {
    let mut counts = RetransmissionCounts::default();
    let tested = || streams.iter().filter(|stream| stream.role == Role::Tested);
    if matches!(streams[0].sender.kind, Kind::Recipe { .. }) {
        for stream in tested() {
            counts += RetransmissionCounts::of_recipe(&end_of(&stream.file(directory, "sender", "jsonl"))?);
        }
        return Ok(Some(counts));
    }
    let is_kernel = |stream: &Stream<'_>| matches!(stream.sender.kind, Kind::Kernel(_));
    if streams.iter().any(|stream| stream.role == Role::Competitor && is_kernel(stream)) {
        return Ok(None);
    }
    for side in [PathSide::Fixed, PathSide::Mobile] {
        if tested().any(|stream| PathSide::sending(stream.direction) == side) {
            let Some(counters) = counters.get(side.name()) else { return Ok(None) };
            counts += RetransmissionCounts::of_kernel(counters);
        }
    }
    Ok(Some(counts))
}

/// Checks that exactly the sent bytes arrived on a connection.
pub(super) fn check(
    plan: &Transfer<'_>,
    stream: &Stream<'_>,
    connection: &mut Connection,
) -> Result<(), LabError> {
    let prefix = plan.prefix(stream);
    let Some(received) = &connection.received else {
        return Err(LabError::Transfer(format!("{prefix}the receiver did not report what it received")));
    };
    let sent = match plan.workload.bytes() {
        Some(bytes) => bytes,
        None => {
            end_of(&stream.file(plan.directory, "sender", "jsonl"))?["bytes"].as_u64().unwrap_or_default()
        }
    };
    if received.bytes == sent && Some(&received.sha256) == connection.sent.as_ref() {
        return Ok(());
    }
    let first = difference::first(received, sent);
    connection.difference =
        first.map(|first| difference::locate(plan.directory, stream, first)).transpose()?;
    let details = connection.difference.as_ref().map(|details| format!("; {details}")).unwrap_or_default();
    Err(LabError::Transfer(format!(
        "{prefix}the received data differs: {} of {sent} bytes arrived, SHA-256 {} instead of {}{details}",
        received.bytes,
        received.sha256,
        connection.sent.as_deref().unwrap_or("(unknown)"),
    )))
}

/// Writes a copy of the sender's capture for Wireshark, with its decisions as packet comments. It does
/// nothing for several connections, because a log covers only one, and for kernel senders, which have no log.
pub(super) fn annotate(directory: &Path, streams: &[Stream<'_>]) -> Result<(), LabError> {
    let [stream] = streams else { return Ok(()) };
    let from = PathSide::sending(stream.direction).capture();
    let [from, log, to] = [from, "decisions.jsonl", "annotated.pcapng"].map(|name| directory.join(name));
    let Ok(text) = airfiles::read_result(log) else { return Ok(()) };
    let Ok(log) = Log::read(&text) else { return Ok(()) };
    let open = || Capture::open(&from, None).map_err(|error| LabError::Transfer(error.to_string()));
    let mut comments = Comments::new(Some(log));
    survey::read(&mut open()?, Traces::All, &mut |finished| comments.add_connection(&finished.ended));
    comments.add_decisions();
    comments.save(&mut open()?, &to).map_err(LabError::file(&to))
}

/// The data of the last `end` event in a file of JSON lines.
pub(crate) fn end_of(path: &Path) -> Result<Value, LabError> {
    let text = airfiles::read_result(path).map_err(LabError::file(path))?;
    let events = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut ends = events.filter(|event| event["event"] == "end");
    let end = ends.next().map(|event| event["data"].clone());
    end.ok_or_else(|| LabError::Transfer(format!("{} has no `end` event", path.display())))
}

/// The notices in the report of a sender. A kernel sender's report has none.
fn notices(end: &Value) -> Vec<String> {
    let notices = end["notices"].as_array().into_iter().flatten();
    notices.filter_map(|notice| Some(notice.as_str()?.to_owned())).collect()
}

fn received_by_sink(directory: &Path, stream: &Stream<'_>) -> Option<Received> {
    let end = end_of(&stream.file(directory, "receiver", "jsonl")).ok()?;
    serde_json::from_value(end).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::resolve;
    use crate::workload::Workload;

    #[test]
    fn unread_counters_yield_no_repair_counts() {
        let senders = resolve(&["linux:cubic".parse().unwrap()], None).unwrap();
        let workload = Workload::plain(1);
        let streams = workload.streams(&senders[0]);
        let counted = |side: &str| BTreeMap::from([(side.to_owned(), Counters::new())]);
        let of = |counters| retransmission_counts(Path::new(""), &streams, &counters).unwrap();
        assert_eq!(of(counted("fixed")), Some(RetransmissionCounts::default()), "no counter has grown");
        assert_eq!(of(counted("mobile")), None, "the sender's side was not read");
    }
}
