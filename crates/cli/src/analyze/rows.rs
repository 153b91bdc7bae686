//! Rows for other programs: one per connection, or with `--resent` one per retransmission. `--csv` and
//! `--parquet` write the same rows.

use std::io::{self, Write};
use std::net::SocketAddr;

use airtcp_analyze::connection::findings::{CongestionControlFindings, ConnectionFindings};
use airtcp_numbers::csv::record;
use serde::Serialize;

use self::Kind::{Integer, Number, Text};
use super::resent::Resent;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Number,
}

/// A cell, with a value of the type of its column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Text(String),
    Integer(i64),
    Number(f64),
    /// A value that the capture does not show.
    Unknown,
}

/// The name and type of a column.
pub(super) type Column = (&'static str, Kind);

const CONNECTIONS: [Column; 30] = [
    ("capture", Text),
    ("connection", Integer),
    ("client", Text),
    ("server", Text),
    ("name", Text),
    ("begin_unix_ns", Integer),
    ("seconds", Number),
    ("packets", Integer),
    ("sent_bytes", Integer),
    ("received_bytes", Integer),
    ("end", Text),
    ("cause", Text),
    ("confidence", Text),
    ("ceiling_bit_per_s", Number),
    ("reached_bit_per_s", Number),
    ("verdict", Text),
    ("from", Text),
    ("acked_bytes", Integer),
    ("goodput_bit_per_s", Number),
    ("retransmissions", Integer),
    ("fast", Integer),
    ("timeout", Integer),
    ("tail", Integer),
    ("spurious", Integer),
    ("rtt_samples", Integer),
    ("rtt_min_seconds", Number),
    ("rtt_median_seconds", Number),
    ("waiting_seconds", Number),
    ("congestion_control", Text),
    ("congestion_control_confidence", Text),
];

const RETRANSMISSIONS: [Column; 12] = [
    ("capture", Text),
    ("connection", Integer),
    ("from", Text),
    ("to", Text),
    ("frame", Integer),
    ("seconds", Number),
    ("start_byte", Integer),
    ("end_byte", Integer),
    ("cause", Text),
    ("duplicate_acks", Integer),
    ("segments_in_flight", Integer),
    ("outcome", Text),
];

/// Returns the columns of the rows.
pub(super) fn columns(resent: bool) -> &'static [Column] {
    if resent { &RETRANSMISSIONS } else { &CONNECTIONS }
}

/// Writes the headings as CSV.
pub(super) fn write_headings(resent: bool, out: &mut impl Write) -> io::Result<()> {
    out.write_all(record(columns(resent).iter().map(|(name, _)| name)).as_bytes())
}

/// Writes a row as CSV.
pub(super) fn write_row(row: &[Cell], out: &mut impl Write) -> io::Result<()> {
    out.write_all(record(row.iter().map(Cell::to_csv)).as_bytes())
}

/// Returns the row of a connection. The columns from `from` on are about the direction with more data.
pub(super) fn connection(capture: &str, number: u64, findings: &ConnectionFindings) -> Vec<Cell> {
    let [client, server] = findings.ends;
    let [sent, received] = findings.directions.each_ref().map(|direction| direction.sent_bytes);
    let data = &findings.directions[usize::from(received > sent)];
    let (verdict, resent, rtt) = (&findings.verdict, &data.retransmissions, &data.rtt);
    let control = &data.sender.congestion_control;
    let row: [Cell; CONNECTIONS.len()] = [
        Cell::text(capture),
        Cell::count(number),
        Cell::text(client),
        Cell::text(server),
        findings.name.as_ref().map_or(Cell::Unknown, |name| Cell::text(&name.name)),
        Cell::Integer(findings.begin_unix_ns),
        Cell::Number(findings.seconds),
        Cell::count(findings.packets),
        Cell::count(sent),
        Cell::count(received),
        Cell::text(findings.how_it_ended()),
        Cell::name(&verdict.cause),
        Cell::name(&verdict.confidence),
        Cell::optional(verdict.ceiling),
        Cell::optional(verdict.reached),
        Cell::text(&verdict.sentence),
        Cell::text(data.from),
        Cell::count(data.acked_bytes),
        Cell::Number(data.goodput_bit_per_s),
        Cell::count(resent.packets),
        Cell::count(resent.fast),
        Cell::count(resent.timeout),
        Cell::count(resent.tail),
        Cell::count(resent.spurious.packets),
        Cell::count(rtt.samples),
        Cell::optional(rtt.min_seconds),
        Cell::optional(rtt.median_seconds),
        Cell::Number(data.time.waiting_seconds()),
        congestion_controls(control),
        control.name.map_or(Cell::Unknown, |_| Cell::name(&control.confidence)),
    ];
    row.into()
}

/// Returns a row for each retransmission of a connection.
pub(super) fn retransmissions(
    capture: &str,
    number: u64,
    findings: &ConnectionFindings,
    resent: &[Vec<Resent>; 2],
) -> Vec<Vec<Cell>> {
    let row = |from: SocketAddr, to: SocketAddr, resent: &Resent| {
        let row: [Cell; RETRANSMISSIONS.len()] = [
            Cell::text(capture),
            Cell::count(number),
            Cell::text(from),
            Cell::text(to),
            Cell::count(resent.frame),
            Cell::Number(resent.seconds),
            Cell::count(resent.start),
            Cell::count(resent.end),
            Cell::text(resent.cause()),
            Cell::count(resent.dupacks.into()),
            Cell::count(resent.in_flight.into()),
            Cell::text(resent.outcome()),
        ];
        Vec::from(row)
    };
    let directions = findings.directions.iter().zip(resent);
    directions.flat_map(|(it, resent)| resent.iter().map(move |one| row(it.from, it.to, one))).collect()
}

/// Returns the possible names, separated by spaces, the most likely first.
fn congestion_controls(found: &CongestionControlFindings) -> Cell {
    let names = found.name.iter().chain(&found.or).map(|name| Cell::name(name).to_csv());
    let names: Vec<_> = names.collect();
    if names.is_empty() { Cell::Unknown } else { Cell::Text(names.join(" ")) }
}

impl Cell {
    fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }

    fn count(count: u64) -> Self {
        Self::Integer(count.try_into().unwrap_or(i64::MAX))
    }

    fn optional(number: Option<f64>) -> Self {
        number.map_or(Self::Unknown, Self::Number)
    }

    /// Returns the name of a value as in JSON.
    fn name(value: &impl Serialize) -> Self {
        let json = serde_json::to_value(value).ok();
        json.and_then(|json| Some(Self::text(json.as_str()?))).unwrap_or(Self::Unknown)
    }

    fn to_csv(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Unknown => String::new(),
        }
    }
}
