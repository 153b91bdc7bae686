//! Virtual time compared with real time: the same scenario, recipe and seeds over TUN devices to this kernel,
//! and in one process in virtual time. `airtcp lab run --virtual` does the same for any scenario.

use std::collections::BTreeMap;
use std::path::Path;

use aircaptures::capture::{Capture, Next};
use airlink::machine::{Machine, catch_up, drain};
use airlink::packet::Direction;
use airlink::path::{FIXED, MOBILE};
use airlink::scenario::Scenario;
use airlink::stage::{Event, Recording};
use airtcp_analyze::airlink_events::EventReader;
use airtcp_testkit::machine::{Ended, TempFile};
use airwire::time::Instant;
use serde_json::Value;

fn lab(scenario: &str, directory: &TempFile, more: &[&str]) -> Ended {
    let file = TempFile::new("scenario.toml");
    std::fs::write(file.path(), scenario).unwrap();
    let mut arguments =
        vec!["lab", "run", "--json", "--quiet", "--scenario", file.path(), "--output", directory.path()];
    arguments.extend(more);
    let run = airtcp_testkit::machine::run(&arguments);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    run
}

#[test]
fn virtual_decisions_match_real_or_differ_with_cause() {
    let scenario = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"2Mbit\", delay = \"30ms\", queue = { packets = 30 } }\n\
                    [[stage]]\nkind = \"loss\"\ndown = { model = \"uniform\", per = \"2%\", affects = \"data\" }\n";
    let directory = TempFile::new("virtual");
    let recipes = ["newreno", "sack+limited-transmit", "sack+rack@linux"];
    let mut options = vec!["--virtual", "--runs", "4", "--jobs", "4", "--bytes", "300k"];
    options.extend(recipes.iter().flat_map(|recipe| ["--recipe", recipe]));
    let run = lab(scenario, &directory, &options);
    let report: Value =
        serde_json::from_slice(&std::fs::read(Path::new(directory.path()).join("lab.json")).unwrap())
            .unwrap();
    let _ = std::fs::remove_dir_all(directory.path());

    let comparisons = run.lines[0]["virtual"].as_array().unwrap();
    assert_eq!(comparisons.len(), recipes.len());
    assert_eq!(&report["in_virtual_time"], &run.lines[0]["virtual"], "lab.json contains the comparison");
    for sender in comparisons {
        let rounds = sender["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 4, "{sender}");
        for round in rounds {
            // If the machine was too busy, there is nothing to compare.
            if round["failure"].as_str().is_some_and(|why| why.contains("left out")) {
                continue;
            }
            assert_eq!(round["failure"], Value::Null, "{round}");
            let decisions = &round["decisions"];
            // At least the decisions from the handshake to the first loss are the same.
            assert!(decisions["same"].as_u64().unwrap() >= 5, "{}: {round}", sender["sender"]);
            let Some(divergence) = decisions["divergence"].as_object() else { continue };
            assert_ne!(divergence["cause"], "sender", "{}: {round}", sender["sender"]);
            assert!(!divergence["evidence"].as_str().unwrap().is_empty(), "{round}");
        }
    }
}

/// Every stage that draws random numbers, and one that runs on a time grid.
const ALL_STAGES: &str = "schema = 1
[[stage]]
kind = \"link\"
both = { rate = \"5Mbit\", delay = \"10ms\", jitter = \"8ms\", queue = { packets = 20 } }
[[stage]]
kind = \"loss\"
down = { model = \"gilbert-elliott\", good = \"1%\", bad = \"30%\", good_to_bad = \"5%\", bad_to_good = \"30%\" }
up = { model = \"uniform\", per = \"3%\" }
[[stage]]
kind = \"arq\"
both = { per = \"5%\", retries = 2, rate = \"3Mbit\", delay = \"5ms\" }
[[stage]]
kind = \"rlc\"
down.channel = { delay = \"20ms\", errors = { model = \"independent\", bler = \"10%\" } }
up.channel = { delay = \"20ms\", errors = { model = \"gilbert-elliott\", good = \"1%\", bad = \"40%\", good_to_bad = \"5%\", bad_to_good = \"20%\" } }
";

/// The outcome for each packet, and its time in nanoseconds since the path's start.
type Outcomes = BTreeMap<u64, (i64, String)>;

#[test]
fn path_decisions_match_in_real_and_virtual_time() {
    let directory = TempFile::new("premise");
    lab(
        ALL_STAGES,
        &directory,
        &["--recipe", "sack+rack@linux", "--runs", "1", "--bytes", "200k", "--seed", "7", "--events"],
    );
    let output = Path::new(directory.path());
    let transfer = output.join("01-sack+rack");
    let (real, entries) = outcomes(&transfer.join("events.jsonl"));

    // The packets of both captures enter the same path in virtual time, at the times when they entered it in
    // real time.
    let mut path = Scenario::load(&output.join("scenario.toml").to_string_lossy())
        .unwrap()
        .build(Some(7), Recording::Events, false)
        .unwrap();
    let mut down = packets_to(&transfer.join("fixed.pcap"), RECEIVER).into_iter();
    let mut up = packets_to(&transfer.join("mobile.pcap"), SENDER).into_iter();
    let mut in_virtual_time = Outcomes::new();
    for (at, direction) in entries {
        let (port, packets) =
            if direction == Direction::Down { (FIXED, &mut down) } else { (MOBILE, &mut up) };
        let packet = packets.next().expect("every packet that entered the path was captured");
        let now = Instant::from_nanos(at as u64);
        catch_up(&mut path, now, |_, _, _| {});
        path.handle_packet(now, port, packet);
        drain(&mut path, now, |_, _, _| {});
    }
    let end = real.values().map(|(at, _)| *at).max().unwrap();
    catch_up(&mut path, Instant::from_nanos(end as u64), |_, _, _| {});
    assert_eq!((down.len(), up.len()), (0, 0), "every captured packet entered the path");
    for record in path.take_records() {
        let outcome = match record.event {
            Event::Left => "left".to_owned(),
            Event::Dropped { why } => why.name().to_owned(),
            _ => continue,
        };
        in_virtual_time.insert(record.packet.0, (record.at.as_nanos() as i64, outcome));
    }
    let _ = std::fs::remove_dir_all(directory.path());
    let dropped = real.values().filter(|(_, outcome)| outcome != "left").count();
    assert!(dropped > 5 && real.len() > 150, "too few events: {dropped} of {} dropped", real.len());
    assert_eq!(real, in_virtual_time);
}

/// Returns the outcome for each packet, and the time at which each packet entered.
fn outcomes(path: &Path) -> (Outcomes, Vec<(i64, Direction)>) {
    let mut events = EventReader::open(path).unwrap();
    let (mut outcomes, mut entries) = (Outcomes::new(), Vec::new());
    while let Some(event) = events.read().unwrap() {
        match &*event.what {
            "entered" if event.direction == "down" => entries.push((event.t, Direction::Down)),
            "entered" => entries.push((event.t, Direction::Up)),
            "left" => drop(outcomes.insert(event.packet, (event.t, "left".to_owned()))),
            "dropped" => drop(outcomes.insert(event.packet, (event.t, event.why.unwrap().into_owned()))),
            _ => {}
        }
    }
    (outcomes, entries)
}

/// The first byte of an address identifies the side of the lab's network.
const SENDER: u8 = 10;
const RECEIVER: u8 = 100;

/// The packets in a capture to one side. The sender's kernel has sent some of these packets, because it
/// answers late ACKs after the sender has exited.
fn packets_to(path: &Path, to: u8) -> Vec<Vec<u8>> {
    let mut capture = Capture::open(path, None).unwrap();
    let mut packets = Vec::new();
    loop {
        match capture.read() {
            // Raw IP: the destination address of IPv4 begins with the 17th byte.
            Next::Frame(frame) if frame.data[16] == to => packets.push(frame.data.to_vec()),
            Next::Frame(_) => {}
            Next::End => return packets,
            other => panic!("{}: {other:?}", path.display()),
        }
    }
}
