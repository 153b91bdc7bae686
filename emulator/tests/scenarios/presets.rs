//! Presets, and what the seed decides.

use airlink::machine::{Machine, catch_up};
use airlink::path::{FIXED, MOBILE, Path};
use airlink::scenario::{Scenario, presets};
use airwire::time::{Duration, Instant};

use super::*;

/// 0.02 · 0.1 + 0.5 · 0.01, over 0.11.
#[test]
fn a_two_state_channel_says_what_it_loses_on_average() {
    let of = |step: &str| {
        let text = format!(
            "schema = 1\n[[stage]]\nkind = \"loss\"\nname = \"air\"\ndown = {{ model = \"gilbert-elliott\", good = 0.02, bad = 0.5, \
             good_to_bad = 0.01, bad_to_good = 0.1{step} }}\n"
        );
        Scenario::parse(&text, "x").unwrap().remarks()
    };
    let per_packet = of("");
    assert_eq!(
        per_packet[0],
        "air.down: 6.36 % of the packets are lost on average; the bad state lasts 10.0 packets on average"
    );
    assert!(per_packet[1].contains("a burst of losses does not end"), "{per_packet:?}");
    let by_time = of(", step = \"20ms\"");
    assert_eq!(by_time.len(), 1);
    assert!(by_time[0].ends_with("lasts 0.200 s on average"), "{by_time:?}");
    let of_acks = of(", affects = \"acks\"");
    assert!(of_acks[0].starts_with("air.down: 6.36 % of the ACKs without data are lost"), "{of_acks:?}");
}

#[test]
fn a_two_state_channel_of_rlc_says_what_it_damages_on_average() {
    let text = "schema = 1\n[[stage]]\nkind = \"rlc\"\nname = \"radio\"\nup.channel = { tti = \"20ms\", errors = \
                { model = \"gilbert-elliott\", good = 0.02, bad = 0.5, good_to_bad = 0.01, bad_to_good = 0.1 } }\n";
    let expected =
        "radio.up: 6.36 % of the blocks are damaged on average; the bad state lasts 0.200 s on average";
    assert_eq!(Scenario::parse(text, "x").unwrap().remarks(), [expected]);
}

#[test]
fn every_preset_is_read_and_built_and_says_what_it_is() {
    for preset in presets::ALL {
        let scenario = Scenario::load(preset.name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, preset.name);
        assert!((10..=110).contains(&scenario.description.len()), "{}", preset.name);
        assert!(preset.text.starts_with("# "), "{} does not say where it is from", preset.name);
        build(&scenario, None);
    }
}

#[test]
fn what_is_shown_of_a_preset_is_the_same_scenario() {
    for preset in presets::ALL {
        let scenario = Scenario::load(preset.name).unwrap();
        let again =
            Scenario::parse(&scenario.to_toml(), preset.name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, scenario, "{}", scenario.to_toml());
    }
}

#[test]
fn a_small_packet_crosses_the_w_cdma_preset_and_comes_back_in_400_ms_on_average() {
    let mean = mean_round_trip("wcdma-384");
    // Inamura et al. §5.1. One packet in a hundred and its acknowledgement meet a block error: a few ms on average.
    let wanted = Duration::from_millis(400)..Duration::from_millis(412);
    assert!(wanted.contains(&mean), "{mean}");
}

#[test]
fn a_small_packet_crosses_the_hsdpa_preset_and_comes_back_in_80_ms_on_average() {
    let mean = mean_round_trip("hsdpa-like");
    // HARQ, and fades in which no block gets through.
    let wanted = Duration::from_millis(79)..Duration::from_millis(86);
    assert!(wanted.contains(&mean), "{mean}");
}

/// Of small packets that come at all places in a TTI.
fn mean_round_trip(preset: &str) -> Duration {
    let mut path = build(&Scenario::load(preset).unwrap(), None);
    let mut total = Duration::ZERO;
    let rounds = 400;
    for round in 0..rounds {
        let sent = Instant::from_millis(round * 2_000) + Duration::from_micros(round * 137);
        let arrived = deliver(&mut path, sent, FIXED, vec![0x45; 38]);
        total += deliver(&mut path, arrived, MOBILE, vec![0x45; 38]) - sent;
    }
    total / rounds
}

/// Hands in a packet and waits until one comes out.
fn deliver(path: &mut Path, at: Instant, port: airlink::machine::Port, packet: Vec<u8>) -> Instant {
    catch_up(path, at, |_, _, _| {});
    path.handle_packet(at, port, packet);
    let mut left = path.poll_packet(at).map(|_| at);
    while left.is_none() {
        let deadline = path.next_deadline().expect("a packet is on its way");
        catch_up(path, deadline, |now, _, _| left = Some(now));
    }
    left.unwrap()
}

// ---- seeds

#[test]
fn the_seed_decides_and_another_one_decides_otherwise() {
    let scenario = parse(&stage("loss", "down = { model = 'uniform', per = '20%' }"));
    let mut own = build(&scenario, None);
    let mut same = build(&scenario, Some(1));
    let mut other = build(&scenario, Some(2));
    let first = arrivals(&mut own);
    assert!((350..450).contains(&first.len()), "{}", first.len());
    assert_eq!(first, arrivals(&mut same));
    assert_ne!(first, arrivals(&mut other));
}

#[test]
fn another_stage_beside_it_changes_nothing_in_what_a_stage_decides() {
    let loss = "down = { model = 'uniform', per = '20%' }";
    let alone = parse(&stage("loss", loss));
    let beside = parse(&format!(
        "{}\n[[stage]]\nkind = 'loss'\nname = 'other'\ndown = {{ model = 'uniform', per = '0%' }}",
        stage("loss", loss)
    ));
    assert_eq!(arrivals(&mut build(&alone, None)), arrivals(&mut build(&beside, None)));
    let renamed = parse(&stage("loss", &format!("name = 'another'\n{loss}")));
    assert_ne!(arrivals(&mut build(&alone, None)), arrivals(&mut build(&renamed, None)));
}
