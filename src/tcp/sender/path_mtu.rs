//! Path MTU discovery (RFC 1191, RFC 8201): smaller segments after an ICMP "packet too big".

use airwire::time::{Duration, Instant};

use super::Sender;
use crate::flight::{SegmentState, Sent};
use crate::tcp::context::Context;
use crate::tcp::negotiated::Negotiated;
use crate::tcp::socket::{SocketOptions, State};

/// Lower bound of the path MTU for IPv4: Linux's default of `net.ipv4.route.min_pmtu`.
const MIN_MTU_V4: u32 = 552;
/// Lower bound of the path MTU for IPv6, which every link supports (RFC 8200 §5).
const MIN_MTU_V6: u32 = 1280;
/// Common MTUs below Ethernet's, from Table 7-1 of RFC 1191.
const PLATEAUS: [u32; 4] = [1492, 1006, 576, 296];
/// Time after which the path may have changed, so that larger packets are tried again (RFC 1191 §6.3).
const LIFETIME: Duration = Duration::from_secs(600);

/// A path with a smaller MTU than the interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct NarrowPath {
    mtu: u32,
    /// Time of the last reduction.
    since: Instant,
    /// A router reported less than the lower bound, so routers may fragment the packets.
    may_fragment: bool,
    /// Last time at which the data in flight was retransmitted in smaller segments.
    resent_at: Option<Instant>,
    /// Time at which the data in flight is retransmitted again, because the MTU was reduced again since
    /// `resent_at`.
    resend_at: Option<Instant>,
}

impl Sender {
    /// Returns the path MTU that ICMP errors have reported, otherwise the interface's MTU.
    pub(in crate::tcp) fn pmtu(&self, negotiated: &Negotiated) -> u32 {
        self.narrow_path.as_ref().map_or_else(|| negotiated.mtu(), |path| path.mtu)
    }

    /// Returns true if the packets have Don't Fragment set.
    pub(in crate::tcp) fn forbids_fragments(&self, options: &SocketOptions) -> bool {
        options.pmtu_discovery && self.narrow_path.as_ref().is_none_or(|path| !path.may_fragment)
    }

    /// Processes a report that packets of more than `mtu` bytes are not forwarded; 0 if the router did not
    /// report its MTU. Returns false if the report was ignored.
    pub(in crate::tcp) fn lower_pmtu(&mut self, cx: &Context, now: Instant, mtu: u32) -> bool {
        if !cx.options.pmtu_discovery {
            return false;
        }
        let pmtu = self.pmtu(&cx.negotiated);
        let (mtu, may_fragment) = match cx.negotiated.is_ipv4() {
            true => {
                // RFC 1191 §5: an old router sends 0. Use the next common MTU below.
                let next_below = || PLATEAUS.into_iter().find(|plateau| *plateau < pmtu).unwrap_or(0);
                let reported = if mtu == 0 { next_below() } else { mtu };
                // Linux, `__ip_rt_update_pmtu`: below the lower bound, routers must fragment.
                (reported.max(MIN_MTU_V4).min(pmtu), reported < MIN_MTU_V4)
            }
            // RFC 8201 §4: a report below the minimum is discarded.
            false if mtu < MIN_MTU_V6 => return false,
            false => (mtu.min(pmtu), false),
        };
        let path = self.narrow_path.as_deref();
        let is_new = mtu < pmtu || (may_fragment && path.is_none_or(|path| !path.may_fragment));
        if !is_new {
            return false;
        }
        let (may_fragment, resent_at) =
            path.map_or((may_fragment, None), |path| (may_fragment || path.may_fragment, path.resent_at));
        let path = NarrowPath { mtu, since: now, may_fragment, resent_at, resend_at: None };
        self.narrow_path = Some(Box::new(path));
        self.update_smss(cx);
        self.resend_smaller(cx.state(), now);
        true
    }

    /// Retransmits the data in flight if its segments are larger than the path MTU. This is not congestion
    /// (RFC 1191 §6.4). It happens at most once per round trip, because the report may be forged, and is much
    /// smaller than the data.
    fn resend_smaller(&mut self, state: State, now: Instant) {
        let (smss, data_end) = (self.smss, self.buffer.end());
        let data = |sent: &Sent| sent.end.min(data_end).saturating_sub(sent.start);
        // The loss of an MTU probe is detected like any other loss.
        let too_big =
            |sent: &Sent| sent.state != SegmentState::Sacked && !sent.probes_mtu && data(sent) > smss;
        let is_due = state.is_synchronized() && self.flight.iter().any(too_big);
        let round_trip = self.rtt.srtt().unwrap_or_else(|| self.rtt.rto().get());
        let Some(path) = self.narrow_path.as_deref_mut() else { return };
        let earliest = path.resent_at.map_or(now, |at| at + round_trip);
        path.resend_at = None;
        if !is_due {
            return;
        }
        if earliest > now {
            path.resend_at = Some(earliest);
            return;
        }
        path.resent_at = Some(now);
        self.flight.rewind();
        self.restart_rto(now);
    }

    /// Returns when data in flight is retransmitted in smaller segments, if the retransmission was postponed.
    pub(super) fn resend_deadline(&self) -> Option<Instant> {
        self.narrow_path.as_ref()?.resend_at
    }

    pub(super) fn on_resend_deadline(&mut self, state: State, now: Instant) {
        if self.resend_deadline().is_some_and(|at| at <= now) {
            self.resend_smaller(state, now);
        }
    }

    /// Tries the interface's MTU again once the last reduction is old enough. A router that still cannot
    /// forward such packets reports that again.
    pub(super) fn raise_pmtu(&mut self, cx: &Context, now: Instant) {
        if self.narrow_path.take_if(|path| now >= path.since + LIFETIME).is_some() {
            self.update_smss(cx);
        }
    }
}
