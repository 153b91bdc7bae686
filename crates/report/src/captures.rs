//! A page for any capture: a table of its connections, and graphs of the connections with the most data.
//!
//! The capture is read twice: first to choose the connections, then to collect the packets of the chosen
//! ones. Memory therefore does not grow with connections that are not drawn.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use aircaptures::{Capture, CaptureError};
use airtcp_analyze::connection::findings::{Cause, Close, DirectionFindings, RttOf};
use airtcp_analyze::{ConnectionFindings, Finished, Totals, Trace, Traces, read};
use airtcp_numbers::units::{show_bytes, show_rate};

use crate::html::table::{Cell, Table};
use crate::html::waterfall::{Waterfall, exchanges};
use crate::html::{Experiment, Page, Run};

/// Maximum number of connections whose verdict is at the top of the page. The table lists the causes of all connections.
const VERDICTS: usize = 5;

/// Limits on what is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of connections with graphs. The connections with the most data are drawn.
    pub drawn: usize,
    /// Maximum number of packets in all graphs together. A connection that would exceed it is only listed in
    /// the table.
    pub packets: u64,
    /// Maximum number of connections in the table.
    pub rows: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { drawn: 20, packets: 400_000, rows: 1000 }
    }
}

/// The connections with the most data, and the number of all connections.
#[derive(Default)]
struct LargestConnections {
    connections: BTreeMap<(u64, Reverse<u64>), ConnectionFindings>,
    all: u64,
}

/// Adds a capture to the page. `when` formats nanoseconds since 1970 for display.
///
/// # Errors
///
/// Returns an error if the capture cannot be read.
pub fn add(
    page: &mut Page,
    path: &Path,
    filter: Option<&str>,
    bounds: Bounds,
    when: &dyn Fn(i64) -> String,
) -> Result<(), CaptureError> {
    let mut largest = LargestConnections::default();
    let totals = read(&mut Capture::open(path, filter)?, Traces::None, &mut |finished| {
        largest.add(finished, bounds.rows);
    });
    let chosen = largest.choose(bounds);
    let mut runs_of: BTreeMap<u64, Vec<Run>> = BTreeMap::new();
    let mut waterfalls = BTreeMap::new();
    if !chosen.is_empty() {
        let traces = Traces::Among(chosen.clone());
        read(&mut Capture::open(path, filter)?, traces, &mut |finished| {
            let Finished { number, ended, .. } = finished;
            if let Some(traces) = ended.traces {
                let is_largest = chosen.first() == Some(&number);
                waterfalls.insert(number, waterfall(number, &ended.findings, &traces, is_largest));
                runs_of.insert(number, runs(number, &ended.findings, traces));
            }
        });
    }
    let drawn = runs_of.values().filter(|runs| !runs.is_empty()).count();
    let mut rows = Vec::new();
    for ((_, Reverse(number)), findings) in largest.connections.iter().rev() {
        let runs = runs_of.remove(number).unwrap_or_default();
        let run_indices = (page.runs.len()..page.runs.len() + runs.len()).collect();
        page.runs.extend(runs);
        rows.push((run_indices, row(*number, findings, totals.begin_unix_ns)));
    }
    let table = without_empty_columns(Table { caption: caption(), columns: columns(), rows });
    page.has_wide_tables = true;
    page.experiments.push(Experiment {
        name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        sentences: sentences(&totals, &largest, drawn, when),
        runs: table,
        waterfalls: waterfalls.into_values().flatten().collect(),
        ..Experiment::default()
    });
    Ok(())
}

impl LargestConnections {
    fn add(&mut self, finished: Finished, rows: usize) {
        self.all += 1;
        let findings = finished.ended.findings;
        self.connections.insert((sent_bytes(&findings), Reverse(finished.number)), findings);
        if self.connections.len() > rows {
            self.connections.pop_first();
        }
    }

    /// Returns the numbers of the connections to draw.
    fn choose(&self, bounds: Bounds) -> Vec<u64> {
        let (mut chosen, mut packets) = (Vec::new(), 0);
        for ((bytes, Reverse(number)), findings) in self.connections.iter().rev() {
            if chosen.len() == bounds.drawn || *bytes == 0 {
                break;
            }
            if packets + findings.packets <= bounds.packets {
                packets += findings.packets;
                chosen.push(*number);
            }
        }
        chosen
    }
}

fn sent_bytes(findings: &ConnectionFindings) -> u64 {
    findings.directions.iter().map(|direction| direction.sent_bytes).sum()
}

/// Returns the requests and responses of a connection if both ends sent data. They are open if they explain
/// why the largest connection was slow.
fn waterfall(
    number: u64,
    findings: &ConnectionFindings,
    traces: &[Trace; 2],
    is_largest: bool,
) -> Option<Waterfall> {
    let exchanges = exchanges(traces, findings.close == Close::Closed);
    let complete = exchanges.iter().filter(|it| it.request.is_some() && it.response.is_some()).count();
    let explaining = [Cause::SerialRequests, Cause::ServerThinkTime, Cause::ClientThinkTime];
    let is_open = is_largest && explaining.contains(&findings.verdict.cause);
    let title = format!("Requests and responses of connection {number} ({complete})");
    (complete > 0).then_some(Waterfall { title, is_open, exchanges })
}

/// Returns a run for each direction that carried data, the one with more data first.
fn runs(number: u64, findings: &ConnectionFindings, traces: [Trace; 2]) -> Vec<Run> {
    let with_data = traces.into_iter().zip(&findings.directions).filter(|(_, found)| found.data_packets > 0);
    let server = findings.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let mut with_data: Vec<_> = with_data.collect();
    // The direction with more data is the one that was slow.
    with_data.sort_by_key(|(_, direction)| Reverse(direction.sent_bytes));
    let runs = with_data.into_iter().map(|(trace, direction)| {
        let mut facts: Vec<_> = direction.rows();
        facts.insert(0, ("verdict".to_owned(), findings.verdict.sentence.clone()));
        facts.extend(findings.remarks().into_iter().map(|remark| ("capture".to_owned(), remark)));
        facts.push(("end".to_owned(), findings.how_it_ended()));
        Run { name: format!("connection {number}: {}{server}", trace.name), facts, trace }
    });
    runs.collect()
}

fn caption() -> String {
    "All connections. Click one to display it, or tick several to compare them. The numbers are the values of tcp.stream in Wireshark."
        .to_owned()
}

fn columns() -> Vec<(&'static str, &'static str)> {
    vec![
        ("connection", "number, and addresses from client to server"),
        ("cause", "why the connection was not faster"),
        ("name", "name of the server: TLS server name, or HTTP Host"),
        ("start s", "time of the first packet since the first frame of the capture"),
        ("seconds", "time from the first packet to the last"),
        ("sent", "data from the client, including retransmissions"),
        ("received", "data to the client, including retransmissions"),
        ("goodput", "goodput of the faster direction"),
        ("resent", "retransmitted packets, in both directions"),
        ("timeouts", "expiries of the retransmission timer, in both directions"),
        (
            "RTT ms",
            "median round-trip time of the direction with more data, or at the receiver the RTT of the handshake",
        ),
        ("waiting s", "silence that ended with a timeout, and time with a closed window"),
        ("answer ms", "longest time from a request to its answer"),
        ("end", "how the connection ended, or why it did not open"),
    ]
}

/// Removes the columns that have no value in any row.
fn without_empty_columns(mut table: Table) -> Table {
    let is_empty = |at: usize| table.rows.iter().all(|(_, cells)| cells[at] == Cell::nothing());
    let empty: Vec<_> = (0..table.columns.len()).filter(|at| is_empty(*at)).collect();
    for at in empty.into_iter().rev() {
        table.columns.remove(at);
        table.rows.iter_mut().for_each(|(_, cells)| drop(cells.remove(at)));
    }
    table
}

fn row(number: u64, findings: &ConnectionFindings, first: Option<i64>) -> Vec<Cell> {
    let [from, to] = findings.ends;
    let sum = |of: fn(&DirectionFindings) -> u64| findings.directions.iter().map(of).sum::<u64>();
    let [forth, back] = &findings.directions;
    let busier = if forth.sent_bytes > back.sent_bytes { forth } else { back };
    let goodput = forth.goodput_bit_per_s.max(back.goodput_bit_per_s);
    let waited = forth.time.waiting_seconds() + back.time.waiting_seconds();
    let begins = findings.begin_unix_ns.saturating_sub(first.unwrap_or(findings.begin_unix_ns)) as f64 / 1e9;
    let millis =
        |seconds: Option<f64>| seconds.map_or_else(Cell::nothing, |seconds| Cell::number(seconds * 1e3, 1));
    let bytes = |bytes: u64| Cell { text: show_bytes(bytes), value: Some(bytes as f64) };
    vec![
        Cell { text: format!("{number}: {from} → {to}"), value: Some(number as f64) },
        Cell::text(findings.verdict.cause.to_string()),
        findings.name.as_ref().map_or_else(Cell::nothing, |name| Cell::text(&*name.name)),
        Cell::number(begins, 3),
        Cell::number(findings.seconds, 3),
        bytes(forth.sent_bytes),
        bytes(back.sent_bytes),
        Cell { text: show_rate(goodput), value: Some(goodput) },
        Cell::count(sum(|direction| direction.retransmissions.packets)),
        Cell::count(sum(|direction| direction.retransmissions.timeouts)),
        match (busier.rtt.median_seconds, busier.rtt.resolution_seconds) {
            // The capture shows only the delay of the receiver's answers.
            _ if busier.rtt_of == RttOf::ReceiverDelay => millis(findings.handshake.rtt_seconds),
            (None, Some(resolution)) => {
                Cell { text: format!("<{}", (resolution * 1e3).max(0.001)), value: Some(0.0) }
            }
            (median, _) => millis(median),
        },
        Cell::number(waited, 2),
        millis(findings.answers.max_seconds),
        Cell::text(findings.how_it_ended()),
    ]
}

/// Describes the capture, and the connections that the page omits.
fn sentences(
    totals: &Totals,
    largest: &LargestConnections,
    drawn: usize,
    when: &dyn Fn(i64) -> String,
) -> Vec<String> {
    let Totals { frames, tcp_packets, connections, seconds, .. } = totals;
    let begin = totals.begin_unix_ns.map(|begin| format!(", from {}", when(begin))).unwrap_or_default();
    let plural = if *connections == 1 { "" } else { "s" };
    let mut sentences = vec![format!(
        "{frames} frames in {seconds:.3} s{begin}: {tcp_packets} TCP packets of {connections} connection{plural}."
    )];
    let carried = largest.connections.values().filter(|findings| sent_bytes(findings) > 0).count();
    if drawn < carried || largest.all > largest.connections.len() as u64 {
        let without = largest.all - largest.connections.len() as u64;
        let rows = match without {
            0 => String::new(),
            without => format!("; {without} with less data are not in the table"),
        };
        sentences.push(format!(
            "Graphs of {drawn} {} with most data{rows}. Use a filter (-f) to choose others.",
            if drawn == 1 { "connection" } else { "connections" }
        ));
    }
    let most = largest.connections.iter().rev().take(VERDICTS).filter(|(_, found)| sent_bytes(found) > 0);
    sentences.extend(
        most.map(|((_, Reverse(number)), found)| format!("Connection {number}: {}", found.verdict.sentence)),
    );
    let problems = totals.problems.iter();
    sentences.extend(problems.map(|(problem, found)| {
        let detail = found.detail.as_ref().map(|detail| format!(", {detail}")).unwrap_or_default();
        format!("{} × {problem} (from frame {}{detail}).", found.count, found.first_frame)
    }));
    sentences
}
