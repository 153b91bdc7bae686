//! One line for a connection: when it began, who talked to whom, for how long, how much, and how it ended.

use std::net::SocketAddr;

use airtcp_analyze::ConnectionFindings;
use airtcp_numbers::units::show_bytes;
use jiff::tz::TimeZone;

use super::moment;

/// Little enough for ten thousand of them.
#[derive(Debug)]
pub(super) struct Line {
    begin: i64,
    ends: [SocketAddr; 2],
    name: Option<String>,
    seconds: f64,
    octets: [u64; 2],
    end: String,
}

impl Line {
    pub(super) fn of(findings: &ConnectionFindings) -> Self {
        Self {
            begin: findings.begin_unix_ns,
            ends: findings.ends,
            name: findings.name.as_ref().map(|name| name.name.clone()),
            seconds: findings.seconds,
            octets: findings.directions.each_ref().map(|direction| direction.sent_bytes),
            end: findings.how_it_ended(),
        }
    }
}

const NAME: usize = 4;
/// Columns of words; those of numbers are to the right.
const WORDS: [bool; 9] = [true, false, true, true, true, false, false, false, true];

/// With a heading. The date stands in it, unless there are several.
pub(super) fn table<'a>(lines: impl Iterator<Item = (u64, &'a Line)>, zone: &TimeZone) -> String {
    let lines: Vec<_> = lines.collect();
    let date = |line: &Line| moment::local(line.begin, zone).strftime("%Y-%m-%d").to_string();
    let Some(first) = lines.first().map(|(_, line)| date(line)) else { return String::new() };
    let is_one_day = lines.iter().all(|(_, line)| date(line) == first);
    let began = if is_one_day { format!("began {first}") } else { "began".to_owned() };
    let head = [&*began, "no", "from", "to", "name", "seconds", "sent", "received", "end"].map(str::to_owned);
    let rows = lines.iter().map(|(number, line)| {
        let time = moment::short(line.begin, zone);
        [
            if is_one_day { time } else { format!("{} {time}", date(line)) },
            number.to_string(),
            line.ends[0].to_string(),
            line.ends[1].to_string(),
            line.name.clone().unwrap_or_default(),
            format!("{:.3}", line.seconds),
            show_bytes(line.octets[0]),
            show_bytes(line.octets[1]),
            line.end.clone(),
        ]
    });
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let has_names = lines.iter().any(|(_, line)| line.name.is_some());
    let widths: [usize; 9] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).zip(WORDS).enumerate().filter(|(at, _)| has_names || *at != NAME);
        let cells = cells.map(|(_, ((cell, width), is_word))| match is_word {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}
