//! Judges why a connection was slow, from its findings.
//!
//! Each cause has a test with thresholds. The tests are ordered: causes that stop a connection, then the
//! applications, then the ends' windows and buffers, and the network last. A cause needs a considerable share
//! of the time. If no test succeeds, the verdict is that the capture does not decide.

mod facts;
mod network;
mod sentence;

use self::facts::{CLOSED, Facts, stalled_seconds};
use super::findings::{
    BlackHole, Cause, Confidence, ConnectionFindings, HandshakeOutcome, TurnFindings, Verdict,
};

/// Minimum share of the time of a cause that is the main one in any case.
const MAIN: f64 = 0.5;
/// Minimum share of the time of the main cause if no other cause has a larger share.
const LARGEST: f64 = 0.35;
/// The main cause is clear if the weight of the second one is less than this fraction of its weight.
const CLEAR: f64 = 0.6;
/// Minimum share of the time of a cause that is mentioned.
const MENTIONED: f64 = 0.15;
/// Weight of a second cause, relative to the first one, that lowers the confidence.
const UNCERTAIN: f64 = 0.7;
/// Minimum share of the time that a sender with small writes pauses visibly.
const SOME_PAUSES: f64 = 0.1;
/// Minimum number of gaps of a sender that often runs out of data.
const MANY_GAPS: u64 = 15;
/// Minimum weight of a closed window on an idle link. The sender also needs time to recover.
const STOPPING: f64 = 0.8;
/// Minimum share of the time that an outage is silent. The sender needs more time afterwards to recover.
const OUTAGE: f64 = 0.15;
/// Number of timeouts without any answer after which the path counts as interrupted for good. Random loss of
/// one packet in ten causes three in a row once in a thousand times.
const UNANSWERED: u64 = 3;
/// Number of repetitions of a pattern that is not a coincidence.
const REPEATED: u64 = 3;
/// Minimum number of requests of a connection that is judged by its requests.
const MIN_REQUESTS: u64 = 4;
/// Number of segments that every sender can send in one round trip (RFC 6928).
const ONE_FLIGHT: u64 = 10;

/// Maximum duration of a quick transfer of at most [`ONE_FLIGHT`] segments: this many round trips, and
/// seconds for delayed ACKs.
const PROMPT_ROUND_TRIPS: f64 = 2.0;
const PROMPT: f64 = 0.05;

/// A cause and its share of the time.
#[derive(Clone, Debug)]
struct Candidate {
    cause: Cause,
    share: f64,
    /// The candidate's rank among the causes: the share, or more if the cause also disturbs the rest of the
    /// time.
    weight: f64,
    ceiling: Option<f64>,
    evidence: Vec<u64>,
}

impl Candidate {
    fn new(cause: Cause, share: f64) -> Self {
        Self { cause, share, weight: share, ceiling: None, evidence: Vec::new() }
    }

    fn weight(self, weight: f64) -> Self {
        Self { weight, ..self }
    }

    fn ceiling(self, bit_per_s: Option<f64>) -> Self {
        Self { ceiling: bit_per_s, ..self }
    }

    fn evidence(self, frames: impl IntoIterator<Item = u64>) -> Self {
        Self { evidence: frames.into_iter().collect(), ..self }
    }
}

/// Returns the verdict about a connection. `has_start` is false if the findings are only about its last seconds.
pub(super) fn judge(findings: &ConnectionFindings, has_start: bool) -> Verdict {
    if findings.handshake.outcome.has_failed() {
        let cause = match findings.handshake.outcome {
            HandshakeOutcome::Refused => Cause::HandshakeRefused,
            _ => Cause::HandshakeFailed,
        };
        let candidate = Candidate::new(cause, 1.0).evidence([findings.first_packet]);
        return verdict(findings, None, candidate, &[]);
    }
    let Some(facts) = Facts::new(findings, has_start) else { return without_data(findings) };
    if let Some(stopped) = stopped(&facts) {
        // After earlier timeouts, a silence at the receiver may be the next timeout.
        let is_timeout = facts.is_at_receiver() && facts.data.retransmissions.timeouts > 0;
        let outage = is_timeout.then(|| Candidate::new(Cause::Outage, 0.0).weight(UNCERTAIN));
        return verdict(findings, Some(&facts), stopped, outage.as_slice());
    }
    let mut candidates: Vec<_> = applications(&facts).into_iter().chain(ends(&facts)).collect();
    candidates.extend(network::candidates(&facts));
    // The sort is stable: among equal weights, the earlier test counts.
    candidates.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let Some(first) = candidates.first().filter(|first| first.weight >= LARGEST).cloned() else {
        let candidate = Candidate::new(undetermined(&facts), 0.0);
        return verdict(findings, Some(&facts), candidate, &candidates);
    };
    verdict(findings, Some(&facts), first, &candidates[1..])
}

fn without_data(findings: &ConnectionFindings) -> Verdict {
    let candidate = Candidate::new(Cause::Undetermined, 0.0);
    verdict(findings, None, candidate, &[])
}

/// Returns the verdict without a cause: a short exchange was not slow.
fn undetermined(facts: &Facts<'_>) -> Cause {
    let is_small = facts.data.acked_bytes <= ONE_FLIGHT * u64::from(facts.segment);
    let has_losses = facts.data.retransmissions.packets > 0;
    let is_quick = facts.data.transfer_seconds <= PROMPT_ROUND_TRIPS * facts.round_trip + PROMPT;
    let is_ordinary = is_small && is_quick && !has_losses && facts.has_acks;
    if is_ordinary { Cause::NotSlow } else { Cause::Undetermined }
}

/// Returns the cause why a transfer ended early, or nearly stopped.
fn stopped(facts: &Facts<'_>) -> Option<Candidate> {
    let data = facts.data;
    let outages = &data.outages;
    if let Some(path) = &data.path_mtu
        && path.black_hole != BlackHole::No
        && (outages.unanswered_timeouts >= UNANSWERED
            || facts.share(data.time.waiting_for_timeout_seconds) >= LARGEST)
    {
        let share = facts.share(data.time.waiting_for_timeout_seconds);
        return Some(Candidate::new(Cause::PathMtuBlackHole, share).evidence(path.lost_segment_frame));
    }
    if outages.unanswered_timeouts >= UNANSWERED {
        let share = facts.share(data.time.waiting_for_timeout_seconds);
        return Some(Candidate::new(Cause::PathDeath, share).evidence(facts.loss_frames()));
    }
    facts.falls_silent().then(|| Candidate::new(Cause::PathDeath, 1.0))
}

/// Returns the causes in the applications of both ends.
fn applications(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut found = Vec::new();
    let [client, server] = facts.turns;
    let thinks = |cause: Cause, turns: &TurnFindings| {
        Candidate::new(cause, facts.share(turns.waited_seconds)).evidence(turns.longest_frame)
    };
    if let Some(rounds) = facts.rounds
        && rounds.delayed_ack_stalls >= REPEATED
    {
        let share = facts.share(rounds.delayed_ack_stall_seconds);
        let stalled = stalled_seconds(rounds, facts.round_trip);
        if share >= MENTIONED {
            let share = facts.share(stalled).max(share);
            found.push(
                Candidate::new(Cause::NagleDelayedAck, share).evidence(rounds.frames.delayed_acks.iter()),
            );
        }
    }
    let delayed = Candidate::new(Cause::HandshakeDelayed, facts.share(facts.delay_of_handshake()));
    found.push(delayed.evidence([facts.findings.first_packet]));
    let is_stalled = found.iter().any(|candidate| candidate.cause == Cause::NagleDelayedAck);
    found.push(thinks(Cause::ClientThinkTime, client));
    if !is_stalled {
        found.push(thinks(Cause::ServerThinkTime, server));
    }
    let requests = server.count.min(client.count);
    if requests >= MIN_REQUESTS && !is_stalled {
        // The network's part of a request that fits into one flight is a round trip.
        let per_request = facts.data.acked_bytes as f64 / requests as f64;
        if per_request <= 2.0 * ONE_FLIGHT as f64 * f64::from(facts.segment) {
            let share = facts.share(requests as f64 * facts.round_trip);
            found.push(Candidate::new(Cause::SerialRequests, share.min(1.0)));
        }
    }
    if let Some(rounds) = facts.rounds {
        let paused = rounds.pause_seconds + rounds.gap_seconds;
        // Small writes can follow each other within a round trip.
        let starved = facts
            .data
            .time
            .application_limited_seconds
            .filter(|_| facts.share(paused) >= SOME_PAUSES && !facts.is_exchange());
        let waited: f64 = facts.turns.iter().map(|turns| turns.waited_seconds).sum();
        let share = facts.share(paused.max(starved.unwrap_or(0.0) - waited));
        if !is_stalled {
            // A sender that runs out of data in most round trips is slow in the rest of the time, too.
            let is_often_starved = rounds.gaps >= MANY_GAPS
                && 2 * rounds.gaps >= rounds.count
                && rounds.loss_episodes == 0
                && !facts.is_exchange();
            let weight = if is_often_starved { share.max(LARGEST) } else { share };
            let writer = Candidate::new(Cause::SlowWriter, share).weight(weight);
            found.push(writer.evidence(rounds.frames.longest_pause));
        }
        if rounds.restarts >= 2 && rounds.growing > rounds.count / 3 {
            let share = facts.share(rounds.seconds);
            found.push(Candidate::new(Cause::IdleRestart, share).evidence(rounds.frames.longest_pause));
        }
    }
    found
}

/// Returns the causes in the windows and buffers of both ends.
fn ends(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut found = Vec::new();
    let time = &facts.data.time;
    let closed = facts.share(time.zero_window_seconds);
    let Some(rounds) = facts.rounds else {
        if closed >= MENTIONED {
            found.push(Candidate::new(Cause::SlowReader, closed));
        }
        return found;
    };
    // While losses are repaired one after the other, the window can be full without being the cause.
    let limited = if rounds.loss_episodes == 0 { time.window_limited_seconds } else { 0.0 };
    let full = facts.share(rounds.window_limited_seconds.max(limited)) + closed;
    let closes = closed >= MENTIONED / 3.0 || facts.data.window.zero_windows >= REPEATED;
    if full >= MENTIONED && (closes || !facts.is_queueing()) {
        let ceiling = rounds.limiting_window_bytes.map(|window| window * 8.0 / facts.round_trip.max(1e-6));
        let cause = facts.window_cause(closed);
        let candidate = Candidate::new(cause, full.min(1.0));
        let is_stopping = closed >= MENTIONED && !facts.is_busy();
        let weight = if is_stopping { candidate.share.max(STOPPING) } else { candidate.share };
        let candidate = candidate.weight(weight);
        found.push(candidate.ceiling(ceiling).evidence(rounds.frames.window_full.iter()));
        // A constant window of a few segments also closes at times, because the receiver reads after each of
        // them.
        if cause == Cause::SlowReader && closed < CLOSED && !facts.window_changes() {
            found.push(Candidate::new(Cause::ReceiverWindow, 0.0).weight(weight * UNCERTAIN));
        }
    }
    if facts.has_constant_flight() {
        let share = facts.share(rounds.constant_flight_seconds.max(rounds.refill_seconds));
        let flight = rounds.constant_flight_bytes.unwrap_or(0.0);
        let ceiling = (flight > 0.0).then_some(flight * 8.0 / facts.round_trip.max(1e-6));
        let by = |cause: Cause| Candidate::new(cause, share).ceiling(ceiling);
        // Without the SYNs, the scale of the window is unknown.
        if !facts.data.window.unscaled || facts.refills_flight() {
            found.push(by(Cause::SendBuffer));
            // A link that delivers packets in bunches is alike.
            if facts.is_at_receiver() && !facts.knows_queue() {
                found.push(Candidate::new(Cause::LinkRate, 0.0).weight(share * UNCERTAIN));
            }
        } else if facts.is_scaled_window(flight) {
            found.push(by(Cause::ReceiverWindow));
        } else {
            found.extend([Cause::SendBuffer, Cause::ReceiverWindow].map(|cause| by(cause).weight(0.0)));
        }
    }
    found
}

/// Assembles the verdict. `others` are further candidates in the order of their shares.
fn verdict(
    findings: &ConnectionFindings,
    facts: Option<&Facts<'_>>,
    candidate: Candidate,
    others: &[Candidate],
) -> Verdict {
    let also = others.iter().filter(|other| other.share >= MENTIONED && other.cause != candidate.cause);
    let mut also: Vec<_> = also.map(|other| other.cause).collect();
    also.dedup();
    let next_weight = others.first().map_or(0.0, |other| other.weight);
    // The silence at the end may belong to the transfer.
    let is_whole = facts.is_none_or(|facts| facts.silence_at_end() <= facts.seconds);
    let is_clear = candidate.weight >= MAIN && next_weight < candidate.weight * CLEAR;
    let confidence = match candidate.cause {
        Cause::Undetermined => Confidence::Low,
        _ if is_clear && (is_whole || candidate.cause == Cause::PathDeath) => Confidence::High,
        _ => Confidence::Medium,
    };
    let mut verdict = Verdict {
        cause: candidate.cause,
        sentence: String::new(),
        direction: facts.map(|facts| facts.direction),
        ceiling: candidate.ceiling,
        reached: facts.map(|facts| facts.data.goodput_bit_per_s),
        evidence: candidate.evidence,
        confidence,
        next: None,
        also,
    };
    verdict.next = sentence::next_step(&verdict, findings, facts);
    verdict.sentence = sentence::sentence(&verdict, candidate.share, findings, facts);
    verdict
}
