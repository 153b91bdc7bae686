//! Prints the connections of captures: JSON while a capture is read, or tables at its end.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use aircaptures::packet::Timestamp;
use airtcp_analyze::connection::findings::{ConnectionFindings, HandshakeOutcome, RecentFindings};
use airtcp_analyze::connections::{Finished, Traces};
use airtcp_analyze::survey::{Survey, Totals};
use airtcp_numbers::table::wrapped_lines;
use airwire::time::Instant;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::comments::Commenting;
use super::lines::{self, Line};
use super::live::LiveTable;
use super::moment;
use super::order::{SortKey, TopRanked};
use super::overview;
use super::parquet::ParquetFile;
use super::path::{PathAnalysis, SenderLogComparison};
use super::pictures::Pictures;
use super::rates::Rates;
use super::resent::{self, Resent};
use super::rows::{self, Cell};
use super::select::Selection;
use super::sockets::{KernelSocket, Sockets};
use crate::shared::{console, failure};

const SCHEMA_VERSION: u32 = 1;
/// Maximum number of connections in a table without `--most`.
const DEFAULT_ROWS: usize = 50;
/// Maximum number of connections for `--overview` and for sorted JSON, without `--most`.
const MANY_ROWS: usize = 10_000;
/// Up to this number of connections, details are printed for each.
const MAX_DETAILED: usize = 3;

/// The format of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
    Csv,
}

/// The options that control the output.
#[derive(Clone, Debug)]
pub(super) struct OutputOptions {
    pub(super) format: Format,
    pub(super) only: Option<u64>,
    /// Maximum number of connections to keep until the end. With `None`, each is written at once.
    pub(super) limit: Option<usize>,
    pub(super) resent: bool,
    pub(super) selection: Selection,
    pub(super) sort: Option<SortKey>,
    /// The Parquet file for the rows of `--csv`.
    pub(super) parquet: Option<PathBuf>,
    /// Print one line per connection and no tables.
    pub(super) overview: bool,
    /// Print all columns of the tables and not to break lines.
    pub(super) wide: bool,
}

pub(super) struct Output {
    options: OutputOptions,
    /// The state of a capture on an interface.
    live: Option<Live>,
    zone: TimeZone,
    /// The results of the current capture.
    results: CaptureResults,
    pictures: Pictures,
    comments: Option<Commenting>,
    path: Option<PathAnalysis>,
    sender: Option<SenderLogComparison>,
    parquet: Option<ParquetFile>,
    /// The name of the current capture.
    capture: String,
    captures: u64,
    written: u64,
    /// Buffer for the JSON of one connection, reused for the next.
    line: Vec<u8>,
    error: Option<io::Error>,
}

/// The state of a capture on an interface: the table, and the questions to the kernel.
struct Live {
    /// The table on stderr, if stderr is a terminal.
    table: Option<LiveTable>,
    rates: Rates,
    sockets: Sockets,
}

/// The results of one capture that are kept until its end.
struct CaptureResults {
    /// Time of the first packet.
    first: Option<Timestamp>,
    connections: TopRanked<Findings>,
    lines: TopRanked<Line>,
    /// Connections whose handshake failed, in order of their begin.
    failed: TopRanked<Line>,
    failures: BTreeMap<&'static str, u64>,
    counts: Counts,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    with_data: u64,
    /// Open connections that carried no data in either direction.
    empty: u64,
    /// Connections excluded by `--host`, `--port` and `--between`.
    left_out: u64,
}

/// The findings about one connection.
#[derive(Serialize)]
struct Findings {
    #[serde(flatten)]
    all: ConnectionFindings,
    /// The retransmissions of each direction, with `--resent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    resent: Option<[Vec<Resent>; 2]>,
    /// The sockets of both ends on this machine, after a capture on an interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<[Option<KernelSocket>; 2]>,
    /// The verdict about the last seconds, after a capture on an interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<Box<RecentFindings>>,
}

#[derive(Serialize)]
struct Numbered<'a> {
    number: u64,
    #[serde(flatten)]
    findings: &'a Findings,
}

impl Output {
    pub(super) fn new(
        mut options: OutputOptions,
        pictures: Pictures,
        comments: Option<Commenting>,
        path: Option<PathAnalysis>,
        sender: Option<SenderLogComparison>,
    ) -> anyhow::Result<Self> {
        match options.format {
            Format::Text => {
                options.limit.get_or_insert(if options.overview { MANY_ROWS } else { DEFAULT_ROWS });
            }
            Format::Json => {
                write!(console::stdout(), "{{\"schema_version\":{SCHEMA_VERSION},\"captures\":[")?
            }
            Format::Csv => rows::write_headings(options.resent, &mut console::stdout())?,
        }
        if options.sort.is_some() {
            options.limit.get_or_insert(MANY_ROWS);
        }
        let parquet = options.parquet.as_deref();
        let parquet =
            parquet.map(|path| ParquetFile::create(path, rows::columns(options.resent))).transpose()?;
        let (live, zone, results) = (None, TimeZone::system(), CaptureResults::new(&options));
        let (captures, written, line, error) = (0, 0, Vec::new(), None);
        Ok(Self {
            options,
            live,
            zone,
            results,
            pictures,
            comments,
            path,
            sender,
            parquet,
            capture: String::new(),
            captures,
            written,
            line,
            error,
        })
    }

    /// Records the time of the capture's first packet. Later calls have no effect.
    pub(super) fn first(&mut self, first: Option<Timestamp>) {
        self.results.first = self.results.first.or(first);
    }

    pub(super) fn begin(&mut self, name: &str) -> io::Result<()> {
        name.clone_into(&mut self.capture);
        let is_first = self.captures == 0;
        self.captures += 1;
        let mut out = console::stdout();
        match self.options.format {
            Format::Text => {
                let gap = if is_first { "" } else { "\n" };
                writeln!(out, "{gap}{name}")
            }
            Format::Json => {
                let comma = if is_first { "" } else { "," };
                let name = serde_json::to_string(name)?;
                write!(out, "{comma}\n{{\"name\":{name},\"connections\":[")
            }
            Format::Csv => Ok(()),
        }
    }

    /// Prepares for a capture on an interface. With `quiet`, no table is shown.
    pub(super) fn begin_live(&mut self, now: Instant, quiet: bool) {
        let is_shown = !quiet && self.traces() == Traces::None;
        let (rates, sockets) = (Rates::new(now), Sockets::default());
        self.live = Some(Live { table: LiveTable::new(is_shown), rates, sockets });
    }

    /// Asks the kernel about the busiest connections and draws them. Called once per second. `wall` is the time of
    /// the capture's clock.
    pub(super) fn update_live(&mut self, now: Instant, wall: Timestamp, survey: &Survey) {
        let Some(live) = &mut self.live else { return };
        let (busy, open) = live.rates.update(now, survey.followed());
        live.sockets.update(&busy);
        if let Some(table) = &mut live.table {
            let first = self.results.first.unwrap_or_default().0;
            let (options, zone) = (&self.options, &self.zone);
            let wants = |number: u64, findings: &ConnectionFindings| {
                options.only.is_none_or(|only| only == number)
                    && options.selection.wants(findings, first, zone)
            };
            table.draw(&busy, open, survey, wall, &live.sockets, wants);
        }
    }

    pub(super) fn take(&mut self, mut finished: Finished) {
        let number = finished.number;
        let kernel = self.live.as_mut().map(|live| live.sockets.take(number).unwrap_or_default());
        if self.options.only.is_some_and(|only| only != number) || self.error.is_some() {
            return;
        }
        if let Some(path) = &mut self.path {
            path.take(&mut finished);
        }
        // The sender's log identifies the connection but not the capture, so it is compared with the first
        // capture.
        if let Some(sender) = self.sender.as_mut().filter(|_| self.captures == 1) {
            sender.take(&finished);
        }
        let first = self.results.first.map_or(finished.ended.findings.begin_unix_ns, |first| first.0);
        if !self.options.selection.wants(&finished.ended.findings, first, &self.zone) {
            self.results.counts.left_out += 1;
            return;
        }
        self.pictures.take(&finished);
        if let Some(comments) = &mut self.comments {
            comments.take(&finished);
        }
        let resent = finished.ended.traces.filter(|_| self.options.resent);
        let resent = resent.map(|traces| traces.each_ref().map(resent::of));
        let findings = Findings { all: finished.ended.findings, resent, kernel, recent: finished.recent };
        self.error = self.keep(number, findings).err();
    }

    /// Writes the results of a connection, or keeps them until the end of the capture.
    fn keep(&mut self, number: u64, findings: Findings) -> io::Result<()> {
        if self.parquet.is_some() {
            let rows = self.rows(number, &findings);
            rows.into_iter()
                .try_for_each(|row| self.parquet.as_mut().map_or(Ok(()), |file| file.push(row)))?;
        }
        if self.options.limit.is_none() {
            return self.write(number, &findings);
        }
        if let Some(live) = self.live.as_mut().filter(|_| self.options.format == Format::Text) {
            if let Some(table) = &mut live.table {
                table.clear();
            }
            report_live(number, &findings.all);
        }
        self.results.take(number, findings, &self.options);
        Ok(())
    }

    /// Returns the connections for which every packet must be kept.
    pub(super) fn traces(&self) -> Traces {
        let needs_traces = self.options.resent
            || self.comments.is_some()
            || self.path.as_ref().is_some_and(PathAnalysis::wants_traces);
        match (needs_traces, self.options.only) {
            (false, _) => self.pictures.traces(),
            (true, Some(only)) => Traces::Of(only),
            (true, None) => Traces::All,
        }
    }

    /// Returns true if output has failed: the reader has closed the pipe, or the disk is full.
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    fn write(&mut self, number: u64, findings: &Findings) -> io::Result<()> {
        if self.options.format != Format::Csv {
            return self.write_json(number, findings);
        }
        let mut out = console::stdout();
        self.rows(number, findings).iter().try_for_each(|row| rows::write_row(row, &mut out))
    }

    /// Returns the rows of a connection for `--csv` and `--parquet`.
    fn rows(&self, number: u64, findings: &Findings) -> Vec<Vec<Cell>> {
        match &findings.resent {
            Some(resent) => rows::retransmissions(&self.capture, number, &findings.all, resent),
            None => vec![rows::connection(&self.capture, number, &findings.all)],
        }
    }

    fn write_json(&mut self, number: u64, findings: &Findings) -> io::Result<()> {
        let comma = if self.written == 0 { "" } else { "," };
        self.written += 1;
        self.line.clear();
        writeln!(self.line, "{comma}")?;
        serde_json::to_writer(&mut self.line, &Numbered { number, findings })?;
        console::stdout().write_all(&self.line)
    }

    /// Prints the results of one capture.
    pub(super) fn end(&mut self, totals: &Totals) -> anyhow::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error.into());
        }
        if let Some(table) = self.live.as_mut().and_then(|live| live.table.as_mut()) {
            table.clear();
        }
        let results = std::mem::replace(&mut self.results, CaptureResults::new(&self.options));
        let mut connections: Vec<_> = results.connections.in_order().collect();
        if self.options.sort.is_none() {
            connections.sort_unstable_by_key(|(number, _)| *number);
        }
        if let Some(only) = self.options.only.filter(|only| *only >= totals.connections) {
            return Err(failure::run(match totals.connections {
                0 => "there is no TCP connection in it".to_owned(),
                1 => format!("the only connection in it has the number 0, not {only}; use --connection 0"),
                count => format!(
                    "its connections have the numbers 0 to {}, so there is no {only}; use one of them",
                    count - 1
                ),
            }));
        }
        if self.options.format != Format::Text {
            for (number, findings) in connections {
                self.write(number, findings)?;
            }
            if self.options.format == Format::Json {
                self.written = 0;
                let totals = serde_json::to_string(totals)?;
                write!(console::stdout(), "\n],\"totals\":{totals}}}")?;
            }
            return Ok(());
        }
        let mut out = console::stdout();
        let width = console::width(self.options.wide);
        if self.options.overview {
            write!(out, "{}", lines::table(results.lines.in_order(), &self.zone, width))?;
            write!(out, "{}", more(results.lines.all, results.lines.len() as u64, ""))?;
            write!(
                out,
                "{}{}",
                left_out(results.counts),
                wrapped_lines(&summary(totals, &self.zone), width)
            )?;
            return Ok(());
        }
        let overview = || connections.iter().map(|(number, findings)| (*number, &findings.all));
        write!(out, "{}", overview::table(overview(), width))?;
        if self.options.only.is_none() {
            write!(out, "{}", self.rest(&results, &connections, width))?;
        }
        if connections.len() <= MAX_DETAILED {
            for (number, findings) in &connections {
                self.write_details(&mut out, *number, findings, results.first)?;
            }
        } else {
            write!(out, "{}", wrapped_lines(&overview::verdicts(overview()), width))?;
            writeln!(out, "\n--connection NUMBER shows one of them in detail")?;
        }
        write!(out, "{}", wrapped_lines(&summary(totals, &self.zone), width))?;
        Ok(())
    }

    fn write_details(
        &self,
        out: &mut impl Write,
        number: u64,
        findings: &Findings,
        first: Option<Timestamp>,
    ) -> io::Result<()> {
        let text = findings.all.to_string();
        let (head, rest) = text.trim_end().split_once('\n').unwrap_or_else(|| (text.trim_end(), ""));
        let (verdict, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        let width = console::width(self.options.wide);
        write!(out, "\n{}", wrapped_lines(&format!("connection {number}: {head}\n{verdict}"), width))?;
        let begin = findings.all.begin_unix_ns;
        let after = Timestamp(begin).since(first.unwrap_or(Timestamp(begin)));
        writeln!(out, "  began {}, {after:.6} s after the first frame", moment::long(begin, &self.zone))?;
        if !rest.is_empty() {
            write!(out, "{}", wrapped_lines(rest, width))?;
        }
        for (end, socket) in findings.all.ends.iter().zip(findings.kernel.iter().flatten()) {
            if let Some(socket) = socket {
                write!(out, "{}", wrapped_lines(&format!("  kernel at {end}: {socket}\n"), width))?;
            }
        }
        for (direction, resent) in findings.all.directions.iter().zip(findings.resent.iter().flatten()) {
            if !resent.is_empty() {
                let (from, to) = (direction.from, direction.to);
                write!(out, "\nretransmissions, {from} → {to}\n{}", resent::table(resent, width))?;
            }
        }
        Ok(())
    }

    /// Returns the lines below the table: the connections that the table leaves out.
    fn rest(
        &self,
        results: &CaptureResults,
        connections: &[(u64, &Findings)],
        width: Option<usize>,
    ) -> String {
        let with_data = |findings: &Findings| findings.all.directions.iter().any(|d| d.sent_bytes > 0);
        let in_table = connections.iter().filter(|(_, findings)| with_data(findings)).count() as u64;
        let mut text = match self.options.sort {
            None => more(results.counts.with_data, in_table, " with less data"),
            Some(_) => more(results.counts.with_data, in_table, ""),
        };
        let (failed, empty) = (&results.failed, results.counts.empty);
        if empty > 0 {
            text += &format!("{} carried no data\n", plural(empty, "connection"));
        }
        text += &left_out(results.counts);
        if failed.all > 0 {
            let failures: Vec<_> =
                results.failures.iter().map(|(failure, count)| format!("{count} {failure}")).collect();
            text += &format!("\n{} failed: {}\n", plural(failed.all, "handshake"), failures.join(", "));
            text += &lines::table(failed.in_order(), &self.zone, width);
            text += &more(failed.all, failed.len() as u64, "");
        }
        text
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        let json = self.options.format == Format::Json;
        if json {
            write!(console::stdout(), "\n]")?;
        }
        let width = console::width(self.options.wide);
        match (&self.path, &self.sender) {
            (Some(path), sender) => path.write(json, sender.as_ref(), width)?,
            (None, Some(sender)) => sender.write(json, width)?,
            (None, None) => {}
        }
        if json {
            writeln!(console::stdout(), "}}")?;
        }
        if let Some(file) = self.parquet {
            file.finish()?;
        }
        self.pictures.finish()?;
        self.comments.map_or(Ok(()), Commenting::finish)
    }
}

impl CaptureResults {
    fn new(options: &OutputOptions) -> Self {
        let most = options.limit.unwrap_or(0);
        let (in_detail, as_lines) = if options.overview { (0, most) } else { (most, 0) };
        Self {
            first: None,
            connections: TopRanked::new(in_detail),
            lines: TopRanked::new(as_lines),
            failed: TopRanked::new(most),
            failures: BTreeMap::new(),
            counts: Counts::default(),
        }
    }

    fn take(&mut self, number: u64, findings: Findings, options: &OutputOptions) {
        let all = &findings.all;
        let has_data = all.directions.iter().any(|direction| direction.sent_bytes > 0);
        self.counts.with_data += u64::from(has_data);
        if let Some(failure) = handshake_failure(all.handshake.outcome) {
            *self.failures.entry(failure).or_default() += 1;
            self.failed.take(SortKey::Start.rank(all), number, || Line::of(all));
        } else {
            self.counts.empty += u64::from(!has_data);
        }
        if options.overview {
            let rank = options.sort.unwrap_or(SortKey::Start).rank(all);
            self.lines.take(rank, number, || Line::of(all));
        } else {
            let rank = options.sort.unwrap_or(SortKey::Bytes).rank(all);
            self.connections.take(rank, number, || findings);
        }
    }
}

/// Describes how a handshake failed. Returns `None` if it did not fail.
fn handshake_failure(outcome: HandshakeOutcome) -> Option<&'static str> {
    match outcome {
        HandshakeOutcome::Open | HandshakeOutcome::Unseen => None,
        HandshakeOutcome::Refused => Some("refused"),
        HandshakeOutcome::Reset { .. } => Some("reset"),
        HandshakeOutcome::Unreachable => Some("unreachable"),
        HandshakeOutcome::NoAnswer => Some("without an answer"),
        HandshakeOutcome::HalfOpen => Some("half open"),
    }
}

fn more(all: u64, shown: u64, which: &str) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => format!("and {more} more{which}: --most {all} shows them\n"),
    }
}

fn left_out(counts: Counts) -> String {
    match counts.left_out {
        0 => String::new(),
        count => format!("{} left out (--host, --port, --between)\n", plural(count, "connection")),
    }
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn summary(totals: &Totals, zone: &TimeZone) -> String {
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
    if let Some(begin) = totals.begin_unix_ns {
        text += &format!("  the first frame came {}\n", moment::long(begin, zone));
    }
    if totals.icmp_errors > 0 {
        let elsewhere = match totals.icmp_errors_elsewhere {
            0 => String::new(),
            count => format!(", {count} of them about connections that are not here"),
        };
        text += &format!("  {} about TCP packets{elsewhere}\n", plural(totals.icmp_errors, "ICMP error"));
    }
    for (problem, found) in totals.problems.iter() {
        let detail = found.detail.as_ref().map(|detail| format!(", {detail}")).unwrap_or_default();
        let first = if found.count > 1 { "first at" } else { "at" };
        text += &format!("  {} × {problem} ({first} frame {}{detail})\n", found.count, found.first_frame);
    }
    text
}

/// Lists the most frequent other frames, as many as fit on one line.
fn others(totals: &Totals) -> String {
    const MAX_LISTED: usize = 6;
    let all: Vec<_> = totals.others.iter().collect();
    let named = all.iter().take(MAX_LISTED).map(|(other, count)| format!("{count} {other}"));
    let more = all.iter().skip(MAX_LISTED).map(|(_, count)| count).sum::<u64>();
    let more = (more > 0).then(|| format!("{more} more"));
    let named: Vec<_> = named.chain(more).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

/// Prints a finished connection to stderr during a live capture.
fn report_live(number: u64, findings: &ConnectionFindings) {
    if findings.handshake.outcome.has_failed() {
        let [from, to] = findings.ends;
        console::print_status(format_args!("{number}: {from} → {to} {}", findings.how_it_ended()));
    }
    for row in overview::rows(number, findings) {
        let [number, from, to, seconds, data, goodput, resent, ..] = row;
        console::print_status(format_args!(
            "{number}: {from} → {to} {data} in {seconds} s, {goodput}, {resent} resent"
        ));
    }
}
