//! Verdicts about findings that decide between two causes.

use super::super::verdict::judge;
use super::*;

/// Returns the verdict about the findings of a transfer at the sender, after `change`. The transfer has 40
/// round trips of 100 ms without a queue, with twelve segments each.
fn verdict_with(change: impl FnOnce(&mut ConnectionFindings)) -> Verdict {
    let mut d = Diagram::new();
    for round in 0..40 {
        let (at, first) = (0.1 * f64::from(round), 1 + 12_000 * u64::from(round as u32));
        d.burst(at, first..first + 12_000);
        d.ack(at + 0.1, first + 12_000);
    }
    let mut findings = d.ended().findings;
    let rounds = rounds_of(&mut findings);
    // Neither a window nor a buffer explains the rate.
    (rounds.constant_flight, rounds.refills) = (0, 0);
    (rounds.bottleneck_bit_per_s, rounds.bottleneck_high_bit_per_s) = (Some(20e6), Some(20e6));
    rounds.queueing_delay = DelayFindings { median_seconds: Some(0.0), p90_seconds: Some(0.0) };
    change(&mut findings);
    judge(&findings, true)
}

fn rounds_of(findings: &mut ConnectionFindings) -> &mut RoundTripFindings {
    findings.directions[0].round_trips.as_mut().unwrap()
}

/// Sets the bottleneck's rate so that the goodput is this share of it.
fn use_share(findings: &mut ConnectionFindings, share: f64) {
    let rate = Some(findings.directions[0].throughput_bit_per_s / share);
    let rounds = rounds_of(findings);
    (rounds.bottleneck_bit_per_s, rounds.bottleneck_high_bit_per_s) = (rate, rate);
}

/// Sets these losses, among 5000 packets.
fn lose(findings: &mut ConnectionFindings, episodes: u64, segments: u64, runs: u64) {
    findings.directions[0].retransmissions.packets = segments;
    findings.directions[0].data_packets = 5000;
    let rounds = rounds_of(findings);
    (rounds.loss_episodes, rounds.lost_segments, rounds.loss_runs) = (episodes, segments, runs);
    rounds.losses_without_full_queue = LossCounts { episodes, segments, runs, ..LossCounts::default() };
    rounds.loss_delay_quartile_seconds = Some(0.0);
}

fn queue(findings: &mut ConnectionFindings, seconds: Option<f64>) {
    let delays = DelayFindings { median_seconds: seconds, p90_seconds: seconds };
    rounds_of(findings).queueing_delay = delays;
}

#[test]
fn evenly_spaced_packets_are_of_a_full_link_if_the_queue_is_unknown() {
    let verdict = verdict_with(|findings| {
        findings.directions[0].rtt_of = RttOf::ReceiverDelay;
        use_share(findings, 0.95);
        lose(findings, 5, 60, 40);
        queue(findings, None);
    });
    assert_eq!((verdict.cause, verdict.confidence), (Cause::LinkRate, Confidence::Medium));
}

#[test]
fn losses_may_be_of_a_full_link_if_the_queue_is_unknown() {
    for (is_known, expected) in [(true, Cause::RandomLoss), (false, Cause::Undetermined)] {
        let verdict = verdict_with(|findings| {
            findings.directions[0].rtt_of = RttOf::ReceiverDelay;
            rounds_of(findings).bottleneck_bit_per_s = Some(1.6e6);
            rounds_of(findings).bottleneck_high_bit_per_s =
                Some(findings.directions[0].throughput_bit_per_s / 0.81);
            lose(findings, 6, 6, 6);
            queue(findings, is_known.then_some(0.0));
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn regular_losses_are_by_a_policer() {
    for (deviation, expected) in [(0.3, Cause::Policer), (0.9, Cause::BurstLoss)] {
        let verdict = verdict_with(|findings| {
            lose(findings, 15, 60, 20);
            rounds_of(findings).loss_interval_deviation = Some(deviation);
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn many_losses_in_pairs_are_not_random() {
    let verdict = verdict_with(|findings| lose(findings, 20, 42, 36));
    assert_eq!(verdict.cause, Cause::Undetermined, "{}", verdict.sentence);
    assert_eq!(verdict.also, [Cause::BurstLoss, Cause::Policer]);
}

#[test]
fn two_loss_episodes_do_not_show_a_policer() {
    let verdict = verdict_with(|findings| lose(findings, 2, 60, 40));
    assert_eq!(verdict.cause, Cause::Undetermined, "{}", verdict.sentence);
}

#[test]
fn losses_that_begin_with_a_queue_are_of_a_full_link() {
    for (delay, expected) in [(0.02, Cause::LinkRate), (0.001, Cause::RandomLoss)] {
        let verdict = verdict_with(|findings| {
            use_share(findings, 0.7);
            lose(findings, 6, 6, 6);
            rounds_of(findings).loss_delay_quartile_seconds = Some(delay);
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn losses_without_the_round_trip_are_undetermined() {
    let verdict = verdict_with(|findings| {
        lose(findings, 6, 6, 6);
        findings.answers_after_seconds = [Some(0.0), None];
        findings.directions[0].rtt.min_seconds = Some(0.00001);
    });
    assert_eq!(verdict.cause, Cause::Undetermined, "{}", verdict.sentence);
}

#[test]
fn link_without_any_queue_is_not_full() {
    for (p90, expected) in [(0.0, Cause::Undetermined), (0.02, Cause::LinkRate)] {
        let verdict = verdict_with(|findings| {
            use_share(findings, 0.95);
            rounds_of(findings).queueing_delay.p90_seconds = Some(p90);
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn delays_of_an_exchange_are_no_queue() {
    for (turns, expected) in [(1, Cause::Bufferbloat), (100, Cause::Undetermined)] {
        let verdict = verdict_with(|findings| {
            queue(findings, Some(0.2));
            let rounds = rounds_of(findings);
            (rounds.bottleneck_bit_per_s, rounds.bottleneck_high_bit_per_s) = (None, None);
            for end in &mut findings.turns {
                end.count = turns;
            }
            // The answers are too large for serial requests.
            findings.directions[0].acked_bytes = 100 * turns * 1000;
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn constant_flight_without_the_syns_may_be_the_window() {
    for (unscaled, window, expected) in [
        (false, 60_000, Cause::SendBuffer),
        (true, 6_000, Cause::ReceiverWindow),
        (true, 7_000, Cause::Undetermined),
    ] {
        let verdict = verdict_with(|findings| {
            let rounds = rounds_of(findings);
            (rounds.constant_flight, rounds.constant_flight_seconds) = (38, 3.8);
            rounds.constant_flight_bytes = Some(12_000.0);
            let found = &mut findings.directions[0].window;
            (found.unscaled, found.max_receiver_window_bytes) = (unscaled, window);
            found.min_receiver_window_bytes = Some(window);
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn full_window_while_losses_are_repaired_is_not_the_cause() {
    for (episodes, expected) in [(0, Cause::ReceiverWindow), (1, Cause::Undetermined)] {
        let verdict = verdict_with(|findings| {
            lose(findings, episodes, 20 * episodes, 20 * episodes);
            findings.directions[0].time.window_limited_seconds = 3.8;
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn reader_that_stops_is_the_cause_although_the_link_is_full_at_other_times() {
    let verdict = verdict_with(|findings| {
        use_share(findings, 0.35);
        findings.directions[0].time.zero_window_seconds = 1.4;
        findings.directions[0].window.zero_windows = 4;
        rounds_of(findings).queueing_delay.median_seconds = Some(0.05);
    });
    assert_eq!(verdict.cause, Cause::SlowReader, "{}", verdict.sentence);
}

#[test]
fn short_segments_between_pauses_show_a_slow_writer() {
    for (gaps, expected) in [(0.6, Cause::SlowWriter), (0.1, Cause::Undetermined)] {
        let verdict = verdict_with(|findings| {
            findings.directions[0].time.application_limited_seconds = Some(2.6);
            rounds_of(findings).gap_seconds = gaps;
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn reported_retransmissions_are_no_duplication() {
    for (retransmissions, expected) in [(0, Cause::Duplication), (50, Cause::LinkRate)] {
        let verdict = verdict_with(|findings| {
            use_share(findings, 0.95);
            queue(findings, Some(0.05));
            findings.directions[0].acks.dsacks = 50;
            findings.directions[0].retransmissions.packets = retransmissions;
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn spurious_fast_retransmissions_are_caused_by_reordering() {
    for (spurious, expected) in [(58, Cause::Reordering), (5, Cause::Policer)] {
        let verdict = verdict_with(|findings| {
            lose(findings, 5, 60, 40);
            let found = &mut findings.directions[0].retransmissions;
            found.fast_retransmits = 5;
            (found.spurious.packets, found.spurious.fast_retransmits) = (spurious, spurious / 10);
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn lost_acks_cause_spurious_timeouts() {
    for (rtt_of, lost_acks, expected) in [
        (RttOf::RoundTrip, 40, Cause::AckLoss),
        (RttOf::RoundTrip, 0, Cause::SpuriousTimeouts),
        // At the receiver, all ACKs pass the capture point.
        (RttOf::ReceiverDelay, 40, Cause::Undetermined),
    ] {
        let verdict = verdict_with(|findings| {
            let data = &mut findings.directions[0];
            data.rtt_of = rtt_of;
            data.retransmissions.timeouts = 3;
            data.retransmissions.spurious.timeouts = 3;
            data.outages.stalled_seconds = 1.5;
            rounds_of(findings).lost_acks = Some(lost_acks);
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn long_queue_is_a_queue_although_acks_arrive_in_bunches() {
    for (delay, expected) in [(0.3, Cause::Bufferbloat), (0.09, Cause::SendBuffer)] {
        let verdict = verdict_with(|findings| {
            let rounds = rounds_of(findings);
            (rounds.refills, rounds.refill_seconds) = (35, 3.5);
            queue(findings, Some(delay));
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn evenly_spaced_small_writes_are_not_a_full_link() {
    for (gaps, expected) in [(1.3, Cause::Undetermined), (0.0, Cause::LinkRate)] {
        let verdict = verdict_with(|findings| {
            use_share(findings, 0.95);
            queue(findings, Some(0.003));
            rounds_of(findings).queueing_delay.p90_seconds = Some(0.02);
            rounds_of(findings).gap_seconds = gaps;
            findings.directions[0].time.application_limited_seconds = None;
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

/// Returns the confidence in this cause.
fn confidence(cause: Cause, change: impl FnOnce(&mut ConnectionFindings)) -> Confidence {
    let verdict = verdict_with(change);
    assert_eq!(verdict.cause, cause, "{}", verdict.sentence);
    verdict.confidence
}

#[test]
fn confidence_is_medium_if_the_capture_does_not_exclude_another_cause() {
    let send_buffer = |rtt_of: RttOf| {
        confidence(Cause::SendBuffer, |findings| {
            findings.directions[0].rtt_of = rtt_of;
            let rounds = rounds_of(findings);
            (rounds.refills, rounds.refill_seconds) = (35, 3.5);
            queue(findings, None);
        })
    };
    let policer = |delay: Option<f64>, used: f64| {
        confidence(Cause::Policer, |findings| {
            use_share(findings, used);
            rounds_of(findings).bottleneck_high_bit_per_s = Some(20e6);
            lose(findings, 5, 60, 40);
            queue(findings, delay);
        })
    };
    let random_loss = |lost: u64| confidence(Cause::RandomLoss, |findings| lose(findings, lost, lost, lost));
    let burst_loss = |runs: u64| confidence(Cause::BurstLoss, |findings| lose(findings, 20, 100, runs));
    let without_sack = |spurious: u64| {
        confidence(Cause::RandomLoss, |findings| {
            lose(findings, 50, 50, 50);
            findings.sack = false;
            findings.directions[0].retransmissions.spurious.packets = spurious;
        })
    };
    let outage = |spurious: u64| {
        confidence(Cause::Outage, |findings| {
            let data = &mut findings.directions[0];
            data.rtt_of = RttOf::ReceiverDelay;
            (data.outages.count, data.outages.seconds) = (2, 2.5);
            (data.retransmissions.timeouts, data.retransmissions.spurious.timeouts) = (2, spurious);
        })
    };
    let death = |timeouts: u64| {
        confidence(Cause::PathDeath, |findings| {
            findings.seconds = findings.active_seconds + 5.0;
            let data = &mut findings.directions[0];
            (data.rtt_of, data.is_complete) = (RttOf::ReceiverDelay, false);
            data.retransmissions.timeouts = timeouts;
            rounds_of(findings).ends_within_message = true;
        })
    };
    assert_eq!(
        [
            send_buffer(RttOf::RoundTrip),
            policer(Some(0.0), 0.3),
            random_loss(50),
            burst_loss(20),
            without_sack(0),
            outage(0),
            death(0)
        ],
        [Confidence::High; 7]
    );
    assert_eq!(
        [
            send_buffer(RttOf::ReceiverDelay),
            policer(None, 0.3),
            policer(Some(0.0), 0.85),
            random_loss(500),
            burst_loss(28),
            without_sack(10),
            outage(2),
            death(3)
        ],
        [Confidence::Medium; 8]
    );
}

#[test]
fn regular_losses_may_be_of_a_full_link_if_the_queue_is_unknown() {
    for (deviation, expected) in [(0.3, Cause::Undetermined), (0.9, Cause::RandomLoss)] {
        let verdict = verdict_with(|findings| {
            use_share(findings, 0.9);
            rounds_of(findings).bottleneck_high_bit_per_s = Some(20e6);
            lose(findings, 20, 20, 20);
            rounds_of(findings).loss_interval_deviation = Some(deviation);
            queue(findings, None);
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn sender_without_data_in_most_round_trips_has_a_slow_writer() {
    for (gaps, episodes, expected) in
        [(20, 0, Cause::SlowWriter), (10, 0, Cause::Undetermined), (20, 1, Cause::Undetermined)]
    {
        let verdict = verdict_with(|findings| {
            let rounds = rounds_of(findings);
            (rounds.gaps, rounds.gap_seconds) = (gaps, 0.3);
            rounds.count = 40;
            rounds.loss_episodes = episodes;
        });
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn confidence_in_a_full_link_is_medium_if_its_queue_or_use_is_near_a_limit() {
    let queued = |median: f64, p90: f64, used: f64, episodes: u64| {
        confidence(Cause::LinkRate, |findings| {
            use_share(findings, used);
            lose(findings, episodes, episodes, episodes);
            rounds_of(findings).loss_episodes_with_queue = episodes;
            rounds_of(findings).queueing_delay =
                DelayFindings { median_seconds: Some(median), p90_seconds: Some(p90) };
        })
    };
    assert_eq!([queued(0.05, 0.1, 0.9, 5), queued(0.05, 0.1, 0.45, 0)], [Confidence::High; 2]);
    assert_eq!(
        [queued(0.075, 0.1, 0.9, 5), queued(0.05, 0.2, 0.9, 5), queued(0.05, 0.1, 0.45, 5)],
        [Confidence::Medium; 3]
    );
    let nearly_full = |median: f64| {
        confidence(Cause::LinkRate, |findings| {
            use_share(findings, 0.7);
            lose(findings, 6, 6, 6);
            rounds_of(findings).loss_delay_quartile_seconds = Some(0.02);
            queue(findings, Some(median));
        })
    };
    assert_eq!([nearly_full(0.01), nearly_full(0.0)], [Confidence::High, Confidence::Medium]);
}

#[test]
fn confidence_is_medium_if_losses_have_another_possible_cause() {
    let reordering = |lost: u64| {
        confidence(Cause::Reordering, |findings| {
            lose(findings, 5, lost, 5);
            rounds_of(findings).overtaken_segments = 100;
        })
    };
    let outage = |copies: u64| {
        confidence(Cause::Outage, |findings| {
            (findings.directions[0].outages.count, findings.directions[0].outages.seconds) = (2, 2.5);
            findings.directions[0].data_packets = 1000;
            findings.copies = copies;
        })
    };
    let policer = |segments: u64| {
        confidence(Cause::Policer, |findings| {
            use_share(findings, 0.3);
            lose(findings, 5, segments, 40);
        })
    };
    let random_loss = |delay: f64| {
        confidence(Cause::RandomLoss, |findings| {
            use_share(findings, 0.3);
            lose(findings, 6, 6, 6);
            queue(findings, Some(delay));
        })
    };
    let several_losses = |largest_episode: u64| {
        confidence(Cause::RandomLoss, |findings| {
            lose(findings, 6, 6 + largest_episode, 6);
            rounds_of(findings).losses_without_full_queue.largest_episode = largest_episode;
        })
    };
    let link = |lost: u64| {
        confidence(Cause::LinkRate, |findings| {
            findings.directions[0].rtt_of = RttOf::ReceiverDelay;
            use_share(findings, 0.95);
            lose(findings, lost, lost, lost);
            queue(findings, None);
        })
    };
    assert_eq!(
        [reordering(10), outage(0), policer(60), random_loss(0.01), several_losses(1), link(6)],
        [Confidence::High; 6]
    );
    assert_eq!(
        [reordering(40), outage(20), policer(400), random_loss(0.05), several_losses(20), link(200)],
        [Confidence::Medium; 6]
    );
}

#[test]
fn confidence_in_bufferbloat_is_medium_if_the_link_is_hardly_used() {
    let bloat = |used: f64| {
        confidence(Cause::Bufferbloat, |findings| {
            use_share(findings, used);
            queue(findings, Some(0.3));
        })
    };
    assert_eq!([bloat(0.9), bloat(0.1)], [Confidence::High, Confidence::Medium]);
}

#[test]
fn confidence_in_a_slow_reader_is_medium_if_a_constant_window_closes_at_times() {
    let reader = |smallest: u64| {
        confidence(Cause::SlowReader, |findings| {
            let rounds = rounds_of(findings);
            rounds.window_limited_seconds = 3.8;
            rounds.limiting_window_bytes = Some(12_000.0);
            rounds.limiting_window_min_bytes = Some(smallest);
            rounds.limiting_window_max_bytes = Some(12_000);
            let window = &mut findings.directions[0].window;
            (window.zero_windows, window.max_receiver_window_bytes) = (4, 12_000);
        })
    };
    assert_eq!([reader(1000), reader(11_000)], [Confidence::High, Confidence::Medium]);
}

#[test]
fn confidence_in_a_thin_uplink_is_medium_if_packets_are_copied() {
    let uplink = |copies: u64| {
        confidence(Cause::ThinUplink, |findings| {
            use_share(findings, 0.3);
            findings.copies = copies;
            rounds_of(findings).ack_path_queueing_delay.median_seconds = Some(0.2);
        })
    };
    assert_eq!([uplink(0), uplink(50)], [Confidence::High, Confidence::Medium]);
}
