use super::*;

fn limits(min_ms: u64) -> RtoLimits {
    RtoLimits {
        min: Duration::from_millis(min_ms),
        max: Duration::from_secs(60),
        initial: Duration::from_secs(1),
    }
}

fn feed(estimator: &mut RttEstimator, rtts_ms: &[u64]) {
    for (i, rtt) in rtts_ms.iter().enumerate() {
        let now = Instant::from_millis(10_000 + 1000 * i as u64);
        let (una, nxt) = (i as u64 * 10, i as u64 * 10 + 10);
        let sent_at = now - Duration::from_millis(*rtt);
        estimator.on_sample(&Sample { sent_at, now, una, nxt, cwnd: 10.0 });
    }
}

#[test]
fn rfc6298_rto_follows_first_and_later_samples() {
    let style = TimerStyle::Rfc6298 { granularity: Duration::from_millis(1) };
    let mut e = RttEstimator::new(style, limits(0));
    assert_eq!(e.rto().get(), Duration::from_secs(1));
    feed(&mut e, &[100]);
    assert_eq!(e.rto().get(), Duration::from_millis(100 + 4 * 50));
    feed(&mut e, &[180]);
    // RTTVAR = 3/4·50 + 1/4·80 = 57.5; SRTT = 7/8·100 + 1/8·180 = 110.
    assert_eq!(e.srtt(), Some(Duration::from_millis(110)));
    assert_eq!(e.rto().get(), Duration::from_millis(110 + 230));
}

#[test]
fn rfc6298_variance_term_is_at_least_granularity() {
    let style = TimerStyle::Rfc6298 { granularity: Duration::from_millis(10) };
    let mut e = RttEstimator::new(style, limits(0));
    feed(&mut e, &[50; 60]);
    assert_eq!(e.rto().get(), Duration::from_millis(60));
}

#[test]
fn backoff_respects_minimum_and_maximum_rto() {
    let style = TimerStyle::Rfc6298 { granularity: Duration::from_millis(1) };
    let mut e = RttEstimator::new(style, limits(1000));
    feed(&mut e, &[20]);
    let seen: Vec<u64> = (0..8)
        .map(|_| {
            let rto = e.rto().get().as_millis();
            e.back_off();
            rto
        })
        .collect();
    assert_eq!(seen, [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]);
    feed(&mut e, &[20]);
    assert_eq!(e.backoff(), 0, "a new sample ends the backoff");
}

#[test]
fn linux_applies_rto_floor_to_variance_term() {
    let mut e = RttEstimator::new(TimerStyle::Linux24 { floor: Duration::from_millis(200) }, limits(200));
    feed(&mut e, &[100]);
    assert_eq!(e.rto().get(), Duration::from_millis(300));
    feed(&mut e, &[100; 50]);
    assert_eq!(e.rto().get(), Duration::from_millis(300));
}

#[test]
fn linux_deviation_rises_slower_when_rtt_falls() {
    let floor = Duration::from_millis(1);
    let mut rising = RttEstimator::new(TimerStyle::Linux24 { floor }, limits(1));
    let mut falling = rising.clone();
    feed(&mut rising, &[100; 40]);
    feed(&mut falling, &[100; 40]);
    feed(&mut rising, &[180]);
    feed(&mut falling, &[20]);
    assert!(rising.rttvar() > falling.rttvar() * 2, "{:?} {:?}", rising.rttvar(), falling.rttvar());
}

#[test]
fn bsd_rto_is_at_least_two_ticks() {
    let tick = Duration::from_millis(500);
    let mut e = RttEstimator::new(TimerStyle::Bsd { tick }, limits(1000));
    feed(&mut e, &[40; 30]);
    assert!(e.rto().get() >= Duration::from_secs(1));
}

/// Computed by hand: 700 ms starting at a tick is one tick, plus the one at which the counter starts. The
/// second sample counts one tick: SRTT = 16 + 1 − 2 = 15 eighths, RTTVAR = 4 + 1 − 1 = 4 quarters.
#[test]
fn bsd_counts_starting_tick_in_first_sample_only() {
    let tick = Duration::from_millis(500);
    let mut e = RttEstimator::new(TimerStyle::Bsd { tick }, limits(0));
    let mut sample = |sent: u64| {
        let (sent_at, now) = (Instant::from_millis(sent), Instant::from_millis(sent + 700));
        e.on_sample(&Sample { sent_at, now, una: 1, nxt: 2, cwnd: 2.0 });
        e.rto().get()
    };
    assert_eq!(sample(1000), tick * 6, "SRTT of 2 ticks plus 4 times RTTVAR of 1 tick");
    assert_eq!(sample(2000), tick * 5);
}

#[test]
fn bsd_timers_expire_on_tick_boundaries() {
    for tick in [10, 500].map(Duration::from_millis) {
        for style in [TimerStyle::Bsd { tick }, TimerStyle::FreeBsd { tick }] {
            let (set, timeout) = (Instant::from_secs(7) - Duration::from_millis(1), tick * 2);
            assert_eq!(style.align(set + timeout), Instant::from_secs(7) + tick);
            assert_eq!(style.align(Instant::from_secs(7) + timeout), Instant::from_secs(7) + timeout);
        }
    }
}

/// With a round trip of exactly one tick (500 ms), two more fraction bits let RTTVAR fall to a quarter of
/// a tick.
#[test]
fn freebsd_rttvar_decays_below_bsd_rttvar() {
    let tick = Duration::from_millis(500);
    let rttvar = |style| {
        let mut e = RttEstimator::new(style, limits(0));
        feed(&mut e, &[500; 60]);
        e.rttvar()
    };
    let (coarse, fine) = (rttvar(TimerStyle::Bsd { tick }), rttvar(TimerStyle::FreeBsd { tick }));
    assert!(fine < coarse, "{fine:?} {coarse:?}");
}

#[test]
fn finer_freebsd_tick_lowers_rto() {
    let rto = |tick| {
        let style = TimerStyle::FreeBsd { tick: Duration::from_millis(tick) };
        let mut e = RttEstimator::new(style, limits(0));
        feed(&mut e, &[200; 60]);
        e.rto().get()
    };
    assert!(rto(10) < Duration::from_millis(300), "{:?}", rto(10));
    assert!(rto(500) >= Duration::from_secs(1), "at least two ticks");
}

#[test]
fn ns2_rounds_rtt_to_ticks_with_phase() {
    let (tick, phase) = (Duration::from_millis(100), Duration::from_micros(55_588));
    let mut e = RttEstimator::new(TimerStyle::Ns2 { tick, phase, min_before_backoff: true }, limits(0));
    e.on_sample(&Sample {
        sent_at: Instant::ZERO,
        now: Instant::from_micros(113_332),
        una: 1,
        nxt: 2,
        cwnd: 1.0,
    });
    // 0.113 s + 0.0556 s since the tick = one whole tick; srtt = 1, var = 1/2; RTO = 3 ticks.
    assert_eq!(e.srtt(), Some(tick));
    assert_eq!(e.rto().get(), tick * 3);
}

#[test]
fn solaris_and_linux22_rto_exceed_rfc6298_rto() {
    let samples = [200, 220, 180, 240, 200];
    let rto = |style| {
        let mut e = RttEstimator::new(style, limits(0));
        feed(&mut e, &samples);
        e.rto().get()
    };
    let rfc = rto(TimerStyle::Rfc6298 { granularity: Duration::from_millis(1) });
    assert!(rto(TimerStyle::Solaris) > rfc);
    assert!(rto(TimerStyle::Linux22) > rfc);
}
