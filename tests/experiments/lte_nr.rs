//! The effects that docs/explanation/lte-nr.md shows: what LTE and NR bearers do to senders, in virtual time.

use airtcp_testkit::machine::airtcp;
use airtcp_testkit::sample::sample;
use serde_json::Value;

use crate::scratch::{Scratch, succeeded};

const CUBIC: &str = "sack+rack+cubic+prr@linux";
const BBR: &str = "bbr@linux";

/// A simulated transfer.
struct Run {
    mbit_per_s: f64,
    /// Retransmitted segments.
    resent: u64,
    /// Time and smoothed round-trip time of each ACK, in seconds.
    acks: Vec<(f64, f64)>,
}

/// Simulates a flow for this time, with options separated by spaces.
fn simulate(scenario: &str, recipe: &str, length: &str, options: &str) -> Run {
    let scratch = Scratch::new("lte-nr");
    let trace = scratch.path("trace.jsonl");
    let mut command = airtcp(&["sim", "--json", "--scenario", scenario, "--recipe", recipe, "--for", length]);
    command.args(["--trace", &trace]).args(options.split_whitespace());
    let output: Value = serde_json::from_str(&succeeded(command).stdout).unwrap();
    let flow = &output["report"]["flows"][0];
    let counters = flow["counters"].as_object().unwrap();
    let resent = counters.iter().filter(|(name, _)| name.starts_with("resent_"));
    let acks = std::fs::read_to_string(&trace).unwrap();
    let acks = acks.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    Run {
        mbit_per_s: flow["goodput_bit_per_s"].as_f64().unwrap() / 1e6,
        resent: resent.map(|(_, count)| count.as_u64().unwrap()).sum(),
        acks: acks
            .map(|ack| (ack["time"].as_f64().unwrap(), ack["srtt_seconds"].as_f64().unwrap()))
            .collect(),
    }
}

impl Run {
    /// The longest time between two ACKs after `from` seconds, in milliseconds.
    fn longest_pause(&self, from: f64) -> f64 {
        let times: Vec<f64> = self.acks.iter().map(|(at, _)| *at).filter(|at| *at >= from).collect();
        times.windows(2).map(|pair| 1e3 * (pair[1] - pair[0])).fold(0.0, f64::max)
    }

    /// The median of the smoothed round-trip times in milliseconds.
    fn median_srtt(&self) -> f64 {
        let mut srtts: Vec<f64> = self.acks.iter().map(|(_, srtt)| *srtt).collect();
        srtts.sort_by(f64::total_cmp);
        1e3 * srtts[srtts.len() / 2]
    }
}

const GRANTED: &str = "--set radio.up.grant.sr_period=off --set radio.up.harq.bler.bler=0%";

#[test]
fn harq_turns_block_errors_into_pauses() {
    for recipe in sample("harq", [CUBIC, BBR], 1) {
        let run = |bler| {
            let options = format!("{GRANTED} --set radio.down.harq.bler.bler={bler} --seed 2");
            let run = simulate("nr-fr1-100MHz", recipe, "600ms", &options);
            assert_eq!(run.resent, 0, "{recipe} {bler}");
            run.longest_pause(0.4)
        };
        // A TDD period has 2.5 ms, and a HARQ retransmission comes two periods later.
        let (without, with) = (run("0%"), run("10%"));
        assert!(without < 2.6 && with > 4.9, "{recipe}: {without} and {with} ms");
    }
}

#[test]
fn acks_wait_for_uplink_grants() {
    for recipe in sample("grants", [CUBIC, BBR], 1) {
        let run = |period| {
            let options = format!(
                "--set radio.both.harq.bler.bler=0% --set radio.up.grant.sr_period={period} --seed 2"
            );
            simulate("nr-fr1-100MHz", recipe, "600ms", &options).longest_pause(0.4)
        };
        let (without, with) = (run("off"), run("10ms"));
        assert!(without < 2.6 && with > 9.9, "{recipe}: {without} and {with} ms");
    }
}

#[test]
fn hystart_mistakes_harq_for_a_queue() {
    let run = |recipe| simulate("nr-fr1-100MHz", recipe, "2s", "--seed 1").mbit_per_s;
    let (with, without) = (run("linux"), run("sack+rack+cubic+prr+frto+undo-linux+tso-defer@linux"));
    assert!(with < 0.3 * without, "{with} and {without} Mbit/s");
}

#[test]
fn short_t_reordering_turns_arq_into_loss() {
    for recipe in sample("t-Reordering", [CUBIC, BBR], 1) {
        let run = |time| {
            let options = format!(
                "--set radio.down.prb=51 --set radio.down.harq.nack_to_ack=1% \
                 --set radio.down.pdcp.t_reordering={time}"
            );
            simulate("nr-fr1-100MHz", recipe, "2s", &options)
        };
        let (short, long) = (run("0ms"), run("80ms"));
        assert_eq!(long.resent, 0, "{recipe}");
        assert!(short.resent > 50, "{recipe}: {}", short.resent);
        assert!(short.mbit_per_s < 0.7 * long.mbit_per_s, "{recipe}");
    }
}

const HANDOVER: &str = "--set radio.handover.at=[\"2s\"] --set radio.handover.every=60s --seed 2";

#[test]
fn handover_without_forwarding_loses_the_queue() {
    for recipe in sample("handover", [CUBIC, BBR], 1) {
        let run = |forwarding| {
            let options = format!("{HANDOVER} --set radio.handover.forwarding={forwarding}");
            simulate("nr-handover", recipe, "3s", &options)
        };
        let (with, without) = (run(true), run(false));
        assert_eq!(with.resent, 0, "{recipe}");
        assert!(without.resent > 100, "{recipe}: {}", without.resent);
        // Without forwarding, PDCP waits for t-Reordering.
        let (pause, longer) = (with.longest_pause(1.9), without.longest_pause(1.9));
        assert!((59.0..150.0).contains(&pause) && longer > 200.0, "{recipe}: {pause} and {longer} ms");
    }
}

#[test]
fn cubic_fills_the_queue_of_rlc() {
    let [cubic, bbr] = [CUBIC, BBR].map(|recipe| simulate("nr-cell-edge", recipe, "20s", "--seed 2"));
    let (long, short) = (cubic.median_srtt(), bbr.median_srtt());
    assert!(long > 200.0 && short < 0.5 * long, "{long} and {short} ms");
    assert!(bbr.mbit_per_s > 0.8 * cubic.mbit_per_s, "{} {}", bbr.mbit_per_s, cubic.mbit_per_s);
}

#[test]
fn window_of_12_bits_stalls() {
    for recipe in sample("window", [CUBIC, BBR], 1) {
        let run = |sn| {
            let options =
                format!("--set radio.both.rlc.t_status_prohibit=80ms --set radio.both.rlc.sn={sn} --from 1s");
            simulate("nr-fr1-100MHz", recipe, "2s", &options).mbit_per_s
        };
        let (short, long) = (run(12), run(18));
        // 2048 packets of 1500 bytes in at least 80 ms.
        assert!(short < 307.0 && long > 1.4 * short, "{recipe}: {short} and {long} Mbit/s");
    }
}
