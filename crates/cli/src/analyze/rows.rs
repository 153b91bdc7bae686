//! `--csv`: one row per connection, or with `--resent` one row per retransmission.

use std::io::{self, Write};

use airtcp_analyze::connection::findings::ConnectionFindings;
use airtcp_numbers::csv::record;
use serde::Serialize;

use super::resent::Resent;

const CONNECTIONS: [&str; 28] = [
    "capture",
    "connection",
    "client",
    "server",
    "name",
    "begin_unix_ns",
    "seconds",
    "packets",
    "sent_bytes",
    "received_bytes",
    "end",
    "cause",
    "confidence",
    "ceiling_bit_per_s",
    "reached_bit_per_s",
    "verdict",
    "from",
    "acked_bytes",
    "goodput_bit_per_s",
    "retransmissions",
    "fast",
    "timeout",
    "tail",
    "spurious",
    "rtt_samples",
    "rtt_min_seconds",
    "rtt_median_seconds",
    "waiting_seconds",
];

const RETRANSMISSIONS: [&str; 12] = [
    "capture",
    "connection",
    "from",
    "to",
    "frame",
    "seconds",
    "start_byte",
    "end_byte",
    "cause",
    "duplicate_acks",
    "segments_in_flight",
    "outcome",
];

/// Writes the headings.
pub(super) fn begin(resent: bool, out: &mut impl Write) -> io::Result<()> {
    let headings = if resent { record(RETRANSMISSIONS) } else { record(CONNECTIONS) };
    out.write_all(headings.as_bytes())
}

/// Writes the row of a connection. The columns from `from` on are about the direction with more data.
pub(super) fn connection(
    capture: &str,
    number: u64,
    findings: &ConnectionFindings,
    out: &mut impl Write,
) -> io::Result<()> {
    let [client, server] = findings.ends;
    let [sent, received] = findings.directions.each_ref().map(|direction| direction.sent_bytes);
    let data = &findings.directions[usize::from(received > sent)];
    let (verdict, resent, rtt) = (&findings.verdict, &data.retransmissions, &data.rtt);
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let row: [String; CONNECTIONS.len()] = [
        capture.to_owned(),
        number.to_string(),
        client.to_string(),
        server.to_string(),
        findings.name.as_ref().map(|name| name.name.clone()).unwrap_or_default(),
        findings.begin_unix_ns.to_string(),
        findings.seconds.to_string(),
        findings.packets.to_string(),
        sent.to_string(),
        received.to_string(),
        findings.how_it_ended(),
        name(&verdict.cause)?,
        name(&verdict.confidence)?,
        optional(verdict.ceiling),
        optional(verdict.reached),
        verdict.sentence.clone(),
        data.from.to_string(),
        data.acked_bytes.to_string(),
        data.goodput_bit_per_s.to_string(),
        resent.packets.to_string(),
        resent.fast.to_string(),
        resent.timeout.to_string(),
        resent.tail.to_string(),
        resent.spurious.packets.to_string(),
        rtt.samples.to_string(),
        optional(rtt.min_seconds),
        optional(rtt.median_seconds),
        data.time.waiting_seconds().to_string(),
    ];
    out.write_all(record(row).as_bytes())
}

/// Writes a row for each retransmission of a connection.
pub(super) fn retransmissions(
    capture: &str,
    number: u64,
    findings: &ConnectionFindings,
    resent: &[Vec<Resent>; 2],
    out: &mut impl Write,
) -> io::Result<()> {
    for (direction, resent) in findings.directions.iter().zip(resent) {
        for resent in resent {
            let row: [String; RETRANSMISSIONS.len()] = [
                capture.to_owned(),
                number.to_string(),
                direction.from.to_string(),
                direction.to.to_string(),
                resent.frame.to_string(),
                resent.seconds.to_string(),
                resent.start.to_string(),
                resent.end.to_string(),
                resent.cause().to_owned(),
                resent.dupacks.to_string(),
                resent.in_flight.to_string(),
                resent.outcome(),
            ];
            out.write_all(record(row).as_bytes())?;
        }
    }
    Ok(())
}

/// Returns the name of a value as in JSON.
fn name(value: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_value(value)?.as_str().unwrap_or_default().to_owned())
}
