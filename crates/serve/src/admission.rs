//! The host's counters of connection attempts and suspicious packets, for the log.

use airtcp::host::{FastOpenCounters, GateCounters, Host};
use airwire::segment::BadPacket;
use serde::Serialize;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct AdmissionCounters {
    syn_cookies_sent: u64,
    syn_cookies_accepted: u64,
    syn_cookies_refused: u64,
    half_open_evicted: u64,
    /// SYNs and handshakes of sources that have reached `--max-per-source`.
    over_source: u64,
    syns_dropped: u64,
    resets_sent: u64,
    resets_withheld: u64,
    /// Packets from the host's own addresses, and packets with addresses that no host can have.
    impossible_addresses: u64,
    time_wait_evicted: u64,
    orphans_evicted: u64,
    /// SYNs whose data was accepted, and SYNs with an invalid cookie or beyond the limit.
    fast_open_accepted: u64,
    fast_open_refused: u64,
}

impl AdmissionCounters {
    pub(crate) fn of(host: &Host) -> Self {
        let counters = host.counters();
        let GateCounters {
            cookies_sent,
            cookies_accepted,
            cookies_refused,
            half_open_evicted,
            over_source,
            from_self,
            resets_withheld,
            time_wait_evicted,
            orphans_evicted,
        } = counters.gate;
        let FastOpenCounters { accepted, invalid_cookies, over_limit, .. } = counters.fast_open;
        Self {
            syn_cookies_sent: cookies_sent,
            syn_cookies_accepted: cookies_accepted,
            syn_cookies_refused: cookies_refused,
            half_open_evicted,
            over_source,
            syns_dropped: counters.syns_dropped,
            resets_sent: counters.resets_sent,
            resets_withheld,
            impossible_addresses: from_self
                + counters.bad.get(&BadPacket::Address).copied().unwrap_or_default(),
            time_wait_evicted,
            orphans_evicted,
            fast_open_accepted: accepted,
            fast_open_refused: invalid_cookies + over_limit,
        }
    }

    /// Formats a line of text. Empty if there is nothing to report.
    pub(crate) fn text(&self) -> String {
        let counts = [
            (self.syn_cookies_sent, "SYN cookies sent"),
            (self.syn_cookies_accepted, "SYN cookies accepted"),
            (self.half_open_evicted, "half-open connections dropped"),
            (self.fast_open_refused, "SYNs without Fast Open"),
            (self.over_source, "refused by --max-per-source"),
            (self.syns_dropped, "SYNs dropped"),
            (self.resets_withheld, "resets suppressed"),
            (self.impossible_addresses, "packets with impossible addresses"),
            (self.time_wait_evicted + self.orphans_evicted, "closed connections ended early"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
        if counts.is_empty() { String::new() } else { format!("limits        {}\n", counts.join(", ")) }
    }
}
