//! The engine by itself: what it owes every recipe, whatever comes in which order.

use std::ops::Range;

use airwire::time::Duration;
use proptest::prelude::*;

use super::*;
use crate::recovery::Recipe;
use crate::recovery::catalogue;
use crate::recovery::testing::{BareSender, SMSS};

const RTT: Duration = Duration::from_millis(100);

#[test]
fn a_timeout_late_in_fast_recovery_halves_no_more_than_was_the_window() {
    for (repair, sack) in [("newreno", false), ("reno", false), ("sack", true)] {
        let mut sender = BareSender::new(repair).under_way(20.0, 8.0, RTT);
        sender.wait(RTT);
        if sack {
            (3..=21).for_each(|end| drop(sender.sack(&[2..end])));
        } else {
            sender.dupacks(19);
        }
        let outstanding = sender.flight.outstanding().segments;
        assert!(outstanding > 25, "{repair}: new segments have replaced what has arrived: {outstanding}");
        sender.timeout();
        assert_eq!(sender.cc().ssthresh, 10.0, "{repair}: half of 20, not of {outstanding}");
    }
}

#[test]
fn a_timeout_after_partial_acks_goes_by_the_window_in_force() {
    let mut sender = BareSender::new("newreno").under_way(20.0, 8.0, RTT);
    sender.wait(RTT).dupacks(19);
    // Everything up to the last segment of the window has arrived but 20, and its copy is lost.
    sender.wait(RTT).ack(19);
    sender.dupacks(9);
    let cwnd = sender.cc().cwnd;
    assert!(sender.flight.outstanding().segments as f64 > cwnd + 5.0);
    sender.timeout();
    assert!(sender.cc().ssthresh <= cwnd / 2.0, "{} of a window of {cwnd}", sender.cc().ssthresh);
}

#[test]
fn what_is_lost_in_a_recovery_is_told_by_its_own_place() {
    let mut sender = BareSender::new("sack").under_way(20.0, 8.0, RTT);
    sender.wait(RTT);
    let first = sender.flight.una() / SMSS + 1;
    sender.sack(&[first + 1..first + 4]);
    // Another hole, with the first one still there.
    sender.sack(&[first + 1..first + 4, first + 5..first + 8]);
    let lost: Vec<_> = sender
        .trace()
        .into_iter()
        .filter_map(|decision| match decision.what {
            What::Lost { offset, segments } => Some((offset / SMSS + 1 - first, segments)),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [(0, 1), (4, 1)]);
}

/// What may happen to a sender.
#[derive(Clone, Debug)]
enum Event {
    /// This share of what is outstanding is acknowledged, in eighths; at least one segment.
    Ack(u64),
    /// A duplicate ACK, with SACK blocks of these parts of what is outstanding, in sixteenths.
    Duplicate(Vec<Range<u64>>),
    /// The receiver reports the first segment as a duplicate.
    Dsack,
    /// The earliest timer fires, whichever it is.
    Timer,
    /// Time passes, and no timer fires in it.
    Wait(u64),
    /// The application writes this many segments.
    Write(u64),
    /// The receiver's window is this many segments from here on.
    Window(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let block = (0_u64..16, 1_u64..5).prop_map(|(from, len)| from..from + len);
    prop_oneof![
        5 => (1_u64..=8).prop_map(Event::Ack),
        8 => prop::collection::vec(block, 0..4).prop_map(Event::Duplicate),
        1 => Just(Event::Dsack),
        2 => Just(Event::Timer),
        2 => (1_u64..150).prop_map(Event::Wait),
        2 => (1_u64..40).prop_map(Event::Write),
        1 => (1_u64..60).prop_map(Event::Window),
    ]
}

/// Every answer of the catalogue, and what is said to be hard together.
fn recipes() -> Vec<String> {
    let answers = catalogue::CATALOGUE.iter().filter(|row| row.question() != Question::Option);
    let together = ["sack+pr+rebate", "sack+rack+prr+cubic", "reno+vegas+fast-timeout", "sack+vegas+prr"];
    let more = ["sack+frto+dsack", "tahoe+vegas+eifel", "newreno+loss-retransmission+frto", "sack+pr+vegas"];
    let names = answers.map(|row| row.name).chain(together).chain(more);
    names.map(str::to_owned).collect()
}

struct Model {
    sender: BareSender,
    name: String,
    /// A recipe may say that one event reduces the window more than once, and why.
    reduces_again: bool,
    /// Reductions, timeouts and reductions taken back so far; and `recover` of the event that had the last reduction.
    reduced: (u64, u64, u64),
    window_ends: u64,
    /// SND.MAX before the last thing that happened.
    max_before: u64,
}

impl Model {
    fn new(recipe: &str, profile: &str) -> Self {
        let profile = Profile::by_name(profile).unwrap();
        let name = format!("{recipe} in profile {}", profile.name);
        let parsed: Recipe = recipe.parse().unwrap();
        let reduces_again = parsed.parts().any(|(row, _)| row.reduces_again.is_some());
        let handshake = Handshake { timestamps: true, ..Handshake::default() };
        let mut sender = BareSender::with(recipe, profile, &handshake);
        sender.written = 30;
        sender.send();
        Self { sender, name, reduces_again, reduced: (0, 0, 0), window_ends: 0, max_before: 0 }
    }

    fn happen(&mut self, event: &Event) {
        let sender = &mut self.sender;
        self.max_before = sender.flight.max();
        let una = sender.flight.una() / SMSS;
        let outstanding = sender.last() - una;
        let now = sender.now;
        match event {
            Event::Ack(eighths) if outstanding > 0 => {
                sender.ack(una + (outstanding * eighths / 8).max(1));
            }
            Event::Duplicate(parts) if outstanding > 0 => {
                let block = |part: &Range<u64>| {
                    // The first segment is what is missing.
                    let at =
                        |sixteenths: u64| una + 2 + outstanding.saturating_sub(1) * sixteenths.min(16) / 16;
                    at(part.start)..at(part.end)
                };
                let blocks: Vec<_> = parts.iter().map(block).filter(|block| !block.is_empty()).collect();
                let ack = Ack { duplicate: true, ..Ack::default() };
                let blocks = if sender.recovery.uses_sack() { &blocks[..] } else { &[] };
                sender.receive(ack, una, blocks);
            }
            Event::Dsack if una > 0 => {
                let dsack = Some(((una - 1) * SMSS, una * SMSS));
                sender.receive(Ack { dsack, ..Ack::default() }, una, &[]);
            }
            Event::Timer => match (sender.recovery.deadline(), sender.rto) {
                (Some(own), rto) if rto.is_none_or(|rto| own <= rto) => drop(sender.deadline()),
                (_, Some(_)) if outstanding > 0 => drop(sender.timeout()),
                _ => {}
            },
            Event::Wait(ms) => {
                let timers = sender.recovery.deadline().into_iter().chain(sender.rto);
                let until = timers.fold(now + Duration::from_millis(*ms), Instant::min);
                sender.now = until.max(now);
            }
            Event::Write(segments) => {
                sender.written += segments;
                sender.send();
            }
            Event::Window(segments) => {
                sender.rwnd = *segments;
                sender.send();
            }
            Event::Ack(_) | Event::Duplicate(_) | Event::Dsack => {}
        }
    }

    /// One reduction for each loss event's window of data. Timeouts are left out, and what a recipe declares.
    fn check_reductions(&mut self) {
        let counters = self.sender.recovery.counters();
        let (reductions, timeouts, undone) = self.reduced;
        let now = (counters.window_reductions, counters.timeouts, counters.undone);
        let by_loss = now.0 > reductions && (now.1, now.2) == (timeouts, undone);
        let una = self.sender.flight.una();
        assert!(
            !by_loss || self.reduces_again || una >= self.window_ends,
            "{}: the window of data that ends at {} is reduced for twice, at {una}",
            self.name,
            self.window_ends
        );
        if now.0 > reductions {
            // What had left until then is of the window that was reduced for.
            self.window_ends = self.sender.cc().recover.unwrap_or_default().max(self.max_before);
        }
        if now.2 > undone || now.1 > timeouts {
            self.window_ends = 0;
        }
        self.reduced = now;
    }

    fn check(&mut self) {
        let Self { sender, name, .. } = self;
        let cc = sender.recovery.congestion();
        let state = std::fmt::from_fn(|f| write!(f, "{name}: {cc:?}"));
        // Half of one segment is less. ns-2 sends nothing then, until an ACK or the timer opens the window.
        let stands_still = sender.recovery.profile().recovery.least_window < 1.0 && cc.cwnd < 1.0;
        assert!(
            (cc.cwnd >= 1.0 || stands_still) && cc.cwnd >= 0.0 && cc.cwnd.is_finite(),
            "cwnd is at least one segment: {state}"
        );
        assert!(cc.inflation() >= 0.0, "{state}");
        if sender.flight.is_empty() {
            return;
        }
        assert!(sender.rto.is_some(), "something is outstanding, and no timer runs: {state}");
        let (pipe, outstanding) = (sender.flight.pipe(), sender.flight.outstanding());
        // A segment that was sent again without being judged lost counts twice (RFC 6675 §4, SetPipe).
        assert!(pipe.segments <= outstanding.segments + sender.flight.resent().segments, "{state}");
        let lost = sender.flight.first_lost().is_some();
        let nothing_in_path = pipe.segments == 0;
        let held = stands_still
            || cc.episode.held_until().is_some()
            || sender.recovery.leaves == Leaves::New
            || sender.recovery.deadline() == Some(sender.now);
        assert!(
            !(lost && nothing_in_path && !held),
            "something is lost, the path is empty, and nothing leaves: {state}"
        );
        // Other repairs count what is in the path in ways of their own.
        let has_pipe = sender.recovery.answers().contains(&"sack");
        let room = pipe.segments as f64 + 1.0 <= cc.cwnd.floor();
        assert!(
            !(lost && has_pipe && room && !held),
            "something is lost, there is room, and nothing leaves: {state}"
        );
    }
}

/// Checks every recipe in every profile after each of these events.
fn check_each_step(events: &[Event]) {
    for recipe in recipes() {
        for profile in Profile::NAMES {
            let mut model = Model::new(&recipe, profile);
            model.check();
            for event in events {
                model.happen(event);
                model.check();
                model.check_reductions();
            }
        }
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn whatever_happens_a_sender_goes_on(events in prop::collection::vec(event(), 1..120)) {
        check_each_step(&events);
    }
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    #[ignore = "nightly: four times as many sequences of events"]
    fn sender_never_stalls_with_more_sequences(events in prop::collection::vec(event(), 1..120)) {
        check_each_step(&events);
    }
}
