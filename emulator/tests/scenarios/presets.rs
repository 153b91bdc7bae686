//! Presets and seeds.

use airlink::path::MOBILE;
use airlink::scenario::presets;
use airwire::time::Duration;

use super::*;

/// The mean loss is (0.02 · 0.1 + 0.5 · 0.01) / 0.11.
#[test]
fn two_state_loss_model_reports_its_mean() {
    let remarks = |step: &str| {
        let text = format!(
            "schema = 1\n[[stage]]\nkind = \"loss\"\nname = \"air\"\ndown = {{ model = \"gilbert-elliott\", good = 0.02, bad = 0.5, \
             good_to_bad = 0.01, bad_to_good = 0.1{step} }}\n"
        );
        Scenario::parse(&text, "x").unwrap().remarks()
    };
    let per_packet = remarks("");
    assert_eq!(
        per_packet[0],
        "air.down: 6.36 % of the packets are lost on average; the bad state lasts 10.0 packets on average"
    );
    assert!(per_packet[1].contains("a burst of losses does not end"), "{per_packet:?}");
    let by_time = remarks(", step = \"20ms\"");
    assert_eq!(by_time.len(), 1);
    assert!(by_time[0].ends_with("lasts 0.200 s on average"), "{by_time:?}");
    let for_acks = remarks(", affects = \"acks\"");
    assert!(for_acks[0].starts_with("air.down: 6.36 % of the ACKs without data are lost"), "{for_acks:?}");
}

#[test]
fn two_state_rlc_channel_reports_its_mean() {
    let text = "schema = 1\n[[stage]]\nkind = \"rlc\"\nname = \"radio\"\nup.channel = { tti = \"20ms\", errors = \
                { model = \"gilbert-elliott\", good = 0.02, bad = 0.5, good_to_bad = 0.01, bad_to_good = 0.1 } }\n";
    let expected =
        "radio.up: 6.36 % of the blocks are damaged on average; the bad state lasts 0.200 s on average";
    assert_eq!(Scenario::parse(text, "x").unwrap().remarks(), [expected]);
}

#[test]
fn every_preset_is_valid_and_described() {
    for preset in presets::ALL {
        let scenario = Scenario::load(preset.name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, preset.name);
        assert!((10..=110).contains(&scenario.description.len()), "{}", preset.name);
        assert!(preset.text.starts_with("# "), "{} does not name its source", preset.name);
        build(&scenario, None);
    }
}

#[test]
fn shown_preset_parses_to_the_same_scenario() {
    for preset in presets::ALL {
        let scenario = Scenario::load(preset.name).unwrap();
        let parsed =
            Scenario::parse(&scenario.to_toml(), preset.name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parsed, scenario, "{}", scenario.to_toml());
    }
}

#[test]
fn round_trip_of_radio_presets_matches_sources() {
    for (preset, expected) in [
        // 400 ms: Inamura et al. §5.1. Block errors delay 1 % of the packets, which adds a few ms to the mean.
        ("wcdma-384", 400..412),
        // 80 ms. HARQ and deep fades add a few ms.
        ("hsdpa-like", 79..86),
    ] {
        let mean = mean_round_trip(preset);
        let expected = Duration::from_millis(expected.start)..Duration::from_millis(expected.end);
        assert!(expected.contains(&mean), "{preset}: {mean}");
    }
}

/// Mean round-trip time of small packets that arrive at various offsets in a TTI.
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

/// Sends a packet and returns the time at which a packet leaves.
fn deliver(path: &mut Path, at: Instant, port: Port, packet: Vec<u8>) -> Instant {
    catch_up(path, at, |_, _, _| {});
    path.handle_packet(at, port, packet);
    let mut left = path.poll_packet(at).map(|_| at);
    while left.is_none() {
        let deadline = path.next_deadline().expect("a packet is on its way");
        catch_up(path, deadline, |now, _, _| left = Some(now));
    }
    left.unwrap()
}

#[test]
fn seed_determines_the_losses() {
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
fn another_stage_does_not_change_the_losses() {
    let loss = "down = { model = 'uniform', per = '20%' }";
    let alone = parse(&stage("loss", loss));
    let with_other = parse(&format!(
        "{}\n[[stage]]\nkind = 'loss'\nname = 'other'\ndown = {{ model = 'uniform', per = '0%' }}",
        stage("loss", loss)
    ));
    assert_eq!(arrivals(&mut build(&alone, None)), arrivals(&mut build(&with_other, None)));
    let renamed = parse(&stage("loss", &format!("name = 'another'\n{loss}")));
    assert_ne!(arrivals(&mut build(&alone, None)), arrivals(&mut build(&renamed, None)));
}
