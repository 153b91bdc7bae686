//! One line per connection for `--overview`: begin, endpoints, duration, bytes, cause, congestion control and
//! ending.

use std::net::SocketAddr;

use airtcp_analyze::ConnectionFindings;
use airtcp_analyze::connection::findings::{Cause, CongestionControl};
use airtcp_numbers::table::{Column, Table};
use airtcp_numbers::units::show_bytes;
use jiff::tz::TimeZone;

use super::moment;

/// The findings that `--overview` prints about a connection. Small, because up to ten thousand are kept.
#[derive(Debug)]
pub(super) struct Line {
    begin: i64,
    ends: [SocketAddr; 2],
    name: Option<String>,
    seconds: f64,
    bytes: [u64; 2],
    cause: Cause,
    /// The congestion control of the end with more data, if it is certain to be the only one.
    congestion_control: Option<CongestionControl>,
    end: String,
}

impl Line {
    pub(super) fn of(findings: &ConnectionFindings) -> Self {
        let [sent, received] = findings.directions.each_ref().map(|direction| direction.sent_bytes);
        let control = &findings.directions[usize::from(received > sent)].sender.congestion_control;
        Self {
            begin: findings.begin_unix_ns,
            ends: findings.ends,
            name: findings.name.as_ref().map(|name| name.name.clone()),
            seconds: findings.seconds,
            bytes: [sent, received],
            cause: findings.verdict.cause,
            congestion_control: control.name.filter(|_| control.or.is_empty()),
            end: findings.how_it_ended(),
        }
    }
}

/// Renders the lines as a table. The heading contains the date if all connections began on the same day;
/// otherwise each line has its own date.
pub(super) fn table<'a>(
    lines: impl Iterator<Item = (u64, &'a Line)>,
    zone: &TimeZone,
    width: Option<usize>,
) -> String {
    let lines: Vec<_> = lines.collect();
    let date = |line: &Line| moment::local(line.begin, zone).strftime("%Y-%m-%d").to_string();
    let Some(first) = lines.first().map(|(_, line)| date(line)) else { return String::new() };
    let is_one_day = lines.iter().all(|(_, line)| date(line) == first);
    let began = if is_one_day { format!("began {first}") } else { "began".to_owned() };
    let mut table = Table::new([
        Column::new(began).left(),
        Column::new("no"),
        Column::new("from").left(),
        Column::new("to").left(),
        Column::new("name").left().optional(4),
        Column::new("seconds").optional(1),
        Column::new("sent").optional(0),
        Column::new("received").optional(0),
        Column::new("cause").left().optional(5),
        Column::new("control").left().optional(3),
        Column::new("end").left().optional(2),
    ]);
    for (number, line) in &lines {
        let time = moment::short(line.begin, zone);
        table.push([
            if is_one_day { time } else { format!("{} {time}", date(line)) },
            number.to_string(),
            line.ends[0].to_string(),
            line.ends[1].to_string(),
            line.name.clone().unwrap_or_default(),
            format!("{:.3}", line.seconds),
            show_bytes(line.bytes[0]),
            show_bytes(line.bytes[1]),
            line.cause.to_string(),
            line.congestion_control.map(|name| name.to_string()).unwrap_or_default(),
            line.end.clone(),
        ]);
    }
    table.render(width)
}
