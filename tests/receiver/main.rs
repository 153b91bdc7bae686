//! Compares the profile `linux` as receiver with recordings of this machine's kernel. Given the same arrivals
//! at the same times, it must send the same ACKs.
//!
//! `recorded/` contains the recordings, `list.txt` describes them, and `record.sh` records them again.
//! `expected.toml` lists the known differences, each with its reason.
//!
//!     cargo test -p airtcp-tests --no-default-features --test receiver -- --nocapture
//!
//! `AIRTCP_RECEIVER_SHOW=name` prints a recording ACK by ACK. `AIRTCP_RECEIVER_FROM=directory` replays the
//! recordings of another directory.

mod compare;
mod ours;
mod recording;
mod rows;

use std::path::PathBuf;
use std::process::ExitCode;

use airwire::time::Duration;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::compare::{Line, compare};
use crate::recording::{Ack, Entry, Recording, list};
use crate::rows::Rows;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    libtest_mimic::run(
        &arguments,
        vec![Trial::test("linux_profile_sends_same_acks_as_kernel", linux_profile_sends_same_acks_as_kernel)],
    )
    .exit_code()
}

fn directory() -> PathBuf {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/receiver/recorded");
    std::env::var_os("AIRTCP_RECEIVER_FROM").map_or_else(|| own.into(), PathBuf::from)
}

fn linux_profile_sends_same_acks_as_kernel() -> Result<(), Failed> {
    let rows = Rows::read(include_str!("expected.toml"))?;
    let show = std::env::var("AIRTCP_RECEIVER_SHOW").ok();
    let mut judge = rows.judge();
    for entry in list(include_str!("list.txt")) {
        let path = directory().join(format!("{}.pcap", entry.name));
        if !path.exists() && std::env::var_os("AIRTCP_RECEIVER_FROM").is_some() {
            continue;
        }
        let lines = replay(&entry, &Recording::read(&path)?)?;
        if show.as_deref() == Some(&entry.name) {
            print(&lines);
        }
        judge.add(&entry, &lines);
    }
    judge.end()?;
    Ok(())
}

/// Replays a recording with all possible clock phases, and returns the comparison with the most equal ACKs.
///
/// A capture does not show the phase of the kernel's 4 ms tick. It does not show the exact phase of the
/// millisecond clock either, because the kernel reads that clock a few microseconds after the capture's
/// timestamp.
fn replay(entry: &Entry, recording: &Recording) -> Result<Vec<Line>, String> {
    let irs = recording.packets.first().map_or(0, |packet| packet.seq);
    let sent = recording.packets.iter();
    let kernel: Vec<Ack> =
        sent.filter_map(|packet| Ack::of(packet.at, &packet.bytes, recording.receiver, irs)).collect();
    let mut best: Option<(usize, Vec<Line>)> = None;
    for phase in 0..4 * 9 {
        let (tick, micros) = (phase % 4, phase / 4 * 4);
        let clock =
            recording.phase() + Duration::from_millis(tick) + Duration::from_micros(1000 + micros - 20);
        let ours = ours::play(recording, &entry.receiver, clock)?;
        let lines = compare(&kernel, &ours);
        let same = lines.iter().filter(|line| line.kind.is_none()).count();
        let is_perfect = same == lines.len();
        if best.as_ref().is_none_or(|(most, _)| same > *most) {
            best = Some((same, lines));
        }
        if is_perfect {
            break;
        }
    }
    Ok(best.map(|(_, lines)| lines).unwrap_or_default())
}

fn print(lines: &[Line]) {
    for Line { kernel, ours, kind } in lines {
        let mark = kind.map_or("", compare::Kind::word);
        let kernel = kernel.as_ref().map_or_else(String::new, ToString::to_string);
        let timer = if ours.as_ref().is_some_and(|ours| ours.by_timer) { " timer" } else { "" };
        let ours = ours.as_ref().map_or_else(String::new, |ours| ours.ack.to_string());
        eprintln!("{mark:8} {kernel:<64} | {ours}{timer}");
    }
}
