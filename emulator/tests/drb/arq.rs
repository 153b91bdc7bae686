//! `rlc-check` reads radio captures of LTE and NR bearers. It finds no violation in the original captures,
//! and it finds the right violation in each capture that the test has changed.

use std::collections::BTreeMap;
use std::process::Command;

use airlink::rlc::am::{Nack, Status};
use airlink::rlc::{lte, nr};
use airtcp_testkit::sample::{sample, seed, size};
use airtcp_testkit::temporary::TempDir;
use rlc_check::End;
use rlc_check::findings::{Findings, Invariant};
use rlc_check::lte_nr::capture::{self, Frame};
use rlc_check::lte_nr::check_frames;
use rlc_check::lte_nr::codec::{self, Pdu};
use rlc_check::trace::Direction;

/// A radio capture, and what `rlc-check` needs to know.
#[derive(Clone)]
struct Bearer {
    frames: Vec<Frame>,
    down: String,
    up: String,
    end: End,
}

fn airlink(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_airlink")).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The settings of a direction in the notation of `rlc-check`. `shown` is the output of `airlink show`, and
/// `set` contains settings that differ from it.
fn settings(shown: &str, set: &str, direction: &str) -> String {
    let shown = shown.lines().filter_map(|line| line.split_once(" = "));
    let set = set.split_whitespace().filter_map(|setting| setting.strip_prefix("radio.")?.split_once('='));
    let prefix = format!("{direction}.rlc.");
    let mut settings = BTreeMap::new();
    for (key, value) in shown.chain(set) {
        let key = match key.strip_prefix(&prefix).or_else(|| key.strip_prefix("both.rlc.")) {
            Some("poll_pdu") => "poll-pdu",
            Some("poll_byte") => "poll-byte",
            Some("t_poll_retransmit") => "poll-retransmit",
            Some("max_retx") => "max-retx",
            Some("t_reassembly" | "t_reordering") => "reassembly",
            Some("t_status_prohibit") => "status-prohibit",
            _ => continue,
        };
        settings.insert(key, value.trim_matches('"').replace("kB", "000"));
    }
    settings.retain(|_, value| value != "off");
    settings.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

impl Bearer {
    /// Simulates a scenario with these settings and arguments, both separated by spaces.
    fn new(scenario: &str, set: &str, args: &str) -> Self {
        let directory = TempDir::new("arq");
        let radio = directory.join("radio.pcap");
        let sets = set.split_whitespace().flat_map(|setting| ["--set", setting]);
        let common: Vec<&str> = ["--scenario", scenario].into_iter().chain(sets).collect();
        let shown = airlink(&["show", scenario]);
        let mut command = vec!["sim", "--json", "--radio-pcap", radio.to_str().unwrap()];
        command.extend(common.iter().copied().chain(args.split_whitespace()));
        let summary: serde_json::Value = serde_json::from_str(&airlink(&command)).unwrap();
        let seconds = summary["seconds"].as_f64().unwrap();
        Self {
            frames: capture::read(&radio).unwrap(),
            down: settings(&shown, set, "down"),
            up: settings(&shown, set, "up"),
            end: End::At((seconds * 1e9) as u64),
        }
    }

    fn findings(&self) -> Findings {
        let [down, up] = [&self.down, &self.up].map(|settings| settings.parse().unwrap());
        check_frames(&self.frames, down, up, self.end).unwrap()
    }

    fn check_clean(&self, name: &str) -> Findings {
        let findings = self.findings();
        assert!(findings.violations.is_empty(), "{name}:\n{}", findings.to_text(3));
        for invariant in Invariant::LTE_NR {
            assert!(findings.checks[invariant as usize] > 0, "{name}: {invariant:?} was never checked");
        }
        findings
    }

    /// Changes a copy, and checks that the copy violates this invariant.
    fn check_violated(&self, invariant: Invariant, what: &str, change: impl FnOnce(&mut Self)) {
        let mut changed = self.clone();
        change(&mut changed);
        let findings = changed.findings();
        let found = findings.violations.iter().any(|violation| violation.invariant == invariant);
        assert!(found, "{what}:\n{}", findings.to_text(3));
    }

    /// The first frame after the beginning for which `is_wanted` holds.
    fn find(&self, is_wanted: impl Fn(&Frame, &Pdu<'_>) -> bool) -> usize {
        let decoded = |frame: &Frame| {
            codec::decode(frame.generation, &frame.pdu).is_ok_and(|pdu| is_wanted(frame, &pdu))
        };
        let index = self.frames.iter().enumerate().skip(500).find(|(_, frame)| decoded(frame));
        index.expect("the capture should contain such a PDU").0
    }

    fn find_status(&self, is_wanted: impl Fn(&codec::Status) -> bool) -> usize {
        self.find(|_, pdu| matches!(pdu, Pdu::Status(status) if is_wanted(status)))
    }

    fn find_data(&self, is_wanted: impl Fn(&Frame, &codec::Data<'_>) -> bool) -> usize {
        self.find(|frame, pdu| matches!(pdu, Pdu::Data(data) if is_wanted(frame, data)))
    }

    /// Changes the STATUS PDU at this index.
    fn change_status(&mut self, index: usize, change: impl FnOnce(&mut Status)) {
        let pdu = &self.frames[index].pdu;
        let format = lte::AmFormat { sn: lte::AmSnLength::Bits10, li: lte::LiLength::Bits11 };
        self.frames[index].pdu = match self.frames[index].generation {
            rlc_check::lte_nr::Generation::Nr(_) => {
                let Ok(nr::codec::Pdu::Status(mut status)) = nr::codec::decode(pdu, nr::AmSnLength::Bits18)
                else {
                    panic!("not a STATUS PDU")
                };
                change(&mut status);
                nr::codec::encode_status(&status, nr::AmSnLength::Bits18)
            }
            rlc_check::lte_nr::Generation::Lte(_) => {
                let Ok(lte::codec::Pdu::Status(mut status)) = lte::codec::decode(pdu, format) else {
                    panic!("not a STATUS PDU")
                };
                change(&mut status);
                lte::codec::encode_status(&status, lte::AmSnLength::Bits10)
            }
        };
    }
}

/// Loses a fifth of the transport blocks that HARQ would retransmit.
const LOSSY: &str = "radio.down.harq.nack_to_ack=20% radio.up.harq.nack_to_ack=20%";

const PRESETS: [(&str, &str); 7] = [
    ("lte-20MHz", "poisson:60Mbit"),
    ("nr-fr1-100MHz", "poisson:80Mbit"),
    ("nr-mmwave", "poisson:80Mbit"),
    ("nr-handover", "poisson:80Mbit"),
    ("lte-drx", "poisson:3Mbit"),
    ("nr-cell-edge", "poisson:20Mbit"),
    ("nr-two-users", "poisson:80Mbit"),
];

#[test]
fn presets_follow_the_arq_of_the_standards() {
    let seeds = || (0..20).map(|n| seed() + n);
    let runs = |preset| sample(preset, seeds().flat_map(|seed| ["", LOSSY].map(|loss| (seed, loss))), 2);
    let runs =
        PRESETS.into_iter().flat_map(|preset| runs(preset.0).into_iter().map(move |run| (preset, run)));
    for ((preset, down), (seed, loss)) in runs {
        let handover = if preset == "nr-handover" { "radio.handover.every=700ms" } else { "" };
        // The queue is full in every other run.
        let down = if seed % 2 == 0 { "saturate" } else { down };
        let args = format!("--for 1s --down {down} --up poisson:2Mbit --size mix --seed {seed}");
        let bearer = Bearer::new(preset, &format!("{loss} {handover}"), &args);
        let name = format!("{preset} {loss} {args}");
        let findings = bearer.check_clean(&name);
        assert!(loss.is_empty() || findings.down.resent + findings.up.resent > 0, "{name}");
        assert_eq!(handover.is_empty(), findings.down.resets == 0, "{name}");
    }
}

/// Timers, windows and thresholds that no preset has, also extreme ones.
#[test]
fn other_settings_follow_the_arq_of_the_standards() {
    let nr = [
        "sn=12",
        "t_reassembly=0ms",
        "t_status_prohibit=0ms",
        "poll_pdu=off poll_byte=25kB",
        "poll_pdu=4 t_status_prohibit=100ms",
        "max_retx=1",
        "t_poll_retransmit=5ms",
        "t_reassembly=200ms t_poll_retransmit=300ms",
    ];
    let lte = ["sn=16", "t_reordering=0ms", "t_status_prohibit=0ms", "max_retx=1", "t_poll_retransmit=5ms"];
    let nr = nr.map(|settings| ("nr-cell-edge", settings));
    let lte = lte.map(|settings| ("lte-20MHz", settings));
    for (preset, settings) in sample("settings", nr.into_iter().chain(lte), 5) {
        let settings = settings.split(' ').map(|setting| format!("radio.both.rlc.{setting}"));
        let set = format!("{LOSSY} {}", settings.collect::<Vec<_>>().join(" "));
        let args = format!("--for {} --down poisson:20Mbit --up poisson:2Mbit --size mix", size("2s", "20s"));
        Bearer::new(preset, &set, &args).check_clean(&set);
    }
}

#[test]
fn changed_settings_are_noticed() {
    for preset in ["nr-cell-edge", "lte-20MHz"] {
        let args = "--for 3s --down poisson:20Mbit --up poisson:2Mbit --size mix";
        let bearer = Bearer::new(preset, LOSSY, args);
        bearer.check_clean(preset);
        for (setting, invariant) in [
            ("poll-pdu=17", Invariant::Polling),
            ("poll-pdu=15", Invariant::Polling),
            ("poll-byte=500", Invariant::Polling),
            ("poll-retransmit=30ms", Invariant::Polling),
            ("reassembly=4ms", Invariant::Reporting),
            ("reassembly=60ms", Invariant::Reassembly),
            ("status-prohibit=25ms", Invariant::StatusProhibit),
            ("max-retx=1", Invariant::RetxCount),
        ] {
            bearer.check_violated(invariant, &format!("{preset} {setting}"), |bearer| {
                for settings in [&mut bearer.down, &mut bearer.up] {
                    settings.push(',');
                    settings.push_str(setting);
                }
            });
        }
    }
}

/// A busy bearer with a transport block of several PDUs in each slot, and with losses.
fn busy(preset: &str, down: &str) -> Bearer {
    let args = format!("--for 2s --down {down} --up poisson:2Mbit --size mix --seed {}", seed());
    let bearer = Bearer::new(preset, LOSSY, &args);
    bearer.check_clean(preset);
    bearer
}

#[test]
fn changed_reports_are_noticed() {
    for bearer in [busy("nr-cell-edge", "saturate"), busy("lte-20MHz", "poisson:70Mbit")] {
        let with_nacks = bearer.find_status(|status| status.nacks.len() > 1);
        let without = bearer.find_status(|status| status.nacks.is_empty());
        let is_up = |frame: &Frame| frame.direction == Direction::Up;
        let up = bearer.find(|frame, pdu| is_up(frame) && matches!(pdu, Pdu::Status(_)));
        let violated =
            |invariant, what, change: &dyn Fn(&mut Bearer)| bearer.check_violated(invariant, what, change);
        violated(Invariant::Acknowledgement, "a dropped NACK", &|bearer| {
            bearer.change_status(with_nacks, |status| {
                status.nacks.remove(0);
            });
        });
        violated(Invariant::Acknowledgement, "a NACK of a unit that has arrived", &|bearer| {
            bearer.change_status(without, |status| {
                status.nacks.push(Nack::of(status.ack_sn.checked_sub(1).unwrap_or(1023)));
            });
        });
        violated(Invariant::Reassembly, "an ACK_SN above what the timer allows", &|bearer| {
            bearer.change_status(without, |status| status.ack_sn = (status.ack_sn + 100) % 1024);
        });
        violated(Invariant::Reporting, "a report after later data", &|bearer| {
            bearer.down.push_str(",patience=60ms");
            bearer.up.push_str(",patience=60ms");
            bearer.frames[up].at += 70_000_000;
        });
        violated(Invariant::Reporting, "a missing report", &|bearer| {
            bearer.frames.remove(without);
        });
        violated(Invariant::Reporting, "a repeated report", &|bearer| {
            let report = bearer.frames[without].clone();
            bearer.frames.insert(without, report);
        });
    }
}

#[test]
fn data_beyond_the_window_is_noticed() {
    for (preset, set, down) in [
        ("nr-cell-edge", "radio.both.rlc.sn=12", "saturate:3000"),
        ("lte-20MHz", "radio.both.rlc.sn=10", "poisson:70Mbit"),
    ] {
        let bearer = Bearer::new(preset, set, &format!("--for 2s --down {down} --size mix"));
        bearer.check_violated(Invariant::Window, preset, |bearer| {
            for frame in &mut bearer.frames {
                frame.lost |= frame.direction == Direction::Up && frame.pdu[0] & 0x80 == 0;
            }
        });
    }
}

#[test]
fn changed_data_pdus_are_noticed() {
    for (bearer, poll_bit) in
        [(busy("nr-cell-edge", "saturate"), 0x40), (busy("lte-20MHz", "poisson:70Mbit"), 0x20)]
    {
        let is_down = |frame: &Frame| frame.direction == Direction::Down;
        let first = |frame: &Frame| is_down(frame) && frame.transmission == 1;
        // A segment whose SDU continues.
        let middle = bearer
            .find_data(|frame, data| first(frame) && !data.poll && (!data.ends || data.layout.is_continued));
        let poll = bearer.find_data(|frame, data| first(frame) && data.poll);
        let again = bearer.find_data(|frame, _| frame.transmission > 1);
        let segment = bearer.find_data(|_, data| data.start > 0);
        let is_nr = poll_bit == 0x40;
        let violated =
            |invariant, what, change: &dyn Fn(&mut Bearer)| bearer.check_violated(invariant, what, change);
        violated(Invariant::Polling, "a poll without a reason", &|bearer| {
            bearer.frames[middle].pdu[0] |= poll_bit;
        });
        violated(Invariant::Polling, "a missing poll", &|bearer| bearer.frames[poll].pdu[0] &= !poll_bit);
        violated(Invariant::Segmentation, "another segment offset", &|bearer| {
            // The last octet of SO, after the header with 18 or 10 bits of SN.
            let at = if is_nr { 4 } else { 3 };
            bearer.frames[segment].pdu[at] ^= 1;
        });
        violated(Invariant::Segmentation, "another octet in a retransmission", &|bearer| {
            *bearer.frames[again].pdu.last_mut().unwrap() ^= 1;
        });
        violated(Invariant::Retransmission, "a retransmission that was not requested", &|bearer| {
            let copy = bearer.frames[middle].clone();
            bearer.frames.insert(middle, copy);
        });
        violated(Invariant::Retransmission, "a missing retransmission", &|bearer| {
            bearer.frames.remove(again);
        });
        violated(Invariant::RetxCount, "another RETX_COUNT", &|bearer| {
            bearer.frames[again].transmission += 1;
        });
        violated(Invariant::Format, "a missing first transmission", &|bearer| {
            bearer.frames.remove(poll);
        });
    }
}

/// The dedicated bearer is in unacknowledged mode, the default bearer in acknowledged mode. Each bearer is
/// checked separately.
#[test]
fn unacknowledged_mode_segments_without_retransmission() {
    // UDP packets have port 9. Shorter packets have no port, and use the default bearer.
    let um = "radio.dedicated.ports=[9] radio.dedicated.rlc.mode=um";
    for (kind, preset, sn) in [
        ("nr", "nr-cell-edge", 6),
        ("nr", "nr-cell-edge", 12),
        ("lte", "lte-20MHz", 5),
        ("lte", "lte-20MHz", 10),
    ] {
        let pdcp = if kind == "lte" { "radio.dedicated.pdcp.sn=12" } else { "" };
        let set = format!("{LOSSY} {um} radio.dedicated.rlc.sn={sn} {pdcp}");
        let down = if kind == "lte" { "poisson:60Mbit" } else { "poisson:20Mbit" };
        let args = format!("--for 1s --down {down} --up poisson:2Mbit --size mix --seed {}", seed());
        let bearer = Bearer::new(preset, &set, &args);
        let of = |number| {
            let frames = bearer.frames.iter().filter(|frame| frame.bearer == number).cloned().collect();
            Bearer { frames, ..bearer.clone() }
        };
        let um = of(18);
        of(2).check_clean(preset);
        let findings = um.findings();
        assert!(findings.violations.is_empty(), "{preset} {sn}:\n{}", findings.to_text(3));
        assert!(
            findings.down.pdus > 500 && findings.down.lost > 0,
            "{preset} {sn}:\n{}",
            findings.to_text(3)
        );
        let removed = um.frames.iter().skip(100).position(|frame| {
            frame.direction == Direction::Down && (kind == "lte" || frame.pdu[0] & 0xc0 == 0x80)
        });
        let removed = 100 + removed.expect("segments");
        um.check_violated(
            if kind == "lte" { Invariant::Format } else { Invariant::Segmentation },
            "a missing PDU",
            |um| {
                um.frames.remove(removed);
            },
        );
        um.check_violated(Invariant::Format, "a reserved bit or another SN", |um| {
            um.frames[removed].pdu[0] ^= 0x11
        });
        um.check_violated(Invariant::Retransmission, "a retransmission", |um| {
            um.frames[removed].transmission = 2
        });
    }
}
