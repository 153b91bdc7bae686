//! Tests of the engine's invariants for every recipe, with arbitrary sequences of events.

use std::ops::Range;

use airtcp_testkit::sample::cases;
use airwire::time::Duration;
use proptest::prelude::*;

use super::*;
use crate::recovery::Recipe;
use crate::recovery::catalogue;
use crate::recovery::testing::{BareSender, RTT, SMSS};

#[test]
fn timeout_in_fast_recovery_halves_window_not_flight() {
    for (repair, sack) in [("newreno", false), ("reno", false), ("sack", true)] {
        let mut sender = BareSender::new(repair).under_way(20.0, 8.0, RTT);
        sender.wait(RTT);
        if sack {
            (3..=21).for_each(|end| drop(sender.sack(&[2..end])));
        } else {
            sender.dupacks(19);
        }
        let outstanding = sender.flight.outstanding().segments;
        assert!(outstanding > 25, "{repair}: new segments replace the delivered ones: {outstanding}");
        sender.timeout();
        assert_eq!(sender.cc().ssthresh, 10.0, "{repair}: half of 20, not of {outstanding}");
    }
}

#[test]
fn rate_samples_begin_when_connection_is_established() {
    let sender = BareSender::new("bbr");
    let rates = sender.recovery.rates.as_deref().unwrap();
    assert_eq!(rates.totals().delivered_time, sender.now);
}

#[test]
fn timeout_after_partial_acks_halves_current_window() {
    let mut sender = BareSender::new("newreno").under_way(20.0, 8.0, RTT);
    sender.wait(RTT).dupacks(19);
    // Everything up to the last segment of the window has arrived except 20, and its retransmission is lost.
    sender.wait(RTT).ack(19);
    sender.dupacks(9);
    let cwnd = sender.cc().cwnd;
    assert!(sender.flight.outstanding().segments as f64 > cwnd + 5.0);
    sender.timeout();
    assert!(sender.cc().ssthresh <= cwnd / 2.0, "{} of a window of {cwnd}", sender.cc().ssthresh);
}

#[test]
fn loss_in_recovery_is_reported_at_its_offset() {
    let mut sender = BareSender::new("sack").under_way(20.0, 8.0, RTT);
    sender.wait(RTT);
    let first = sender.una() + 1;
    sender.sack(&[first + 1..first + 4]);
    // A second hole appears while the first is still open.
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

/// RFC 5681 §3.2 excludes segments sent by Limited Transmit only from the FlightSize of the fast
/// retransmission.
#[test]
fn timeout_in_recovery_counts_segments_of_limited_transmit() {
    let mut sender = BareSender::new("newreno+limited-transmit").under_way(10.0, 8.0, RTT);
    assert_eq!(sender.wait(RTT).dupacks(2), "11 12");
    sender.dupacks(1);
    assert_eq!(sender.cc().ssthresh, 5.0);
    sender.timeout();
    assert_eq!(sender.cc().ssthresh, 6.0);
}

/// RFC 3168 §6.1.2: the reduction covers the data sent before the reduction. The ACK of exactly this data
/// still carries the old echo.
#[test]
fn ecn_reduction_covers_only_data_sent_before_it() {
    let echo = || Ack { ece: true, ..Ack::default() };
    let reduced = || {
        let mut sender = BareSender::new("newreno").under_way(10.0, 8.0, RTT);
        sender.wait(RTT).receive(echo(), 1, &[]);
        sender.receive(echo(), 10, &[]);
        let (state, reductions) = (sender.cc().state(), sender.counters().window_reductions);
        assert_eq!((state, reductions), (RecoveryState::Cwr, 1));
        sender
    };
    let mut loses = reduced();
    for _ in 0..3 {
        loses.receive(Ack { duplicate: true, ..echo() }, 10, &[]);
    }
    assert_eq!(loses.counters().window_reductions, 2, "segment 11 is lost");
    let mut marked = reduced();
    marked.receive(echo(), 11, &[]);
    assert_eq!(marked.counters().window_reductions, 2, "segment 11 is marked");
}

/// RFC 4821 §7.6.2. The other losses of the same window still count.
#[test]
fn lost_mtu_probe_keeps_window_unlike_further_losses() {
    let linux = || Profile::by_name("linux").unwrap();
    let cases = [
        ("newreno", Profile::default(), 12.0),
        ("reno", Profile::default(), 12.0),
        ("tahoe", Profile::default(), 12.0),
        ("sack", Profile::default(), 12.0),
        ("sack+rack+prr", Profile::default(), 12.0),
        // A window in segments shrinks by one for the probe, and grows again.
        ("newreno", linux(), 13.0),
        ("sack+rack+prr", linux(), 13.0),
    ];
    for (recipe, profile, kept) in cases {
        let what = format!("{recipe}@{}", profile.name);
        let sack = recipe.starts_with("sack");
        let lose_first = |further: bool| {
            let mut sender =
                BareSender::with(recipe, profile.clone(), &Handshake::default()).under_way(12.0, 8.0, RTT);
            sender.flight.set_probes_mtu(SMSS, true);
            sender.wait(RTT);
            let blocks = if further { [2..3, 4..9] } else { [2..3, 3..9] };
            match sack {
                true => drop(sender.sack(&blocks)),
                false => drop(sender.dupacks(if further { 6 } else { 7 })),
            }
            sender
        };
        let mut sender = lose_first(false);
        assert!(sender.recovery.take_lost_mtu_probe(), "{what}");
        assert_eq!(sender.flight.head().unwrap().transmissions, 2, "{what}");
        assert_eq!(sender.counters().window_reductions, 0, "{what}");
        assert!(sender.cc().cwnd >= kept, "{what}: {}", sender.cc().cwnd);
        // After the first new ACK, Tahoe waits for a timeout.
        if recipe == "tahoe" {
            continue;
        }
        let mut sender = lose_first(true);
        if !sack {
            sender.wait(RTT).ack(2);
            sender.dupacks(3);
        }
        assert_eq!(sender.counters().window_reductions, 1, "{what}");
    }
}

/// The rest of the window has room for two segments.
#[test]
fn mtu_probe_may_fill_window_exactly() {
    let mut sender = BareSender::new("sack").under_way(10.0, 8.0, RTT);
    let mut room = |cwnd| {
        sender.recovery.put_window(cwnd, 8.0);
        let BareSender { now, ref mut flight, ref mut rtt, .. } = sender;
        let path = Path { now, flight, rtt, smss: SMSS, rwnd: 100 * SMSS, unsent: 2 * SMSS };
        sender.recovery.room_for_mtu_probe(&path, 2 * SMSS)
    };
    assert_eq!((room(11.9), room(12.0)), (ProbeRoom::Later, ProbeRoom::Now));
}

/// An event that a sender must handle.
#[derive(Clone, Debug)]
enum Event {
    /// An ACK of this share of the outstanding data, in eighths, but at least one segment.
    Ack(u64),
    /// A duplicate ACK with SACK blocks for these parts of the outstanding data, in sixteenths.
    Duplicate(Vec<Range<u64>>),
    /// A D-SACK for the last acknowledged segment.
    Dsack,
    /// The earliest timer fires.
    Timer,
    /// Time passes, up to the next timer.
    Wait(u64),
    /// The application writes this many segments.
    Write(u64),
    /// The receiver's window becomes this many segments.
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

/// Every answer of the catalogue, and combinations that interact in complex ways.
fn recipes() -> Vec<String> {
    let answers = catalogue::CATALOGUE.iter().filter(|row| row.question() != Question::Option);
    let together = ["sack+pr+rebate", "sack+rack+prr+cubic", "reno+vegas+fast-timeout", "sack+vegas+prr"];
    let more = ["sack+frto+dsack", "tahoe+vegas+eifel", "newreno+loss-retransmission+frto", "sack+pr+vegas"];
    let names = answers.map(|row| row.name).chain(together).chain(more);
    names.map(str::to_owned).collect()
}

/// Converts ranges of sixteenths of the window into ranges of segments. The first segment is the missing one.
fn sack_blocks(sender: &BareSender, parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let (una, outstanding) = (sender.una(), sender.last() - sender.una());
    let at = |sixteenths: u64| una + 2 + outstanding.saturating_sub(1) * sixteenths.min(16) / 16;
    let blocks = parts.iter().map(|part| at(part.start)..at(part.end));
    blocks.filter(|block| !block.is_empty()).collect()
}

struct Model {
    sender: BareSender,
    name: String,
    /// Whether the recipe declares that one episode may reduce the window more than once.
    reduces_again: bool,
    /// Reductions, timeouts and undone reductions so far. `window_ends` is `recover` of the episode with the
    /// last reduction.
    reduced: (u64, u64, u64),
    window_ends: u64,
    /// SND.MAX before the last event.
    max_before: u64,
}

impl Model {
    fn new(recipe: &str, profile: &str) -> Self {
        let profile = Profile::by_name(profile).unwrap();
        let name = format!("{recipe} in profile {}", profile.name);
        let parsed: Recipe = recipe.parse().unwrap();
        let reduces_again = parsed.parts().any(|(row, _)| row.reduces_again.is_some());
        let mut sender = BareSender::in_profile(recipe, profile);
        sender.written = 30;
        sender.send();
        Self { sender, name, reduces_again, reduced: (0, 0, 0), window_ends: 0, max_before: 0 }
    }

    fn apply(&mut self, event: &Event) {
        let sender = &mut self.sender;
        self.max_before = sender.flight.max();
        let una = sender.una();
        let outstanding = sender.last() - una;
        let now = sender.now;
        match event {
            Event::Ack(eighths) if outstanding > 0 => {
                sender.ack(una + (outstanding * eighths / 8).max(1));
            }
            Event::Duplicate(parts) if outstanding > 0 => {
                let blocks =
                    if sender.recovery.uses_sack() { sack_blocks(sender, parts) } else { Vec::new() };
                sender.receive(Ack { duplicate: true, ..Ack::default() }, una, &blocks);
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

    /// Checks that there is one reduction per window of data. Timeouts and declared exceptions do not count.
    fn check_reductions(&mut self) {
        let counters = self.sender.counters();
        let (reductions, timeouts, undone) = self.reduced;
        let now = (counters.window_reductions, counters.timeouts, counters.undone);
        let by_loss = now.0 > reductions && (now.1, now.2) == (timeouts, undone);
        let una = self.sender.flight.una();
        assert!(
            !by_loss || self.reduces_again || una >= self.window_ends,
            "{}: second reduction for the window of data that ends at {}, at {una}",
            self.name,
            self.window_ends
        );
        if now.0 > reductions {
            // Segments sent before the reduction belong to the window of data that caused the reduction.
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
        // Half of one segment is less than one. ns-2 then sends nothing until an ACK or the timer opens the
        // window.
        let may_be_below_one = sender.recovery.profile().recovery.decrease.min_window < 1.0 && cc.cwnd < 1.0;
        assert!(
            (cc.cwnd >= 1.0 || may_be_below_one) && cc.cwnd >= 0.0 && cc.cwnd.is_finite(),
            "cwnd is at least one segment: {state}"
        );
        assert!(cc.inflation() >= 0.0, "{state}");
        if sender.flight.is_empty() {
            return;
        }
        assert!(sender.rto.is_some(), "data is outstanding, but no timer runs: {state}");
        let (pipe, outstanding) = (sender.flight.pipe(), sender.flight.outstanding());
        // A segment that was retransmitted without being declared lost counts twice (RFC 6675 §4, SetPipe).
        assert!(pipe.segments <= outstanding.segments + sender.flight.resent().segments, "{state}");
        let lost = sender.flight.first_lost().is_some();
        let nothing_in_path = pipe.segments == 0;
        let held = may_be_below_one
            || cc.episode.paused_until().is_some()
            || sender.recovery.allowance.data == AllowedData::New
            || sender.recovery.deadline() == Some(sender.now);
        assert!(
            !(lost && nothing_in_path && !held),
            "a segment is lost and none is in flight, but nothing is sent: {state}"
        );
        // Other repairs count the data in flight differently.
        let has_pipe = sender.recovery.answers().contains(&"sack");
        let room = pipe.segments as f64 + 1.0 <= cc.cwnd.floor();
        assert!(
            !(lost && has_pipe && room && !held),
            "a segment is lost and the window has room, but nothing is sent: {state}"
        );
    }
}

/// Checks every recipe in every profile after each event.
fn check_each_step(events: &[Event]) {
    for recipe in recipes() {
        for profile in Profile::NAMES {
            let mut model = Model::new(&recipe, profile);
            model.check();
            for event in events {
                model.apply(event);
                model.check();
                model.check_reductions();
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn sender_never_stalls(events in prop::collection::vec(event(), 1..120)) {
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
