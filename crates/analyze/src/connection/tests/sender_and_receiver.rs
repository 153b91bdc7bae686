//! Evidence of a sender's congestion control and of a receiver's ACK frequency.

use super::*;
use crate::connection::congestion::Observed;

const SEGMENT: u64 = 1000;

/// A sender that only its window limits. The RTT is 100 ms.
struct Rounds {
    diagram: Diagram,
    at: f64,
    next: u64,
}

impl Rounds {
    fn new() -> Self {
        Self { diagram: Diagram::new(), at: 0.0, next: 1 }
    }

    fn send(&mut self, segments: u64) -> Range<u64> {
        let sent = self.next..self.next + segments * SEGMENT;
        self.diagram.burst(self.at, sent.clone());
        self.next = sent.end;
        self.at += 0.1;
        sent
    }

    fn round(&mut self, segments: u64) {
        let sent = self.send(segments);
        self.diagram.ack(self.at, sent.end);
    }

    /// Sends a window whose first segment is lost. SACK reveals the loss, and the segment is retransmitted.
    fn round_with_loss(&mut self, segments: u64) {
        let sent = self.send(segments);
        let first = sent.start + SEGMENT;
        for received in 1..=3 {
            let end = first + received * SEGMENT;
            self.diagram.sack(self.at, sent.start, &[first..end]);
        }
        self.diagram.data(self.at, sent.start..first);
        self.at += 0.1;
        self.diagram.ack(self.at, sent.end);
    }

    /// Repeatedly grows the window by `step` segments per round up to 40, and reduces it to the fraction `to`
    /// at a loss.
    fn sawtooth(&mut self, times: u32, to: f64, step: u64) {
        for _ in 0..times {
            let mut window = (40.0 * to) as u64;
            while window < 40 {
                self.round(window);
                window += step;
            }
            self.round_with_loss(40);
        }
    }

    fn congestion(&self) -> CongestionFindings {
        self.diagram.findings().sender.congestion
    }

    fn name(&self) -> Option<CongestionControl> {
        self.diagram.findings().sender.congestion_control.name
    }
}

fn near(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < 0.02, "{found} for {expected}");
}

#[test]
fn halving_with_linear_growth_is_reno() {
    let mut rounds = Rounds::new();
    rounds.sawtooth(4, 0.5, 1);
    rounds.round(20);
    let found = rounds.congestion();
    assert_eq!((rounds.name(), found.falls), (Some(CongestionControl::Reno), 4));
    near(found.falls_to, 0.5);
    near(found.grows_segments_per_round_trip, 1.0);
    near(found.growth_curvature, 0.0);
}

#[test]
fn halving_with_faster_growth_is_not_reno() {
    let mut rounds = Rounds::new();
    rounds.sawtooth(4, 0.5, 2);
    rounds.round(20);
    let found = rounds.congestion();
    assert_eq!((rounds.name(), found.falls), (None, 4));
    near(found.grows_segments_per_round_trip, 2.0);
}

#[test]
fn reduction_to_70_percent_is_cubic_unless_linear() {
    let mut curved = Rounds::new();
    for _ in 0..5 {
        // RFC 9438 §4.2, with a round trip of 0.1 s: the window before the loss is reached after K seconds.
        let k = (0.3_f64 * 40.0 / 0.4).cbrt();
        for round in 0..=31 {
            let t = f64::from(round) * 0.1;
            curved.round((40.0 + 0.4 * (t - k).powi(3)) as u64);
        }
        curved.round_with_loss(40);
    }
    curved.round(28);
    assert_eq!(curved.name(), Some(CongestionControl::Cubic));
    let found = curved.congestion();
    near(found.falls_to, 0.7);
    assert!(found.growth_curvature.unwrap() > 0.1, "{found:?}");

    let mut straight = Rounds::new();
    straight.sawtooth(4, 0.7, 1);
    straight.round(28);
    assert_eq!(straight.name(), None);
    near(straight.congestion().falls_to, 0.7);
}

#[test]
fn inconsistent_reductions_leave_congestion_control_undetermined() {
    let mut rounds = Rounds::new();
    for to in [0.5, 0.7, 0.5, 0.9] {
        rounds.sawtooth(1, to, 1);
    }
    rounds.round(20);
    let found = rounds.congestion();
    assert_eq!((rounds.name(), found.falls), (None, 4));
    near(found.falls_to_least, 0.5);
    near(found.falls_to_most, 0.9);
}

#[test]
fn few_losses_or_small_windows_are_inconclusive() {
    let mut two = Rounds::new();
    two.sawtooth(2, 0.5, 1);
    two.round(20);
    assert_eq!((two.name(), two.congestion().falls), (None, 2));

    let mut small = Rounds::new();
    for _ in 0..4 {
        for window in 5..10 {
            small.round(window);
        }
        small.round_with_loss(10);
    }
    small.round(5);
    assert_eq!((small.name(), small.congestion().falls), (None, 0));
}

#[test]
fn undone_reduction_is_not_counted() {
    let mut rounds = Rounds::new();
    rounds.sawtooth(3, 0.5, 1);
    (20..40).for_each(|window| rounds.round(window));
    assert_eq!(rounds.congestion().falls, 3);
    // The receiver reports with a D-SACK that it got the segment twice. The window is not reduced.
    let sent = rounds.send(40);
    let first = sent.start + SEGMENT;
    for received in 1..=3 {
        rounds.diagram.sack(rounds.at, sent.start, &[first..first + received * SEGMENT]);
    }
    rounds.diagram.data(rounds.at, sent.start..first);
    // The late original is acknowledged immediately, and the ACK triggers the next window.
    rounds.at += 0.01;
    rounds.diagram.ack(rounds.at, sent.end);
    let next = rounds.send(40);
    rounds.diagram.sack(rounds.at - 0.01, sent.end, &[sent.start..first]);
    rounds.diagram.ack(rounds.at, next.end);
    rounds.round(40);
    assert_eq!(rounds.congestion().falls, 3);
}

#[test]
fn application_limited_sender_hides_window() {
    let mut rounds = Rounds::new();
    for _ in 0..4 {
        for window in 20..40 {
            rounds.round(window);
            rounds.at += 0.2;
        }
        rounds.round_with_loss(40);
        rounds.at += 0.2;
    }
    rounds.round(20);
    assert_eq!(rounds.congestion(), CongestionFindings::default());
}

#[test]
fn pause_or_cwr_after_recovery_hides_reduction() {
    let falls = |after: fn(&mut Rounds)| {
        let mut rounds = Rounds::new();
        (20..40).for_each(|window| rounds.round(window));
        rounds.round_with_loss(40);
        after(&mut rounds);
        rounds.round(20);
        rounds.congestion().falls
    };
    assert_eq!(falls(|_| {}), 1);
    assert_eq!(falls(|rounds| rounds.at += 0.3), 0);
    // RFC 3168 §6.1.2: CWR indicates that the sender has reduced its window for a congestion mark.
    let reduced = |rounds: &mut Rounds| {
        let next = rounds.next;
        rounds.diagram.data(rounds.at, next..next + SEGMENT).flags = Flags::ACK.with(Flags::CWR);
        rounds.next += SEGMENT;
    };
    assert_eq!(falls(reduced), 0);
}

#[test]
fn four_segment_min_rtt_probes_indicate_bbr() {
    let mut rounds = Rounds::new();
    for _ in 0..2 {
        for _ in 0..100 {
            rounds.round(40);
        }
        for _ in 0..3 {
            rounds.round(4);
        }
    }
    rounds.round(40);
    rounds.round(40);
    let found = rounds.congestion();
    assert_eq!((rounds.name(), found.min_rtt_probes), (Some(CongestionControl::Bbr), 2));
    assert_eq!(found.falls_to, None);
}

#[test]
fn slow_start_is_not_min_rtt_probe() {
    let mut rounds = Rounds::new();
    for _ in 0..3 {
        for _ in 0..60 {
            rounds.round(40);
        }
        for window in [1, 2, 4, 8, 16, 32] {
            rounds.round(window);
        }
    }
    rounds.round(40);
    assert_eq!(rounds.congestion().min_rtt_probes, 0);
}

#[test]
fn capture_away_from_sender_hides_window() {
    let mut diagram = Diagram::cut();
    diagram.syn(-0.2, Some(1460));
    diagram.syn_ack(-0.1, Some(1460));
    // The RTT between the capture point and the sender is 80 ms.
    diagram.ack_of_a(-0.02, 1);
    let mut rounds = Rounds { diagram, ..Rounds::new() };
    rounds.sawtooth(4, 0.5, 1);
    rounds.round(20);
    assert_eq!(rounds.diagram.findings().rtt_of, RttOf::PartOfRoundTrip);
    assert_eq!(rounds.congestion(), CongestionFindings::default());
}

#[test]
fn offloaded_segments_do_not_look_application_limited() {
    // With an MSS of 1460, segments have 1448 bytes. The packets contain three, two and one segments.
    let mut d = Diagram::with_timestamps();
    let (mut at, mut next) = (0.0, 1);
    for _ in 0..10 {
        for segments in [3, 2, 1] {
            d.data(at, next..next + segments * 1448);
            next += segments * 1448;
        }
        at += 0.1;
        d.ack(at, next);
    }
    let time = d.findings().time;
    let limited = time.application_limited_seconds.unwrap();
    assert!(limited < 0.01, "{limited} of {}", time.total_seconds);
    // A short segment at the end shows that the application had no more data.
    d.data(at, next..next + 100);
    d.ack(at + 0.1, next + 100);
    let limited = d.findings().time.application_limited_seconds.unwrap();
    assert!((limited - 0.1).abs() < 0.01, "{limited}");
}

// ----- receivers -----

fn policy(segments_for_each_ack: &[u64]) -> AckPolicyFindings {
    let mut d = Diagram::new();
    let (mut at, mut next) = (0.0, 1);
    for _ in 0..6 {
        let mut acked = next;
        d.burst(at, next..next + 12 * SEGMENT);
        next += 12 * SEGMENT;
        let mut each = segments_for_each_ack.iter().cycle();
        while acked < next {
            acked = (acked + each.next().unwrap() * SEGMENT).min(next);
            d.ack(at + 0.1, acked);
        }
        at += 0.1;
    }
    d.findings().acks.policy
}

#[test]
fn ack_policy_is_inferred_from_ack_frequency() {
    assert_eq!(policy(&[1]).looks_like, AckPolicy::EverySegment);
    let two = policy(&[2]);
    assert_eq!((two.looks_like, two.for_two_segments), (AckPolicy::EverySecondSegment, 36));
    assert_eq!(policy(&[4]).looks_like, AckPolicy::Fewer);
    assert_eq!(policy(&[1, 1, 1, 3]).looks_like, AckPolicy::Mixed);
    let two = Diagram::new().findings().acks.policy;
    assert_eq!((two.looks_like, two.delayed), (AckPolicy::Undetermined, 0));
}

#[test]
fn late_ack_for_lone_segment_is_delayed_ack() {
    let mut d = Diagram::new();
    let (mut at, mut next) = (0.0, 1);
    for late in [0.0, 0.04, 0.041, 0.042, 0.2] {
        d.data(at, next..next + SEGMENT);
        next += SEGMENT;
        at += 0.1 + late;
        d.ack(at, next);
        at += 0.01;
    }
    let found = d.findings().acks.policy;
    assert_eq!(found.delayed, 4);
    near(found.delayed_by_median_seconds, 0.041);
    near(found.delayed_by_max_seconds, 0.2);
}

#[test]
fn ack_for_queued_segment_is_not_delayed_ack() {
    let mut d = Diagram::new();
    d.data(0.0, 1..1001);
    d.ack(0.1, 1001);
    // The second segment waits for the first on a slow link.
    d.burst(0.2, 1001..3001);
    d.ack(0.3, 2001);
    d.ack(0.4, 3001);
    assert_eq!(d.findings().acks.policy.delayed, 0);
}

/// The capture seems to be far from the sender until the sender answers without delay.
#[test]
fn slow_answers_at_first_do_not_change_round_trips() {
    let mut diagram = Diagram { timestamps: true, ..Diagram::cut() };
    diagram.syn(-0.2, Some(1460));
    diagram.syn_ack(-0.1, Some(1460));
    diagram.ack_of_a(-0.098, 1);
    let mut rounds = Rounds { diagram, at: 0.0, next: 1 };
    for _ in 0..3 {
        rounds.round(10);
        rounds.at += 0.002;
    }
    (0..8).for_each(|_| rounds.round(10));
    let mut connection = Connection::new(&rounds.diagram.packets[0], Keep::Findings);
    rounds.diagram.packets.iter().for_each(|packet| connection.process(packet));
    let observed = connection.directions[0].observed(RttOf::RoundTrip, true, 0).unwrap();
    let rtts: Vec<_> = observed.rounds.iter().map(|round| round.min_rtt).filter(|rtt| *rtt > 0).collect();
    assert!(rtts.len() >= 5 && rtts.iter().all(|rtt| (99_000..=102_000).contains(rtt)), "{rtts:?}");
}

/// A capture at the receiver of a sender with timestamps. The RTT of the sender is 100 ms.
struct AtReceiver {
    diagram: Diagram,
    at: f64,
    next: u64,
    /// The timestamps that the next segments echo, the last one repeatedly.
    echoes: Vec<u32>,
}

impl AtReceiver {
    fn new() -> Self {
        let mut diagram = Diagram { timestamps: true, ..Diagram::cut() };
        diagram.syn(-0.1, Some(1460));
        diagram.syn_ack(-0.1, Some(1460));
        let echoes = vec![diagram.packets[1].options.timestamps.unwrap().val];
        diagram.ack_of_a(0.0, 1);
        Self { diagram, at: 0.0, next: 1, echoes }
    }

    /// Receives these segments, of which the path has lost the first one if `is_lost`. Acknowledges each.
    fn round(&mut self, segments: u64, is_lost: bool) {
        let begin = self.next;
        let mut echoes = std::mem::take(&mut self.echoes).into_iter();
        let mut echo = 0;
        for segment in u64::from(is_lost)..segments {
            let start = begin + segment * SEGMENT;
            let at = self.at + segment as f64 * 0.001;
            echo = echoes.next().unwrap_or(echo);
            let data = self.diagram.data(at, start..start + SEGMENT);
            data.options.timestamps.as_mut().unwrap().ecr = echo;
            let ack = match is_lost {
                true => self.diagram.sack(at + 1e-5, begin, &[begin + SEGMENT..start + SEGMENT]),
                false => self.diagram.ack(at + 1e-5, start + SEGMENT),
            };
            self.echoes.push(ack.options.timestamps.unwrap().val);
        }
        self.at += 0.1;
        self.next = begin + segments * SEGMENT;
    }

    fn retransmit(&mut self, start: u64) {
        self.diagram.data(self.at, start..start + SEGMENT);
        let end = self.next;
        self.diagram.ack(self.at + 1e-5, end);
    }

    fn observed(&self) -> Observed {
        let mut connection = Connection::new(&self.diagram.packets[0], Keep::Findings);
        self.diagram.packets.iter().for_each(|packet| connection.process(packet));
        connection.directions[0].observed(RttOf::ReceiverDelay, false, 0).unwrap()
    }
}

#[test]
fn receiver_sees_the_round_trip_of_the_sender() {
    let mut at_receiver = AtReceiver::new();
    (0..8).for_each(|_| at_receiver.round(10, false));
    let observed = at_receiver.observed();
    assert_eq!(observed.initial_segments, Some(10), "these echo the timestamp of the SYN-ACK");
    let rtts: Vec<_> = observed.rounds.iter().map(|round| (round.min_rtt, round.max_rtt)).collect();
    assert!(rtts.len() >= 5);
    assert!(rtts.iter().all(|(min, max)| (99_000..102_000).contains(min) && *max < 102_000), "{rtts:?}");
}

#[test]
fn receiver_does_not_count_data_that_it_has_sacked() {
    let mut at_receiver = AtReceiver::new();
    (0..4).for_each(|_| at_receiver.round(10, false));
    let lost = at_receiver.next;
    at_receiver.round(10, true);
    at_receiver.round(10, false);
    at_receiver.retransmit(lost);
    at_receiver.at += 0.1;
    (0..4).for_each(|_| at_receiver.round(10, false));
    // The evidence begins in the first of these rounds, without the ACKs before.
    let rounds = at_receiver.observed().rounds;
    let flights: Vec<_> = rounds.iter().skip(1).map(|round| round.flight).collect();
    assert!(flights.len() >= 5 && flights.iter().all(|flight| *flight <= 11_000), "{flights:?}");
}
