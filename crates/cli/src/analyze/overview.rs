//! The overview of the connections of a capture: a table with a row for each direction with data, and a verdict for
//! each slow connection.

use airtcp_analyze::connection::findings::{Cause, ConnectionFindings, DirectionFindings, RttOf};
use airtcp_numbers::table::{Column, Table};
use airtcp_numbers::units::{show_bytes, show_rate};

/// Returns the columns of the table of connections. The name is the last one, because not every connection
/// has one.
fn columns() -> [Column; 14] {
    const RETRANSMISSIONS: &str = "retransmissions";
    [
        Column::new("no"),
        Column::new("from").left(),
        Column::new("to").left(),
        Column::new("seconds").optional(3),
        Column::new("sent").optional(4),
        Column::new("goodput"),
        Column::new("all").of(RETRANSMISSIONS),
        Column::new("fast").of(RETRANSMISSIONS).optional(6),
        Column::new("timeout").of(RETRANSMISSIONS).optional(7),
        Column::new("tail").of(RETRANSMISSIONS).optional(1),
        Column::new("spurious").of(RETRANSMISSIONS).optional(5),
        Column::new("RTT").optional(2),
        Column::new("waiting").optional(0),
        Column::new("name").left().optional(8),
    ]
}

fn row(number: u64, findings: &ConnectionFindings, direction: &DirectionFindings) -> [String; 14] {
    let resent = &direction.retransmissions;
    let goodput = match direction.acks.packets {
        0 => "-".to_owned(),
        _ => show_rate(direction.goodput_bit_per_s),
    };
    [
        number.to_string(),
        direction.from.to_string(),
        direction.to.to_string(),
        format!("{:.3}", direction.transfer_seconds),
        show_bytes(direction.sent_bytes),
        goodput,
        resent.packets.to_string(),
        resent.fast.to_string(),
        resent.timeout.to_string(),
        resent.tail.to_string(),
        resent.spurious.packets.to_string(),
        median_rtt(direction),
        format!("{:.2} s", direction.time.waiting_seconds()),
        findings.name.as_ref().map(|name| name.name.clone()).unwrap_or_default(),
    ]
}

/// Describes the median round-trip time, or its upper bound if the clock of the capture is too coarse.
pub(super) fn median_rtt(direction: &DirectionFindings) -> String {
    let show = |seconds: f64| match seconds {
        seconds if seconds < 0.001 => format!("{:.0} µs", seconds * 1e6),
        seconds => format!("{:.1} ms", seconds * 1e3),
    };
    let rtt = &direction.rtt;
    match (rtt.median_seconds, rtt.resolution_seconds) {
        // A delay of the receiver's answers is not a round-trip time.
        _ if rtt.samples == 0 || direction.rtt_of == RttOf::ReceiverDelay => "-".to_owned(),
        (Some(seconds), _) => show(seconds),
        (None, Some(resolution)) => format!("<{}", show(resolution.max(1e-6))),
        // The time is shorter than a step of the clock, which is unknown.
        (None, None) => "-".to_owned(),
    }
}

/// Returns a row for each direction with data.
pub(super) fn rows(number: u64, findings: &ConnectionFindings) -> impl Iterator<Item = [String; 14]> {
    let with_data = findings.directions.iter().filter(|direction| direction.data_packets > 0);
    with_data.map(move |direction| row(number, findings, direction))
}

/// Returns the table of these connections with their numbers, or nothing if no connection carried data.
pub(super) fn table<'a>(
    connections: impl Iterator<Item = (u64, &'a ConnectionFindings)>,
    width: Option<usize>,
) -> String {
    let mut table = Table::new(columns());
    let mut rows = connections.flat_map(|(number, findings)| rows(number, findings)).peekable();
    if rows.peek().is_none() {
        return String::new();
    }
    rows.for_each(|row| table.push(row));
    table.render(width)
}

/// Returns a line for each connection that was slow, with the reason.
pub(super) fn verdicts<'a>(connections: impl Iterator<Item = (u64, &'a ConnectionFindings)>) -> String {
    let slow = connections.map(|(number, findings)| (number, &findings.verdict));
    let slow = slow.filter(|(_, verdict)| verdict.direction.is_some() && verdict.cause != Cause::NotSlow);
    let lines: Vec<_> =
        slow.map(|(number, verdict)| format!("{number:>4}  {}\n", verdict.sentence)).collect();
    if lines.is_empty() { String::new() } else { format!("\nwhy they were not faster\n{}", lines.concat()) }
}
