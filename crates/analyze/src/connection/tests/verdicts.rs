//! Verdicts about connections whose cause is easily mistaken for another one.

use super::*;

#[test]
fn held_back_requests_are_the_cause_although_the_answers_are_larger() {
    let mut d = Diagram::new();
    for request in 0..20 {
        let (at, a, b) = (0.4 * request as f64, 1 + 300 * request, 1 + 1000 * request);
        d.packet(at, 0, a, b, 150);
        d.packet(at + 0.3, 1, b, a + 150, 0);
        d.packet(at + 0.3, 0, a + 150, b, 150);
        d.packet(at + 0.4, 1, b, a + 300, 1000);
    }
    let verdict = d.ended().findings.verdict;
    assert_eq!((verdict.cause, verdict.direction), (Cause::NagleDelayedAck, Some(0)), "{}", verdict.sentence);
}

#[test]
fn unanswered_fin_of_receiver_does_not_make_complete_data_incomplete() {
    let mut d = Diagram::new();
    d.data(0.0, 1..101);
    for segment in 0..20 {
        let (at, end) = (0.1 + 0.1 * segment as f64, 1001 + 1000 * segment);
        d.packet(at, 1, end - 1000, 101, 1000);
        d.packet(at, 0, 101, end, 0);
    }
    d.packet(2.1, 1, 20_001, 101, 0).flags = Flags::FIN.with(Flags::ACK);
    for at in [2.1, 2.4, 3.0, 4.2, 6.6] {
        d.packet(at, 0, 101, 20_002, 0).flags = Flags::FIN.with(Flags::ACK);
    }
    let verdict = d.ended().findings.verdict;
    assert_ne!(verdict.cause, Cause::PathDeath, "{}", verdict.sentence);
}

/// Sends flights in which every second segment is lost, as often as `losses` says, with eight flights without loss after
/// each. The acknowledgments of the lossy flights are late by these delays.
fn verdict_about_losses<const EPISODES: usize>(losses: [u64; EPISODES], delays: [f64; EPISODES]) -> Verdict {
    const SEGMENT: u64 = 1000;
    let mut d = Diagram::new();
    let (mut at, mut next) = (0.0, 1);
    for (lost, delay) in losses.iter().zip(delays) {
        let first = next;
        next += (2 * lost + 3) * SEGMENT;
        d.burst(at, first..next);
        let starts = (0..*lost).map(|number| first + 2 * number * SEGMENT);
        let arrived: Vec<_> = starts.clone().map(|start| start + SEGMENT..start + 2 * SEGMENT).collect();
        for count in 1..=arrived.len().max(3) {
            let blocks = &arrived[count.min(arrived.len()).saturating_sub(3)..count.min(arrived.len())];
            d.sack(at + 0.1 + delay + 0.0001 * count as f64, first, blocks);
        }
        at += 0.11 + delay;
        starts.for_each(|start| {
            d.data(at, start..start + SEGMENT);
        });
        at += 0.1;
        d.ack(at, next);
        for _ in 0..8 {
            d.burst(at, next..next + 12 * SEGMENT);
            next += 12 * SEGMENT;
            at += 0.1;
            for number in (0..12).step_by(2) {
                d.ack(at, next - (10 - number) * SEGMENT);
            }
        }
    }
    d.ended().findings.verdict
}

#[test]
fn many_isolated_losses_in_each_episode_are_by_a_policer() {
    let verdict = verdict_about_losses([8; 6], [0.0; 6]);
    assert_eq!(verdict.cause, Cause::Policer, "{}", verdict.sentence);
}

#[test]
fn policer_is_named_although_most_losses_begin_with_a_delay() {
    let verdict = verdict_about_losses([8; 6], [0.052, 0.04, 0.0, 0.0, 0.022, 0.03]);
    assert_eq!(verdict.cause, Cause::Policer, "{}", verdict.sentence);
}

#[test]
fn full_queue_after_slow_start_leaves_burst_loss() {
    const SEGMENT: u64 = 1000;
    let mut d = Diagram::new();
    let (mut at, mut next) = (0.0, 1);
    // The lost segments, the flight, and the round trip: every second segment in a full queue, then bursts.
    let overflow = ((4..36).step_by(2).collect::<Vec<u64>>(), 40, 0.25);
    let burst = ((3..9).collect(), 12, 0.1);
    for (lost, segments, round_trip) in [overflow, burst.clone(), burst.clone(), burst.clone(), burst] {
        for _ in 0..6 {
            d.burst(at, next..next + 12 * SEGMENT);
            next += 12 * SEGMENT;
            at += 0.1;
            d.ack(at, next);
        }
        let first = next;
        next += segments * SEGMENT;
        d.burst(at, first..next);
        let hole = first + lost[0] * SEGMENT;
        d.ack(at + round_trip, hole);
        for arrived in (lost[0]..segments).filter(|number| !lost.contains(number)) {
            let start = first + arrived * SEGMENT;
            d.sack(at + round_trip, hole, &[start..start + SEGMENT]);
        }
        at += round_trip + 0.001;
        for number in lost {
            let start = first + number * SEGMENT;
            d.data(at, start..start + SEGMENT);
        }
        at += round_trip;
        d.ack(at, next);
    }
    let verdict = d.ended().findings.verdict;
    assert_eq!(verdict.cause, Cause::BurstLoss, "{}", verdict.sentence);
}

#[test]
fn flight_that_is_sent_again_only_after_its_last_ack_shows_a_small_send_buffer() {
    const FLIGHT: u64 = 30_000;
    let mut d = Diagram::new();
    for round in 0..40 {
        let (at, first) = (0.4 * round as f64, 1 + FLIGHT * round);
        d.burst(at, first..first + FLIGHT);
        // An ACK for two segments every 20 ms. The link is idle for a quarter of the time.
        for pair in 1..=15 {
            d.ack(at + 0.1 + 0.02 * pair as f64, first + 2000 * pair);
        }
    }
    let verdict = d.ended().findings.verdict;
    assert_eq!(verdict.cause, Cause::SendBuffer, "{}", verdict.sentence);
}

/// Data of `B` in a capture at `A`. `B` receives an ACK and sends a flight, which arrives a round trip after the ACK.
struct FromFar {
    diagram: Diagram,
    acked_at: f64,
    next: u64,
}

impl FromFar {
    const SEGMENT: u64 = 1000;

    fn new() -> Self {
        Self { diagram: Diagram::with_timestamps(), acked_at: -0.1, next: 1 }
    }

    fn segment(&mut self, at: f64, sent_at: f64, start: u64) -> &mut Packet {
        let ticks = |at: f64| ((at * 1000.0) as i64 + 10_000) as u32;
        let packet = self.diagram.packet(at, 1, start, 1, Self::SEGMENT as u32);
        packet.options.timestamps = Some(Timestamps { val: ticks(sent_at), ecr: ticks(self.acked_at) });
        packet
    }

    /// Receives a flight that ends with PSH, after a silence, and acknowledges every second segment. `is_held` means
    /// that the path has held the packets during the silence.
    fn flight(&mut self, segments: u64, spacing: f64, silence: f64, is_held: bool) {
        let begin = self.acked_at + 0.1 + silence;
        let sent_at = begin - 0.05 - if is_held { silence } else { 0.0 };
        let mut ack_at = begin;
        let end = self.next + segments * Self::SEGMENT;
        for number in 0..segments {
            let (at, start) = (begin + spacing * number as f64, self.next);
            let packet = self.segment(at, sent_at, start);
            if number + 1 == segments {
                packet.flags = Flags::ACK.with(Flags::PSH);
            }
            self.next += Self::SEGMENT;
            let is_late = is_held && self.next < end;
            if number % 2 == 1 && !is_late {
                ack_at = at + 0.0001;
                if is_held {
                    // The sender has retransmitted by timeout without need.
                    self.segment(at, sent_at + 0.4, end - segments * Self::SEGMENT);
                    self.segment(at, sent_at + 1.2, end - segments * Self::SEGMENT);
                }
                self.diagram.packet(ack_at, 0, 1, self.next, 0);
            }
        }
        self.acked_at = ack_at;
    }

    fn findings(&self) -> ConnectionFindings {
        self.diagram.ended().findings
    }
}

#[test]
fn late_sender_is_not_a_queue_of_acks() {
    let mut far = FromFar::new();
    for _ in 0..40 {
        far.flight(30, 0.005, 0.0, false);
    }
    let findings = far.findings();
    assert_eq!(findings.verdict.cause, Cause::SendBuffer, "{}", findings.verdict.sentence);
    let rounds = findings.directions[1].round_trips.as_ref().unwrap();
    let delay = rounds.ack_path_queueing_delay.median_seconds.unwrap();
    assert!(delay < 0.01, "{delay}");
}

/// Returns the findings of 20 flights, of which one comes after a silence of three seconds.
fn with_silence(lost_packets: u16, is_held: bool) -> ConnectionFindings {
    let mut far = FromFar::new();
    for round in 0..20 {
        if round == 15 {
            far.diagram.ids[1] += lost_packets;
            far.flight(10, 0.001, 3.0, is_held);
        } else {
            far.flight(10, 0.001, 0.0, false);
        }
    }
    far.findings()
}

#[test]
fn silence_with_lost_or_held_packets_is_an_outage_at_the_receiver() {
    for (lost_packets, is_held, expected) in
        [(0, false, Cause::SlowWriter), (8, false, Cause::Outage), (0, true, Cause::Outage)]
    {
        let findings = with_silence(lost_packets, is_held);
        let outages = &findings.directions[1].outages;
        let context = format!("{lost_packets} {is_held} {outages:?} {}", findings.verdict.sentence);
        assert_eq!(findings.verdict.cause, expected, "{context}");
        assert_eq!(outages.count, u64::from(expected == Cause::Outage), "{context}");
    }
}

#[test]
fn one_large_episode_among_single_losses_leaves_random_loss() {
    let verdict = verdict_about_losses([15, 1, 1, 2, 1, 1, 1, 1], [0.0; 8]);
    assert_eq!(verdict.cause, Cause::RandomLoss, "{}", verdict.sentence);
}

#[test]
fn spurious_timeouts_are_the_cause_despite_losses_at_other_times() {
    const SEGMENT: u64 = 1000;
    let mut d = Diagram::with_timestamps();
    let (mut at, mut next) = (0.0, 1);
    for _ in 0..4 {
        for _ in 0..3 {
            let first = next;
            next += 12 * SEGMENT;
            d.burst(at, first..next);
            for count in 1..=11 {
                d.sack(at + 0.1, first, &[first + SEGMENT..first + (1 + count) * SEGMENT]);
            }
            d.data(at + 0.1, first..first + SEGMENT);
            d.ack(at + 0.2, next);
            at += 0.2;
        }
        let first = next;
        next += 12 * SEGMENT;
        d.burst(at, first..next);
        let original = d.packets.last().unwrap().options.timestamps.unwrap().val;
        d.data(at + 0.4, first..first + SEGMENT);
        d.data(at + 1.2, first..first + SEGMENT);
        for count in 1..=12 {
            let ack = d.ack(at + 2.0, first + count * SEGMENT);
            ack.options.timestamps.as_mut().unwrap().ecr = original;
        }
        at += 2.0;
    }
    let verdict = d.ended().findings.verdict;
    assert_eq!(verdict.cause, Cause::SpuriousTimeouts, "{}", verdict.sentence);
}

#[test]
fn timeouts_after_which_the_flight_is_lost_are_an_outage() {
    const SEGMENT: u64 = 1000;
    let mut d = Diagram::with_timestamps();
    let (mut at, mut next) = (0.0, 1);
    for _ in 0..20 {
        d.burst(at, next..next + 12 * SEGMENT);
        next += 12 * SEGMENT;
        at += 0.1;
        d.ack(at, next);
    }
    // The first two segments arrive, but their ACK is lost.
    let first = next;
    next += 20 * SEGMENT;
    d.burst(at, first..next);
    let original = d.packets.last().unwrap().options.timestamps.unwrap().val;
    for after in [0.4, 1.2, 2.8] {
        d.data(at + after, first..first + SEGMENT);
    }
    let ack = d.ack(at + 2.9, first + 2 * SEGMENT);
    ack.options.timestamps.as_mut().unwrap().ecr = original;
    d.burst(at + 2.9, first + 2 * SEGMENT..next);
    d.ack(at + 3.0, next);
    let findings = d.ended().findings;
    let spurious = findings.directions[0].retransmissions.spurious.timeouts;
    assert_eq!((findings.verdict.cause, spurious), (Cause::Outage, 3), "{}", findings.verdict.sentence);
}

#[test]
fn fin_of_the_receiver_is_not_an_answer_to_lost_data() {
    let mut d = Diagram::new();
    for round in 0..20 {
        let (at, first) = (0.1 * round as f64, 1 + 4000 * round);
        d.burst(at, first..first + 4000);
        d.ack(at + 0.1, first + 4000);
    }
    d.burst(2.0, 80_001..84_001);
    for at in [2.4, 3.2, 4.8, 8.0] {
        d.data(at, 80_001..81_001);
    }
    d.ack(9.0, 80_001).flags = Flags::FIN.with(Flags::ACK);
    let verdict = d.ended().findings.verdict;
    assert_eq!(verdict.cause, Cause::PathDeath, "{}", verdict.sentence);
}

#[test]
fn tail_probe_before_timeouts_does_not_hide_a_black_hole() {
    let mut d = Diagram::new();
    d.packet(0.0, 1, 1, 1, 100);
    d.burst(0.0, 1..10_001);
    d.data(0.2, 9001..10_001);
    for at in [0.4, 0.8, 1.6, 3.2] {
        d.data(at, 1..1001);
    }
    let verdict = d.ended().findings.verdict;
    assert_eq!(verdict.cause, Cause::PathMtuBlackHole, "{}", verdict.sentence);
}

#[test]
fn wait_for_a_nearly_closed_window_is_not_a_pause_of_the_application() {
    let pauses = |window: u16| {
        let mut d = Diagram::new();
        for round in 0..20 {
            let (at, first) = (0.7 * round as f64, 1 + 4000 * round);
            d.burst(at, first..first + 4000);
            d.ack(at + 0.1, first + 4000).window = window;
        }
        let [a, _] = d.ended().findings.directions;
        a.round_trips.unwrap().pauses
    };
    assert_eq!((pauses(60_000) > 10, pauses(500)), (true, 0));
}

#[test]
fn unknown_round_trip_at_the_receiver_is_not_a_pause_of_the_application() {
    let pauses = |round_trip: f64| {
        let mut d = Diagram::cut();
        for round in 0..20 {
            let (at, first) = (round_trip * round as f64, 1 + 4000 * round);
            d.burst(at, first..first + 4000);
            d.ack(at, first + 4000);
        }
        let [a, _] = d.ended().findings.directions;
        a.round_trips.unwrap().pauses
    };
    assert_eq!((pauses(0.3), pauses(1.5) > 10), (0, true));
}
