//! The table that `-i` shows on a terminal: the busiest connections of the last second, and why each is not
//! faster now.

use aircaptures::packet::Timestamp;
use airtcp_analyze::ConnectionFindings;
use airtcp_analyze::connection::findings::{Cause, RecentFindings};
use airtcp_analyze::survey::Survey;
use airtcp_numbers::table::{Column, Table};
use airtcp_numbers::units::show_rate;

use super::overview::median_rtt;
use super::rates::Busy;
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
