use super::*;
use crate::recovery::testing::{BareSender, RTT, TestView};

/// The algorithms alone: the test sets the window and the number of packets sent.
struct Bench {
    rebate: Rebate,
    test: TestView,
}

impl Bench {
    fn new(tax: f64) -> Self {
        let rebate = Rebate::with(Tax::new(Some(tax), 1.0), Choices::default());
        Self { rebate, test: TestView::new(BareSender::new("newreno")) }
    }

    /// Applies a decrease at this window, after `npack` packets in total. Returns ssthresh.
    fn decrease(&mut self, cwnd: f64, npack: u64, kind: LossKind) -> f64 {
        self.test.cc.cwnd = cwnd;
        self.rebate.npack = npack;
        let loss = Loss { kind, window_when_sent: None };
        let Reduction { cwnd, ssthresh } = self.rebate.on_loss(&self.test.view(), &loss);
        (self.test.cc.cwnd, self.test.cc.ssthresh) = (cwnd, ssthresh);
        ssthresh
    }

    fn estimates(&self) -> Estimates {
        self.rebate.estimates
    }
}

fn assert_close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-6, "{value}, expected {expected}");
}

#[test]
fn algorithms_1_and_2_match_manual_calculation() {
    let mut bench = Bench::new(0.002);
    let by_duplicates = LossKind::Detected;
    // first_decrease: half, regardless of the tax.
    assert_close(bench.decrease(20.0, 100, by_duplicates), 10.0);
    assert_close(bench.estimates().gamma, 0.0);

    // W = (30 + 10) / 2 = 20, Np = 400 − 100 = 300.
    // γ = 20 · 0.002 = 0.04, ε = 0.002 · (300 − 20) = 0.56, ssthresh = 15 · 1.56.
    assert_close(bench.decrease(30.0, 400, by_duplicates), 23.4);
    assert_close(bench.estimates().gamma, 0.04);

    // SampleW = (40 + 23.4) / 2 = 31.7, W = 0.75 · 20 + 0.25 · 31.7 = 22.925; SampleNp = 200, Np = 275.
    // γ = 0.04585, ε = 0.002 · 252.075 = 0.50415, ssthresh = 20 · 1.50415.
    assert_close(bench.decrease(40.0, 600, by_duplicates), 30.083);
    assert_close(bench.estimates().gamma, 0.04585);

    // SampleW = 31.0415, W = 24.954125; SampleNp = 1000, Np = 456.25.
    // ε = 0.86259175, ssthresh = 16 · 1.86259175.
    assert_close(bench.decrease(32.0, 1600, by_duplicates), 29.801468);
    assert_close(bench.estimates().gamma, 0.04990825);

    // SampleNp = 3400, Np = 1192.1875: ε would be 2.33, but ssthresh does not exceed cwnd.
    assert_close(bench.decrease(33.0, 5000, by_duplicates), 33.0);
}

#[test]
fn alpha_sets_weight_of_newest_sample() {
    let mut bench = Bench::new(0.002);
    bench.rebate.choices.alpha = 0.5;
    bench.decrease(20.0, 100, LossKind::Detected);
    bench.decrease(30.0, 400, LossKind::Detected);
    bench.decrease(40.0, 600, LossKind::Detected);
    // W = (20 + 31.7) / 2, Np = (300 + 200) / 2.
    assert_eq!((bench.estimates().w, bench.estimates().np), (Some(25.85), Some(250.0)));
}

#[test]
fn without_clamp_ssthresh_follows_estimate() {
    let mut bench = Bench::new(0.05);
    bench.rebate.choices.clamp = Clamp::AsEstimated;
    bench.decrease(20.0, 100, LossKind::Detected);
    // W = 15, Np = 5: ε = 0.05 · (5 − 15) = −0.5, ssthresh = 10 · 0.5.
    assert_close(bench.decrease(20.0, 105, LossKind::Detected), 5.0);
    // W = 0.75 · 15 + 0.25 · 12.5 = 14.375, Np = 0.75 · 5 + 0.25 · 295 = 77.5.
    // ε = 3.15625, ssthresh = 10 · 4.15625.
    assert_close(bench.decrease(20.0, 400, LossKind::Detected), 41.5625);
}

#[test]
fn timeout_gets_rebate_if_configured() {
    let mut bench = Bench::new(0.002);
    bench.rebate.choices.at_timeouts = AtTimeouts::Rebated;
    bench.decrease(20.0, 100, LossKind::Timeout);
    // ε = 0.56, as in `algorithms_1_and_2_match_manual_calculation`.
    assert_close(bench.decrease(30.0, 400, LossKind::Timeout), 23.4);
}

#[test]
fn ideal_compensator_matches_manual_calculation() {
    // W = 2, q^c = 0.1, q = 0.2: γ = 0.81 / 0.64 − 1, ε = 1 − 0.19 / 0.36.
    let (gamma, epsilon) = ideal_compensator(2.0, 0.1, 0.2);
    assert_close(gamma, 0.265625);
    assert_close(epsilon, 0.472222);
    assert_eq!(ideal_compensator(20.0, 0.1, 0.1), (0.0, 0.0), "no tax, no rebate");
    assert_close(ideal_compensator(20.0, 0.0, 0.1).1, 1.0);
}

#[test]
fn ideal_compensator_counts_only_congestion_losses() {
    let mut bench = Bench::new(0.1);
    bench.rebate.choices.formula = Formula::Ideal;
    let lost = |cause| Truth::Lost { offset: 1, len: 1000, cause };
    bench.rebate.on_truth(lost(Cause::Congestion));
    assert_eq!(bench.rebate.congestion, None, "no ground truth is available yet");
    bench.rebate.on_truth(Truth::Begins);
    bench.rebate.on_truth(lost(Cause::Radio));
    assert_eq!(bench.rebate.congestion, Some(0.0));
    bench.rebate.on_truth(lost(Cause::Congestion));
    assert_eq!(bench.rebate.congestion, Some(1.0 / MEMORY));
    bench.decrease(20.0, 100, LossKind::Detected);
    let (_, epsilon) = ideal_compensator(15.0, 1.0 / MEMORY, 0.1 + 1.0 / MEMORY);
    assert_close(bench.decrease(20.0, 400, LossKind::Detected), 10.0 * (1.0 + epsilon));
    let mut other = Bench::new(0.1);
    other.rebate.on_truth(Truth::Begins);
    assert_eq!(other.rebate.congestion, None, "this formula does not use ground truth");
}

#[test]
fn frequent_decreases_take_at_most_half() {
    let mut bench = Bench::new(0.05);
    bench.decrease(20.0, 100, LossKind::Detected);
    // W = 15, Np = 5: ε = 0.05 · (5 − 15) is negative.
    assert_close(bench.decrease(20.0, 105, LossKind::Detected), 10.0);
    assert_close(bench.estimates().gamma, 0.75);
}

#[test]
fn timeout_is_averaged_but_not_rebated() {
    let mut bench = Bench::new(0.002);
    bench.decrease(20.0, 100, LossKind::Timeout);
    assert!(bench.estimates().decreased, "the timeout was the first decrease");
    // W = 20 and Np = 300, as in `algorithms_1_and_2_match_manual_calculation`.
    assert_close(bench.decrease(30.0, 400, LossKind::Timeout), 15.0);
    assert_close(bench.estimates().gamma, 0.04);
    assert_eq!((bench.estimates().np, bench.estimates().npack_lm), (Some(300.0), 400));
}

#[test]
fn infinite_ssthresh_is_not_sampled() {
    let mut bench = Bench::new(0.002);
    bench.decrease(20.0, 100, LossKind::Detected);
    bench.test.cc.ssthresh = f64::INFINITY;
    bench.decrease(30.0, 400, LossKind::Detected);
    assert_eq!(bench.estimates().w, Some(30.0));
}

#[test]
fn undone_reduction_restores_estimates() {
    let mut bench = Bench::new(0.002);
    bench.decrease(20.0, 100, LossKind::Detected);
    bench.decrease(30.0, 400, LossKind::Detected);
    bench.rebate.on_undo();
    assert_eq!((bench.estimates().w, bench.estimates().gamma), (None, 0.0));
    assert_eq!(bench.estimates().npack_lm, 100);
}

#[test]
fn half_tax_gives_half_rebate() {
    let mut bench = Bench::new(0.002);
    bench.rebate.tax.scale = 0.5;
    bench.decrease(20.0, 100, LossKind::Detected);
    // ε = 0.001 · 280.
    assert_close(bench.decrease(30.0, 400, LossKind::Detected), 15.0 * 1.28);
    assert_close(bench.estimates().gamma, 0.02);
}

#[test]
fn loss_report_holds_until_next_report() {
    let mut tax = Tax::new(None, 1.0);
    assert_eq!(tax.rate(100), 0.0);
    tax.on_ack(&Ack { loss_report: Some(0.0625), ..Ack::default() });
    tax.on_ack(&Ack::default());
    assert_eq!(tax.rate(100), 0.0625);
    tax.on_ack(&Ack { loss_report: Some(0.03125), ..Ack::default() });
    assert_eq!(tax.rate(100), 0.03125);
    (tax.known, tax.scale) = (Some(0.25), 0.5);
    assert_eq!(tax.rate(100), 0.125, "a configured tax overrides reports");
}

#[test]
fn alarms_tax_only_reordering_sensitive_detectors() {
    for (reordering, expected) in [(true, 0.05), (false, 0.0)] {
        let mut tax = Tax { reordering, ..Tax::new(None, 1.0) };
        tax.on_ack(&Ack { reordered: Some(3), ..Ack::default() });
        tax.on_ack(&Ack { reordered: Some(5), ..Ack::default() });
        assert_eq!(tax.rate(100), expected);
    }
}

#[test]
fn reordering_count_handles_wrap_and_never_decreases() {
    let mut tax = Tax { reordering: true, ..Tax::new(None, 1.0) };
    for count in [20_000, 40_000, 60_000, 59_990, 464] {
        tax.on_ack(&Ack { reordered: Some(count), ..Ack::default() });
    }
    // 65,536 + 464.
    assert_eq!(tax.alarms.unwrap().total, 66_000);
}

#[test]
fn absurd_reordering_report_limits_tax_to_one() {
    let mut tax = Tax { reordering: true, ..Tax::new(None, 1.0) };
    tax.on_ack(&Ack { reordered: Some(30_000), loss_report: Some(1.0), ..Ack::default() });
    assert_eq!(tax.rate(10), 1.0);
}

#[test]
fn timestamp_proven_spurious_retransmission_is_taxed() {
    let mut sender = BareSender::new("rebate").under_way(20.0, 10.0, RTT);
    let echo = sender.flight.head().unwrap().tsval;
    sender.wait(RTT).dupacks(4);
    sender.ack_echoing(5, echo);
    assert_eq!(sender.counters().spurious_fast_retransmits, 1);
    sender.wait(RTT).ack_all();
    let before = rate_of_growth(&mut sender);
    // The second decrease is the first one for which ε is computed.
    sender.recovery.put_window(20.0, 10.0);
    sender.send();
    sender.wait(RTT).dupacks(3);
    sender.wait(RTT).ack_all();
    let after = rate_of_growth(&mut sender);
    assert_close(before, 1.0);
    // 15 · 1 / npack more than one: T is one spurious retransmission in all packets.
    assert!(after > 1.1 && after < 2.0, "{after}");
}

/// Returns the number of segments that a round trip adds to a window of 20 in congestion avoidance.
fn rate_of_growth(sender: &mut BareSender) -> f64 {
    sender.recovery.put_window(20.0, 10.0);
    sender.send();
    let next = sender.una() + 1;
    sender.ack(next);
    (sender.cc().cwnd - 20.0) * 20.0
}

#[test]
fn dsack_proven_spurious_retransmission_is_taxed_once() {
    let mut tax = Tax { reordering: true, ..Tax::new(None, 1.0) };
    let mut test = TestView::new(BareSender::new("newreno").under_way(10.0, 5.0, RTT));
    let mut resend = |tax: &mut Tax, segment: u64, kind| {
        let (start, end) = (1000 * (segment - 1), 1000 * segment);
        test.sender.flight.on_resent(start, test.sender.now, 0);
        tax.on_sent(&test.view(), &Transmission { start, end, kind, tsval: 0, is_window_probe: false });
    };
    let dsack = |segment: u64| Ack { dsack: Some((1000 * (segment - 1), 1000 * segment)), ..Ack::default() };
    tax.on_ack(&dsack(1));
    assert_eq!(tax.false_alarms, 0, "the network duplicated the segment");
    resend(&mut tax, 1, TransmissionKind::FastRetransmit);
    tax.on_ack(&dsack(2));
    assert_eq!(tax.false_alarms, 0, "the D-SACK is about another segment");
    tax.on_ack(&dsack(1));
    tax.on_ack(&dsack(1));
    assert_eq!(tax.false_alarms, 1);
    resend(&mut tax, 1, TransmissionKind::FastRetransmit);
    tax.on_ack(&dsack(1));
    assert_eq!(tax.false_alarms, 1, "one of three transmissions was needed");
    resend(&mut tax, 3, TransmissionKind::FastRetransmit);
    resend(&mut tax, 3, TransmissionKind::Timeout);
    tax.on_ack(&dsack(3));
    assert_eq!(tax.false_alarms, 1, "retransmitted again since");
}

#[test]
fn tax_softens_reduction_and_speeds_growth() {
    let after = |recipe: &str| {
        let mut sender = BareSender::new(recipe).under_way(20.0, 10.0, RTT);
        for _ in 0..2 {
            sender.recovery.put_window(20.0, 10.0);
            sender.send();
            for segment in sender.una() + 1..sender.una() + 200 {
                sender.ack(segment);
            }
            sender.recovery.put_window(20.0, 10.0);
            let to = sender.last() - 20;
            sender.ack(to.max(sender.una()));
            sender.dupacks(3);
            sender.wait(RTT).ack_all();
        }
        (sender.cc().ssthresh, rate_of_growth(&mut sender))
    };
    let (plain, grows) = after("newreno");
    let (rebated, grows_faster) = after("newreno+rebate+tax=0.002");
    assert_close(grows, 1.0);
    assert!(rebated > 1.2 * plain, "{rebated}, without {plain}");
    assert!(grows_faster > 1.02, "{grows_faster}");
}

#[test]
fn tax_does_not_change_slow_start() {
    let mut sender = BareSender::new("rebate+tax=0.9").under_way(20.0, 10.0, RTT);
    for _ in 0..3 {
        sender.recovery.put_window(20.0, 10.0);
        sender.send();
        sender.wait(RTT).dupacks(3);
        sender.wait(RTT).ack_all();
    }
    assert!(rate_of_growth(&mut sender) > 2.0, "the rebate is in effect");
    sender.recovery.put_window(20.0, 100.0);
    sender.send();
    let next = sender.una() + 1;
    sender.ack(next);
    assert_eq!(sender.cc().cwnd, 21.0);
}

#[test]
fn theorem_1_without_tax_is_tcp_friendly() {
    // √(1.5 / 0.01) / 0.1 = 122.474 packets per second.
    assert_close(theorem_1(0.1, 0.0, 0.0, 0.01), 122.474487);
    // q^w = 0.02, q^c = 0.01: 8 · 0.03 · 0.01 / (0.09 + 0.02) = 0.02181818;
    // √(0.0004 + 0.02181818) = 0.14905764; 2 / 0.12905764 / 0.1.
    assert_close(theorem_1(0.1, 0.0, 0.02, 0.01), 154.969509);
    assert_eq!(
        theorem_1(0.1, 0.01, 0.01, 0.01),
        theorem_1(0.1, 0.0, 0.02, 0.01),
        "both taxes have the same effect"
    );
    assert_eq!(theorem_1(0.1, 0.0, 0.02, 0.0), f64::INFINITY);
    assert_eq!(theorem_1(0.1, 0.0, 0.0, 0.0), f64::INFINITY);
}
