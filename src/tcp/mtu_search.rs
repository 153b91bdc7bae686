//! The search for a segment size that the path delivers, without ICMP errors (RFC 4821, RFC 8899). Paths that
//! drop longer packets silently are black holes (RFC 2923 §2.1).
//!
//! With [`MtuSearch::Linux`], segments fit into packets of `Range::low` bytes. If enough data waits, one
//! segment is longer: the MTU probe (tcp_mtu_probe()). Its ACK raises `low`. Its loss lowers `high` and is
//! not a sign of congestion (RFC 4821 §7.6.2). A retransmission while the probe is in flight leaves its fate
//! open. Timeouts lower `low` (tcp_mtu_probing()).

use airwire::time::{Duration, Instant};

use super::connection::Connection;
use crate::profile::{MtuLimits, MtuProbing, MtuSearch};
use crate::recovery::engine::ProbeRoom;

/// TCP_RTO_MIN and TCP_RTO_MAX.
const SHORTEST_RTO: Duration = Duration::from_millis(200);
const LONGEST_RTO: Duration = Duration::from_secs(120);
/// Number of times that the shortest timeout doubles before it reaches the longest.
const DOUBLINGS: u32 = 9;

/// State of the search. The length of a packet includes all headers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Search {
    /// No probe is in flight.
    Waiting(Range),
    /// A probe is in flight.
    Probing {
        range: Range,
        /// Length of its packet.
        mtu: u32,
        /// Offset after its last byte.
        end: u64,
    },
    /// [`MtuSearch::FreeBsd`]: timeouts have reduced the MSS, which includes options.
    Reduced { mss: u16 },
}

/// The range of packet lengths in which the path MTU lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    /// Length of the packets in use (icsk_mtup.search_low).
    low: u32,
    /// Longest packet that no lost probe has excluded (icsk_mtup.search_high).
    high: u32,
    /// Beginning of the search.
    since: Instant,
}

/// The role of the next new segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NextSegment {
    /// An ordinary segment.
    Ordinary,
    /// A probe with this much data.
    Probe(u64),
    /// A probe, once the windows have room for it.
    ProbeLater,
}

/// The next probe.
#[derive(Clone, Copy, Debug)]
struct Plan {
    data: u64,
    /// Unsent data that it requires: the segments behind the probe reveal its loss.
    needed: u64,
}

impl Search {
    fn range(&self) -> Option<Range> {
        match self {
            Self::Waiting(range) | Self::Probing { range, .. } => Some(*range),
            Self::Reduced { .. } => None,
        }
    }
}

impl Connection {
    /// Returns the length of the longest packets in use, except for MTU probes.
    pub(super) fn longest_packet(&self) -> u32 {
        let headers = self.negotiated.header_len() as u32;
        let found = self.mtu_search.as_deref().map_or(u32::MAX, |search| match search {
            Search::Waiting(range) | Search::Probing { range, .. } => range.low,
            Search::Reduced { mss } => u32::from(*mss) + headers,
        });
        self.pmtu().min(found)
    }

    /// Starts the search with the connection, if it was asked for (tcp_mtup_init()). Unlike Linux, a passive
    /// open does not wait for a larger window of the peer before it shortens the segments.
    pub(super) fn start_mtu_search(&mut self, now: Instant) {
        if let (MtuProbing::Always, MtuSearch::Linux(limits)) =
            (self.options.mtu_probing, self.profile.mtu_search)
        {
            self.begin_mtu_search(now, &limits);
        }
    }

    fn begin_mtu_search(&mut self, now: Instant, limits: &MtuLimits) {
        let low = self.packet_with(u64::from(limits.base_mss.max(limits.floor).max(limits.least_mss)));
        self.search_in(Range { low, high: u32::MAX, since: now });
    }

    fn search_in(&mut self, range: Range) {
        self.mtu_search = Some(Box::new(Search::Waiting(range)));
        self.update_smss();
    }

    /// Processes a timeout, which may be the effect of a black hole.
    pub(super) fn suspect_black_hole(&mut self, now: Instant) {
        self.abandon_mtu_probe();
        match (self.options.mtu_probing, self.profile.mtu_search) {
            (MtuProbing::Off, _) => {}
            (_, MtuSearch::Linux(limits)) => self.shorten_segments(now, &limits),
            (_, MtuSearch::FreeBsd) => self.reduce_mss(),
        }
    }

    /// tcp_mtu_probing(): the first time, the search begins. After that, the segments get half as long.
    fn shorten_segments(&mut self, now: Instant, limits: &MtuLimits) {
        let unanswered_period =
            self.unanswered_period().map(|unanswered_period| now - unanswered_period.since);
        if unanswered_period.is_none_or(|time| time < self.black_hole_time()) {
            return;
        }
        let Some(range) = self.mtu_search.as_deref().and_then(Search::range) else {
            return self.begin_mtu_search(now, limits);
        };
        let half = self.data_in(range.low) / 2;
        let least = limits.floor.max(limits.least_mss);
        let low = self.packet_with(half.min(limits.base_mss.into()).max(least.into()));
        self.search_in(Range { low, ..range });
    }

    /// Returns how long retransmissions must have failed. Linux converts the number of retransmissions
    /// (tcp_retries1) to the time that they take with the shortest timeout (tcp_model_timeout()).
    fn black_hole_time(&self) -> Duration {
        let retries = self.profile.retries_told;
        let doublings = retries.min(DOUBLINGS);
        SHORTEST_RTO * ((2 << doublings) - 1) + LONGEST_RTO * u64::from(retries - doublings)
    }

    /// tcp_timer_rexmt(), with the defaults of `net.inet.tcp.pmtud_blackhole_mss`, `mssdflt` and their
    /// counterparts for IPv6.
    fn reduce_mss(&mut self) {
        let timeouts = self.recovery.congestion().timeouts_in_row + 1;
        let (smss, data_end) = (self.snd.smss, self.snd.buffer.end());
        let head = self.flight.head();
        let is_full = head.is_some_and(|head| head.end.min(data_end).saturating_sub(head.start) >= smss);
        if matches!(timeouts, 2 | 4) && is_full && self.options.pmtu_discovery {
            let (first, last) = if self.negotiated.is_ipv4() { (1200, 536) } else { (1220, 1220) };
            let mss = if self.max_seg() > u64::from(first) { first } else { last };
            self.mtu_search = Some(Box::new(Search::Reduced { mss }));
        } else if timeouts >= 6 {
            self.mtu_search = None;
        }
        self.update_smss();
    }

    /// Returns the length of a packet with `data` bytes of data (tcp_mss_to_mtu()).
    fn packet_with(&self, data: u64) -> u32 {
        (data + self.negotiated.options_len()) as u32 + self.negotiated.header_len() as u32
    }

    /// Returns the data in a packet of `mtu` bytes (tcp_mtu_to_mss()).
    fn data_in(&self, mtu: u32) -> u64 {
        let seg = u64::from(mtu)
            .saturating_sub(self.negotiated.header_len() as u64)
            .min(self.negotiated.permitted_seg(&self.options));
        seg.saturating_sub(self.negotiated.options_len())
    }

    fn plan_mtu_probe(&self) -> Option<Plan> {
        let (Some(Search::Waiting(range)), MtuSearch::Linux(limits)) =
            (self.mtu_search.as_deref(), self.profile.mtu_search)
        else {
            return None;
        };
        let permitted =
            self.negotiated.permitted_seg(&self.options) as u32 + self.negotiated.header_len() as u32;
        let high = range.high.min(self.pmtu()).min(permitted);
        if high.saturating_sub(range.low) < limits.threshold.max(1) {
            return None;
        }
        let data = self.data_in(range.low.midpoint(high));
        Some(Plan { data, needed: data + self.segments_behind_probe() * self.snd.smss })
    }

    fn segments_behind_probe(&self) -> u64 {
        u64::from(self.profile.recovery.dup_thresh) + 1
    }

    /// Returns the most unsent data that a probe can require; 0 without a search.
    pub(super) fn data_for_mtu_probe(&self) -> u64 {
        match self.mtu_search.as_deref().and_then(Search::range) {
            Some(_) => (1 + self.segments_behind_probe()) * self.data_in(self.pmtu()),
            None => 0,
        }
    }

    /// Decides whether the next new segment is a probe (tcp_mtu_probe()). `edge` is the right edge of the
    /// peer's window.
    pub(super) fn next_segment(&mut self, now: Instant, start: u64, edge: u64, unsent: u64) -> NextSegment {
        if self.mtu_search.is_none() {
            return NextSegment::Ordinary;
        }
        let Some(Plan { data, needed }) = self.plan_mtu_probe() else {
            self.search_again(now);
            return NextSegment::Ordinary;
        };
        let is_possible = unsent >= needed && self.snd.wnd >= needed && self.forbids_fragments();
        if !is_possible || self.has_blocks_to_report() {
            return NextSegment::Ordinary;
        }
        let (recovery, path) = self.recovery_and_path(now);
        match recovery.room_for_mtu_probe(&path, data) {
            ProbeRoom::Never => NextSegment::Ordinary,
            ProbeRoom::Now if start + needed <= edge => NextSegment::Probe(data),
            ProbeRoom::Now | ProbeRoom::Later => NextSegment::ProbeLater,
        }
    }

    /// Tries longer packets again after a while, because the path may have changed (tcp_mtu_check_reprobe()).
    fn search_again(&mut self, now: Instant) {
        if let (Some(Search::Waiting(range)), MtuSearch::Linux(limits)) =
            (self.mtu_search.as_deref_mut(), self.profile.mtu_search)
            && now >= range.since + limits.interval
        {
            *range = Range { high: u32::MAX, since: now, ..*range };
        }
    }

    /// Records that the segment from `start` on, with `data` bytes, is sent as a probe.
    pub(super) fn begin_mtu_probe(&mut self, now: Instant, start: u64, data: u64) {
        let mtu = self.packet_with(data);
        if let Some(search) = self.mtu_search.as_deref_mut()
            && let Search::Waiting(range) = *search
        {
            *search = Search::Probing { range, mtu, end: start + data };
            self.statistics.mtu_probes += 1;
            self.recovery.on_mtu_probe(now);
        }
    }

    /// Returns true if the segment that ends at `end` is the probe in flight.
    pub(super) fn is_mtu_probe(&self, end: u64) -> bool {
        matches!(self.mtu_search.as_deref(), Some(Search::Probing { end: probe, .. }) if *probe == end)
    }

    /// Processes an ACK, which may be the one of the probe (tcp_mtup_probe_success()).
    pub(super) fn confirm_mtu_probe(&mut self, now: Instant) {
        let una = self.flight.una();
        if let Some(search) = self.mtu_search.as_deref_mut()
            && let Search::Probing { range, mtu, end } = *search
            && una >= end
        {
            *search = Search::Waiting(Range { low: mtu, ..range });
            let before = self.packet_with(self.snd.smss);
            self.update_smss();
            let after = self.packet_with(self.snd.smss);
            let headers = self.packet_with(0);
            self.recovery.on_longer_packets(now, before, after, headers);
        }
    }

    /// Processes the loss of the probe, if recovery has detected it (tcp_mtup_probe_failed()).
    pub(super) fn note_lost_mtu_probe(&mut self) {
        if self.recovery.take_lost_mtu_probe()
            && let Some(search) = self.mtu_search.as_deref_mut()
            && let Search::Probing { range, mtu, .. } = *search
        {
            *search = Search::Waiting(Range { high: mtu - 1, ..range });
            self.statistics.mtu_probes_lost += 1;
        }
    }

    /// Ends the probe without a result, because a segment is retransmitted. Its ACK may then be the one of
    /// shorter segments with the same data.
    pub(super) fn abandon_mtu_probe(&mut self) {
        if let Some(search) = self.mtu_search.as_deref_mut()
            && let Search::Probing { range, end, .. } = *search
        {
            *search = Search::Waiting(range);
            self.flight.set_probes_mtu(end, false);
        }
    }
}
