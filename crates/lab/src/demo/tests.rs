use std::fs;

use airtcp_numbers::statistics::Mean;
use airtcp_testkit::sample::{is_everything, size};

use super::claim::Says;
use super::seeds::Runs;
use super::*;

/// Seeds that the demo does not use by default. Equivalence within 5 % needs all of them, a large difference far fewer.
fn other_seeds(scene: &Scene) -> RangeInclusive<u64> {
    let says_alike = scene.claims.iter().any(|claim| claim.says == Says::AsFast);
    7_001..=if says_alike { 7_100 } else { size(7_020, 7_100) }
}

fn runs(kbit_per_s: &[f64], resent: &[f64]) -> Runs {
    Runs { kbit_per_s: kbit_per_s.to_vec(), resent: resent.to_vec(), timeouts: vec![0.0; resent.len()] }
}

/// A row of which only the sender counts.
fn row(sender: &str) -> Row {
    let none = Mean { mean: 0.0, half_width: None, samples: 1 };
    let real = serde_json::json!({
        "sender": sender, "receiver": "linux", "seed": 1, "failure": null, "bytes": 1, "kbit_per_s": 100.0,
        "repair": { "fast": 1, "timeout": 2, "probe": 0, "timeouts": 1, "spurious": 0 },
        "capture": serde_json::to_value(crate::capture::Findings::default()).unwrap(),
        "sent": null, "received": null,
    });
    Row {
        sender: sender.to_owned(),
        modelled_by: None,
        in_virtual_time: Many { kbit_per_s: none, resent: none, timeouts: none },
        against: None,
        faster_than: None,
        real: serde_json::from_value(real).unwrap(),
    }
}

#[test]
fn every_scene_is_complete() {
    for scene in &SCENES {
        let (_, senders) = scene.resolve();
        assert_eq!(senders.last().map(|last| last.name.as_str()), Some("linux:cubic"), "{}", scene.name);
        assert!(!scene.claims.is_empty(), "{}", scene.name);
        for claim in scene.claims {
            for name in [claim.sender, claim.than] {
                assert!(senders.iter().any(|sender| sender.name == name), "{}: {name}", scene.name);
            }
            assert_ne!(claim.sender, claim.than, "{}", scene.name);
            assert!(!claim.because.ends_with('.') && !claim.because.contains(|c: char| c.is_ascii_digit()));
        }
        assert!(std::ptr::eq(find(scene.name).unwrap(), scene));
    }
    assert!(find("nothing").unwrap_err().contains("handover"));
}

/// What is said is true of the path and not of the seeds.
#[test]
fn what_is_said_holds_with_other_seeds() {
    for scene in &SCENES {
        let (scenario, senders) = scene.resolve();
        let runs = seeds::run(&scenario, scene.bytes, &senders, other_seeds(scene), &|_, _| {})
            .expect("they are done");
        let rows: Vec<_> = senders.iter().map(|sender| row(&sender.name)).collect();
        for claim in scene.claims {
            let sentence = claim.check(&rows, &runs);
            assert!(sentence.holds, "{}: {}", scene.name, sentence.text);
        }
    }
}

#[test]
fn what_the_runs_do_not_carry_is_not_said() {
    let rows = [row("newreno+eifel"), row("newreno")];
    let claim = |says| claim::Claim { sender: "newreno+eifel", than: "newreno", says, because: "So" };
    let holds =
        |says, own: &Runs, other: &Runs| claim(says).check(&rows, &[own.clone(), other.clone()]).holds;
    let slow = runs(&[100.0, 110.0, 90.0, 100.0], &[9.0, 11.0, 10.0, 10.0]);
    let fast = runs(&[120.0, 131.0, 110.0, 121.0], &[1.0, 2.0, 1.0, 2.0]);
    let wide = runs(&[300.0, 20.0, 90.0, 110.0], &[30.0, 0.0, 2.0, 3.0]);
    assert!(holds(Says::Faster, &fast, &slow) && holds(Says::SendsLessAgain, &fast, &slow));
    assert!(!holds(Says::Faster, &slow, &fast) && !holds(Says::SendsLessAgain, &slow, &fast));
    // Its mean is larger, and its interval says nothing.
    assert!(!holds(Says::Faster, &wide, &slow) && !holds(Says::AsFast, &wide, &slow));
    assert!(!holds(Says::SendsLessAgain, &wide, &slow));
    assert!(!holds(Says::Faster, &slow, &slow) && holds(Says::AsFast, &slow, &slow));
    assert!(!holds(Says::HasFewerTimeouts, &fast, &slow), "neither has one");
    assert_eq!(
        claim(Says::SendsLessAgain).check(&rows, &[fast, slow]).text,
        "newreno+eifel sends less again than newreno: 1.5 instead of 10.0 (± 0.9) segments; over TUN 3 and 3. So."
    );
}

/// A machine that had no time for a transfer has nothing to say about its sender.
#[test]
fn what_the_machine_has_spoiled_is_left_out_and_told() {
    let scene = find("tiny-window").unwrap();
    let (_, senders) = scene.resolve();
    let own = runs(&[50.0, 60.0, 70.0], &[3.0, 4.0, 5.0]);
    let played = |spoiled: &[&str]| {
        let transfer = |sender: &Sender| {
            let mut real = row(&sender.name).real;
            real.spoiled = spoiled.contains(&sender.name.as_str()).then(|| "packets were late".to_owned());
            real
        };
        Played::of(scene, &senders, &vec![own.clone(); senders.len()], senders.iter().map(transfer).collect())
    };
    let good = played(&[]);
    assert!(!good.text().contains("left out") && good.text().contains("100 %"), "{}", good.text());
    let spoiled = played(&["sack"]);
    let text = spoiled.text();
    assert!(text.ends_with("  sack: spoiled over TUN, left out: packets were late\n"), "{text}");
    let line = |name: &str| text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
    assert!(!line("sack").contains("100.0") && line("newreno").contains("100.0"), "{text}");
    assert_eq!((spoiled.rows[1].faster_than, spoiled.rows[0].faster_than), (None, Some(1.0)));
    let about_sack = spoiled.sentences.iter().chain(&spoiled.left_out);
    for sentence in about_sack.filter(|sentence| sentence.text.contains("than sack:")) {
        assert!(!sentence.text.contains("over TUN"), "{}", sentence.text);
    }
    let chart = spoiled.chart(&vec![Vec::new(); senders.len()]);
    assert_eq!(chart.senders.iter().map(|sender| sender.transfers.len()).collect::<Vec<_>>(), [1, 0, 1, 1]);
}

/// In virtual time nobody but a recipe has sent.
#[test]
fn a_sentence_names_who_has_sent_in_virtual_time() {
    let scene = find("handover").unwrap();
    let (_, senders) = scene.resolve();
    let slow = runs(&[100.0, 110.0, 90.0], &[9.0, 11.0, 10.0]);
    let fast = runs(&[220.0, 231.0, 210.0], &[1.0, 2.0, 1.0]);
    let transfers = senders.iter().map(|sender| row(&sender.name).real).collect();
    let played = Played::of(scene, &senders, &[slow, fast.clone(), fast.clone(), fast], transfers);
    let about_the_kernel = "linux (for linux:cubic) is faster than newreno, by +120.3";
    assert!(
        played.sentences.iter().any(|sentence| sentence.text.starts_with(about_the_kernel)),
        "{:?}",
        played.sentences
    );
}

/// A path on which something happens again and again is met at every time of it alike.
#[test]
fn no_part_of_a_period_is_more_likely() {
    for scene in &SCENES {
        let table: toml::Table = scene.scenario.parse().unwrap();
        let stages = table["stage"].as_array().unwrap().iter();
        let ways = stages.flat_map(|stage| ["both", "down", "up"].map(|way| stage.get(way))).flatten();
        let periods: Vec<_> = ways
            .flat_map(|way| [Some(way), way.get("channel").and_then(|channel| channel.get("outage"))])
            .filter_map(|outage| outage?.get("every")?.as_str())
            .collect();
        assert_eq!(periods.is_empty(), !["handover", "lost-again"].contains(&scene.name), "{}", scene.name);
        for every in periods {
            let seconds: u64 = every.strip_suffix('s').unwrap().parse().unwrap();
            let first = seeds::FIRST.as_nanos();
            assert!(first.is_multiple_of(seconds * 1_000_000_000), "{}: {every}", scene.name);
        }
    }
}

/// RLC repeats what the handover has taken, and does not give up.
#[test]
fn nothing_is_lost_in_the_handover() {
    let scene = find("handover").unwrap();
    let (scenario, senders) = scene.resolve();
    let mut stalled = 0;
    for (sender, seed) in
        senders.iter().flat_map(|sender| (7_001..=size(7_010, 7_020)).map(move |seed| (sender, seed)))
    {
        let transfer = seeds::transfer(&scenario, scene.bytes, seeds::host(&sender.kind).unwrap(), seed);
        let (mut world, _) = transfer.run(|_| {}).unwrap();
        let radio = &world.path().stats()["radio"];
        for way in ["down", "up"] {
            let lost = ["rlc_reset", "rlc_discard"].map(|why| radio[way][why].as_u64().unwrap());
            assert_eq!(lost, [0, 0], "{}, seed {seed}, {way}: {radio}", sender.name);
        }
        stalled += u64::from(radio["down"]["blocks_lost_in_outage"].as_u64().unwrap() > 0);
    }
    let (most, all) = size((20, 40), (40, 80));
    assert!(stalled > most, "most transfers meet a handover: {stalled} of {all}");
}

/// What README shows of virtual time is what the demo prints.
#[test]
fn readme_has_these_figures() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let in_one_line = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut sentences = 0;
    // README has what the transfers over TUN did as well, where this machine has spoiled none of them.
    let is_the_rest = |rest: &str, because: &str| {
        rest.starts_with(because) || rest.starts_with("; over TUN ") && rest.contains(because)
    };
    // The transfers of the other scenes are too long to run 200 times for each change.
    let is_short = |scene: &&Scene| scene.name == "tiny-window";
    for scene in SCENES.iter().filter(|scene| is_everything() || is_short(scene)) {
        let (scenario, senders) = scene.resolve();
        let runs = seeds::run(&scenario, scene.bytes, &senders, 1..=200, &|_, _| {}).unwrap();
        let mut transfers: Vec<_> = senders.iter().map(|sender| row(&sender.name).real).collect();
        transfers.iter_mut().for_each(|real| real.failure = Some("there was none".to_owned()));
        let played = Played::of(scene, &senders, &runs, transfers);
        let text = played.text();
        for line in text.lines().skip(2).take(senders.len()) {
            assert!(readme.contains(line), "{}: make demo anew for README: {line}", scene.name);
        }
        for Sentence { text, .. } in &played.sentences {
            let because =
                scene.claims.iter().find_map(|claim| text.strip_suffix(&format!(". {}.", claim.because)));
            let said = because.expect("a sentence ends with its reason");
            let because = &text[said.len()..];
            let begin = format!("- {said}");
            let mut places =
                in_one_line.match_indices(&begin).map(|(at, _)| &in_one_line[at + begin.len()..]);
            assert!(
                places.any(|rest| rest.split(" - ").next().is_some_and(|one| is_the_rest(one, because))),
                "{}: make demo anew for README: {text}",
                scene.name
            );
        }
        sentences += played.sentences.len();
    }
    let block = readme.split("```").find(|block| block.contains("virtual: kbit/s")).unwrap();
    let shown = block.lines().filter(|line| line.starts_with("- ")).count();
    assert!(shown == sentences || !is_everything(), "{shown}, and {sentences} are said");
    assert!(shown >= sentences && sentences > 0);
}
