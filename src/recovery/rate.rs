//! Delivery rate samples, one per ACK (draft-ietf-ccwg-bbr-06 §4.1; Linux 6.18, net/ipv4/tcp_rate.c): the
//! amount of data delivered between the transmission of a segment and its acknowledgment, and the time
//! between the two.
//!
//! Each segment stores the delivery counters at the time of its transmission. The sample of an ACK uses the
//! most recently sent segment that the ACK delivers. The sample interval is the longer of two: the time
//! between ACKs, and the time between transmissions. So delayed ACKs that arrive all at once do not make the
//! path look fast.
//!
//! Only a window that is controlled by a model of the path needs these samples
//! ([`Window::model`](super::window::Window::model)). Other senders have no sampler.
//!
//! Amounts are in segments, in the accounting of this host ([`View::segments`]).
//!
//! Without SACK, a duplicate ACK reports the delivery of one unknown segment. It counts as delivered, but
//! yields no sample (§4.1.3.5.1; Linux 6.18, tcp_add_reno_sack()).

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use super::{Ack, Transmission, TransmissionKind, View};
use crate::flight::{Amount, Flight, SegmentState, Sent};

/// Counters over all data sent so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// C.delivered: amount delivered.
    pub delivered: f64,
    /// C.delivered_time: time of the last increase of `delivered`.
    pub delivered_time: Instant,
    /// C.lost: amount marked lost. Every lost transmission of a segment counts.
    pub lost: f64,
    /// C.inflight: estimated amount in flight.
    pub in_flight: f64,
}

/// RS: the rate sample of an ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// The counters, including this ACK.
    pub totals: Totals,
    /// C.inflight before this ACK.
    pub prior_in_flight: f64,
    /// RS.newly_acked: amount newly delivered, cumulatively or by SACK.
    pub newly_acked: f64,
    /// RS.newly_lost: amount newly marked lost with this ACK.
    pub newly_lost: f64,
    /// RS.rtt: round-trip time of the most recently sent segment. `None`: the segment was sent more than
    /// once, and the ACK does not show which transmission it answers.
    pub rtt: Option<Duration>,
    /// Whether the receiver may have delayed this ACK: it acknowledges a small segment that was alone in
    /// flight (Linux 6.18, FLAG_ACK_MAYBE_DELAYED).
    pub ack_may_be_delayed: bool,
    /// The measurement. `None`: the ACK delivers nothing.
    pub measured: Option<Measured>,
}

impl RateSample {
    /// Returns RS.delivery_rate in segments per second, or zero without a reliable measurement.
    pub fn delivery_rate(&self) -> f64 {
        let rate = |measured: &Measured| Some(measured.delivered / measured.interval?.as_secs_f64());
        self.measured.as_ref().and_then(rate).unwrap_or_default()
    }

    /// Returns RS.is_app_limited.
    pub fn is_app_limited(&self) -> bool {
        self.measured.is_some_and(|measured| measured.is_app_limited)
    }
}

/// The measurement over the flight of the most recently sent segment among those newly delivered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// RS.delivered: amount delivered since that segment was sent.
    pub delivered: f64,
    /// RS.prior_delivered: C.delivered when that segment was sent.
    pub prior_delivered: f64,
    /// RS.interval. `None`: it is shorter than the minimum round-trip time, so the ACK may answer an earlier
    /// transmission of the segment.
    pub interval: Option<Duration>,
    /// RS.is_app_limited: the application had no data to send at some time in the round trip before the
    /// segment was sent.
    pub is_app_limited: bool,
    /// C.inflight just after the segment was sent.
    pub tx_in_flight: f64,
    /// Amount marked lost since the segment was sent.
    pub lost: f64,
}

/// How an ACK reports a delivery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Delivered {
    /// Number of segments not known to be delivered before.
    Reported(f64),
    /// Without SACK: a duplicate ACK reports one unknown segment.
    Announced,
    /// Without SACK: number of segments acknowledged cumulatively. Duplicate ACKs may have announced some of
    /// these segments.
    Covered(f64),
}

/// P: a segment that was marked lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LostSegment {
    /// Offset of the segment's first byte in the stream.
    pub start: u64,
    /// Offset one past the segment's last byte.
    pub end: u64,
    /// P.size, in segments.
    pub size: f64,
    /// C.inflight just after the transmission of the segment.
    pub tx_in_flight: f64,
    /// Amount marked lost since it was sent, including the segment itself.
    pub lost: f64,
    /// C.delivered when it was marked lost.
    pub delivered: f64,
    /// P.is_app_limited: the application had no data to send at some time in the round trip before the
    /// segment was sent.
    pub is_app_limited: bool,
}

/// The counters at the transmission of a segment.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    start: u64,
    end: u64,
    send_time: Instant,
    first_send_time: Instant,
    delivered_time: Instant,
    delivered: f64,
    lost: f64,
    tx_in_flight: f64,
    is_app_limited: bool,
    /// Whether the segment was marked lost and has not been retransmitted since.
    is_lost: bool,
    /// Whether the segment was delivered, but the scoreboard has forgotten this, so a later ACK will report
    /// the segment again.
    is_forgotten: bool,
}

/// Takes the rate samples of one connection.
#[derive(Debug)]
pub(crate) struct RateSampler {
    totals: Totals,
    /// C.first_send_time: transmission time of the segment delivered last, or of the first segment after an
    /// idle time.
    first_send_time: Instant,
    /// C.app_limited: samples are application-limited until more than this amount is delivered.
    app_limited: Option<f64>,
    min_rtt: Option<Duration>,
    /// Snapshots of the outstanding segments, in stream order.
    snapshots: VecDeque<Snapshot>,
    /// Number of outstanding segments that are lost.
    lost_out: u64,
    /// Number of outstanding segments that are forgotten.
    forgotten: u64,
    /// Without SACK: number of outstanding segments that duplicate ACKs have announced (`sacked_out` in
    /// Linux).
    announced: f64,
}

impl RateSampler {
    pub(super) fn new() -> Self {
        let totals = Totals { delivered: 0.0, delivered_time: Instant::ZERO, lost: 0.0, in_flight: 0.0 };
        Self {
            totals,
            first_send_time: Instant::ZERO,
            app_limited: None,
            min_rtt: None,
            snapshots: VecDeque::new(),
            lost_out: 0,
            forgotten: 0,
            announced: 0.0,
        }
    }

    /// Starts sampling. `rtt` is the round-trip time of the handshake, if it was measured.
    pub(super) fn begin(&mut self, now: Instant, rtt: Option<Duration>) {
        self.totals.delivered_time = now;
        self.min_rtt = rtt;
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Without SACK: returns the number of outstanding segments that duplicate ACKs have announced.
    pub(super) fn announced(&self) -> f64 {
        self.announced
    }

    /// Returns whether C.app_limited is set.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// MarkConnectionAppLimited(): until everything now in flight is delivered, transmissions say nothing
    /// about the path.
    pub(super) fn mark_app_limited(&mut self) {
        self.app_limited = Some(self.totals.delivered + self.totals.in_flight);
    }

    /// Sets the amount in flight after an event other than a transmission or an ACK.
    pub(super) fn set_in_flight(&mut self, in_flight: f64) {
        self.totals.in_flight = in_flight;
    }

    /// OnPacketSent(): a segment was sent, and `in_flight` includes it. If no other segment is outstanding,
    /// the measurement starts again, which excludes the preceding idle time. Lost segments count as
    /// outstanding here, because a wrong loss mark must not shorten the interval.
    pub(super) fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission, in_flight: f64) {
        if transmission.kind == TransmissionKind::New && view.flight.len() == 1 {
            (self.first_send_time, self.totals.delivered_time) = (view.now, view.now);
        }
        self.totals.in_flight = in_flight;
        let Transmission { start, end, .. } = *transmission;
        let snapshot = Snapshot {
            start,
            end,
            send_time: view.now,
            first_send_time: self.first_send_time,
            delivered_time: self.totals.delivered_time,
            delivered: self.totals.delivered,
            lost: self.totals.lost,
            tx_in_flight: in_flight,
            is_app_limited: self.app_limited.is_some(),
            is_lost: false,
            is_forgotten: false,
        };
        let at = self.snapshots.partition_point(|known| known.end <= start);
        let Some(before) = self.snapshots.get_mut(at).filter(|known| known.start < end) else {
            self.snapshots.insert(at, snapshot);
            return;
        };
        let is_forgotten = before.is_forgotten;
        let before = std::mem::replace(before, Snapshot { is_forgotten, ..snapshot });
        if before.end > end {
            // The segment size has decreased since: the rest of this segment has not been retransmitted.
            self.snapshots.insert(at + 1, Snapshot { start: end, ..before });
            self.forgotten += u64::from(is_forgotten);
        } else {
            self.lost_out -= u64::from(before.is_lost);
        }
    }

    /// Returns the segments marked lost since the last call. Cheap if there are none.
    pub(super) fn newly_lost(&mut self, view: &View<'_>) -> Vec<LostSegment> {
        let mut news = Vec::new();
        if view.flight.lost_and_not_resent().segments == self.lost_out {
            return news;
        }
        let Totals { delivered, mut lost, .. } = self.totals;
        let mut lost_out = 0;
        self.visit(view.flight, |known, sent| {
            let is_lost = sent.is_some_and(|sent| sent.state == SegmentState::Lost);
            lost_out += u64::from(is_lost);
            if is_lost && !known.is_lost {
                let size = size(view, known);
                lost += size;
                news.push(LostSegment {
                    start: known.start,
                    end: known.end,
                    size,
                    tx_in_flight: known.tx_in_flight,
                    lost: lost - known.lost,
                    delivered,
                    is_app_limited: known.is_app_limited,
                });
            }
            known.is_lost = is_lost;
        });
        self.lost_out = lost_out;
        self.totals.lost = lost;
        news
    }

    /// Remembers the SACKed segments before the scoreboard forgets them, because they were delivered.
    pub(super) fn before_forgetting(&mut self, flight: &Flight) {
        self.visit(flight, |known, sent| {
            known.is_forgotten |= sent.is_some_and(|sent| sent.state == SegmentState::Sacked);
        });
        self.forgotten = self.snapshots.iter().map(|known| u64::from(known.is_forgotten)).sum();
    }

    /// Counts the data that an ACK delivers. Must be called before the losses that the ACK reveals are
    /// counted. Returns the newly delivered amount, in segments.
    pub(super) fn on_ack(&mut self, view: &View<'_>, delivered: Delivered) -> f64 {
        let newly_acked = match delivered {
            Delivered::Reported(reported) => (reported - self.delivered_again(view)).max(0.0),
            // tcp_add_reno_sack(): the first outstanding segment is missing, so duplicate ACKs cannot
            // announce it.
            Delivered::Announced => {
                let most = (self.snapshots.len() as f64 - 1.0).max(self.announced);
                let announced = (self.announced + 1.0).min(most);
                announced - std::mem::replace(&mut self.announced, announced)
            }
            // tcp_remove_reno_sacks(): one of the covered segments filled the hole and was not announced.
            Delivered::Covered(covered) => {
                let announced = self.announced;
                self.announced = (announced - (covered - 1.0).max(0.0)).max(0.0);
                (covered - announced).max(covered.min(1.0))
            }
        };
        if newly_acked > 0.0 {
            self.totals.delivered += newly_acked;
            self.totals.delivered_time = view.now;
        }
        newly_acked
    }

    /// Returns how much of the newly reported data was reported before the scoreboard forgot it.
    fn delivered_again(&mut self, view: &View<'_>) -> f64 {
        if self.forgotten == 0 {
            return 0.0;
        }
        let mut again = 0.0;
        self.visit(view.flight, |known, sent| {
            let reported = sent.is_none_or(|sent| sent.state == SegmentState::Sacked);
            if known.is_forgotten && reported {
                known.is_forgotten = false;
                again += size(view, known);
            }
        });
        self.forgotten = self.snapshots.iter().map(|known| u64::from(known.is_forgotten)).sum();
        again
    }

    /// Visits every snapshot with its entry in the flight. The entry is `None` if the segment is
    /// acknowledged.
    fn visit(&mut self, flight: &Flight, mut visitor: impl FnMut(&mut Snapshot, Option<&Sent>)) {
        let mut segments = flight.iter().peekable();
        for known in &mut self.snapshots {
            while segments.next_if(|sent| sent.end <= known.start).is_some() {}
            visitor(known, segments.peek().copied().filter(|sent| sent.start < known.end));
        }
    }

    /// UpdateRateSample() and GenerateRateSample(), called after [`Self::on_ack`]. `in_flight` is the amount
    /// in flight after the ACK, `newly_acked` the amount that the ACK delivers, and `newly_lost` the amount
    /// that it marks lost.
    pub(super) fn sample(
        &mut self,
        view: &View<'_>,
        ack: &Ack,
        in_flight: f64,
        (newly_acked, newly_lost): (f64, f64),
    ) -> RateSample {
        let now = view.now;
        let prior_in_flight = std::mem::replace(&mut self.totals.in_flight, in_flight);
        let rtt = rtt_of_newest(now, ack);
        if let Some(rtt) = rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |known| known.min(rtt)));
        }
        let newest = ack.newest.filter(|_| newly_acked > 0.0);
        let newest = newest.and_then(|delivery| self.find(delivery.end));
        self.forget_below(view.flight.una());
        self.app_limited.take_if(|until| self.totals.delivered > *until);
        let measured = newest.map(|newest| self.measure(now, &newest));
        let alone = ack.acked.segments == 1 && ack.newly_sacked.segments == 0;
        RateSample {
            totals: self.totals,
            prior_in_flight,
            newly_acked,
            newly_lost,
            rtt,
            ack_may_be_delayed: alone
                && ack.acked.bytes < view.smss
                && measured.is_some_and(|measured| measured.delivered <= newly_acked),
            measured,
        }
    }

    fn measure(&mut self, now: Instant, newest: &Snapshot) -> Measured {
        self.first_send_time = newest.send_time;
        let send_elapsed = newest.send_time - newest.first_send_time;
        let ack_elapsed = now - newest.delivered_time;
        let interval = send_elapsed.max(ack_elapsed);
        let reliable = !interval.is_zero() && self.min_rtt.is_none_or(|min_rtt| interval >= min_rtt);
        Measured {
            delivered: self.totals.delivered - newest.delivered,
            prior_delivered: newest.delivered,
            interval: reliable.then_some(interval),
            is_app_limited: newest.is_app_limited,
            tx_in_flight: newest.tx_in_flight,
            lost: self.totals.lost - newest.lost,
        }
    }

    /// Returns the snapshot of the segment that contains offset `end - 1`.
    fn find(&self, end: u64) -> Option<Snapshot> {
        let at = self.snapshots.partition_point(|known| known.end < end);
        self.snapshots.get(at).filter(|known| known.start < end).copied()
    }

    fn forget_below(&mut self, una: u64) {
        while let Some(first) = self.snapshots.front().filter(|first| first.end <= una) {
            self.lost_out -= u64::from(first.is_lost);
            self.snapshots.pop_front();
        }
    }
}

fn size(view: &View<'_>, known: &Snapshot) -> f64 {
    view.segments(Amount { bytes: known.end - known.start, segments: 1 })
}

/// Returns the shortest round-trip time that an ACK measures, from the most recently sent segment (§5.5.7.1).
/// The retransmission timer uses the longest.
fn rtt_of_newest(now: Instant, ack: &Ack) -> Option<Duration> {
    let rtt = if ack.any_resent { ack.rtt } else { ack.originals.newest.map(|newest| now - newest.sent_at) };
    rtt.map(|rtt| rtt.max(Duration::from_micros(1)))
}

#[cfg(test)]
mod tests;
