//! The causes in the network.

use super::facts::{FULL, Facts, JITTER, QUEUEING};
use super::{Candidate, MENTIONED, ONE_FLIGHT, OUTAGE, REPEATED, UNCERTAIN};
use crate::connection::findings::{Cause, LossCounts, RoundTripFindings};

/// Weight of a disturbance that takes a considerable share of the time. It exceeds the share, because the
/// sender also needs time to recover.
const DISTURBING: f64 = 0.8;
/// Minimum queueing delay, in seconds, of a queue that is a problem for other traffic (bufferbloat). The
/// delay must also exceed `BLOAT_RTTS`.
const BLOAT: f64 = 0.08;
/// The same minimum as a multiple of the minimum round trip. A queue of one bandwidth-delay product is usual.
const BLOAT_RTTS: f64 = 0.8;
/// Minimum delay of a queue that may be a problem, relative to the larger of these limits: the median, and the
/// 90th percentile.
const NEARLY_BLOATED: f64 = 0.75;
const LONG_AT_TIMES: f64 = 2.0;
/// If ACKs cause the queueing delay, at least this share of it is on their way.
const ON_ACK_PATH: f64 = 0.6;
/// Minimum queueing delay on the way of the ACKs, in seconds. On most paths, ACKs do not meet a queue.
const MIN_ACK_QUEUE: f64 = 0.015;
/// Minimum queueing delay on the way of the ACKs in a capture at the receiver, in minimum round trips.
const MIN_REMOTE_ACK_QUEUE: f64 = 0.5;
/// The same minimum as a multiple of the time that the flight needs at the bottleneck.
const MIN_REMOTE_FLIGHTS: f64 = 1.2;
/// Minimum queueing delay of a full link, in seconds.
const SOME_QUEUE: f64 = 0.001;
/// Minimum share of the loss episodes that begin with a queue, if its overflow causes the losses.
const QUEUED: f64 = 0.5;
/// Losses without a queue are not the cause if the goodput is at least this share of the bottleneck's rate.
const NEARLY_ALL: f64 = 0.96;
/// Minimum ratio of the rate of closely spaced packets to the rate of a policer. A shaper would space the
/// packets.
const UNSHAPED: f64 = 1.3;
/// Maximum ratio of the rate of a policer to the goodput.
const MAX_POLICED: f64 = 1.3;
/// Segments in the shortest queue of a shaper.
const SHORTEST_QUEUE: f64 = 2.0;
/// Minimum queueing delay at the beginning of losses by a queue, in minimum round trips.
const SHORTEST_RTTS: f64 = 0.05;
/// Maximum relative standard deviation of the data between loss episodes of a policer: of many episodes, and of
/// few. Random losses have 1 on average.
const REGULAR: f64 = 0.6;
const FEW_REGULAR: f64 = 0.4;
/// Minimum number of many episodes.
const MANY: u64 = 12;
/// Minimum ratio of the losses of a policer with regular episodes to independent losses.
const REGULAR_EXCESS: f64 = 1.3;
/// Minimum number of lost segments per episode if many losses come in bursts, or if their regularity shows a
/// policer.
const SEVERAL_LOST: f64 = 1.7;
/// Minimum goodput of a link that may be full, as a share of the bottleneck's rate. A short queue is empty for
/// a part of the time.
const MAYBE_FULL: f64 = 0.55;
/// Minimum number of lost segments per episode if a few losses come in bursts. Random losses of 3 % hit 1.3
/// segments of a window of ten.
const BURST: f64 = 2.2;
/// Minimum share of lost segments at which a sender that does not react to losses can exceed the rate of a
/// policer.
const FREQUENT: f64 = 0.03;
/// Share of reordered or duplicated packets that is not incidental.
const DISORDER: f64 = 0.003;
const DUPLICATES: f64 = 0.01;
/// Maximum ratio of the losses to the reordered packets if reordering is clearly the cause.
const SOME_LOST: f64 = 1.0 / 3.0;
/// Share of lost ACKs that is not incidental.
const ACK_LOSS: f64 = 0.1;
/// Maximum round trips of a transfer that ends in slow start.
const MAX_SLOW_START: f64 = 14.0;
/// Growth per round trip in slow start with delayed ACKs.
const SLOW_START_GROWTH: f64 = 1.5;
/// Minimum number of losses of a policer.
const MIN_POLICED: u64 = 15;
/// Minimum number of contiguous groups in each loss episode of a policer.
const RUNS_PER_EPISODE: f64 = 2.5;
/// Minimum number of contiguous groups per episode if its losses are not a single burst.
const SEVERAL_RUNS: f64 = 1.6;
/// The same minimum if a policer is not excluded.
const MIXED_RUNS: f64 = 1.25;
/// Minimum number of lost segments in each contiguous group if no policer causes them: its tokens arrive all the time.
const LONG_RUN: f64 = 8.0;
/// Weight of a cause if another cause is an equally good explanation.
const UNCLEAR: f64 = 0.3;
/// Losses are not independent of each other if an episode has more than this multiple of the expected losses.
const INDEPENDENT: f64 = 1.6;

/// Returns the causes in the network. They share the time that neither the applications nor the ends explain.
pub(super) fn candidates(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut found = Vec::new();
    let spurious = spurious_timeouts(facts);
    if spurious.is_none() {
        found.extend(outage(facts));
    }
    found.extend(spurious);
    let Some(rounds) = facts.rounds else { return found };
    let time = &facts.data.time;
    let elsewhere = facts.delay_of_handshake()
        + rounds.pause_seconds
        + rounds.gap_seconds
        + facts.turns.iter().map(|turns| turns.waited_seconds).sum::<f64>();
    let full = if facts.is_queueing() { 0.0 } else { rounds.window_limited_seconds };
    let refills = if facts.refills_flight() { rounds.refill_seconds } else { 0.0 };
    let share = (1.0 - facts.share(elsewhere + full + refills + time.zero_window_seconds)).max(0.0);
    // An outage or spurious timeouts already explain the losses.
    let is_explained = found.iter().any(|candidate| candidate.share >= OUTAGE);
    if !is_explained {
        found.extend(of_path(facts, rounds, share));
        found.extend(lost_acks(facts, rounds, 1.0).map(|also| also.weight(0.0)));
        // A link may be full in both directions.
        if ack_path_queue(facts, rounds)
            .is_some_and(|queue| queue >= BLOAT && !is_late_sender(facts, rounds, queue))
        {
            found.push(Candidate::new(Cause::ThinUplink, share).weight(0.0));
        }
    }
    found
}

/// Returns an outage. At the receiver, retransmissions of data that has arrived may also show the loss of ACKs.
fn outage(facts: &Facts<'_>) -> Vec<Candidate> {
    let outages = &facts.data.outages;
    let share = facts.share(outages.seconds);
    // Random losses also cause single long silences, but together with many other losses.
    let others = facts.data.retransmissions.timeouts.saturating_sub(4 * outages.count);
    // Lost ACKs cause silences too.
    let loses_acks = facts.rounds.is_some_and(|rounds| lost_acks(facts, rounds, share).is_some());
    if outages.count == 0 || share < OUTAGE || others > 4 * outages.count || loses_acks {
        return Vec::new();
    }
    let weight = share.max(DISTURBING);
    let outage = Candidate::new(Cause::Outage, share).weight(weight).evidence(outages.frame);
    let may_lose_acks = facts.is_at_receiver() && facts.data.retransmissions.spurious.timeouts > 0;
    let lost_acks = may_lose_acks.then(|| Candidate::new(Cause::AckLoss, 0.0).weight(weight * UNCERTAIN));
    // Without SACK, copies cause retransmissions that delay the repair of other losses.
    let may_copy = copies(facts) >= DUPLICATES;
    let copied = may_copy.then(|| Candidate::new(Cause::Duplication, 0.0).weight(weight * UNCERTAIN));
    [outage].into_iter().chain(lost_acks).chain(copied).collect()
}

fn spurious_timeouts(facts: &Facts<'_>) -> Option<Candidate> {
    let found = &facts.data.retransmissions;
    // In an outage, most of the flight is also lost.
    let is_rule = found.spurious.timeouts > 0 && found.spurious.timeouts * 4 >= found.timeouts;
    let are_most = found.spurious.timeouts * 2 >= found.timeouts;
    // While the path holds packets, the timer expires several times for the same segment.
    // The receiver does not see the timers.
    let has_lost_flights = !are_most && facts.lost > found.spurious.packets.max(found.timeouts)
        || found.timeout > 2 * found.timeouts + found.spurious.packets;
    if facts.is_at_receiver() || !is_rule || has_lost_flights {
        return None;
    }
    let share = facts.share(facts.data.outages.stalled_seconds);
    // The small window afterwards is part of the damage.
    let weight = if share >= OUTAGE { share.max(DISTURBING) } else { share };
    let loses_acks = facts.rounds.is_some_and(|rounds| lost_acks(facts, rounds, share).is_some());
    let cause = if loses_acks { Cause::AckLoss } else { Cause::SpuriousTimeouts };
    Some(Candidate::new(cause, share).weight(weight).evidence(facts.loss_frames()))
}

/// Returns the cause why the path was slow, from its queue and its losses.
fn of_path(facts: &Facts<'_>, rounds: &RoundTripFindings, share: f64) -> Vec<Candidate> {
    let lost = rounds.lost_segments.saturating_sub(facts.data.retransmissions.spurious.packets);
    let episodes = rounds.loss_episodes;
    let begins_with_queue = begins_with_queue(facts, rounds);
    let queued = rounds.loss_queue_seconds.is_some()
        || begins_with_queue
        || rounds.loss_episodes_with_queue as f64 >= QUEUED * episodes.max(1) as f64
            && !fills_queue_only_at_begin(rounds);
    // If losses keep the link from being full, the goodput is lower, and no queue builds up.
    let has_losses = episodes >= REPEATED && !queued;
    let full = if has_losses && facts.knows_queue() { NEARLY_ALL } else { FULL };
    let is_paused = facts.share(rounds.pause_seconds + rounds.gap_seconds) >= MENTIONED;
    let is_full = facts.utilization().is_some_and(|share| share >= full)
        && (!has_losses || facts.is_evenly_spaced())
        && !facts.never_queues()
        && (episodes > 0 || !is_paused || facts.queue() >= JITTER)
        && (!has_losses || !facts.knows_queue() || facts.queue() >= SOME_QUEUE);
    if let Some(queue) = ack_path_queue(facts, rounds)
        && queue >= ON_ACK_PATH * facts.queue()
    {
        if is_late_sender(facts, rounds, queue) {
            return unclear(&[Cause::ThinUplink, Cause::SendBuffer], share);
        }
        // The ACKs of copies can also delay the others.
        let may_copy = copies(facts) >= DUPLICATES;
        let copied = may_copy.then(|| Candidate::new(Cause::Duplication, share).weight(share * UNCERTAIN));
        return [Candidate::new(Cause::ThinUplink, share)].into_iter().chain(copied).collect();
    }
    if rounds.marked >= REPEATED && rounds.marked > episodes {
        let candidate = Candidate::new(Cause::EcnMarks, share);
        return vec![candidate.ceiling(rounds.bottleneck_bit_per_s).evidence(rounds.frames.marks.iter())];
    }
    if let Some(candidate) = disorder(facts, rounds, share, lost) {
        let late = overtaken(facts, rounds).max(facts.data.retransmissions.spurious.packets);
        // Many losses can slow down the sender more than the reordering of a few packets.
        let may_be_losses = candidate.cause == Cause::Reordering && lost as f64 > SOME_LOST * late as f64;
        let other = may_be_losses.then(|| Candidate::new(Cause::LinkRate, 0.0).weight(share * UNCERTAIN));
        return [candidate].into_iter().chain(other).collect();
    }
    if facts.is_queueing() && (is_full || queued && episodes > 0 || episodes == 0) {
        let queue = facts.queue();
        let is_bloated = queue >= BLOAT && queue >= BLOAT_RTTS * facts.round_trip;
        let cause = if is_bloated { Cause::Bufferbloat } else { Cause::LinkRate };
        let other = if !is_bloated && nearly_bloated(facts, rounds) {
            Some(Cause::Bufferbloat)
        } else if is_bloated && facts.utilization().is_some() && !facts.is_busy() {
            // The ACKs that wait for a slow uplink arrive in bunches.
            Some(Cause::ThinUplink)
        } else {
            // A link with some delay for another reason has the same delay, and losses keep it idle.
            let is_idle = facts.utilization().is_some_and(|share| share < MAYBE_FULL);
            (!is_bloated && is_idle && episodes >= REPEATED).then(|| kind_of_losses(facts, &losses(rounds)))
        };
        let full = Candidate::new(cause, share).ceiling(rounds.bottleneck_bit_per_s);
        let other = other.map(|cause| Candidate::new(cause, 0.0).weight(share * UNCERTAIN));
        return [full].into_iter().chain(other).collect();
    }
    if let Some(rate) = policed(facts, rounds).filter(|_| !queued && facts.knows_round_trip()) {
        let candidate = Candidate::new(Cause::Policer, share).ceiling(Some(rate));
        let policer = candidate.evidence(facts.loss_frames());
        // Cross traffic can vary the rate of a link, and bunches of ACKs look like a higher one.
        let may_be_link = !facts.knows_queue() || facts.utilization().is_some_and(|share| share >= FULL);
        let link = may_be_link.then(|| Candidate::new(Cause::LinkRate, 0.0).weight(share * UNCERTAIN));
        let may_be_bursts = losses(rounds).segments as f64 >= LONG_RUN * losses(rounds).runs as f64
            && rounds.token_bucket.is_none();
        let bursts = may_be_bursts.then(|| Candidate::new(Cause::BurstLoss, 0.0).weight(share * UNCERTAIN));
        let others = link.into_iter().chain(bursts).chain(hidden_reordering(facts, share));
        return [policer].into_iter().chain(others).collect();
    }
    if !queued && alternates(facts, rounds) && (facts.knows_queue() || !is_full) {
        return unclear(&[Cause::Policer, Cause::LinkRate], share);
    }
    // A queue shorter than the window empties after each loss, so that the link is not quite full.
    let is_nearly_full = facts.utilization().is_none_or(|share| share >= MAYBE_FULL);
    if is_full || is_nearly_full && (rounds.loss_queue_seconds.is_some() || begins_with_queue) {
        let full = Candidate::new(Cause::LinkRate, share).ceiling(rounds.bottleneck_bit_per_s);
        // The packets of a sender that paces them do not show the rate of the link.
        let may_be_policed = alternates(facts, rounds) || are_frequent(facts, rounds);
        let policer = (!facts.knows_queue() && is_full && may_be_policed)
            .then(|| Candidate::new(Cause::Policer, 0.0).weight(share * UNCERTAIN));
        // A queue at the beginning of the losses is a coincidence if the link is hardly ever full.
        let may_be_idle =
            !is_full && episodes >= REPEATED && facts.knows_queue() && facts.queue() < SOME_QUEUE;
        let other = may_be_idle.then(|| kind_of_losses(facts, &losses(rounds)));
        let other = other.map(|cause| Candidate::new(cause, 0.0).weight(share * UNCERTAIN));
        return [full].into_iter().chain(policer).chain(other).collect();
    }
    if episodes >= REPEATED && !queued && lost > 0 {
        if !facts.knows_round_trip() {
            return unclear(&[Cause::RandomLoss, Cause::LinkRate], share);
        }
        return of_losses(facts, rounds, share);
    }
    is_slow_start(facts).then(|| Candidate::new(Cause::SlowStart, share)).into_iter().collect()
}

/// Returns the queueing delay on the way of the ACKs, if there is a queue. A receiver with a closed window also
/// delays its ACKs.
fn ack_path_queue(facts: &Facts<'_>, rounds: &RoundTripFindings) -> Option<f64> {
    let queue = rounds.ack_path_queueing_delay.median_seconds?;
    (!facts.is_exchange() && queue >= MIN_ACK_QUEUE && facts.data.window.zero_windows < REPEATED)
        .then_some(queue)
}

/// Returns whether a sender that reacts late to ACKs explains the delay, seen from the receiver. A sender with a
/// small buffer may wait until most of its flight is acknowledged.
fn is_late_sender(facts: &Facts<'_>, rounds: &RoundTripFindings, delay: f64) -> bool {
    let flight = rounds.constant_flight_bytes.unwrap_or(0.0) * 8.0;
    let at_bottleneck = rounds.bottleneck_bit_per_s.map_or(0.0, |rate| flight / rate);
    facts.is_at_receiver()
        && (delay < MIN_REMOTE_ACK_QUEUE * facts.round_trip || delay < MIN_REMOTE_FLIGHTS * at_bottleneck)
}

/// Returns whether most losses begin with a queue. The queues of active queue management have different lengths
/// when they drop packets.
fn begins_with_queue(facts: &Facts<'_>, rounds: &RoundTripFindings) -> bool {
    let segments = SHORTEST_QUEUE * f64::from(facts.segment) * 8.0 / facts.data.goodput_bit_per_s.max(1.0);
    let shortest = segments.max(JITTER).max(SHORTEST_RTTS * facts.round_trip);
    rounds.loss_episodes >= REPEATED
        && rounds.loss_delay_quartile_seconds.is_some_and(|delay| delay >= shortest)
}

/// Returns whether the queue was full only at the end of slow start, and most losses began with a short queue.
fn fills_queue_only_at_begin(rounds: &RoundTripFindings) -> bool {
    let losses = &rounds.losses_without_full_queue;
    losses.episodes < rounds.loss_episodes
        && losses.with_short_delay >= REPEATED
        && losses.with_short_delay > losses.full_later + 1
}

/// Returns the losses that are not the end of slow start in a full queue.
fn losses(rounds: &RoundTripFindings) -> LossCounts {
    let losses = rounds.losses_without_full_queue;
    if losses.episodes >= REPEATED {
        return losses;
    }
    LossCounts {
        episodes: rounds.loss_episodes,
        segments: rounds.lost_segments,
        runs: rounds.loss_runs,
        largest_episode: rounds.largest_loss_episode,
        ..losses
    }
}

/// Returns whether losses alternate with segments that pass.
fn alternates(facts: &Facts<'_>, rounds: &RoundTripFindings) -> bool {
    let losses = losses(rounds);
    losses.segments >= MIN_POLICED
        && losses.episodes >= REPEATED
        && losses.runs as f64 >= RUNS_PER_EPISODE * losses.episodes as f64
        && !are_independent(facts, &losses)
}

/// Returns whether each episode has as few losses as independent losses cause.
fn are_independent(facts: &Facts<'_>, losses: &LossCounts) -> bool {
    excess(facts, losses) <= INDEPENDENT
}

/// Returns the ratio of the losses to the number that is expected in as many episodes of independent losses.
/// The largest episode does not count, because slow start can end in a full queue.
fn excess(facts: &Facts<'_>, losses: &LossCounts) -> f64 {
    let lost = losses.segments.saturating_sub(losses.largest_episode) as f64;
    let episodes = losses.episodes.saturating_sub(1) as f64;
    // An episode begins with a loss. The flight of that time and the next one may have further losses.
    let flight = facts.data.goodput_bit_per_s * facts.round_trip / 8.0 / f64::from(facts.segment);
    let expected = 1.0 + 2.0 * flight * lost / facts.data.data_packets.max(1) as f64;
    lost / (expected * episodes).max(1.0)
}

/// Returns causes that explain the capture equally well, so that it does not decide.
fn unclear(causes: &[Cause], share: f64) -> Vec<Candidate> {
    let weight = share.min(UNCLEAR);
    causes.iter().map(|cause| Candidate::new(*cause, share).weight(weight)).collect()
}

/// Returns the rate of a policer in bit/s. Its losses alternate with packets that pass, because tokens arrive
/// all the time. Bursts on a radio link are contiguous.
fn policed(facts: &Facts<'_>, rounds: &RoundTripFindings) -> Option<f64> {
    let losses = losses(rounds);
    let alternates = alternates(facts, rounds);
    let is_repeated =
        losses.segments >= 2 * losses.episodes && losses.runs as f64 >= SEVERAL_RUNS * losses.episodes as f64;
    let bucket = rounds.token_bucket.filter(|_| is_repeated).map(|bucket| bucket.rate_bit_per_s);
    let is_regular = is_regular(facts, rounds);
    if !alternates && bucket.is_none() && !is_regular {
        return None;
    }
    let goodput = facts.data.goodput_bit_per_s;
    let rate = bucket.or(rounds.rate_between_losses_bit_per_s).unwrap_or(0.0);
    let rate = rate.min(MAX_POLICED * goodput).max(goodput);
    let passes_faster = rounds.bottleneck_high_bit_per_s.is_some_and(|high| high >= UNSHAPED * rate);
    // A shaper with a queue of a few segments would delay the segments before every loss.
    let segments = SHORTEST_QUEUE * f64::from(facts.segment) * 8.0 / rate.max(1.0);
    let has_no_queue =
        facts.knows_queue() && rounds.loss_delay_quartile_seconds.is_some_and(|delay| delay <= segments);
    (passes_faster || alternates && has_no_queue).then_some(rate)
}

/// Returns whether the same amount of data passes between the loss episodes, as with a small token bucket. A
/// growing window empties it at the same size each time.
fn is_regular(facts: &Facts<'_>, rounds: &RoundTripFindings) -> bool {
    let losses = losses(rounds);
    let limit = if losses.episodes >= MANY { REGULAR } else { FEW_REGULAR };
    rounds.loss_interval_deviation.is_some_and(|deviation| deviation <= limit)
        && losses.segments as f64 >= SEVERAL_LOST * losses.episodes as f64
        && excess(facts, &losses) >= REGULAR_EXCESS
}

/// Returns whether the transfer took about as many round trips as slow start needs for its data.
fn is_slow_start(facts: &Facts<'_>) -> bool {
    let data = facts.data;
    if !facts.has_start || data.retransmissions.packets > 0 || facts.round_trip <= 0.0 {
        return false;
    }
    // At the receiver, the first round trip is over when the data arrives.
    let before = if facts.is_at_sender() { 0.0 } else { 1.0 };
    let round_trips = data.transfer_seconds / facts.round_trip + before;
    let flights = data.acked_bytes as f64 / (ONE_FLIGHT as f64 * f64::from(facts.segment)) + 1.0;
    round_trips <= flights.log(SLOW_START_GROWTH) + 2.0 && round_trips <= MAX_SLOW_START
}

/// Returns a cause that is neither a rate nor a loss of data: reordering, copies, or lost ACKs.
fn disorder(facts: &Facts<'_>, rounds: &RoundTripFindings, share: f64, lost: u64) -> Option<Candidate> {
    let data = facts.data;
    let packets = data.data_packets.max(1) as f64;
    let of_packets = |count: u64| count as f64 / packets;
    let spurious = data.retransmissions.spurious.packets;
    let overtaken = overtaken(facts, rounds);
    if of_packets(overtaken) >= DISORDER && lost <= spurious.max(overtaken) / 2 {
        return Some(Candidate::new(Cause::Reordering, share).evidence(facts.loss_frames()));
    }
    // Without SACK, a sender may retransmit a whole flight after a few late segments.
    let found = &data.retransmissions;
    if found.spurious.fast_retransmits >= REPEATED.max(found.fast_retransmits / 2) && lost <= spurious / 2 {
        return Some(Candidate::new(Cause::Reordering, share).evidence(facts.loss_frames()));
    }
    if copies(facts) >= DUPLICATES {
        return Some(Candidate::new(Cause::Duplication, share));
    }
    lost_acks(facts, rounds, share).filter(|_| facts.queue() < BLOAT)
}

/// Returns the number of packets that arrived after later ones.
fn overtaken(facts: &Facts<'_>, rounds: &RoundTripFindings) -> u64 {
    facts.data.arrivals.out_of_order.max(rounds.overtaken_segments)
}

/// Returns the number of packets that the network copied, as a share of all data packets.
fn copies(facts: &Facts<'_>) -> f64 {
    let data = facts.data;
    // The receiver also reports retransmissions that were not necessary.
    let unexplained = data.acks.dsacks.saturating_sub(data.retransmissions.packets);
    facts.findings.copies.max(unexplained) as f64 / data.data_packets.max(1) as f64
}

fn lost_acks(facts: &Facts<'_>, rounds: &RoundTripFindings, share: f64) -> Option<Candidate> {
    // At the receiver, the gaps are packets that the capture has merged or missed.
    let lost = rounds.lost_acks.filter(|_| !facts.is_at_receiver())? as f64;
    let all = facts.data.acks.packets as f64 + lost;
    (lost >= ACK_LOSS * all).then(|| Candidate::new(Cause::AckLoss, share))
}

/// Returns whether a sender that does not react to losses may exceed the rate of a policer.
fn are_frequent(facts: &Facts<'_>, rounds: &RoundTripFindings) -> bool {
    rounds.lost_segments as f64 >= FREQUENT * facts.data.data_packets as f64
}

/// Returns whether losses without a queue are single or come in bursts.
fn kind_of_losses(facts: &Facts<'_>, losses: &LossCounts) -> Cause {
    let are_alone = if losses.segments >= MIN_POLICED { SEVERAL_LOST } else { BURST };
    let is_single = (losses.segments as f64) < are_alone * losses.episodes as f64;
    if is_single || are_independent(facts, losses) { Cause::RandomLoss } else { Cause::BurstLoss }
}

/// Returns whether a queue is often long enough for bufferbloat, although the median is not.
fn nearly_bloated(facts: &Facts<'_>, rounds: &RoundTripFindings) -> bool {
    let limit = BLOAT.max(BLOAT_RTTS * facts.round_trip);
    let longest = rounds.queueing_delay.p90_seconds.unwrap_or(0.0);
    longest >= limit && (facts.queue() >= NEARLY_BLOATED * limit || longest >= LONG_AT_TIMES * limit)
}

/// Returns the cause of losses without a queue. Bursts on a radio link are contiguous. If segments pass
/// between the losses of an episode, a policer is also possible.
fn of_losses(facts: &Facts<'_>, rounds: &RoundTripFindings, share: f64) -> Vec<Candidate> {
    let losses = losses(rounds);
    let (lost, episodes, runs) = (losses.segments as f64, losses.episodes as f64, losses.runs as f64);
    let cause = kind_of_losses(facts, &losses);
    let are_regular = rounds.loss_interval_deviation.is_some_and(|deviation| deviation <= REGULAR);
    let may_be_full = facts.utilization().is_some_and(|share| share >= MAYBE_FULL)
        && (facts.is_evenly_spaced() || are_regular);
    if !facts.knows_queue() && may_be_full {
        return unclear(&[cause, Cause::LinkRate], share);
    }
    if cause == Cause::BurstLoss && runs >= SEVERAL_RUNS * episodes && lost < LONG_RUN * runs {
        return unclear(&[Cause::BurstLoss, Cause::Policer], share);
    }
    let may_be_policer = match cause {
        // Several losses in an episode are rarely random, although the number is possible.
        Cause::RandomLoss => are_frequent(facts, rounds) || lost >= SEVERAL_LOST * episodes,
        _ => runs >= MIXED_RUNS * episodes,
    };
    let policer = may_be_policer.then(|| Candidate::new(Cause::Policer, 0.0).weight(share * UNCERTAIN));
    // The estimate of the link's rate may be too high, and then the link is full.
    let may_queue = facts.queue() >= JITTER + QUEUEING * facts.round_trip;
    let link = may_queue.then(|| Candidate::new(Cause::LinkRate, 0.0).weight(share * UNCERTAIN));
    let losses = Candidate::new(cause, share).evidence(facts.loss_frames());
    [losses].into_iter().chain(link).chain(policer).chain(hidden_reordering(facts, share)).collect()
}

/// Returns reordering as a second cause of the retransmissions if some were not necessary. Without SACK, it is
/// unknown which segments arrived late.
fn hidden_reordering(facts: &Facts<'_>, share: f64) -> Option<Candidate> {
    let has_spurious = facts.data.retransmissions.spurious.packets >= REPEATED;
    (!facts.findings.sack && has_spurious)
        .then(|| Candidate::new(Cause::Reordering, 0.0).weight(share * UNCERTAIN))
}
