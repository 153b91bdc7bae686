//! Connections as they come: a JSON document that is written on the way, or the tables at the end.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use airtcp_analyze::connection::findings::{ConnectionFindings, DirectionFindings, RttOf};
use airtcp_analyze::connections::{Finished, Traces};
use airtcp_analyze::survey::Totals;
use airtcp_numbers::units::{show_bytes, show_rate};
use serde::Serialize;

use super::comments::Commenting;
use super::path::{BesideSender, OnPath};
use super::pictures::Pictures;
use super::resent::{self, Resent};
use crate::shared::{failure, say};

const SCHEMA_VERSION: u32 = 1;
/// Connections in a table, without `--most`.
const LIMIT: usize = 50;
/// Up to this many connections are shown in detail as well.
const DETAILED: usize = 3;

/// What to show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) json: bool,
    pub(super) only: Option<u64>,
    /// How many connections are kept until the end. `None`: each is written at once.
    pub(super) limit: Option<usize>,
    pub(super) resent: bool,
}

pub(super) struct Output {
    told: Told,
    /// While listening to an interface, a line for each connection that ends goes to stderr at once.
    live: bool,
    kept: Kept,
    pictures: Pictures,
    comments: Option<Commenting>,
    path: Option<OnPath>,
    sender: Option<BesideSender>,
    captures: u64,
    written: u64,
    error: Option<io::Error>,
}

/// Those with most data.
#[derive(Default)]
struct Kept {
    /// By octets; of two with as many, the one with the smaller number is the greater.
    connections: BTreeMap<(u64, Reverse<u64>), Findings>,
    /// All connections, and those of them without data in either direction.
    all: u64,
    empty: u64,
}

/// Of one connection.
#[derive(Serialize)]
struct Findings {
    #[serde(flatten)]
    all: ConnectionFindings,
    /// Of each direction, if it is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    resent: Option<[Vec<Resent>; 2]>,
}

#[derive(Serialize)]
struct Numbered<'a> {
    number: u64,
    #[serde(flatten)]
    findings: &'a Findings,
}

impl Output {
    pub(super) fn new(
        mut told: Told,
        pictures: Pictures,
        comments: Option<Commenting>,
        path: Option<OnPath>,
        sender: Option<BesideSender>,
    ) -> io::Result<Self> {
        if told.json {
            write!(say::out(), "{{\"schema_version\":{SCHEMA_VERSION},\"captures\":[")?;
        } else {
            told.limit.get_or_insert(LIMIT);
        }
        let (live, kept) = (false, Kept::default());
        let (captures, written, error) = (0, 0, None);
        Ok(Self { told, live, kept, pictures, comments, path, sender, captures, written, error })
    }

    pub(super) fn begin(&mut self, name: &str, live: bool) -> io::Result<()> {
        self.live = live && !self.told.json;
        let is_first = self.captures == 0;
        self.captures += 1;
        let mut out = say::out();
        if self.told.json {
            let comma = if is_first { "" } else { "," };
            let name = serde_json::to_string(name)?;
            return write!(out, "{comma}\n{{\"name\":{name},\"connections\":[");
        }
        let gap = if is_first { "" } else { "\n" };
        writeln!(out, "{gap}{name}")
    }

    pub(super) fn take(&mut self, mut finished: Finished) {
        if self.told.only.is_some_and(|only| only != finished.number) || self.error.is_some() {
            return;
        }
        if let Some(path) = &mut self.path {
            path.take(&mut finished);
        }
        // The log says which connection it is of, but not of which capture.
        if let Some(sender) = self.sender.as_mut().filter(|_| self.captures == 1) {
            sender.take(&finished);
        }
        self.pictures.take(&finished);
        if let Some(comments) = &mut self.comments {
            comments.take(&finished);
        }
        let number = finished.number;
        let resent = finished.ended.traces.filter(|_| self.told.resent);
        let resent = resent.map(|traces| traces.each_ref().map(resent::of));
        let findings = Findings { all: finished.ended.findings, resent };
        self.error = match self.told.limit {
            None => self.write(number, &findings).err(),
            Some(limit) => {
                if self.live {
                    tell(number, &findings.all);
                }
                self.kept.take(number, findings, limit);
                None
            }
        };
    }

    /// The connections whose every packet is kept.
    pub(super) fn traces(&self) -> Traces {
        let wanted = self.told.resent
            || self.comments.is_some()
            || self.path.as_ref().is_some_and(OnPath::wants_traces);
        match (wanted, self.told.only) {
            (false, _) => self.pictures.traces(),
            (true, Some(only)) => Traces::Of(only),
            (true, None) => Traces::All,
        }
    }

    /// Nobody reads any more, or the disk is full.
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    fn write(&mut self, number: u64, findings: &Findings) -> io::Result<()> {
        let mut out = say::out();
        let comma = if self.written == 0 { "" } else { "," };
        self.written += 1;
        let line = serde_json::to_string(&Numbered { number, findings })?;
        write!(out, "{comma}\n{line}")
    }

    /// Of one capture.
    pub(super) fn end(&mut self, totals: &Totals) -> anyhow::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error.into());
        }
        let kept = std::mem::take(&mut self.kept);
        let mut connections: Vec<_> =
            kept.connections.iter().map(|((_, Reverse(number)), findings)| (*number, findings)).collect();
        connections.sort_unstable_by_key(|(number, _)| *number);
        if let Some(only) = self.told.only.filter(|only| *only >= totals.connections) {
            return Err(failure::run(match totals.connections {
                0 => "there is no TCP connection in it".to_owned(),
                1 => format!("there is no connection {only}: there is only 0"),
                count => format!("there is no connection {only}: they are numbered from 0 to {}", count - 1),
            }));
        }
        if self.told.json {
            for (number, findings) in connections {
                self.write(number, findings)?;
            }
            self.written = 0;
            let totals = serde_json::to_string(totals)?;
            write!(say::out(), "\n],\"totals\":{totals}}}")?;
            return Ok(());
        }
        let mut out = say::out();
        write!(out, "{}", table(&connections))?;
        if self.told.only.is_none() {
            write!(out, "{}", rest(&kept, &connections))?;
        }
        if connections.len() <= DETAILED {
            for (number, findings) in &connections {
                writeln!(out, "\nconnection {number}: {}", findings.all.to_string().trim_end())?;
                for (direction, resent) in
                    findings.all.directions.iter().zip(findings.resent.iter().flatten())
                {
                    if !resent.is_empty() {
                        let (from, to) = (direction.from, direction.to);
                        write!(out, "\nsent again, {from} → {to}\n{}", resent::table(resent))?;
                    }
                }
            }
        } else {
            writeln!(out, "\n--connection NUMBER tells more about one of them")?;
        }
        write!(out, "{}", summary(totals))?;
        Ok(())
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        if self.told.json {
            write!(say::out(), "\n]")?;
        }
        match (&self.path, &self.sender) {
            (Some(path), sender) => path.write(self.told.json, sender.as_ref())?,
            (None, Some(sender)) => sender.write(self.told.json)?,
            (None, None) => {}
        }
        if self.told.json {
            writeln!(say::out(), "}}")?;
        }
        self.pictures.finish()?;
        self.comments.map_or(Ok(()), Commenting::finish)
    }
}

impl Kept {
    fn take(&mut self, number: u64, findings: Findings, limit: usize) {
        self.all += 1;
        let bytes = findings.all.directions.iter().map(|direction| direction.sent_bytes).sum();
        self.empty += u64::from(bytes == 0);
        self.connections.insert((bytes, Reverse(number)), findings);
        if self.connections.len() > limit {
            self.connections.pop_first();
        }
    }
}

// ----- for people -----

const HEAD: [&str; 13] = [
    "no",
    "from",
    "to",
    "seconds",
    "sent",
    "goodput",
    "packets resent: all",
    "fast",
    "timeout",
    "tail",
    "spurious",
    "RTT",
    "waited",
];

fn row(number: u64, direction: &DirectionFindings) -> [String; 13] {
    let resent = &direction.retransmissions;
    // How long a receiver takes to answer is no round trip.
    let rtt = match direction.rtt.median_seconds.filter(|_| direction.rtt_of != RttOf::ReceiverDelay) {
        Some(seconds) if seconds < 0.001 => format!("{:.0} µs", seconds * 1e6),
        Some(seconds) => format!("{:.1} ms", seconds * 1e3),
        None => "-".to_owned(),
    };
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
        rtt,
        format!("{:.2} s", direction.time.waiting_for_timeout_seconds),
    ]
}

fn rows(number: u64, findings: &ConnectionFindings) -> impl Iterator<Item = [String; 13]> {
    let with_data = findings.directions.iter().filter(|direction| direction.data_packets > 0);
    with_data.map(move |direction| row(number, direction))
}

fn table(connections: &[(u64, &Findings)]) -> String {
    let rows = connections.iter().flat_map(|(number, findings)| rows(*number, &findings.all));
    let rows: Vec<_> = std::iter::once(HEAD.map(str::to_owned)).chain(rows).collect();
    if rows.len() == 1 {
        return String::new();
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 13] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            // Names to the left, numbers to the right.
            let cell =
                if (1..3).contains(&column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            text += if column == 0 { "" } else { "  " };
            text += &cell;
        }
        text.push('\n');
    }
    text
}

fn rest(kept: &Kept, shown: &[(u64, &Findings)]) -> String {
    let with_data = |findings: &Findings| findings.all.directions.iter().any(|d| d.sent_bytes > 0);
    let shown = shown.iter().filter(|(_, findings)| with_data(findings)).count() as u64;
    let more = (kept.all - kept.empty).saturating_sub(shown);
    let mut text = String::new();
    if more > 0 {
        text += &format!("and {more} more with less data: --most {} shows them\n", shown + more);
    }
    if kept.empty > 0 {
        text += &format!("{} carried no data\n", plural(kept.empty, "connection"));
    }
    text
}

fn plural(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn summary(totals: &Totals) -> String {
    let mut text = format!(
        "\n{} in {:.3} s: {} of {}, {} with something else{}{}\n",
        plural(totals.frames, "frame"),
        totals.seconds,
        plural(totals.tcp_packets, "TCP packet"),
        plural(totals.connections, "connection"),
        totals.other_frames,
        others(totals),
        match totals.fragments {
            0 => String::new(),
            count => format!(", {} put together", plural(count, "fragment")),
        },
    );
    for (problem, found) in totals.problems.iter() {
        let detail = found.detail.as_ref().map(|detail| format!(", {detail}")).unwrap_or_default();
        let first = if found.count > 1 { "first at" } else { "at" };
        text += &format!("  {} × {problem} ({first} frame {}{detail})\n", found.count, found.first_frame);
    }
    text
}

/// Most frequent first, and no more than a line has room for.
fn others(totals: &Totals) -> String {
    const MOST: usize = 6;
    let all: Vec<_> = totals.others.iter().collect();
    let named = all.iter().take(MOST).map(|(other, count)| format!("{count} {other}"));
    let more = all.iter().skip(MOST).map(|(_, count)| count).sum::<u64>();
    let more = (more > 0).then(|| format!("{more} more"));
    let named: Vec<_> = named.chain(more).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

/// For a person who watches.
fn tell(number: u64, findings: &ConnectionFindings) {
    for row in rows(number, findings) {
        let [number, from, to, seconds, data, goodput, resent, ..] = row;
        say::aside(format_args!("{number}: {from} → {to} {data} in {seconds} s, {goodput}, {resent} resent"));
    }
}
