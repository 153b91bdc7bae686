//! RLC settings affect this kernel's TCP over TUN devices in the same way as in virtual time.

use std::path::Path;

use airtcp_testkit::machine::airtcp;
use serde_json::Value;

use crate::scratch::{Scratch, json, succeeded, transfers};

const BYTES: &str = "200k";
const SEEDS: [u64; 3] = [1, 2, 3];

/// The results of a transfer that are compared.
struct Transfer {
    kbit_per_s: f64,
    /// STATUS PDUs about the downlink.
    reports: u64,
    /// Packets that RLC discarded on the downlink.
    discarded: u64,
}

impl Transfer {
    /// `radio` is the stage's part of the report.
    fn new(kbit_per_s: f64, radio: &Value) -> Self {
        let down = |pointer: &str| radio["down"].pointer(pointer).and_then(Value::as_u64).unwrap();
        Self {
            kbit_per_s,
            reports: down("/receiver/statuses_sent"),
            discarded: down("/rlc_discard") + down("/rlc_reset"),
        }
    }
}

/// Transfers in virtual time, by a sender that imitates the kernel's Reno.
fn virtual_transfers(preset: &str, setting: &str) -> Vec<Transfer> {
    SEEDS
        .into_iter()
        .map(|seed| {
            let seed = seed.to_string();
            let mut command =
                airtcp(&["sim", "--scenario", preset, "--set", setting, "--recipe", "reno-linux"]);
            command.args(["--profile", "linux", "--bytes", BYTES, "--seed", &seed, "--json"]);
            let run = succeeded(command);
            let report: Value = serde_json::from_str(&run.stdout).unwrap();
            let report = &report["report"];
            let goodput = report["flows"][0]["goodput_bit_per_s"].as_f64().unwrap();
            Transfer::new(goodput / 1e3, &report["stages"]["radio"])
        })
        .collect()
}

/// As many transfers from the kernel's Reno to a kernel receiver as in virtual time. Invalid transfers are
/// repeated.
fn kernel_transfers(scratch: &Scratch, preset: &str, setting: &str) -> Vec<Transfer> {
    let name = setting.replace(['.', '='], "-");
    let directory = scratch.0.join(&name);
    let mut transfers = Vec::new();
    for runs in [1, 2, 4].map(|times| times * SEEDS.len()) {
        let (output, runs) = (scratch.path(&name), runs.to_string());
        let mut command =
            airtcp(&["lab", "run", "--scenario", preset, "--set", setting, "--output", &output]);
        command.args(["--sender", "linux:reno", "--bytes", BYTES, "--runs", &runs, "--jobs", "3"]);
        succeeded(command);
        transfers = valid_transfers(&directory);
        if transfers.len() >= SEEDS.len() {
            return transfers;
        }
    }
    panic!("of {} transfers, only {} are valid", 4 * SEEDS.len(), transfers.len());
}

fn valid_transfers(directory: &Path) -> Vec<Transfer> {
    let report = json(&directory.join("lab.json"));
    transfers(&report)
        .iter()
        .filter(|transfer| transfer["invalid"].is_null())
        .map(|transfer| {
            let seed = transfer["seed"].as_u64().unwrap();
            let airlink = json(&directory.join(format!("{seed:02}-linux-reno/airlink.json")));
            Transfer::new(transfer["kbit_per_s"].as_f64().unwrap(), &airlink["stages"]["radio"])
        })
        .collect()
}

fn mean(transfers: &[Transfer], value: impl Fn(&Transfer) -> f64) -> f64 {
    transfers.iter().map(value).sum::<f64>() / transfers.len() as f64
}

/// With a Timer_Status_Prohibit ten times as long, status reports are rarer, and damaged PDUs wait for a
/// status report.
#[test]
#[ignore = "nightly: half a minute of real transfers over a radio link"]
fn longer_tsp_costs_kernel_like_virtual_time() {
    let scratch = Scratch::new("tsp");
    let tsp = |time| format!("radio.both.receiver.timer_status_prohibit={time}");
    let (short, long) = (tsp("150ms"), tsp("1500ms"));
    let [expected, measured] = [
        [virtual_transfers("wcdma-384-tsp", &short), virtual_transfers("wcdma-384-tsp", &long)],
        [
            kernel_transfers(&scratch, "wcdma-384-tsp", &short),
            kernel_transfers(&scratch, "wcdma-384-tsp", &long),
        ],
    ]
    .map(|[short, long]| {
        let ratio = |value: fn(&Transfer) -> f64| mean(&long, value) / mean(&short, value);
        (ratio(|transfer| transfer.kbit_per_s), ratio(|transfer| transfer.reports as f64))
    });
    println!(
        "goodput and reports, long over short: {expected:?} in virtual time, {measured:?} by the kernel"
    );
    // The goodput drops by at least 40 %, and by about the same factor in both cases. There are only three
    // transfers each, so the limits are wide.
    assert!(expected.0 < 0.6 && measured.0 < 0.6, "{expected:?} {measured:?}");
    assert!((1.0 / 1.5..1.5).contains(&(measured.0 / expected.0)), "{expected:?} {measured:?}");
    assert!(expected.1 < 0.8 && measured.1 < 0.8, "{expected:?} {measured:?}");
}

/// RLC transmits a PDU at most MaxDAT − 1 times. With a small MaxDAT it discards packets, which TCP must
/// retransmit.
#[test]
#[ignore = "nightly: half a minute of real transfers over a radio link"]
fn smaller_max_dat_costs_kernel_like_virtual_time() {
    let scratch = Scratch::new("max-dat");
    let max_dat = |number| format!("radio.both.sender.discard.max_dat={number}");
    let (few, many) = (max_dat(4), max_dat(12));
    let preset = "wcdma-384-maxdat";
    for (clock, few, many) in [
        ("virtual time", virtual_transfers(preset, &few), virtual_transfers(preset, &many)),
        ("the kernel", kernel_transfers(&scratch, preset, &few), kernel_transfers(&scratch, preset, &many)),
    ] {
        let discarded =
            |transfers: &[Transfer]| transfers.iter().map(|transfer| transfer.discarded).sum::<u64>();
        let kbit_per_s = |transfer: &Transfer| transfer.kbit_per_s;
        let ratio = mean(&few, kbit_per_s) / mean(&many, kbit_per_s);
        println!(
            "{clock}: {} discarded packets with a small MaxDAT, {} with a large one, goodput ratio {ratio:.2}",
            discarded(&few),
            discarded(&many)
        );
        assert_eq!(discarded(&many), 0, "{clock}");
        assert!(
            discarded(&few) >= 6 && ratio < 0.9,
            "{clock}: {} discarded packets, goodput ratio {ratio}",
            discarded(&few)
        );
    }
}
