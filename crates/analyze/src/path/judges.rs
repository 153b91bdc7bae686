//! The verdicts that the RTT-based judges of P1 (§3.2) would have reached on each loss, from a capture at the
//! sender.
//!
//! The judges are the algorithms of `airtcp::recovery::attribute`. Their input is reconstructed from the
//! trace, and differs from a sender's input in two respects:
//!
//! * The sender's window is not on the wire. It is estimated as the data in flight, less one segment for each
//!   duplicate ACK. This equals Reno's window arithmetic.
//! * RTT samples from timestamps are measured with the capture's clock, not in ticks of the sender's clock.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use airtcp::flight::{Flight, Sacked};
use airtcp::profile::Profile;
use airtcp::recovery::attribute::Attribute;
use airtcp::recovery::catalogue::Answer;
use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp::recovery::{Ack, Congestion, Handshake, Recipe, View};
use airtcp::rtt::RttEstimator;
use airwire::Cause;
use airwire::time::Instant;
use serde::Serialize;

use crate::trace::{AckSeen, Fate, Loss, Sending, SentSegment, Trace};

/// The numbers of correct and incorrect verdicts, by judge.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scores(BTreeMap<&'static str, Confusion>);

/// A judge's verdict on one loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The name of the judge.
    pub judge: &'static str,
    /// The time when the loss was detected, in nanoseconds since the trace's origin.
    pub at: i64,
    /// The first lost byte. The SYN is 0.
    pub offset: u64,
    /// The cause according to the judge.
    pub cause: Cause,
    /// The true cause, if the trace contains it.
    pub truth: Option<Truth>,
}

/// Adds the verdicts on one direction to `scores`.
///
/// `segment` is the segment size in bytes, and `captures` is the number of captures of the path. If airlink's
/// events do not state the cause of a loss, it is derived from three or more captures: losses between the
/// last two capture points are radio losses, and all other losses are congestion losses.
pub fn judge(trace: &Trace, segment: u64, captures: usize, scores: &mut Scores) {
    for verdict in verdicts(trace, segment, captures) {
        if let Some(truth) = verdict.truth {
            scores.0.entry(verdict.judge).or_default().add(verdict.cause, truth);
        }
    }
}

/// Returns the verdicts of all judges in chronological order. The parameters are the same as in [`judge`].
pub fn verdicts(trace: &Trace, segment: u64, captures: usize) -> Vec<Verdict> {
    let mut replay = Replay::new(segment, captures);
    let mut acks = trace.acks.iter().peekable();
    let mut rtt = trace.rtt.iter().peekable();
    let mut idle = trace.idle.iter().peekable();
    for sent in &trace.segments {
        while let Some(ack) = acks.next_if(|ack| (ack.at, ack.number) < (sent.at, sent.number)) {
            while rtt.next_if(|sample| sample.at < ack.at).is_some() {}
            let seconds = rtt.peek().filter(|sample| sample.at == ack.at && sample.timestamps);
            replay.acknowledged(ack, seconds.map(|sample| sample.seconds));
        }
        while idle.next_if(|idle| idle.to < sent.at).is_some() {}
        let waited = idle.next_if(|idle| idle.to == sent.at).is_some();
        replay.sent(sent, waited);
    }
    replay.verdicts
}

struct Replay {
    judges: Vec<Answer<dyn Attribute>>,
    captures: usize,
    profile: Profile,
    cc: Congestion,
    handshake: Handshake,
    flight: Flight,
    rtt: RttEstimator,
    smss: u64,
    /// Offset of the first data byte in the trace.
    base: Option<u64>,
    /// The fate of the last copy of the segment that begins at each offset.
    fates: BTreeMap<u64, Fate>,
    /// A loss is being repaired until this offset is acknowledged.
    recover: Option<u64>,
    verdicts: Vec<Verdict>,
}

impl Replay {
    fn new(segment: u64, captures: usize) -> Self {
        let recipe: Recipe = "newreno+judges".parse().expect("it is in the catalogue");
        let profile = recipe.tune(&Profile::default());
        let recovery = recipe.build(&Arc::new(profile.clone()));
        Self {
            judges: recipe.judges(&profile),
            captures,
            cc: recovery.congestion().clone(),
            handshake: Handshake::default(),
            flight: Flight::default(),
            rtt: RttEstimator::new(profile.timers.rto.style, profile.timers.rto.limits),
            profile,
            smss: segment.max(1),
            base: None,
            fates: BTreeMap::new(),
            recover: None,
            verdicts: Vec::new(),
        }
    }

    fn for_each_judge(&mut self, at: i64, mut call: impl FnMut(&mut Answer<dyn Attribute>, &View<'_>)) {
        let Self { judges, profile, cc, handshake, flight, rtt, smss, .. } = self;
        let now = Instant::from_nanos(at.max(0) as u64);
        let rules = &profile.recovery;
        let view = View { now, flight, cc, handshake, rtt, rules, smss: *smss, rwnd: u64::MAX, unsent: 0 };
        judges.iter_mut().for_each(|judge| call(judge, &view));
    }

    /// Processes a sent segment. `waited` means that the sender waited for its timer.
    fn sent(&mut self, sent: &SentSegment, waited: bool) {
        // The SYN is not data, and may be missing from the capture.
        if sent.start == 0 && sent.end == 1 || sent.sending == Sending::Probe {
            return;
        }
        let base = *self.base.get_or_insert(sent.start);
        let (Some(start), Some(end)) = (sent.start.checked_sub(base), sent.end.checked_sub(base)) else {
            return;
        };
        let now = Instant::from_nanos(sent.at.max(0) as u64);
        let in_flight = sent.in_flight + 1 - sent.dupacks.min(sent.in_flight);
        self.cc.cwnd = f64::from(in_flight);
        if self.starts_loss(sent, start, waited) {
            self.judge_loss(sent, start);
        }
        match end > self.flight.max() {
            true => self.flight.on_new(end, now, 0),
            false => self.flight.on_resent(start, now, 0),
        }
        self.fates.insert(start, sent.fate);
        self.for_each_judge(sent.at, |judge, view| judge.on_sent(view));
    }

    /// Returns whether the sender calls its judges for this segment. The sender calls them once per recovery
    /// without a timeout, and at every timeout.
    fn starts_loss(&mut self, sent: &SentSegment, start: u64, waited: bool) -> bool {
        // Three more duplicate ACKs, after a timeout or after a partial ACK that ended Reno's recovery,
        // indicate another loss.
        let is_new_loss =
            start <= self.flight.una() && sent.dupacks >= 3 && self.flight.sacked().segments == 0;
        let starts = match sent.sending {
            Sending::Fast | Sending::Unexplained => self.recover.is_none() || is_new_loss,
            Sending::Timeout => waited,
            _ => false,
        };
        if starts {
            self.recover = Some(self.flight.max());
        }
        starts
    }

    fn judge_loss(&mut self, sent: &SentSegment, start: u64) {
        let truth = self.fates.get(&start).and_then(|fate| match fate {
            Fate::Unknown => None,
            Fate::Arrived { .. } | Fate::Spurious { .. } => Some(Truth::NotLost),
            Fate::Lost(Loss::Airlink(cause)) => Some(Truth::Lost(*cause)),
            Fate::Lost(Loss::Between { .. }) if self.captures < 3 => None,
            Fate::Lost(Loss::Between { before }) if before + 1 == self.captures => {
                Some(Truth::Lost(Cause::Radio))
            }
            Fate::Lost(Loss::Between { .. }) => Some(Truth::Lost(Cause::Congestion)),
        });
        let mut verdicts = std::mem::take(&mut self.verdicts);
        self.for_each_judge(sent.at, |judge, view| {
            let Some((cause, _)) = judge.cause(view, start) else { return };
            verdicts.push(Verdict { judge: judge.row().name, at: sent.at, offset: sent.start, cause, truth });
        });
        self.verdicts = verdicts;
    }

    fn acknowledged(&mut self, seen: &AckSeen, by_timestamp: Option<f64>) {
        let Some(base) = self.base else { return };
        let now = Instant::from_nanos(seen.at.max(0) as u64);
        let Some(to) = seen.ack.checked_sub(base) else { return };
        let mut ack = Ack { number: to, duplicate: seen.duplicate, ..Ack::default() };
        ack.flight_before = self.flight.outstanding();
        let to = to.min(self.flight.max());
        if to > self.flight.una() {
            let acked = self.flight.on_ack(to);
            ack.acked = acked.amount;
            ack.any_resent = acked.any_resent;
            let measured = acked.oldest_unambiguous.map(|sent| now - sent);
            let echoed = by_timestamp.map(airwire::time::Duration::from_secs_f64);
            ack.rtt = if acked.any_resent { echoed } else { measured };
            self.fates = self.fates.split_off(&to);
            if self.recover.is_some_and(|recover| to >= recover) {
                self.recover = None;
            }
        }
        let mut sacked = Sacked::default();
        for (left, right) in &seen.sack {
            if let (Some(left), Some(right)) = (left.checked_sub(base), right.checked_sub(base)) {
                self.flight.on_sack(left..right, &mut sacked);
            }
        }
        self.for_each_judge(seen.at, |judge, view| judge.on_ack(view, &ack));
    }
}

impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "judges: no loss with a known cause");
        }
        writeln!(
            f,
            "judges: verdicts congestion (c) and radio (r), by true cause (congestion, radio, no loss)"
        )?;
        for (judge, confusion) in &self.0 {
            writeln!(f, "  {judge:<8}{confusion}")?;
        }
        Ok(())
    }
}
