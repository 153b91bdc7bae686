use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A connection whose other end is played by the test.
#[derive(Default)]
struct Scripted {
    arriving: VecDeque<u8>,
    arrived_end: bool,
    failed: bool,
    /// How much it still takes, and whether it knows before.
    room: usize,
    tells: bool,
    /// At most so much is read or taken at once.
    piece: usize,
    taken: Vec<u8>,
    shut: u32,
    reset: u32,
    /// Bytes that were read from it.
    given: usize,
}

impl Scripted {
    fn new(piece: usize) -> Self {
        Self { piece, ..Self::default() }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.arriving.extend(bytes);
    }
}

impl Endpoint for Scripted {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Stop> {
        assert_eq!(self.reset, 0, "nothing is read from what was reset");
        let count = self.arriving.len().min(buffer.len()).min(self.piece);
        if count == 0 {
            return if self.failed {
                Err(Stop::Failed)
            } else if self.arrived_end {
                Ok(0)
            } else {
                Err(Stop::Later)
            };
        }
        buffer.iter_mut().zip(self.arriving.drain(..count)).for_each(|(to, byte)| *to = byte);
        self.given += count;
        Ok(count)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, Stop> {
        assert_eq!((self.shut, self.reset), (0, 0), "nothing is written after the end");
        let count = self.room.min(bytes.len()).min(self.piece);
        match count {
            _ if self.failed => Err(Stop::Failed),
            0 => Err(Stop::Later),
            _ => {
                self.taken.extend(&bytes[..count]);
                self.room -= count;
                Ok(count)
            }
        }
    }

    fn room(&self) -> usize {
        if self.tells { self.room } else { usize::MAX }
    }

    fn shutdown(&mut self) {
        self.shut += 1;
    }

    fn reset(&mut self) {
        self.reset += 1;
    }

    fn has_failed(&mut self) -> bool {
        self.failed
    }
}

const BOUND: usize = 16;

struct World {
    relay: Relay,
    radio: Scripted,
    target: Scripted,
    chunk: [u8; BOUND],
}

impl World {
    fn new(piece: usize) -> Self {
        let (radio, target) = (Scripted::new(piece), Scripted::new(piece));
        Self { relay: Relay::default(), radio, target, chunk: [0; BOUND] }
    }

    fn turn(&mut self) -> Turn {
        self.relay.turn(&mut self.radio, &mut self.target, &mut self.chunk)
    }

    fn until_it_waits(&mut self) -> Turn {
        loop {
            match self.turn() {
                Turn::Again => {}
                turn => return turn,
            }
        }
    }

    fn leg(&mut self, leg: Leg) -> &mut Scripted {
        match leg {
            Leg::Radio => &mut self.radio,
            Leg::Target => &mut self.target,
        }
    }
}

#[test]
fn a_half_closed_stream_still_gets_its_answer() {
    let mut world = World::new(usize::MAX);
    (world.radio.room, world.target.room) = (100, 100);
    world.radio.send(b"question");
    world.radio.arrived_end = true;
    assert_eq!(world.until_it_waits(), Turn::Waiting);
    assert_eq!((world.target.taken.as_slice(), world.target.shut), (&b"question"[..], 1));
    world.target.send(b"answer");
    assert_eq!(world.until_it_waits(), Turn::Waiting);
    world.target.arrived_end = true;
    assert_eq!(world.until_it_waits(), Turn::Finished);
    assert_eq!((world.radio.taken.as_slice(), world.radio.shut), (&b"answer"[..], 1));
    assert_eq!((world.relay.carried_up(), world.relay.carried_down()), (8, 6));
}

#[test]
fn a_side_that_takes_nothing_is_not_read_for() {
    let mut world = World::new(usize::MAX);
    world.target.send(&[1; 1000]);
    assert_eq!(world.until_it_waits(), Turn::Waiting);
    assert_eq!(world.target.given, BOUND, "one chunk, and no more");
    world.radio.room = BOUND - 1;
    assert_eq!(world.until_it_waits(), Turn::Waiting);
    assert_eq!(world.target.given, BOUND, "not before all of it is gone");
    world.radio.room = 1;
    assert_eq!(world.until_it_waits(), Turn::Waiting);
    assert_eq!(world.target.given, 2 * BOUND);
}

#[test]
fn for_a_side_that_knows_its_room_no_more_is_read_than_it_takes() {
    let mut world = World::new(usize::MAX);
    world.radio.tells = true;
    world.target.send(&[1; 1000]);
    assert_eq!((world.until_it_waits(), world.target.given), (Turn::Waiting, 0));
    world.radio.room = 5;
    assert_eq!((world.until_it_waits(), world.target.given, world.radio.taken.len()), (Turn::Waiting, 5, 5));
}

#[test]
fn the_end_comes_after_what_was_held() {
    let mut world = World::new(usize::MAX);
    world.target.send(b"last");
    world.target.arrived_end = true;
    assert_eq!(world.until_it_waits(), Turn::Waiting);
    assert_eq!(world.radio.shut, 0);
    world.radio.room = 4;
    assert_eq!(world.until_it_waits(), Turn::Waiting);
    assert_eq!((world.radio.taken.as_slice(), world.radio.shut), (&b"last"[..], 1));
}

#[test]
fn a_reset_is_passed_on_even_while_nothing_is_read_from_the_side_that_sent_it() {
    for (failing, other) in [(Leg::Radio, Leg::Target), (Leg::Target, Leg::Radio)] {
        let mut world = World::new(usize::MAX);
        world.leg(failing).send(&[1; BOUND + 1]);
        assert_eq!(world.until_it_waits(), Turn::Waiting, "the other leg takes nothing");
        world.leg(failing).failed = true;
        assert_eq!(world.turn(), Turn::Failed(failing));
        assert_eq!((world.leg(other).reset, world.leg(failing).reset), (1, 0));

        let mut world = World::new(usize::MAX);
        world.leg(failing).arrived_end = true;
        assert_eq!(world.until_it_waits(), Turn::Waiting, "the other leg may answer");
        world.leg(failing).failed = true;
        assert_eq!(world.turn(), Turn::Failed(failing));
        assert_eq!(world.leg(other).reset, 1);
    }
}

#[test]
fn a_turn_carries_one_chunk_each_way_whatever_there_is() {
    let mut world = World::new(usize::MAX);
    (world.radio.room, world.target.room) = (1 << 20, 1 << 20);
    world.radio.send(&[1; 1000]);
    world.target.send(&[2; 1000]);
    assert_eq!(world.turn(), Turn::Again);
    assert_eq!((world.radio.taken.len(), world.target.taken.len()), (BOUND, BOUND));
}

#[test]
fn an_end_right_behind_the_last_octet_is_passed_on_with_it() {
    let mut world = World::new(usize::MAX);
    (world.radio.room, world.target.room) = (100, 100);
    world.target.send(b"short");
    world.target.arrived_end = true;
    world.turn();
    assert_eq!((world.radio.taken.as_slice(), world.radio.shut), (&b"short"[..], 1));
}

#[derive(Clone, Debug)]
enum Happening {
    Arrival(Leg, usize),
    End(Leg),
    Failure(Leg),
    Room(Leg, usize),
    Turn,
}

fn leg() -> impl Strategy<Value = Leg> {
    prop_oneof![Just(Leg::Radio), Just(Leg::Target)]
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (leg(), 1..60usize).prop_map(|(leg, count)| Happening::Arrival(leg, count)),
        6 => (leg(), 1..60usize).prop_map(|(leg, count)| Happening::Room(leg, count)),
        1 => leg().prop_map(Happening::End),
        12 => Just(Happening::Turn),
    ]
}

/// What the test has each leg send: no two neighbours alike, and neither leg like the other.
#[derive(Default)]
struct Sent {
    radio: Vec<u8>,
    target: Vec<u8>,
}

impl Sent {
    fn more(&mut self, leg: Leg, count: usize) -> Vec<u8> {
        let (sent, start) = match leg {
            Leg::Radio => (&mut self.radio, 0),
            Leg::Target => (&mut self.target, 100),
        };
        let from = sent.len();
        sent.extend((from..from + count).map(|i| (start + i * 7) as u8));
        sent[from..].to_vec()
    }
}

/// Plays everything, and after each happening looks at what must always hold. Returns what ended it, if it ended.
fn play(world: &mut World, sent: &mut Sent, happenings: &[Happening]) -> Option<Turn> {
    for happening in happenings {
        match *happening {
            Happening::Arrival(leg, count) => {
                if !world.leg(leg).arrived_end && !world.leg(leg).failed {
                    let bytes = sent.more(leg, count);
                    world.leg(leg).send(&bytes);
                }
            }
            Happening::End(leg) => world.leg(leg).arrived_end = true,
            Happening::Failure(leg) => world.leg(leg).failed = true,
            Happening::Room(leg, count) => world.leg(leg).room += count,
            Happening::Turn => {
                let turn = world.turn();
                if matches!(turn, Turn::Finished | Turn::Failed(_)) {
                    return Some(turn);
                }
            }
        }
        for (source, sink, sent) in
            [(&world.radio, &world.target, &sent.radio), (&world.target, &world.radio, &sent.target)]
        {
            assert!(sent.starts_with(&sink.taken), "what arrives is what was sent");
            assert!(source.given - sink.taken.len() <= BOUND, "no more than the bound waits here");
            if sink.shut > 0 {
                assert_eq!(sink.taken.len(), sent.len(), "the end comes last");
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_streams_arrive_whole_however_they_are_cut(
        piece in 1..40usize,
        happenings in vec(happening(), 0..200),
    ) {
        let (mut world, mut sent) = (World::new(piece), Sent::default());
        let ended = play(&mut world, &mut sent, &happenings);
        let ended = ended.unwrap_or_else(|| {
            for leg in [Leg::Radio, Leg::Target] {
                world.leg(leg).arrived_end = true;
                world.leg(leg).room = usize::MAX;
            }
            world.until_it_waits()
        });
        prop_assert_eq!(ended, Turn::Finished);
        prop_assert_eq!(&world.target.taken, &sent.radio);
        prop_assert_eq!(&world.radio.taken, &sent.target);
        prop_assert_eq!((world.radio.shut, world.target.shut), (1, 1), "each end is passed on once");
        prop_assert_eq!((world.radio.reset, world.target.reset), (0, 0));
    }

    #[test]
    fn a_failure_at_any_moment_resets_the_other_side_and_nothing_else(
        piece in 1..40usize,
        before in vec(happening(), 0..80),
        failing in leg(),
        after in vec(happening(), 0..40),
    ) {
        let (mut world, mut sent) = (World::new(piece), Sent::default());
        let ended = play(&mut world, &mut sent, &before).or_else(|| {
            let mut rest = vec![Happening::Failure(failing)];
            rest.extend(after);
            play(&mut world, &mut sent, &rest)
        });
        let ended = ended.unwrap_or_else(|| world.until_it_waits());
        match ended {
            // Both streams had ended before.
            Turn::Finished => prop_assert_eq!((world.radio.reset, world.target.reset), (0, 0)),
            Turn::Failed(leg) => {
                prop_assert_eq!(leg, failing);
                let resets = (world.leg(Leg::Radio).reset, world.leg(Leg::Target).reset);
                prop_assert_eq!(resets, if failing == Leg::Radio { (0, 1) } else { (1, 0) });
            }
            Turn::Again | Turn::Waiting => prop_assert!(false, "the failure was not noticed: {:?}", ended),
        }
    }
}
