//! A sender without a connection, for unit tests of single answers: recovery, scoreboard and clock, with
//! segments of 1000 bytes.
//!
//! The test plays the receiver: it chooses the ACKs and checks which segments are sent.

use std::ops::Range;
use std::sync::Arc;

use airwire::time::{Duration, Instant};

use super::{
    Ack, Congestion, Counters, Decision, Handshake, Path, Recipe, Recovery, Transmission, TransmissionKind,
    View,
};
use crate::flight::{Flight, Sacked};
use crate::profile::Profile;
use crate::profile::recovery::{DecreaseFrom, Growth, RecoveryRules};
use crate::recovery::engine::TimerRule;
use crate::rtt::{RttEstimator, Sample};

pub(crate) const SMSS: u64 = 1000;
/// The round-trip time of most tests.
pub(crate) const RTT: Duration = Duration::from_millis(100);

/// A sender under test. Segments are numbered from 1, as in the figures of the papers. A sent segment is
/// written as `7`, a retransmission as `7r`.
pub(crate) struct BareSender {
    pub(crate) now: Instant,
    pub(crate) flight: Flight,
    pub(crate) rtt: RttEstimator,
    pub(crate) recovery: Recovery,
    /// The receiver's window, in segments.
    pub(crate) rwnd: u64,
    /// Segments that the application has written.
    pub(crate) written: u64,
    pub(crate) rto: Option<Instant>,
    style_limits: (crate::rtt::TimerStyle, crate::rtt::RtoLimits),
}

impl BareSender {
    /// Creates a sender with the default profile, timestamps, and SACK if the recipe uses it.
    pub(crate) fn new(recipe: &str) -> Self {
        Self::in_profile(recipe, Profile::default())
    }

    /// Creates a sender with timestamps, and SACK if the recipe uses it.
    pub(crate) fn in_profile(recipe: &str, profile: Profile) -> Self {
        Self::with(recipe, profile, &Handshake { timestamps: true, ..Handshake::default() })
    }

    /// Creates a sender with timestamps whose peer does not permit SACK.
    pub(crate) fn without_sack(recipe: &str, profile: Profile) -> Self {
        let mut sender = Self::unconnected(recipe, profile);
        let handshake = Handshake { timestamps: true, ..Handshake::default() };
        sender.decide(|recovery, path| recovery.on_established(path, &handshake));
        sender
    }

    /// Creates a sender. SACK is in use if `handshake` permits it or the recipe uses it.
    pub(crate) fn with(recipe: &str, profile: Profile, handshake: &Handshake) -> Self {
        let mut sender = Self::unconnected(recipe, profile);
        let sack = handshake.sack || sender.recovery.wants_sack();
        let scoreboard = sack && sender.recovery.uses_sack();
        let handshake = Handshake { sack, scoreboard, ..*handshake };
        sender.decide(|recovery, path| recovery.on_established(path, &handshake));
        sender
    }

    fn unconnected(recipe: &str, profile: Profile) -> Self {
        let recipe: Recipe = recipe.parse().unwrap();
        let profile = Arc::new(recipe.tune(&profile));
        let mut recovery = recipe.build(&profile);
        recovery.start_trace();
        Self {
            now: Instant::from_secs(1),
            flight: Flight::default(),
            rtt: RttEstimator::new(profile.timers.rto.style, profile.timers.rto.limits),
            recovery,
            rwnd: 10_000,
            written: u64::MAX / SMSS,
            rto: None,
            style_limits: (profile.timers.rto.style, profile.timers.rto.limits),
        }
    }

    /// Sets the window to `cwnd` segments, sends them all, and sets the round-trip time to `rtt`.
    pub(crate) fn under_way(mut self, cwnd: f64, ssthresh: f64, rtt: Duration) -> Self {
        self.recovery.put_window(cwnd, ssthresh);
        let (style, limits) = self.style_limits;
        self.rtt = RttEstimator::new(style, limits);
        for _ in 0..8 {
            let (sent_at, now) = (self.now, self.now + rtt);
            self.rtt.on_sample(&Sample { sent_at, now, una: 0, nxt: 1, cwnd });
        }
        self.send();
        self.recovery.take_trace();
        self
    }

    /// Returns cwnd and ssthresh.
    pub(crate) fn window(&self) -> (f64, f64) {
        (self.cc().cwnd, self.cc().ssthresh)
    }

    pub(crate) fn cc(&self) -> &Congestion {
        self.recovery.congestion()
    }

    fn unsent(&self) -> u64 {
        (self.written * SMSS).saturating_sub(self.flight.max())
    }

    pub(crate) fn trace(&mut self) -> Vec<Decision> {
        self.recovery.take_trace()
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.recovery.counters()
    }

    /// Returns the number of the last acknowledged segment.
    pub(crate) fn una(&self) -> u64 {
        self.flight.una() / SMSS
    }

    pub(crate) fn wait(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    /// Acknowledges all segments up to `segment`, and echoes the timestamp of its newest transmission.
    pub(crate) fn ack(&mut self, segment: u64) -> String {
        let echo = self.segment(segment).map(|sent| sent.tsval);
        self.receive(Ack { ecr: echo, ..Ack::default() }, segment, &[])
    }

    /// Acknowledges the window in flight segment by segment, with `gap` before each ACK. Returns cwnd.
    pub(crate) fn ack_each(&mut self, gap: Duration) -> f64 {
        for segment in self.una() + 1..=self.last() {
            self.wait(gap).ack(segment);
        }
        self.cc().cwnd
    }

    pub(crate) fn ack_all(&mut self) -> String {
        self.ack(self.last())
    }

    /// Like [`Self::ack`], but echoes another timestamp, for example of an earlier transmission.
    pub(crate) fn ack_echoing(&mut self, segment: u64, ecr: u32) -> String {
        self.receive(Ack { ecr: Some(ecr), ..Ack::default() }, segment, &[])
    }

    /// Receives `n` duplicate ACKs without SACK.
    pub(crate) fn dupacks(&mut self, n: u32) -> String {
        let una = self.una();
        let sent: Vec<_> = (0..n)
            .map(|_| self.receive(Ack { duplicate: true, repeats: true, ..Ack::default() }, una, &[]))
            .collect();
        join(&sent)
    }

    /// Receives an ACK that acknowledges nothing new, with SACK blocks of these segments.
    pub(crate) fn sack(&mut self, blocks: &[Range<u64>]) -> String {
        self.receive(Ack::default(), self.una(), blocks)
    }

    /// Receives any ACK. `ack` contains its special fields; the rest is derived from `segment` and `blocks`.
    pub(crate) fn receive(&mut self, ack: Ack, segment: u64, blocks: &[Range<u64>]) -> String {
        let mut ack = ack;
        let una = self.flight.una();
        let to = segment * SMSS;
        ack.number = to;
        ack.flight_before = self.flight.outstanding();
        if to > una {
            self.acknowledge(&mut ack);
        }
        self.mark_sacked(&mut ack, blocks);
        ack.duplicates = ack.dsack.map_or(0, |(left, right)| right.saturating_sub(left).div_ceil(SMSS));
        if self.recovery.profile().recovery.growth.amount == Growth::Delivered {
            ack.delivered.bytes += ack.duplicates * SMSS;
            ack.delivered.segments += ack.duplicates;
        }
        ack.duplicate |= to <= una && ack.newly_sacked.bytes > 0;
        let rule = self.decide(|recovery, path| recovery.on_ack(path, &mut ack));
        self.apply(rule);
        self.send()
    }

    /// Acknowledges the segments below the number of `ack`, and takes an RTT sample.
    fn acknowledge(&mut self, ack: &mut Ack) {
        let acked = self.flight.on_ack(ack.number);
        ack.acked = acked.amount;
        ack.delivered.bytes = acked.amount.bytes - acked.sacked_before.bytes;
        ack.delivered.segments = acked.amount.segments - acked.sacked_before.segments;
        ack.any_resent = acked.any_resent;
        ack.newest = acked.newest;
        ack.last[0] = acked.last;
        ack.originals = acked.originals;
        ack.acked_tsval = acked.last_tsval;
        if let Some(sent_at) = acked.oldest_unambiguous.filter(|_| !acked.any_resent) {
            ack.rtt = Some(self.now - sent_at);
            let cwnd = self.cc().cwnd;
            let (una, nxt) = (self.flight.una(), self.flight.max());
            self.rtt.on_sample(&Sample { sent_at, now: self.now, una, nxt, cwnd });
        }
    }

    fn mark_sacked(&mut self, ack: &mut Ack, blocks: &[Range<u64>]) {
        let mut news = Sacked::default();
        for block in blocks {
            // Blocks are ranges of segments: 5..7 means segments 5 and 6.
            self.flight.on_sack((block.start - 1) * SMSS..(block.end - 1) * SMSS, &mut news);
        }
        ack.newly_sacked = news.amount;
        ack.highest_sacked = news.highest.map(|highest| highest.end);
        ack.last[1] = news.highest;
        ack.newest = super::Delivery::later(ack.newest, news.newest);
        ack.originals.merge(news.originals);
        ack.delivered.bytes += news.amount.bytes;
        ack.delivered.segments += news.amount.segments;
    }

    /// Advances the clock until the retransmission timer fires. Panics if a detector's timer is due earlier.
    pub(crate) fn timeout(&mut self) -> String {
        let at = self.rto.expect("the retransmission timer runs");
        assert!(self.recovery.deadline().is_none_or(|other| other >= at), "a detector's timer fires first");
        self.now = self.now.max(at);
        self.decide(|recovery, path| recovery.on_timeout(path));
        self.rto = Some(self.now + self.rtt.rto().get());
        self.send()
    }

    /// Advances the clock until the timer of a detector fires.
    pub(crate) fn deadline(&mut self) -> String {
        let at = self.recovery.deadline().expect("a detector's timer runs");
        self.now = self.now.max(at);
        let rule = self.decide(|recovery, path| recovery.on_deadline(path));
        self.apply(rule);
        self.send()
    }

    /// Returns the number of the newest segment sent.
    pub(crate) fn last(&self) -> u64 {
        self.flight.max() / SMSS
    }

    /// Acknowledges everything and then one segment more, so that `recover` is passed. Resets the window to
    /// `cwnd`.
    pub(crate) fn settle(&mut self, cwnd: f64) {
        self.ack_all();
        self.recovery.put_window(cwnd, 2.0);
        self.send();
        self.ack(self.una() + 1);
        self.recovery.put_window(cwnd, 2.0);
        self.send();
    }

    /// Sends everything that may be sent now.
    pub(crate) fn send(&mut self) -> String {
        let mut sent = Vec::new();
        while let Some((start, end, kind)) = self.choose() {
            let tsval = self.now.as_millis() as u32;
            match kind {
                TransmissionKind::New => self.flight.on_new(end, self.now, tsval),
                _ => self.flight.on_resent(start, self.now, tsval),
            }
            let transmission = Transmission { start, end, kind, tsval, is_window_probe: false };
            self.decide(|recovery, path| recovery.on_sent(path, &transmission));
            let again = if kind == TransmissionKind::New { "" } else { "r" };
            sent.push(format!("{}{again}", end / SMSS));
            self.rto.get_or_insert_with(|| self.now + self.rtt.rto().get());
            assert!(sent.len() < 100_000, "the sender does not stop sending");
        }
        sent.join(" ")
    }

    fn choose(&mut self) -> Option<(u64, u64, TransmissionKind)> {
        let old = |(start, kind)| (start, start + SMSS, kind);
        if !self.flight.is_empty()
            && let Some(choice) = self.decide(|recovery, path| recovery.next_resend(path))
        {
            return Some(old(choice));
        }
        let (start, una) = (self.flight.max(), self.flight.una());
        if start / SMSS < self.written
            && start + SMSS <= una + self.rwnd * SMSS
            && self.decide(|recovery, path| recovery.may_send_new(path, SMSS))
        {
            return Some((start, start + SMSS, TransmissionKind::New));
        }
        if self.flight.is_empty() {
            return None;
        }
        self.decide(|recovery, path| recovery.next_resend_without_new_data(path)).map(old)
    }

    fn segment(&self, segment: u64) -> Option<&crate::flight::Sent> {
        self.flight.segment_at((segment.checked_sub(1)?) * SMSS)
    }

    fn apply(&mut self, rule: TimerRule) {
        if self.flight.is_empty() {
            self.rto = None;
        } else if rule != TimerRule::Keep {
            let floor = self.recovery.timer_floor().unwrap_or_default();
            let head = self.flight.head().filter(|_| rule == TimerRule::RestartSinceTransmission);
            let since = head.map_or(self.now, |head| head.last_sent);
            self.rto = Some(since + self.rtt.rto().get().max(floor));
        }
    }

    fn decide<T>(&mut self, f: impl FnOnce(&mut Recovery, &mut Path<'_>) -> T) -> T {
        let unsent = self.unsent();
        let mut path = Path {
            now: self.now,
            flight: &mut self.flight,
            rtt: &mut self.rtt,
            smss: SMSS,
            rwnd: self.rwnd * SMSS,
            unsent,
        };
        f(&mut self.recovery, &mut path)
    }
}

/// A sender whose window and rules the test sets, for tests that call one answer directly.
pub(crate) struct TestView {
    pub(crate) sender: BareSender,
    pub(crate) cc: Congestion,
    pub(crate) rules: RecoveryRules,
}

impl TestView {
    /// Creates a view of `sender` with the RFCs' rules. A loss reduces the window from cwnd.
    pub(crate) fn new(sender: BareSender) -> Self {
        let mut rules = RecoveryRules::rfc();
        rules.decrease.from = DecreaseFrom::Cwnd;
        Self { cc: sender.cc().clone(), sender, rules }
    }

    pub(crate) fn view(&self) -> View<'_> {
        let sender = &self.sender;
        View {
            now: sender.now,
            flight: &sender.flight,
            cc: &self.cc,
            handshake: sender.recovery.handshake(),
            rtt: &sender.rtt,
            rules: &self.rules,
            smss: SMSS,
            rwnd: sender.rwnd * SMSS,
            unsent: sender.unsent(),
        }
    }
}

/// Plays arbitrary ACKs and timestamp echoes, and checks the window after each.
pub(crate) fn check_with_arbitrary_acks(recipe: &str) {
    let mut sender = BareSender::new(recipe).under_way(10.0, 8.0, RTT);
    for step in 0..2000_u64 {
        sender.wait(Duration::from_millis(step % 7));
        let (una, max) = (sender.una(), sender.last());
        let far = una + 1 + step % (max - una).max(1);
        let echo = |ecr| Ack { ecr: Some(ecr), ..Ack::default() };
        match step % 5 {
            0 => sender.receive(echo(0), far, &[]),
            1 if sender.recovery.uses_sack() => sender.sack(&[far..max + 1]),
            2 => sender.receive(Ack { dsack: Some((0, SMSS)), ..echo(u32::MAX) }, una, &[]),
            3 if step % 3 == 0 => sender.ack(max),
            4 if sender.recovery.deadline().is_some() => sender.deadline(),
            _ => sender.dupacks(3),
        };
        let cc = sender.cc();
        let sane = cc.cwnd >= 1.0 && cc.cwnd.is_finite() && cc.ssthresh >= 2.0;
        assert!(sane, "{recipe}: {} {}", cc.cwnd, cc.ssthresh);
    }
}

/// Returns how often `segment` was retransmitted.
pub(crate) fn resent(sent: &str, segment: u64) -> usize {
    sent.split(' ').filter(|word| *word == format!("{segment}r")).count()
}

fn join(parts: &[String]) -> String {
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

#[test]
fn newreno_repairs_two_holes_in_two_round_trips() {
    let rtt = Duration::from_millis(100);
    let mut sender = BareSender::new("newreno").under_way(10.0, 8.0, rtt);
    // Segments 1 and 4 are lost.
    assert_eq!(sender.wait(rtt).dupacks(2), "");
    assert_eq!(sender.dupacks(1), "1r");
    assert_eq!(sender.cc().ssthresh, 5.0);
    assert_eq!(sender.dupacks(5), "11 12 13");
    assert_eq!(sender.wait(rtt).ack(3), "4r 14");
    assert_eq!(sender.wait(rtt).ack(14), "15 16");
    assert_eq!(sender.counters().window_reductions, 1);
}

#[test]
fn sack_repairs_two_holes_in_one_round_trip() {
    let rtt = Duration::from_millis(100);
    let mut sender = BareSender::new("sack").under_way(10.0, 8.0, rtt);
    sender.wait(rtt);
    assert_eq!(sender.sack(&[2..3]), "");
    assert_eq!(sender.sack(&[2..4]), "");
    assert_eq!(sender.sack(&[5..6, 2..4]), "1r");
}
