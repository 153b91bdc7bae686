use std::collections::{BTreeMap, BTreeSet};

use airwire::marks::{DB, OB};
use airwire::rng::Stream;
use airwire::segment::Flags;
use airwire::time::Duration;

use super::*;
use crate::recovery::catalogue;
use crate::recovery::testing::{BareSender, SMSS};
use crate::recovery::{Ack, Handshake, What};

/// Causes a rare move: Reno leaves the episode early, then an ECN echo arrives, and then a D-SACK shows that
/// the episode was spurious.
const RARE: &str = "reno+dsack+ecn";

/// Returns every catalogue entry that may cause a move, and every compatible pair of entries, with and
/// without ECN.
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

/// Runs a sender against an arbitrary receiver and path: ACKs of any segment, echoes of any transmission,
/// marks and ECN echoes in any order, and silence until a timer fires. Returns the moves that the sender
/// made.
fn moves_made(recipe: &str, ecn: bool, seed: u64) -> Vec<Transition> {
    let mut draw = Stream::new(seed, recipe);
    // The sender is a fixed host and the peer is a mobile one.
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
    let mut state = RecoveryState::Open;
    let mut moves = Vec::new();
    for decision in trace {
        let to = match decision.what {
            What::Enter { state, .. } => state,
            What::Leave { .. } => RecoveryState::Open,
            _ => continue,
        };
        let condition =
            TRANSITIONS.iter().map(|made| made.condition).find(|condition| condition.text() == decision.why);
        moves.push(Transition {
            from: state,
            condition: condition.expect("no condition has this reason"),
            to,
        });
        state = to;
    }
    moves
}

/// Generates one event and returns the segments sent in response. `copies` lists the segments retransmitted
/// so far.
fn one_event(sender: &mut BareSender, ecn: bool, copies: &[u64], draw: &mut Stream) -> String {
    let (una, last) = (sender.una(), sender.last());
    let outstanding = last - una;
    if outstanding == 0 {
        return sender.send();
    }
    let flags = if draw.chance(0.5) { Flags(OB) } else { Flags::default() };
    // A connection evaluates ECN echoes only if both ends support ECN.
    let ece = ecn && draw.chance(0.1);
    // The echo belongs to the newest transmission or to any earlier one.
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

/// Checks every recipe with this number of seeds.
fn check_moves(seeds: u64) {
    let mut made_by_some = BTreeSet::new();
    for (name, recipe) in recipes() {
        let profile = recipe.tune(&Profile::default());
        let possible = recipe.transitions(&profile);
        let seeds = if name == RARE { 400 } else { seeds };
        for seed in 0..seeds {
            for made in moves_made(&name, profile.handshake.ecn, seed) {
                assert!(possible.contains(&made), "{name}, seed {seed}: {made:?} is not among {possible:?}");
                made_by_some.insert(made);
            }
        }
    }
    let never: Vec<_> = TRANSITIONS.iter().filter(|made| !made_by_some.contains(made)).collect();
    assert!(never.is_empty(), "no recipe makes these moves: {never:#?}");
}

#[test]
fn recipes_make_declared_moves_and_no_others() {
    check_moves(1);
}

#[test]
#[ignore = "nightly: eight times as many seeds"]
fn recipes_make_declared_moves_with_more_seeds() {
    check_moves(8);
}

/// Returns the states from which `condition` moves a sender of this recipe.
fn start_states(recipe: &str, condition: Condition) -> Vec<RecoveryState> {
    let recipe: Recipe = recipe.parse().unwrap();
    let moves = recipe.transitions(&recipe.tune(&Profile::default()));
    moves.iter().filter(|made| made.condition == condition).map(|made| made.from).collect()
}

#[test]
fn each_answer_adds_its_moves() {
    use RecoveryState::{Cwr, Loss, Open, Recovery};
    for (recipe, condition, states) in [
        ("newreno", Condition::Loss, &[Open] as &[RecoveryState]),
        ("newreno", Condition::RestartingLoss, &[]),
        ("newreno", Condition::EcnEcho, &[]),
        ("newreno", Condition::Mistake, &[]),
        ("newreno+sifest", Condition::Loss, &[Open, Recovery, Loss]),
        ("tahoe", Condition::RestartingLoss, &[Open]),
        ("tahoe", Condition::Loss, &[]),
        ("tahoe+judges", Condition::Loss, &[]),
        // A loss attributed to the radio link does not restart the sender.
        ("tahoe+transit-marks", Condition::Loss, &[Open]),
        ("tahoe+fast-timeout", Condition::TimeoutWithDuplicates, &[Loss]),
        ("sack+pr", Condition::Collapse, &[Open, Recovery, Loss]),
        // Without a scoreboard, only the first outstanding segment can be marked lost.
        ("newreno+pr", Condition::Collapse, &[]),
        ("sack+rack", Condition::RepairedByProbe, &[Open]),
        ("newreno+ecn", Condition::EcnEcho, &[Open]),
        ("newreno+ecn", Condition::Timeout, &[Open, Cwr, Recovery, Loss]),
        ("newreno+frto", Condition::Mistake, &[Loss]),
        ("newreno+eifel", Condition::Mistake, &[Recovery, Loss]),
    ] {
        assert_eq!(start_states(recipe, condition), states, "{recipe}: {condition:?}");
    }
}
