//! A path for the tests of models: a bottleneck with a buffer, simulated in steps of a quarter of a
//! millisecond. Amounts may be fractions of segments. The sender sends as much as the model's rate and window
//! permit.

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use super::{Loss, LossKind, Model, Modelled, Window};
use crate::recovery::episode::{AfterEpisode, AfterTimeout, Episode, EpisodeWindow, FastRecovery, Restart};
use crate::recovery::rate::{LostSegment, Measured, RateSample, Totals};
use crate::recovery::testing::{BareSender, SMSS, TestView};
use crate::recovery::{Congestion, RecoveryState, Transmission, TransmissionKind};

const STEP: Duration = Duration::from_micros(250);

/// The data sent in one step.
#[derive(Clone, Copy)]
struct Parcel {
    amount: f64,
    lost: f64,
    sent_at: Instant,
    /// When the sender learns that it was delivered or lost.
    reported_at: Instant,
    first_send_time: Instant,
    delivered_time: Instant,
    delivered: f64,
    lost_before: f64,
    tx_in_flight: f64,
    is_app_limited: bool,
}

pub(super) struct TestPath<M> {
    pub(super) model: M,
    sender: TestView,
    /// In segments per second.
    pub(super) capacity: f64,
    /// The round-trip time without a queue.
    pub(super) base: Duration,
    /// Size of the buffer in segments.
    pub(super) buffer: f64,
    /// Share of all data that is lost.
    pub(super) loss: f64,
    /// Rate at which the application writes, in segments per second.
    pub(super) writes: f64,
    /// Policer: tokens per second, and tokens left. Data without a token is lost.
    pub(super) policer: Option<(f64, f64)>,
    pub(super) queue: f64,
    pub(super) totals: Totals,
    /// Segments sent so far.
    pub(super) sent: f64,
    parcels: VecDeque<Parcel>,
    first_send_time: Instant,
    app_limited: Option<f64>,
    /// The beginning of the episode in progress.
    recovery_began: Option<Instant>,
    lost_ranges: u64,
}

impl<M: Window + Model + Default> TestPath<M> {
    /// Creates a path with 1000 segments per second and 40 ms, which the handshake has measured, so 40
    /// segments fit. The buffer holds twice as many.
    pub(super) fn new() -> Self {
        let base = Duration::from_millis(40);
        let sender = TestView::new(BareSender::new("sack").under_way(10.0, f64::INFINITY, base));
        let now = sender.sender.now;
        let mut model = M::default();
        model.begin(&sender.view());
        Self {
            model,
            sender,
            capacity: 1000.0,
            base,
            buffer: 80.0,
            loss: 0.0,
            writes: f64::INFINITY,
            policer: None,
            queue: 0.0,
            totals: Totals { delivered: 0.0, delivered_time: now, lost: 0.0, in_flight: 0.0 },
            sent: 0.0,
            parcels: VecDeque::new(),
            first_send_time: now,
            app_limited: None,
            recovery_began: None,
            lost_ranges: 0,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.sender.sender.now
    }

    pub(super) fn cc(&self) -> &Congestion {
        &self.sender.cc
    }

    /// Runs until `over` returns true, which must happen within 20 seconds.
    pub(super) fn until(&mut self, over: impl Fn(&Self) -> bool) -> &mut Self {
        let end = self.now() + Duration::from_secs(20);
        while !over(self) {
            assert!(self.now() < end, "condition not met within 20 s, cwnd {:?}", self.cc().cwnd);
            self.step();
        }
        self
    }

    pub(super) fn run(&mut self, time: Duration) -> &mut Self {
        let end = self.now() + time;
        while self.now() < end {
            self.step();
        }
        self
    }

    pub(super) fn seconds(&mut self, seconds: u64) -> &mut Self {
        self.run(Duration::from_secs(seconds))
    }

    /// Returns the delivery rate of the next seconds.
    pub(super) fn rate(&mut self, seconds: u64) -> f64 {
        let delivered = self.totals.delivered;
        self.seconds(seconds);
        (self.totals.delivered - delivered) / seconds as f64
    }

    /// Checks that after 15 idle seconds the sender resumes at the bandwidth that it measured before, without
    /// a queue.
    pub(super) fn check_restart_from_idle(&mut self, probes_rtt: fn(&Self) -> bool) {
        self.writes = 0.0;
        self.seconds(15);
        self.writes = f64::INFINITY;
        let sent = self.sent;
        self.run(Duration::from_millis(30));
        let burst = self.sent - sent;
        assert!((25.0..=31.0).contains(&burst), "{burst} segments in 30 ms at 1000 per second");
        assert!(self.queue < 1.0, "the restart builds no queue: {}", self.queue);
        self.run(Duration::from_millis(100));
        assert!(!probes_rtt(self), "no ProbeRTT after an idle period");
    }

    /// Reports the first ECN echo of a window of data.
    pub(super) fn echo(&mut self) {
        self.report(LossKind::EcnEcho);
    }

    fn report(&mut self, kind: LossKind) {
        self.model.on_loss(&self.sender.view(), &Loss { kind, window_when_sent: None });
    }

    /// Reports that the last episode was spurious.
    pub(super) fn mistake(&mut self) {
        self.model.on_undo();
        self.end_episode();
    }

    fn end_episode(&mut self) {
        self.recovery_began = None;
        self.sender.cc.episode = Episode::Open(AfterEpisode::Nothing);
    }

    /// Fires the retransmission timer. Everything in flight is lost.
    pub(super) fn timeout(&mut self) {
        self.report(LossKind::Timeout);
        self.sender.cc.cwnd = 1.0;
        self.sender.cc.episode = Episode::Loss(Restart::Timeout(AfterTimeout::Reduced));
        self.parcels.clear();
        self.totals.lost += std::mem::take(&mut self.totals.in_flight);
        self.recovery_began = Some(self.now());
        self.model.on_timeout(&self.sender.view(), &self.totals);
    }

    fn step(&mut self) {
        self.sender.sender.now += STEP;
        self.queue = (self.queue - self.capacity * STEP.as_secs_f64()).max(0.0);
        if let Some((rate, tokens)) = &mut self.policer {
            *tokens = (*tokens + *rate * STEP.as_secs_f64()).min(200.0);
        }
        self.process_arrivals();
        self.send();
    }

    fn process_arrivals(&mut self) {
        let (now, prior_in_flight) = (self.now(), self.totals.in_flight);
        let (mut newest, mut reported) = (None, Vec::new());
        while let Some(parcel) = self.parcels.pop_front_if(|parcel| parcel.reported_at <= now) {
            self.totals.delivered += parcel.amount - parcel.lost;
            self.totals.in_flight = (self.totals.in_flight - parcel.amount).max(0.0);
            newest = Some(parcel).filter(|it| it.lost < it.amount).or(newest);
            reported.push(parcel);
        }
        if reported.is_empty() {
            return;
        }
        if self.parcels.is_empty() {
            // Sums of fractions are not exact.
            self.totals.in_flight = 0.0;
        }
        let newly_acked: f64 = reported.iter().map(|parcel| parcel.amount - parcel.lost).sum();
        let newly_lost: f64 = reported.iter().map(|parcel| parcel.lost).sum();
        if newly_acked > 0.0 {
            self.totals.delivered_time = now;
        }
        self.app_limited.take_if(|until| self.totals.delivered > *until);
        if self.recovery_began.is_some_and(|began| newest.is_some_and(|it| it.sent_at > began)) {
            self.end_episode();
        }
        if newly_lost > 0.0 && self.cc().state() == RecoveryState::Open {
            self.report(LossKind::Detected);
            let window = EpisodeWindow::Reduced;
            self.sender.cc.episode = Episode::Recovery(FastRecovery { inflation: 0.0, window });
            self.recovery_began = Some(now);
        }
        self.report_losses(&reported);
        let sample = RateSample {
            measured: newest.map(|newest| self.measure(&newest)),
            totals: self.totals,
            prior_in_flight,
            newly_acked,
            newly_lost,
            rtt: newest.map(|newest| now - newest.sent_at),
            ack_may_be_delayed: false,
        };
        let Modelled { cwnd, ssthresh, ignores_rates } = self.model.on_sample(&self.sender.view(), &sample);
        (self.sender.cc.cwnd, self.sender.cc.ssthresh) = (cwnd, ssthresh);
        if ignores_rates {
            self.mark_app_limited();
        }
    }

    fn report_losses(&mut self, reported: &[Parcel]) {
        for parcel in reported.iter().filter(|parcel| parcel.lost > 0.0) {
            self.totals.lost += parcel.lost;
            self.lost_ranges += 2;
            let lost = LostSegment {
                start: self.lost_ranges * SMSS,
                end: (self.lost_ranges + 1) * SMSS,
                size: parcel.lost,
                tx_in_flight: parcel.tx_in_flight,
                lost: self.totals.lost - parcel.lost_before,
                delivered: self.totals.delivered,
                is_app_limited: parcel.is_app_limited,
            };
            self.model.on_lost(&self.sender.view(), &lost);
        }
    }

    fn measure(&mut self, newest: &Parcel) -> Measured {
        self.first_send_time = newest.sent_at;
        let elapsed = (newest.sent_at - newest.first_send_time).max(self.now() - newest.delivered_time);
        Measured {
            delivered: self.totals.delivered - newest.delivered,
            prior_delivered: newest.delivered,
            interval: Some(elapsed).filter(|elapsed| *elapsed >= self.base),
            is_app_limited: newest.is_app_limited,
            tx_in_flight: newest.tx_in_flight,
            lost: self.totals.lost - newest.lost_before,
        }
    }

    fn mark_app_limited(&mut self) {
        self.app_limited = Some(self.totals.delivered + self.totals.in_flight);
    }

    fn send(&mut self) {
        let now = self.now();
        let rate = self.model.pacing_rate(&self.sender.view()).unwrap() / SMSS as f64;
        let wanted = (rate.min(1e5) * STEP.as_secs_f64()).min(self.cc().cwnd - self.totals.in_flight);
        let amount = wanted.min(self.writes * STEP.as_secs_f64());
        if amount < wanted {
            self.mark_app_limited();
        }
        if amount <= 0.0 {
            return;
        }
        if self.totals.in_flight == 0.0 {
            if self.app_limited.is_some()
                && let Some(cwnd) = self.model.on_restart_from_idle(&self.sender.view())
            {
                self.sender.cc.cwnd = cwnd;
            }
            (self.first_send_time, self.totals.delivered_time) = (now, now);
        }
        let (start, end) = ((self.sent * SMSS as f64) as u64, ((self.sent + amount) * SMSS as f64) as u64);
        for start in (start..end).step_by(SMSS as usize) {
            let end = end.min(start + SMSS);
            let transmission =
                Transmission { start, end, kind: TransmissionKind::New, tsval: 0, is_window_probe: false };
            self.model.on_sent(&self.sender.view(), &transmission);
        }
        let lost = self.lost_of(amount);
        self.queue += amount - lost;
        let queued = Duration::from_secs_f64(self.queue / self.capacity);
        self.totals.in_flight += amount;
        self.sent += amount;
        self.sender.cc.cwnd_limited = self.totals.in_flight + 1.0 > self.cc().cwnd;
        self.parcels.push_back(Parcel {
            amount,
            lost,
            sent_at: now,
            reported_at: now + self.base + queued,
            first_send_time: self.first_send_time,
            delivered_time: self.totals.delivered_time,
            delivered: self.totals.delivered,
            lost_before: self.totals.lost,
            tx_in_flight: self.totals.in_flight,
            is_app_limited: self.app_limited.is_some(),
        });
    }

    /// Returns how much of `amount` the policer, the full buffer and random losses drop.
    fn lost_of(&mut self, amount: f64) -> f64 {
        let policed = match &mut self.policer {
            Some((_, tokens)) => {
                let passes = amount.min(*tokens);
                *tokens -= passes;
                amount - passes
            }
            None => 0.0,
        };
        let overflow = (self.queue + amount - policed - self.buffer).max(0.0);
        (overflow + policed + self.loss * amount).min(amount)
    }
}
