//! The table that `-i` shows on a terminal: the busiest connections of the last second, and why each is not
//! faster now.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use aircaptures::packet::Timestamp;
use airtcp_analyze::ConnectionFindings;
use airtcp_analyze::connection::findings::{Cause, RecentFindings};
use airtcp_analyze::connections::Followed;
use airtcp_analyze::survey::Survey;
use airtcp_numbers::table::{Column, Table};
use airtcp_numbers::units::show_rate;
use airwire::time::Instant;

use super::output::median_rtt;
use super::sockets::Sockets;
use crate::shared::console::LiveBlock;

/// Lines of the terminal that are kept for the summary line, the headings and the prompt.
const RESERVED_LINES: usize = 5;

/// Maximum number of connections that are examined for one table, so that a filter costs little time.
const MAX_EXAMINED: usize = 500;

/// The table, which is redrawn at each update.
pub(super) struct LiveTable {
    block: LiveBlock,
}

impl LiveTable {
    /// Creates the table if it is wanted and stderr is a terminal.
    pub(super) fn new(wanted: bool) -> Option<Self> {
        Some(Self { block: LiveBlock::new(wanted)? })
    }

    /// Draws the busiest connections that are `wanted`, as many as fit on the terminal.
    pub(super) fn draw(
        &mut self,
        busy: &[Busy],
        open: usize,
        survey: &Survey,
        now: Timestamp,
        sockets: &Sockets,
        wanted: impl Fn(u64, &ConnectionFindings) -> bool,
    ) {
        let (columns, rows) = self.block.size();
        let results = |busy: &Busy| Some((*busy, survey.results_so_far(busy.ends)?.findings));
        let shown: Vec<_> = busy
            .iter()
            .take(MAX_EXAMINED)
            .filter_map(results)
            .filter(|(busy, findings)| wanted(busy.number, findings))
            .take(rows.saturating_sub(RESERVED_LINES))
            .map(|(busy, findings)| Row { busy, findings, recent: survey.recent(busy.ends, now) })
            .collect();
        let waiting = busy.iter().filter(|busy| busy.bit_per_s == 0.0).count();
        let mut text = format!("{open} open, {} with data in the last second", busy.len() - waiting);
        text += &if waiting > 0 { format!(", {waiting} waiting for ACKs\n") } else { "\n".to_owned() };
        if !shown.is_empty() {
            text += &table(&shown, sockets).render(Some(columns));
        }
        self.block.show(&text);
    }

    /// Erases the table, so that other lines can be printed.
    pub(super) fn clear(&mut self) {
        self.block.clear();
    }
}

/// One connection in the table.
struct Row {
    busy: Busy,
    /// The results since the start of the connection.
    findings: ConnectionFindings,
    recent: Option<RecentFindings>,
}

/// A connection that carried data since the last update, or waits for ACKs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Busy {
    pub(super) number: u64,
    pub(super) ends: [SocketAddr; 2],
    /// The end that sent more data since the last update: an index in `ends`.
    from: usize,
    bit_per_s: f64,
}

/// Measures the rates of the connections between two updates.
pub(super) struct Rates {
    /// The time of the last update.
    at: Instant,
    /// The data of each open connection at the last update.
    bytes: BTreeMap<u64, [u64; 2]>,
}

impl Rates {
    pub(super) fn new(now: Instant) -> Self {
        Self { at: now, bytes: BTreeMap::new() }
    }

    /// Returns the connections with data since the last update, or with outstanding data, fastest first, and the
    /// number of all.
    pub(super) fn update(
        &mut self,
        now: Instant,
        followed: impl Iterator<Item = Followed>,
    ) -> (Vec<Busy>, usize) {
        let seconds = (now - std::mem::replace(&mut self.at, now)).as_secs_f64();
        let mut bytes = BTreeMap::new();
        let mut busy = Vec::new();
        for connection in followed {
            bytes.insert(connection.number, connection.bytes);
            let before = self.bytes.get(&connection.number).copied().unwrap_or_default();
            let new = [0, 1].map(|end: usize| connection.bytes[end].saturating_sub(before[end]));
            let from = usize::from(new[1] > new[0]);
            if (new[from] > 0 || connection.has_outstanding) && seconds > 0.0 {
                let bit_per_s = new[from] as f64 * 8.0 / seconds;
                busy.push(Busy { number: connection.number, ends: connection.ends, from, bit_per_s });
            }
        }
        busy.sort_unstable_by(|a, b| b.bit_per_s.total_cmp(&a.bit_per_s).then(a.number.cmp(&b.number)));
        let open = bytes.len();
        self.bytes = bytes;
        (busy, open)
    }
}

fn table(rows: &[Row], sockets: &Sockets) -> Table {
    let mut table = Table::new([
        Column::new("no"),
        Column::new("from").left(),
        Column::new("to").left(),
        Column::new("now"),
        Column::new("RTT").optional(3),
        Column::new("resent").optional(2),
        Column::new("algorithm").left().optional(0),
        Column::new("cwnd").optional(1),
        Column::new("cause now").left(),
    ]);
    for Row { busy: row, findings, recent } in rows {
        let direction = &findings.directions[row.from];
        let kernel = sockets.of(row.number, row.from);
        table.push([
            row.number.to_string(),
            row.ends[row.from].to_string(),
            row.ends[1 - row.from].to_string(),
            show_rate(row.bit_per_s),
            median_rtt(direction),
            direction.retransmissions.packets.to_string(),
            kernel.and_then(|socket| socket.congestion_control.clone()).unwrap_or_default(),
            kernel.and_then(|socket| socket.cwnd_segments).map_or_else(String::new, |cwnd| cwnd.to_string()),
            recent.as_ref().map_or(Cause::Undetermined, |recent| recent.verdict.cause).to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(number: u64, bytes: [u64; 2]) -> Followed {
        let ends = ["10.0.0.1:4000", "10.0.0.2:80"].map(|end| end.parse().unwrap());
        Followed { number, ends, bytes, has_outstanding: number == 2 }
    }

    #[test]
    fn rates_cover_time_between_updates() {
        let mut rates = Rates::new(Instant::from_secs(9));
        let first = [followed(0, [100, 5_000]), followed(1, [0, 0]), followed(2, [7, 7])];
        assert_eq!(rates.update(Instant::from_secs(10), first.into_iter()).1, 3);
        // Connection 1 has ended, connection 2 waits for an ACK, and connection 3 is new.
        let second = [followed(0, [100, 6_000]), followed(3, [4_000, 10]), followed(2, [7, 7])];
        let (busy, open) = rates.update(Instant::from_secs(12), second.into_iter());
        let seen: Vec<_> = busy.iter().map(|busy| (busy.number, busy.from, busy.bit_per_s)).collect();
        assert_eq!((seen, open), (vec![(3, 0, 16_000.0), (0, 1, 4_000.0), (2, 0, 0.0)], 3));
    }
}
