//! Delivery rates, a sample with each ACK (draft-ietf-ccwg-bbr-06 §4.1; Linux 6.18, net/ipv4/tcp_rate.c): how much was
//! delivered between the departure of a segment and its acknowledgment, and how long that took.
//!
//! A segment takes along what was delivered when it left, and when. Of those that an ACK delivers the one that left last
//! gives the sample. Its interval is the longer of two: from ACK to ACK, and from departure to departure, so that ACKs
//! that were held up and come all at once do not look like a fast path.
//!
//! Only a window that a model of the path decides has use for all this
//! ([`Window::model`](super::window::Window::model)): other senders have no sampler, and remember nothing of it.
//!
//! Amounts are in segments, as this host counts them ([`View::segments`]).
//!
//! Without SACK a duplicate ACK delivers a segment, but nobody knows which: it counts, and measures nothing (§4.1.3.5.1;
//! Linux 6.18, tcp_add_reno_sack()).

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use super::{Ack, Departure, Transmission, View};
use crate::flight::{Amount, Fate, Flight, Sent};

/// What has become of everything sent so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// C.delivered.
    pub delivered: f64,
    /// C.delivered_time: when that was last added to.
    pub delivered_time: Instant,
    /// C.lost: each copy that was taken for lost.
    pub lost: f64,
    /// C.inflight: on its way, as far as anybody knows.
    pub in_flight: f64,
}

/// RS: what an ACK says about the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// With this ACK counted in.
    pub totals: Totals,
    /// C.inflight before it.
    pub prior_in_flight: f64,
    /// RS.newly_acked: cumulatively or by SACK.
    pub newly_acked: f64,
    /// RS.newly_lost: taken for lost with this ACK.
    pub newly_lost: f64,
    /// RS.rtt: of the segment that left last. `None`: it was sent more than once, and nobody knows of which copy.
    pub rtt: Option<Duration>,
    /// The receiver may have kept this ACK back: it is about one segment that is not full-sized, and nothing else was on
    /// its way (Linux 6.18, FLAG_ACK_MAYBE_DELAYED).
    pub ack_may_be_delayed: bool,
    /// `None`: it delivers nothing.
    pub measured: Option<Measured>,
}

impl RateSample {
    /// RS.delivery_rate, in segments per second; zero if there is none.
    pub fn delivery_rate(&self) -> f64 {
        let rate = |measured: &Measured| Some(measured.delivered / measured.interval?.as_secs_f64());
        self.measured.as_ref().and_then(rate).unwrap_or_default()
    }

    /// RS.is_app_limited.
    pub fn is_app_limited(&self) -> bool {
        self.measured.is_some_and(|measured| measured.is_app_limited)
    }
}

/// What the segment that left last, of those newly delivered, says about its flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// RS.delivered: since that segment left.
    pub delivered: f64,
    /// RS.prior_delivered: C.delivered when it left.
    pub prior_delivered: f64,
    /// RS.interval. `None`: it is shorter than the shortest round trip, and the segment perhaps not the copy that
    /// arrived.
    pub interval: Option<Duration>,
    /// At some moment of the round trip before it left the application had nothing to send.
    pub is_app_limited: bool,
    /// C.inflight when it had left.
    pub tx_in_flight: f64,
    /// Taken for lost since it left.
    pub lost: f64,
}

/// How an ACK says that something was delivered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Delivered {
    /// So many segments were not known to be delivered.
    Reported(f64),
    /// Without SACK: one segment, and nobody knows which.
    Announced,
    /// Without SACK: so many segments in sequence, of which some were announced.
    Covered(f64),
}

/// P: a segment that was taken for lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LostSegment {
    /// Its first octet, as an offset of the stream.
    pub start: u64,
    /// One past its last octet.
    pub end: u64,
    /// P.size.
    pub size: f64,
    /// C.inflight when it had left.
    pub tx_in_flight: f64,
    /// Taken for lost since it left, itself included.
    pub lost: f64,
    /// C.delivered now.
    pub delivered: f64,
    /// P.is_app_limited.
    pub is_app_limited: bool,
}

/// What a segment takes along.
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
    /// It was taken for lost, and no copy has left since.
    is_lost: bool,
    /// It was delivered, and the scoreboard has forgotten it: it will be reported once more.
    is_forgotten: bool,
}

/// Takes the samples of one connection.
#[derive(Debug)]
pub(crate) struct RateSampler {
    totals: Totals,
    /// C.first_send_time: when the segment left that was delivered last, or the first after silence.
    first_send_time: Instant,
    /// C.app_limited: samples are application-limited until more than this is delivered.
    app_limited: Option<f64>,
    min_rtt: Option<Duration>,
    /// Of what is outstanding, in the order of the stream.
    departures: VecDeque<Snapshot>,
    /// How many of them are lost.
    lost_out: u64,
    /// How many of them are forgotten.
    forgotten: u64,
    /// Without SACK: how many of them duplicate ACKs have announced (`sacked_out` in Linux).
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
            departures: VecDeque::new(),
            lost_out: 0,
            forgotten: 0,
            announced: 0.0,
        }
    }

    /// A round trip that was measured before any text left.
    pub(super) fn begin(&mut self, now: Instant, rtt: Option<Duration>) {
        self.totals.delivered_time = now;
        self.min_rtt = rtt;
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Without SACK: how many of what is outstanding duplicate ACKs have announced.
    pub(super) fn announced(&self) -> f64 {
        self.announced
    }

    /// C.app_limited is set.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// MarkConnectionAppLimited(): what leaves until what is in flight now is delivered says nothing about the path.
    pub(super) fn mark_app_limited(&mut self) {
        self.app_limited = Some(self.totals.delivered + self.totals.in_flight);
    }

    /// Something else than a departure or an ACK has changed what is in flight.
    pub(super) fn set_in_flight(&mut self, in_flight: f64) {
        self.totals.in_flight = in_flight;
    }

    /// OnPacketSent(): a segment has left, and `in_flight` counts it. Nothing is measured from before a silence, which
    /// ends if it is the only one outstanding, lost ones included: wrong marks must not make the interval shorter.
    pub(super) fn on_sent(&mut self, view: &View<'_>, departure: &Departure, in_flight: f64) {
        if departure.kind == Transmission::New && view.flight.len() == 1 {
            (self.first_send_time, self.totals.delivered_time) = (view.now, view.now);
        }
        self.totals.in_flight = in_flight;
        let Departure { start, end, .. } = *departure;
        let left = Snapshot {
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
        let at = self.departures.partition_point(|known| known.end <= start);
        let Some(before) = self.departures.get_mut(at).filter(|known| known.start < end) else {
            self.departures.insert(at, left);
            return;
        };
        let is_forgotten = before.is_forgotten;
        let before = std::mem::replace(before, Snapshot { is_forgotten, ..left });
        if before.end > end {
            // The path takes smaller segments now: the rest of this one has not left again.
            self.departures.insert(at + 1, Snapshot { start: end, ..before });
            self.forgotten += u64::from(is_forgotten);
        } else {
            self.lost_out -= u64::from(before.is_lost);
        }
    }

    /// The segments that were taken for lost since the last call. It costs nothing where there are none.
    pub(super) fn newly_lost(&mut self, view: &View<'_>) -> Vec<LostSegment> {
        let mut news = Vec::new();
        if view.flight.lost_and_not_resent().segments == self.lost_out {
            return news;
        }
        let Totals { delivered, mut lost, .. } = self.totals;
        let mut lost_out = 0;
        self.walk(view.flight, |known, sent| {
            let is_lost = sent.is_some_and(|sent| sent.fate == Fate::Lost);
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

    /// The scoreboard is about to forget what was SACKed. That was delivered all the same.
    pub(super) fn before_forgetting(&mut self, flight: &Flight) {
        self.walk(flight, |known, sent| {
            known.is_forgotten |= sent.is_some_and(|sent| sent.fate == Fate::Sacked);
        });
        self.forgotten = self.departures.iter().map(|known| u64::from(known.is_forgotten)).sum();
    }

    /// What an ACK delivers counts before what it shows to be lost. Returns how much of it is news, in segments.
    pub(super) fn on_ack(&mut self, view: &View<'_>, delivered: Delivered) -> f64 {
        let newly_acked = match delivered {
            Delivered::Reported(reported) => (reported - self.delivered_again(view)).max(0.0),
            // tcp_add_reno_sack(): the first one is missing.
            Delivered::Announced => {
                let most = (self.departures.len() as f64 - 1.0).max(self.announced);
                let announced = (self.announced + 1.0).min(most);
                announced - std::mem::replace(&mut self.announced, announced)
            }
            // tcp_remove_reno_sacks(): one of them has filled the hole.
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

    /// How much of what is reported now was reported before the scoreboard forgot it.
    fn delivered_again(&mut self, view: &View<'_>) -> f64 {
        if self.forgotten == 0 {
            return 0.0;
        }
        let mut again = 0.0;
        self.walk(view.flight, |known, sent| {
            let reported = sent.is_none_or(|sent| sent.fate == Fate::Sacked);
            if known.is_forgotten && reported {
                known.is_forgotten = false;
                again += size(view, known);
            }
        });
        self.forgotten = self.departures.iter().map(|known| u64::from(known.is_forgotten)).sum();
        again
    }

    /// Every segment, with what stands of it on the in-flight list: nothing, if it is acknowledged.
    fn walk(&mut self, flight: &Flight, mut see: impl FnMut(&mut Snapshot, Option<&Sent>)) {
        let mut segments = flight.iter().peekable();
        for known in &mut self.departures {
            while segments.next_if(|sent| sent.end <= known.start).is_some() {}
            see(known, segments.peek().copied().filter(|sent| sent.start < known.end));
        }
    }

    /// UpdateRateSample() and GenerateRateSample(), after [`Self::on_ack`]. `in_flight` is what the ACK leaves in flight,
    /// `newly_acked` and `newly_lost` what it delivers and what was taken for lost with it.
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

    /// What the segment took along that has `end - 1` in it.
    fn find(&self, end: u64) -> Option<Snapshot> {
        let at = self.departures.partition_point(|known| known.end < end);
        self.departures.get(at).filter(|known| known.start < end).copied()
    }

    fn forget_below(&mut self, una: u64) {
        while let Some(first) = self.departures.front().filter(|first| first.end <= una) {
            self.lost_out -= u64::from(first.is_lost);
            self.departures.pop_front();
        }
    }
}

fn size(view: &View<'_>, known: &Snapshot) -> f64 {
    view.segments(Amount { bytes: known.end - known.start, segments: 1 })
}

/// The shortest round trip that an ACK measures, that of the segment that left last (§5.5.7.1). The estimator of the
/// retransmission timer goes by the longest.
fn rtt_of_newest(now: Instant, ack: &Ack) -> Option<Duration> {
    let rtt = if ack.any_resent { ack.rtt } else { ack.originals.newest.map(|newest| now - newest.sent_at) };
    rtt.map(|rtt| rtt.max(Duration::from_micros(1)))
}

#[cfg(test)]
mod tests;
