//! Captures of transfers with a known cause, at both ends, and the causes that the analysis names.
//!
//! The thresholds were tuned with the seeds below [`HELD_OUT`] only.

mod cases;
mod recent;
mod transfer;

use std::collections::BTreeMap;
use std::io::Cursor;

use airtcp_analyze::connection::findings::{Cause, Confidence, Verdict};
use airtcp_analyze::{Traces, read};
use airtcp_testkit::sample::{is_everything, size};

use self::cases::{KINDS, transfer};

/// The first seed that was not used for tuning.
const HELD_OUT: u64 = 3000;

/// Returns the verdict about the connection. `None` if no packet has passed.
fn verdict_of(capture: Vec<u8>) -> Option<Verdict> {
    let mut capture = aircaptures::Capture::of("capture", Cursor::new(capture)).unwrap();
    let mut verdicts = Vec::new();
    read(&mut capture, Traces::None, &mut |finished| verdicts.push(finished.ended.findings.verdict));
    assert!(verdicts.len() <= 1);
    verdicts.pop()
}

fn is_of_handshake(cause: Cause) -> bool {
    matches!(cause, Cause::HandshakeRefused | Cause::HandshakeFailed | Cause::HandshakeDelayed)
}

/// Returns whether the verdict is the cause, or the best conclusion from a capture at this place. A capture
/// at the receiver does not show the loss of ACKs, which happens later on their way, or the sender's timers.
fn is_right(cause: Cause, place: &str, verdict: &Verdict) -> bool {
    let visible: &[Cause] = match (cause, place) {
        (Cause::AckLoss, "receiver") => &[Cause::LinkRate, Cause::Bufferbloat],
        (Cause::SpuriousTimeouts, "receiver") => &[Cause::Outage],
        // The SYNs that arrive do not show those that were lost.
        (Cause::HandshakeDelayed, "sender") => &[Cause::SlowStart, Cause::NotSlow],
        (Cause::IdleRestart, "receiver") => &[Cause::SlowWriter],
        // Long packets do not reach the receiver, so a capture there does not show that they exist.
        (Cause::PathMtuBlackHole, "receiver") => &[Cause::Undetermined],
        _ => &[],
    };
    // The pauses are the larger part of the time.
    let is_also = cause == Cause::IdleRestart && verdict.also.contains(&cause);
    verdict.cause == cause || is_also || visible.contains(&verdict.cause)
}

#[derive(Default)]
struct Tally {
    named: u32,
    undetermined: u32,
    wrong: u32,
    confidently_wrong: u32,
    /// Counts by the true cause, the place, and the named cause.
    table: BTreeMap<(Cause, &'static str), BTreeMap<Cause, u32>>,
}

impl Tally {
    fn add(&mut self, cause: Cause, place: &'static str, seed: u64, verdict: &Verdict) {
        *self.table.entry((cause, place)).or_default().entry(verdict.cause).or_default() += 1;
        if is_right(cause, place, verdict) {
            self.named += 1;
            return;
        }
        println!("{cause:?} {seed} at the {place}: {:?}: {}", verdict.confidence, verdict.sentence);
        if verdict.cause == Cause::Undetermined {
            self.undetermined += 1;
        } else {
            self.wrong += 1;
            self.confidently_wrong += u32::from(verdict.confidence == Confidence::High);
        }
    }

    fn all(&self) -> u32 {
        self.named + self.undetermined + self.wrong
    }

    fn print(&self, title: &str) {
        println!(
            "{title}: {} captures, {} named, {} undetermined, {} wrong ({} with high confidence)",
            self.all(),
            self.named,
            self.undetermined,
            self.wrong,
            self.confidently_wrong
        );
        for ((cause, place), named) in &self.table {
            println!("  {cause:?} at the {place}: {named:?}");
        }
    }
}

fn tally(seeds: impl Iterator<Item = u64> + Clone) -> Tally {
    let mut tally = Tally::default();
    for cause in KINDS {
        for seed in seeds.clone() {
            let captures = transfer(cause, seed).run(seed);
            for (capture, place) in captures.into_iter().zip(["sender", "receiver"]) {
                let Some(verdict) = verdict_of(capture) else { continue };
                // Without the handshake's ACK, the capture does not contain a transfer.
                if verdict.direction.is_some() || is_of_handshake(cause) {
                    tally.add(cause, place, seed, &verdict);
                }
            }
        }
    }
    tally
}

#[test]
fn causes_are_named_for_held_out_seeds() {
    let tally = tally(HELD_OUT..HELD_OUT + size(1, 8));
    tally.print("held out");
    assert!(tally.named * 100 >= tally.all() * 85);
    assert!(tally.confidently_wrong * 100 <= tally.all() * 2);
}

#[test]
fn causes_are_named_for_tuning_seeds() {
    if is_everything() {
        let tally = tally(1..9);
        tally.print("tuning");
        assert!(tally.named * 100 >= tally.all() * 90);
    }
}
