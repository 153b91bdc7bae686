//! The search for a segment size that the path delivers, without ICMP errors (RFC 4821, RFC 8899). Paths that
//! drop longer packets without an ICMP error are black holes (RFC 2923 §2.1).
//!
//! With [`MtuSearch::Linux`], segments fit into packets of `Range::low` bytes. If enough data is unsent, one
//! segment is longer: the MTU probe (tcp_mtu_probe()). Its ACK raises `low`. Its loss lowers `high` and is
//! not a sign of congestion (RFC 4821 §7.6.2). A retransmission while the probe is in flight ends the probe
//! without a result. Timeouts lower `low` (tcp_mtu_probing()).

use airwire::time::{Duration, Instant};

use super::Sender;
use crate::profile::{MtuLimits, MtuProbing, MtuSearch, Profile};
use crate::recovery::engine::ProbeRoom;
use crate::tcp::context::Context;
use crate::tcp::negotiated::Negotiated;
use crate::tcp::statistics::Statistics;

/// TCP_RTO_MIN and TCP_RTO_MAX.
const SHORTEST_RTO: Duration = Duration::from_millis(200);
const LONGEST_RTO: Duration = Duration::from_secs(120);
/// Number of doublings from the shortest to the longest timeout.
const DOUBLINGS: u32 = 9;

/// State of the search. The length of a packet includes all headers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Search {
    /// No probe is in flight.
    Waiting(Range),
    /// A probe is in flight.
    Probing {
        range: Range,
        /// Length of the probe's packet.
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
    /// A probe, once the windows have room.
    ProbeLater,
}

/// The next probe.
#[derive(Clone, Copy, Debug)]
struct Plan {
    data: u64,
    /// Unsent data that it requires, because the ACKs of the segments after the probe reveal its loss.
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

impl Sender {
    /// Returns the length of the longest packets in use, except for MTU probes.
    pub(in crate::tcp) fn longest_packet(&self, negotiated: &Negotiated) -> u32 {
        let headers = negotiated.header_len() as u32;
        let found = self.mtu_search.as_deref().map_or(u32::MAX, |search| match search {
            Search::Waiting(range) | Search::Probing { range, .. } => range.low,
            Search::Reduced { mss } => u32::from(*mss) + headers,
        });
        self.pmtu(negotiated).min(found)
    }

    /// Starts the search when the connection opens, if the options require it (tcp_mtup_init()). Unlike
    /// Linux, a passive open shortens the segments before the peer's window has grown.
    pub(super) fn start_mtu_search(&mut self, cx: &Context, now: Instant) {
        if let (MtuProbing::Always, MtuSearch::Linux(limits)) =
            (cx.options.mtu_probing, cx.profile.icmp.mtu_search)
        {
            self.begin_mtu_search(cx, now, &limits);
        }
    }

    fn begin_mtu_search(&mut self, cx: &Context, now: Instant, limits: &MtuLimits) {
        let low =
            cx.negotiated.packet_with(u64::from(limits.base_mss.max(limits.floor).max(limits.least_mss)));
        self.set_range(cx, Range { low, high: u32::MAX, since: now });
    }

    /// Sets the range of packet lengths, and updates SMSS.
    fn set_range(&mut self, cx: &Context, range: Range) {
        self.mtu_search = Some(Box::new(Search::Waiting(range)));
        self.update_smss(cx);
    }

    /// Processes a timeout, which a black hole may have caused.
    pub(super) fn suspect_black_hole(&mut self, cx: &Context, now: Instant) {
        self.abandon_mtu_probe();
        match (cx.options.mtu_probing, cx.profile.icmp.mtu_search) {
            (MtuProbing::Off, _) => {}
            (_, MtuSearch::Linux(limits)) => self.shorten_segments(cx, now, &limits),
            (_, MtuSearch::FreeBsd) => self.reduce_mss(cx),
        }
    }

    /// tcp_mtu_probing(): begins the search, or halves the length of the segments.
    fn shorten_segments(&mut self, cx: &Context, now: Instant, limits: &MtuLimits) {
        let unanswered = self.unanswered_period().map(|period| now - period.since);
        if unanswered.is_none_or(|time| time < Self::black_hole_time(&cx.profile)) {
            return;
        }
        let Some(range) = self.mtu_search.as_deref().and_then(Search::range) else {
            return self.begin_mtu_search(cx, now, limits);
        };
        let half = cx.negotiated.data_in(&cx.options, range.low) / 2;
        let min = limits.floor.max(limits.least_mss);
        let low = cx.negotiated.packet_with(half.min(limits.base_mss.into()).max(min.into()));
        self.set_range(cx, Range { low, ..range });
    }

    /// Returns how long retransmissions must have failed. Linux converts the number of retransmissions
    /// (tcp_retries1) to the time that they take with the shortest timeout (tcp_model_timeout()).
    fn black_hole_time(profile: &Profile) -> Duration {
        let retries = profile.timers.reported_retries;
        let doublings = retries.min(DOUBLINGS);
        SHORTEST_RTO * ((2 << doublings) - 1) + LONGEST_RTO * u64::from(retries - doublings)
    }

    /// tcp_timer_rexmt() of FreeBSD, with the defaults of `net.inet.tcp.pmtud_blackhole_mss`, `mssdflt` and
    /// their counterparts for IPv6.
    fn reduce_mss(&mut self, cx: &Context) {
        let timeouts = self.recovery.congestion().timeouts_in_row + 1;
        let (smss, data_end) = (self.smss, self.buffer.end());
        let head = self.flight.head();
        let is_full = head.is_some_and(|head| head.end.min(data_end).saturating_sub(head.start) >= smss);
        if matches!(timeouts, 2 | 4) && is_full && cx.options.pmtu_discovery {
            let (first, last) = if cx.negotiated.is_ipv4() { (1200, 536) } else { (1220, 1220) };
            let mss = if self.max_seg(&cx.negotiated, &cx.options) > u64::from(first) { first } else { last };
            self.mtu_search = Some(Box::new(Search::Reduced { mss }));
        } else if timeouts >= 6 {
            self.mtu_search = None;
        }
        self.update_smss(cx);
    }

    fn plan_mtu_probe(&self, cx: &Context) -> Option<Plan> {
        let (Some(Search::Waiting(range)), MtuSearch::Linux(limits)) =
            (self.mtu_search.as_deref(), cx.profile.icmp.mtu_search)
        else {
            return None;
        };
        let permitted = cx.negotiated.permitted_seg(&cx.options) as u32 + cx.negotiated.header_len() as u32;
        let high = range.high.min(self.pmtu(&cx.negotiated)).min(permitted);
        if high.saturating_sub(range.low) < limits.threshold.max(1) {
            return None;
        }
        let data = cx.negotiated.data_in(&cx.options, range.low.midpoint(high));
        Some(Plan { data, needed: data + segments_after_probe(&cx.profile) * self.smss })
    }

    /// Returns the most unsent data that a probe can require; 0 without a search.
    pub(super) fn data_for_mtu_probe(&self, cx: &Context) -> u64 {
        match self.mtu_search.as_deref().and_then(Search::range) {
            Some(_) => {
                (1 + segments_after_probe(&cx.profile))
                    * cx.negotiated.data_in(&cx.options, self.pmtu(&cx.negotiated))
            }
            None => 0,
        }
    }

    /// Decides whether the next new segment is a probe (tcp_mtu_probe()). `edge` is the right edge of the
    /// peer's window. `reports_blocks` is true if an ACK with SACK blocks is due, for which a probe has no room.
    pub(super) fn next_segment(
        &mut self,
        cx: &Context,
        now: Instant,
        (start, edge, unsent): (u64, u64, u64),
        reports_blocks: bool,
    ) -> NextSegment {
        if self.mtu_search.is_none() {
            return NextSegment::Ordinary;
        }
        let Some(Plan { data, needed }) = self.plan_mtu_probe(cx) else {
            self.search_again(&cx.profile, now);
            return NextSegment::Ordinary;
        };
        let is_possible = unsent >= needed && self.wnd >= needed && self.forbids_fragments(&cx.options);
        if !is_possible || reports_blocks {
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
    fn search_again(&mut self, profile: &Profile, now: Instant) {
        if let (Some(Search::Waiting(range)), MtuSearch::Linux(limits)) =
            (self.mtu_search.as_deref_mut(), profile.icmp.mtu_search)
            && now >= range.since + limits.interval
        {
            *range = Range { high: u32::MAX, since: now, ..*range };
        }
    }

    /// Records that the segment from `start` on, with `data` bytes, is sent as a probe.
    pub(super) fn begin_mtu_probe(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        (start, data): (u64, u64),
    ) {
        let mtu = cx.negotiated.packet_with(data);
        if let Some(search) = self.mtu_search.as_deref_mut()
            && let Search::Waiting(range) = *search
        {
            *search = Search::Probing { range, mtu, end: start + data };
            statistics.mtu_probes += 1;
            self.recovery.on_mtu_probe(now);
        }
    }

    /// Returns true if the segment that ends at `end` is the probe in flight.
    pub(super) fn is_mtu_probe(&self, end: u64) -> bool {
        matches!(self.mtu_search.as_deref(), Some(Search::Probing { end: probe, .. }) if *probe == end)
    }

    /// Processes an ACK, which may be the one of the probe (tcp_mtup_probe_success()).
    pub(super) fn confirm_mtu_probe(&mut self, cx: &Context, now: Instant) {
        let una = self.flight.una();
        if let Some(search) = self.mtu_search.as_deref_mut()
            && let Search::Probing { range, mtu, end } = *search
            && una >= end
        {
            *search = Search::Waiting(Range { low: mtu, ..range });
            let before = cx.negotiated.packet_with(self.smss);
            self.update_smss(cx);
            let after = cx.negotiated.packet_with(self.smss);
            let headers = cx.negotiated.packet_with(0);
            self.recovery.on_longer_packets(now, before, after, headers);
        }
    }

    /// Processes the loss of the probe, if recovery has detected it (tcp_mtup_probe_failed()).
    pub(super) fn note_lost_mtu_probe(&mut self, statistics: &mut Statistics) {
        if self.recovery.take_lost_mtu_probe()
            && let Some(search) = self.mtu_search.as_deref_mut()
            && let Search::Probing { range, mtu, .. } = *search
        {
            *search = Search::Waiting(Range { high: mtu - 1, ..range });
            statistics.mtu_probes_lost += 1;
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

/// Returns the number of segments whose ACKs reveal the loss of a probe.
fn segments_after_probe(profile: &Profile) -> u64 {
    u64::from(profile.recovery.detection.dup_thresh) + 1
}
