use std::collections::{BTreeMap, BTreeSet};

use airwire::marks::{DB, OB};
use airwire::rng::Stream;
use airwire::segment::Flags;
use airwire::time::Duration;

use super::*;
use crate::recovery::catalogue;
use crate::recovery::testing::{BareSender, SMSS};
use crate::recovery::{Ack, Handshake, What};

/// Reno leaves an event before its end; an ECN echo comes, and then the report that the event was a mistake.
const RARE: &str = "reno+dsack+ecn";

/// Every name of the catalogue that may be part of a move, and every two of them that go together, with ECN and
/// without.
fn recipes() -> BTreeMap<String, Recipe> {
    let rows = catalogue::CATALOGUE.iter().filter(|row| row.question() != Question::Option);
    let mut words: Vec<&str> = rows.map(|row| row.name).collect();
    words.extend(["marked-timeout", "limited-transmit"]);
    let pairs = words.iter().enumerate().flat_map(|(at, a)| words[at..].iter().map(move |b| (*a, *b)));
    let texts = pairs.flat_map(|(a, b)| {
        let both = if a == b { a.to_owned() } else { format!("{a}+{b}") };
        [format!("{both}+ecn"), both]
    });
    texts
        .chain([RARE, "tahoe+transit-marks+sifest"].map(str::to_owned))
        .filter_map(|text| text.parse::<Recipe>().ok())
        .map(|recipe| (recipe.canonical(), recipe))
        .collect()
}

/// A receiver and a path that do anything whatever: ACKs of any segment, with echoes of any copy, with marks and ECN
/// echoes, in any order, and silence until a timer fires. Returns the moves that the sender has made.
fn moves_made(recipe: &str, ecn: bool, seed: u64) -> Vec<Move> {
    let mut draw = Stream::new(seed, recipe);
    // From a fixed host to a mobile one.
    let peer_flags = Flags(DB);
    let handshake = Handshake { sack: true, timestamps: true, peer_flags, ..Handshake::default() };
    let mut sender = BareSender::with(recipe, Profile::default(), &handshake);
    sender.rwnd = 40;
    let window = 2.0 + draw.below(20) as f64;
    sender = sender.under_way(window, 8.0, Duration::from_millis(100));
    let (mut trace, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        sender.wait(Duration::from_millis(draw.below(60)));
        let sent = one_event(&mut sender, ecn, &copies, &mut draw);
        copies.extend(sent.split(' ').filter_map(|word| word.strip_suffix('r')?.parse::<u64>().ok()));
        trace.extend(sender.trace());
    }
    let mut state = Phase::Open;
    let mut moves = Vec::new();
    for decision in trace {
        let to = match decision.what {
            What::Enter { phase, .. } => phase,
            What::Leave { .. } => Phase::Open,
            _ => continue,
        };
        let cue = MOVES.iter().map(|made| made.cue).find(|cue| cue.text() == decision.why);
        moves.push(Move { from: state, cue: cue.expect("it is noted why"), to });
        state = to;
    }
    moves
}

/// Returns what leaves. `copies` has what was sent again.
fn one_event(sender: &mut BareSender, ecn: bool, copies: &[u64], draw: &mut Stream) -> String {
    let (una, last) = (sender.flight.una() / SMSS, sender.last());
    let outstanding = last - una;
    if outstanding == 0 {
        return sender.send();
    }
    let flags = if draw.chance(0.5) { Flags(OB) } else { Flags::default() };
    // The connection hears echoes only if both ends understand ECN.
    let ece = ecn && draw.chance(0.1);
    // Of the newest copy that left, or of any earlier one.
    let ecr = Some(sender.now.as_millis() as u32 - draw.below(400) as u32);
    let ack = Ack { flags, ece, ecr, ..Ack::default() };
    match draw.below(10) {
        0..3 => sender.receive(ack, una + 1 + draw.below(outstanding.min(4)), &[]),
        3 => sender.receive(ack, last, &[]),
        4..6 => sender.receive(Ack { duplicate: true, ..ack }, una, &[]),
        6..8 => {
            let from = (una + 2 + draw.below(outstanding)).min(last);
            let to = (from + 1 + draw.below(4)).min(last + 1);
            sender.receive(ack, una, &[from..to])
        }
        8 => {
            let copy = copies.last().copied().filter(|_| draw.chance(0.9));
            let end = SMSS * copy.unwrap_or_else(|| 1 + draw.below(last));
            sender.receive(Ack { dsack: Some((end - SMSS, end)), ..ack }, una, &[])
        }
        _ => match (sender.recovery.deadline(), sender.rto) {
            (Some(at), rto) if rto.is_none_or(|rto| at < rto) => sender.deadline(),
            (_, Some(_)) => sender.timeout(),
            (_, None) => String::new(),
        },
    }
}

/// Tries every recipe with this many seeds.
fn check_moves(seeds: u64) {
    let mut made_by_some = BTreeSet::new();
    for (name, recipe) in recipes() {
        let profile = recipe.tune(&Profile::default());
        let possible = recipe.moves(&profile);
        let seeds = if name == RARE { 400 } else { seeds };
        for seed in 0..seeds {
            for made in moves_made(&name, profile.ecn, seed) {
                assert!(possible.contains(&made), "{name}, seed {seed}: {made:?} is not among {possible:?}");
                made_by_some.insert(made);
            }
        }
    }
    let never: Vec<_> = MOVES.iter().filter(|made| !made_by_some.contains(made)).collect();
    assert!(never.is_empty(), "{never:#?}");
}

#[test]
fn a_recipe_makes_only_the_moves_that_it_can_make_and_each_move_is_made() {
    check_moves(1);
}

#[test]
#[ignore = "nightly: eight times as many seeds"]
fn only_possible_moves_with_more_seeds() {
    check_moves(8);
}

/// The states from which the cue moves a sender of this recipe.
fn from(recipe: &str, cue: Cue) -> Vec<Phase> {
    let recipe: Recipe = recipe.parse().unwrap();
    let moves = recipe.moves(&recipe.tune(&Profile::default()));
    moves.iter().filter(|made| made.cue == cue).map(|made| made.from).collect()
}

#[test]
fn each_part_adds_what_it_is_there_for() {
    use Phase::{Open, Recovery, Reduced, Restarted};
    for (recipe, cue, states) in [
        ("newreno", Cue::Loss, &[Open] as &[Phase]),
        ("newreno", Cue::RestartingLoss, &[]),
        ("newreno", Cue::EcnEcho, &[]),
        ("newreno", Cue::Mistake, &[]),
        ("newreno+sifest", Cue::Loss, &[Open, Recovery, Restarted]),
        ("tahoe", Cue::RestartingLoss, &[Open]),
        ("tahoe", Cue::Loss, &[]),
        ("tahoe+judges", Cue::Loss, &[]),
        // What the radio has lost does not make it start over.
        ("tahoe+transit-marks", Cue::Loss, &[Open]),
        ("tahoe+fast-timeout", Cue::TimeoutWithDuplicates, &[Restarted]),
        ("sack+pr", Cue::Collapse, &[Open, Recovery, Restarted]),
        // Without a scoreboard only the head is judged.
        ("newreno+pr", Cue::Collapse, &[]),
        ("sack+rack", Cue::RepairedByProbe, &[Open]),
        ("newreno+ecn", Cue::EcnEcho, &[Open]),
        ("newreno+ecn", Cue::Timeout, &[Open, Reduced, Recovery, Restarted]),
        ("newreno+frto", Cue::Mistake, &[Restarted]),
        ("newreno+eifel", Cue::Mistake, &[Recovery, Restarted]),
    ] {
        assert_eq!(from(recipe, cue), states, "{recipe}: {cue:?}");
    }
}
