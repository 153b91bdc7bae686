use super::*;
use crate::flight::{Delivery, Sacked};
use crate::profile::recovery::RecoveryRules;
use crate::recovery::Congestion;
use crate::recovery::testing::{BareSender, SMSS};

/// A sender of 1000-byte segments, numbered from 1. The test decides when they are sent and acknowledged.
struct Line {
    now: Instant,
    flight: Flight,
    sampler: RateSampler,
    cc: Congestion,
    rules: RecoveryRules,
    host: BareSender,
}

impl Line {
    fn new() -> Self {
        let host = BareSender::new("newreno");
        let mut sampler = RateSampler::new();
        let now = Instant::from_secs(1);
        sampler.begin(now, None);
        let (cc, rules) = (host.cc().clone(), RecoveryRules::rfc());
        Self { now, flight: Flight::default(), sampler, cc, rules, host }
    }

    fn wait(&mut self, ms: u64) -> &mut Self {
        self.now += Duration::from_millis(ms);
        self
    }

    fn with<T>(&mut self, f: impl FnOnce(&mut RateSampler, &View<'_>) -> T) -> T {
        let Self { now, flight, sampler, cc, rules, host } = self;
        let view = View {
            now: *now,
            flight,
            cc,
            handshake: host.recovery.handshake(),
            rtt: &host.rtt,
            rules,
            smss: SMSS,
            rwnd: 1 << 30,
            unsent: 0,
        };
        f(sampler, &view)
    }

    fn transmit(&mut self, start: u64, end: u64, kind: TransmissionKind) {
        match kind {
            TransmissionKind::New => self.flight.on_new(end, self.now, 0),
            _ => self.flight.on_resent(start, self.now, 0),
        }
        let in_flight = self.flight.pipe().segments as f64;
        let transmission = Transmission { start, end, kind, tsval: 0, is_window_probe: false };
        self.with(|sampler, view| sampler.on_sent(view, &transmission, in_flight));
    }

    fn send(&mut self, segments: u64) -> &mut Self {
        for _ in 0..segments {
            let start = self.flight.max();
            self.transmit(start, start + SMSS, TransmissionKind::New);
        }
        self
    }

    fn resend(&mut self, segment: u64) -> &mut Self {
        self.transmit((segment - 1) * SMSS, segment * SMSS, TransmissionKind::Recovery);
        self
    }

    /// Acknowledges all segments up to `segment`, with these SACK blocks.
    fn ack(&mut self, segment: u64, blocks: &[std::ops::Range<u64>]) -> RateSample {
        let acked = self.flight.on_ack((segment * SMSS).max(self.flight.una()));
        let mut news = Sacked::default();
        for block in blocks {
            self.flight.on_sack((block.start - 1) * SMSS..(block.end - 1) * SMSS, &mut news);
        }
        let mut originals = acked.originals;
        originals.merge(news.originals);
        let delivered = Amount {
            bytes: acked.amount.bytes - acked.sacked_before.bytes + news.amount.bytes,
            segments: acked.amount.segments - acked.sacked_before.segments + news.amount.segments,
        };
        let ack = Ack {
            acked: acked.amount,
            delivered,
            newly_sacked: news.amount,
            any_resent: acked.any_resent,
            newest: Delivery::later(acked.newest, news.newest),
            originals,
            ..Ack::default()
        };
        let in_flight = self.flight.pipe().segments as f64;
        self.with(|sampler, view| {
            let acked = sampler.on_ack(view, Delivered::Reported(view.segments(ack.delivered)));
            let lost = sampler.newly_lost(view).iter().map(|lost| lost.size).sum();
            sampler.sample(view, &ack, in_flight, (acked, lost))
        })
    }
}

#[test]
fn rate_is_window_per_round_trip() {
    let mut line = Line::new();
    line.send(10).wait(100);
    let sample = line.ack(10, &[]);
    assert_eq!(sample.delivery_rate(), 100.0);
    assert_eq!((sample.newly_acked, sample.prior_in_flight, sample.totals.in_flight), (10.0, 10.0, 0.0));
    assert_eq!(sample.rtt, Some(Duration::from_millis(100)));
}

#[test]
fn paced_acks_yield_bottleneck_rate() {
    let mut line = Line::new();
    // Ten segments are sent at once. One arrives every 10 ms and releases another.
    line.send(10).wait(90);
    let rates: Vec<f64> = (1..=40)
        .map(|segment| {
            line.wait(10).send(1);
            line.ack(segment, &[]).delivery_rate()
        })
        .collect();
    // The initial burst is over after two round trips.
    assert!(rates[21..].iter().all(|rate| (rate - 100.0).abs() < 1e-6), "{rates:?}");
}

#[test]
fn delayed_acks_do_not_inflate_rate() {
    let mut line = Line::new();
    // One segment is sent every 10 ms. All ACKs arrive at once.
    for _ in 0..20 {
        line.send(1).wait(10);
    }
    line.ack(1, &[]);
    for _ in 0..20 {
        line.send(1).wait(10);
    }
    line.ack(21, &[]);
    let sample = line.ack(40, &[]);
    assert!(sample.delivery_rate() <= 100.0 + 1e-6, "{}", sample.delivery_rate());
}

#[test]
fn idle_time_is_not_part_of_interval() {
    let mut line = Line::new();
    line.send(10).wait(100);
    line.ack(10, &[]);
    line.wait(60_000).send(10).wait(100);
    assert_eq!(line.ack(20, &[]).delivery_rate(), 100.0);
}

#[test]
fn sacked_data_counts_as_delivered_once() {
    let mut line = Line::new();
    line.send(10).wait(100);
    assert_eq!(line.ack(0, &[3..6]).newly_acked, 3.0);
    assert_eq!(line.ack(0, &[3..7]).newly_acked, 1.0);
    let sample = line.ack(10, &[]);
    assert_eq!((sample.newly_acked, sample.totals.delivered), (6.0, 10.0));
    assert_eq!(line.ack(10, &[]).measured, None, "nothing is delivered, so nothing is measured");
}

#[test]
fn sample_shorter_than_min_rtt_yields_no_rate() {
    let mut line = Line::new();
    line.send(10).wait(100);
    line.ack(5, &[]);
    // Segments 6 and 7 are each acknowledged 5 ms after their retransmission, so the ACK answers the
    // original.
    line.resend(6).wait(5);
    assert_eq!(line.ack(6, &[]).rtt, None, "the ACK may be of either transmission");
    line.resend(7).wait(5);
    let sample = line.ack(7, &[]);
    assert_eq!(sample.measured.unwrap().interval, None);
    assert_eq!((sample.delivery_rate(), sample.totals.delivered), (0.0, 7.0));
}

#[test]
fn segments_are_app_limited_until_gap_is_delivered() {
    let mut line = Line::new();
    line.send(4).wait(50);
    line.sampler.mark_app_limited();
    line.send(4).wait(50);
    assert!(!line.ack(4, &[]).is_app_limited(), "these segments were sent before the gap");
    line.send(4);
    assert!(line.ack(8, &[]).is_app_limited());
    // More than the four segments in flight at the mark are delivered, so later transmissions are not marked.
    assert!(!line.sampler.is_app_limited());
    line.send(4).wait(100);
    assert!(line.ack(12, &[]).is_app_limited(), "these segments were sent with the gap ahead of them");
    assert!(!line.ack(16, &[]).is_app_limited());
}

#[test]
fn lost_segment_is_reported_once_with_its_flight() {
    let mut line = Line::new();
    line.send(10).wait(100);
    line.ack(2, &[]);
    line.flight.mark_lost(2 * SMSS);
    line.flight.mark_lost(4 * SMSS);
    let lost = line.with(|sampler, view| sampler.newly_lost(view));
    let reported: Vec<_> =
        lost.iter().map(|lost| (lost.start / SMSS, lost.tx_in_flight, lost.lost)).collect();
    assert_eq!(reported, [(2, 3.0, 1.0), (4, 5.0, 2.0)]);
    assert!(line.with(|sampler, view| sampler.newly_lost(view)).is_empty());
    // The loss of a retransmission is a separate loss.
    line.resend(3);
    assert!(line.with(|sampler, view| sampler.newly_lost(view)).is_empty());
    line.flight.mark_lost(2 * SMSS);
    let lost = line.with(|sampler, view| sampler.newly_lost(view));
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].lost, 1.0, "the two losses before it are not counted twice");
    // The rest and segment 3 arrive.
    let sample = line.ack(10, &[]);
    assert_eq!(sample.totals.lost, 3.0);
    assert!(line.with(|sampler, view| sampler.newly_lost(view)).is_empty());
    assert!(line.sampler.snapshots.is_empty());
}

#[test]
fn forgotten_sacks_are_not_delivered_twice() {
    let mut line = Line::new();
    line.send(10).wait(100);
    assert_eq!(line.ack(0, &[3..9]).totals.delivered, 6.0);
    line.sampler.before_forgetting(&line.flight);
    line.flight.forget_sacks();
    line.flight.rewind();
    line.resend(1).resend(2).resend(3).wait(100);
    let sample = line.ack(2, &[4..6]);
    assert_eq!((sample.newly_acked, sample.totals.delivered), (2.0, 8.0), "only two segments are new");
    let sample = line.ack(4, &[]);
    assert_eq!((sample.newly_acked, sample.measured), (0.0, None));
    assert_eq!(line.ack(10, &[]).totals.delivered, 10.0);
}

#[test]
fn announced_segments_are_not_delivered_twice() {
    let mut line = Line::new();
    line.send(10).wait(100);
    let mut ack = |delivered| line.with(|sampler, view| sampler.on_ack(view, delivered));
    // Segments 1 and 5 are missing, which causes eight duplicate ACKs.
    let announced: f64 = (0..8).map(|_| ack(Delivered::Announced)).sum();
    assert_eq!(announced, 8.0);
    assert_eq!(ack(Delivered::Announced) + ack(Delivered::Announced), 1.0, "the first segment is missing");
    // The first hole is filled, then the second one.
    assert_eq!(ack(Delivered::Covered(4.0)), 1.0);
    assert_eq!(ack(Delivered::Covered(6.0)), 1.0);
}

#[test]
fn split_segment_counts_as_two() {
    let mut line = Line::new();
    line.transmit(0, 3000, TransmissionKind::New);
    line.send(1).wait(100);
    line.flight.mark_lost(0);
    assert_eq!(line.with(|sampler, view| sampler.newly_lost(view)).len(), 1);
    line.flight.split(0, 1000);
    line.transmit(0, 1000, TransmissionKind::Recovery);
    assert!(line.with(|sampler, view| sampler.newly_lost(view)).is_empty(), "the loss of the rest is known");
    line.wait(100);
    let sample = line.ack(1, &[]);
    assert_eq!(sample.measured.unwrap().tx_in_flight, 2.0);
    assert_eq!(line.sampler.snapshots.len(), 2);
}
