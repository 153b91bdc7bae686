use std::collections::VecDeque;

use airtcp_testkit::sample::cases;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A connection whose other end the test plays.
#[derive(Default)]
struct Scripted {
    arriving: VecDeque<u8>,
    arrived_end: bool,
    failed: bool,
    /// Bytes that it still takes, and whether `room()` reports this number.
    room: usize,
    reports_room: bool,
    /// Maximum number of bytes per read or write.
    piece: usize,
    taken: Vec<u8>,
    shut: u32,
    reset: u32,
    /// Bytes that the relay has read from this end.
    bytes_read: usize,
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
        assert_eq!(self.reset, 0, "no read after a reset");
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
        self.bytes_read += count;
        Ok(count)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, Stop> {
        assert_eq!((self.shut, self.reset), (0, 0), "no write after a shutdown or reset");
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
        if self.reports_room { self.room } else { usize::MAX }
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

    fn forward(&mut self) -> RelayStatus {
        self.relay.forward(&mut self.radio, &mut self.target, &mut self.chunk)
    }

    fn run_until_waiting(&mut self) -> RelayStatus {
        loop {
            match self.forward() {
                RelayStatus::Again => {}
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
fn half_closed_stream_still_receives_answer() {
    let mut world = World::new(usize::MAX);
    (world.radio.room, world.target.room) = (100, 100);
    world.radio.send(b"question");
    world.radio.arrived_end = true;
    assert_eq!(world.run_until_waiting(), RelayStatus::Waiting);
    assert_eq!((world.target.taken.as_slice(), world.target.shut), (&b"question"[..], 1));
    world.target.send(b"answer");
    assert_eq!(world.run_until_waiting(), RelayStatus::Waiting);
    world.target.arrived_end = true;
    assert_eq!(world.run_until_waiting(), RelayStatus::Finished);
    assert_eq!((world.radio.taken.as_slice(), world.radio.shut), (&b"answer"[..], 1));
    assert_eq!((world.relay.carried_up(), world.relay.carried_down()), (8, 6));
}

#[test]
fn blocked_side_stops_reads_from_other_side() {
    let mut world = World::new(usize::MAX);
    world.target.send(&[1; 1000]);
    assert_eq!(world.run_until_waiting(), RelayStatus::Waiting);
    assert_eq!(world.target.bytes_read, BOUND, "one chunk only");
    world.radio.room = BOUND - 1;
    assert_eq!(world.run_until_waiting(), RelayStatus::Waiting);
    assert_eq!(world.target.bytes_read, BOUND, "no read before the whole chunk is written");
    world.radio.room = 1;
    assert_eq!(world.run_until_waiting(), RelayStatus::Waiting);
    assert_eq!(world.target.bytes_read, 2 * BOUND);
}

#[test]
fn relay_reads_no_more_than_reported_room() {
    let mut world = World::new(usize::MAX);
    world.radio.reports_room = true;
    world.target.send(&[1; 1000]);
    assert_eq!((world.run_until_waiting(), world.target.bytes_read), (RelayStatus::Waiting, 0));
    world.radio.room = 5;
    assert_eq!(
        (world.run_until_waiting(), world.target.bytes_read, world.radio.taken.len()),
        (RelayStatus::Waiting, 5, 5)
    );
}

#[test]
fn shutdown_is_forwarded_after_held_data() {
    let mut world = World::new(usize::MAX);
    world.target.send(b"last");
    world.target.arrived_end = true;
    assert_eq!(world.run_until_waiting(), RelayStatus::Waiting);
    assert_eq!(world.radio.shut, 0);
    world.radio.room = 4;
    assert_eq!(world.run_until_waiting(), RelayStatus::Waiting);
    assert_eq!((world.radio.taken.as_slice(), world.radio.shut), (&b"last"[..], 1));
}

#[test]
fn reset_is_forwarded_while_reading_is_paused() {
    for (failing, other) in [(Leg::Radio, Leg::Target), (Leg::Target, Leg::Radio)] {
        let mut world = World::new(usize::MAX);
        world.leg(failing).send(&[1; BOUND + 1]);
        assert_eq!(world.run_until_waiting(), RelayStatus::Waiting, "the other leg has no room");
        world.leg(failing).failed = true;
        assert_eq!(world.forward(), RelayStatus::Failed(failing));
        assert_eq!((world.leg(other).reset, world.leg(failing).reset), (1, 0));

        let mut world = World::new(usize::MAX);
        world.leg(failing).arrived_end = true;
        assert_eq!(world.run_until_waiting(), RelayStatus::Waiting, "the other leg may answer");
        world.leg(failing).failed = true;
        assert_eq!(world.forward(), RelayStatus::Failed(failing));
        assert_eq!(world.leg(other).reset, 1);
    }
}

#[test]
fn turn_carries_one_chunk_per_direction() {
    let mut world = World::new(usize::MAX);
    (world.radio.room, world.target.room) = (1 << 20, 1 << 20);
    world.radio.send(&[1; 1000]);
    world.target.send(&[2; 1000]);
    assert_eq!(world.forward(), RelayStatus::Again);
    assert_eq!((world.radio.taken.len(), world.target.taken.len()), (BOUND, BOUND));
}

#[test]
fn shutdown_is_forwarded_with_last_bytes() {
    let mut world = World::new(usize::MAX);
    (world.radio.room, world.target.room) = (100, 100);
    world.target.send(b"short");
    world.target.arrived_end = true;
    world.forward();
    assert_eq!((world.radio.taken.as_slice(), world.radio.shut), (&b"short"[..], 1));
}

#[derive(Clone, Debug)]
enum Action {
    Arrival(Leg, usize),
    End(Leg),
    Failure(Leg),
    Room(Leg, usize),
    RelayStatus,
}

fn leg() -> impl Strategy<Value = Leg> {
    prop_oneof![Just(Leg::Radio), Just(Leg::Target)]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (leg(), 1..60usize).prop_map(|(leg, count)| Action::Arrival(leg, count)),
        6 => (leg(), 1..60usize).prop_map(|(leg, count)| Action::Room(leg, count)),
        1 => leg().prop_map(Action::End),
        12 => Just(Action::RelayStatus),
    ]
}

/// The bytes that each leg sends. Neighbouring bytes differ, and the two legs send different bytes.
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

/// Plays all actions and checks the invariants after each. Returns the result that ended the relay, if it
/// ended.
fn play(world: &mut World, sent: &mut Sent, actions: &[Action]) -> Option<RelayStatus> {
    for action in actions {
        match *action {
            Action::Arrival(leg, count) => {
                if !world.leg(leg).arrived_end && !world.leg(leg).failed {
                    let bytes = sent.more(leg, count);
                    world.leg(leg).send(&bytes);
                }
            }
            Action::End(leg) => world.leg(leg).arrived_end = true,
            Action::Failure(leg) => world.leg(leg).failed = true,
            Action::Room(leg, count) => world.leg(leg).room += count,
            Action::RelayStatus => {
                let turn = world.forward();
                if matches!(turn, RelayStatus::Finished | RelayStatus::Failed(_)) {
                    return Some(turn);
                }
            }
        }
        for (source, sink, sent) in
            [(&world.radio, &world.target, &sent.radio), (&world.target, &world.radio, &sent.target)]
        {
            assert!(sent.starts_with(&sink.taken), "the received bytes are a prefix of the sent bytes");
            assert!(source.bytes_read - sink.taken.len() <= BOUND, "the relay holds at most one chunk");
            if sink.shut > 0 {
                assert_eq!(sink.taken.len(), sent.len(), "the shutdown follows all data");
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn both_streams_arrive_whole_for_any_fragmentation(
        piece in 1..40usize,
        actions in vec(action(), 0..200),
    ) {
        let (mut world, mut sent) = (World::new(piece), Sent::default());
        let ended = play(&mut world, &mut sent, &actions);
        let ended = ended.unwrap_or_else(|| {
            for leg in [Leg::Radio, Leg::Target] {
                world.leg(leg).arrived_end = true;
                world.leg(leg).room = usize::MAX;
            }
            world.run_until_waiting()
        });
        prop_assert_eq!(ended, RelayStatus::Finished);
        prop_assert_eq!(&world.target.taken, &sent.radio);
        prop_assert_eq!(&world.radio.taken, &sent.target);
        prop_assert_eq!((world.radio.shut, world.target.shut), (1, 1), "each shutdown is forwarded once");
        prop_assert_eq!((world.radio.reset, world.target.reset), (0, 0));
    }

    #[test]
    fn failure_resets_only_other_side(
        piece in 1..40usize,
        before in vec(action(), 0..80),
        failing in leg(),
        after in vec(action(), 0..40),
    ) {
        let (mut world, mut sent) = (World::new(piece), Sent::default());
        let ended = play(&mut world, &mut sent, &before).or_else(|| {
            let mut rest = vec![Action::Failure(failing)];
            rest.extend(after);
            play(&mut world, &mut sent, &rest)
        });
        let ended = ended.unwrap_or_else(|| world.run_until_waiting());
        match ended {
            // Both streams ended before the failure.
            RelayStatus::Finished => prop_assert_eq!((world.radio.reset, world.target.reset), (0, 0)),
            RelayStatus::Failed(leg) => {
                prop_assert_eq!(leg, failing);
                let resets = (world.leg(Leg::Radio).reset, world.leg(Leg::Target).reset);
                prop_assert_eq!(resets, if failing == Leg::Radio { (0, 1) } else { (1, 0) });
            }
            RelayStatus::Again | RelayStatus::Waiting => prop_assert!(false, "the failure was not noticed: {:?}", ended),
        }
    }
}
