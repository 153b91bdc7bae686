//! Consecutive stages that look ahead: a packet crosses all these stages in one step, ahead of the clock.
//!
//! A source of background traffic is always the first stage of a chain, so it emits up to the clock. Further
//! inside, it would emit as far ahead as the packets that it meets, and these packets would take memory.

use std::collections::VecDeque;
use std::sync::Arc;

use airwire::time::Instant;

use super::NamedStage;
use crate::packet::{Direction, Origin, Packet};
use crate::stage::{Ahead, Background, DropReason, PassingPacket};
use crate::totals::Accounts;

/// Consecutive stages of one direction that look ahead.
pub(super) struct Chain {
    pub(super) direction: Direction,
    /// In the direction of travel.
    members: Vec<Member>,
    /// Index of the first stage.
    pub(super) first: usize,
    /// Index of the last stage.
    pub(super) last: usize,
    /// Whether the last stage is the last one of the path in this direction.
    pub(super) reaches_end: bool,
    /// The background traffic that the first stage emits. `None`: it emits none.
    source: Option<Source>,
    /// Packets of hosts that have crossed the stages, with the times at which they leave the last one.
    leaving: VecDeque<(Instant, Packet)>,
    /// Number of packets that have entered since changes were last applied.
    entered: usize,
    /// The last stage that delays packets. Packets leave the chain at its deadline, so that events at the
    /// same time keep their order.
    pub(super) delays: usize,
}

/// The background traffic that the first stage of a chain emits.
struct Source {
    origin: Origin,
    /// The bytes of each packet.
    packet: Arc<[u8]>,
    /// Time of the next packet.
    next: Instant,
}

/// A stage of a chain.
struct Member {
    index: usize,
    /// Whether the stage's role is [`Ahead::Carries`].
    carries: bool,
    /// Changes of the path's counters that were in the future when they became known: those at the time when
    /// a packet reaches the stage, and those at the time when a packet leaves it. Both are in order of time.
    arriving: VecDeque<(Instant, Change)>,
    departing: VecDeque<(Instant, Change)>,
}

/// A change of the path's counters.
#[derive(Clone, Copy)]
enum Change {
    /// Background traffic of this length left.
    Left(usize),
    Dropped(Origin, DropReason),
}

/// Number of packets after which a chain's changes are applied to the counters.
const CHANGES_INTERVAL: usize = 64;

impl Chain {
    /// Finds the chains of a direction.
    pub(super) fn find(stages: &mut [NamedStage], direction: Direction) -> Vec<Self> {
        let mut order: Vec<usize> = (0..stages.len()).collect();
        if direction == Direction::Up {
            order.reverse();
        }
        let ready = looking_ahead(stages, &order, direction);
        let mut chains = Vec::new();
        let mut start = 0;
        while start < order.len() {
            let is_source = |place: usize| stages[order[place]].stage.background(direction).is_some();
            let continues = |place: &usize| ready[*place] && (*place == start || !is_source(*place));
            let more = (start..order.len()).take_while(continues).count();
            let length = Self::length(stages, &order[start..start + more], direction);
            chains.extend(Self::new(stages, &order[start..start + length], direction));
            start += length.max(1);
        }
        chains
    }

    /// Number of stages from the first of `order` that can form a chain: the background traffic that begins
    /// inside it leaves inside it.
    fn length(stages: &[NamedStage], order: &[usize], direction: Direction) -> usize {
        let mut length = order.len();
        loop {
            let leaves_inside = |place: usize| match stages[order[place]].stage.background(direction) {
                Some(background) => order[place + 1..length].contains(&background.leaves_after),
                None => true,
            };
            match (0..length).find(|place| !leaves_inside(*place)) {
                Some(place) => length = place,
                None => return length,
            }
        }
    }

    /// Returns `None` if no stage of the chain delays or drops packets.
    fn new(stages: &mut [NamedStage], order: &[usize], direction: Direction) -> Option<Self> {
        let mut delays = None;
        for index in order {
            if let Ahead::Carries(stage) = stages[*index].stage.lookahead(direction)
                && (stage.delays() || delays.is_none())
            {
                delays = Some(*index);
            }
        }
        let (delays, first, last) = (delays?, *order.first()?, *order.last()?);
        let end = match direction {
            Direction::Down => stages.len() - 1,
            Direction::Up => 0,
        };
        let member = |index: &usize| Member {
            index: *index,
            carries: false,
            arriving: VecDeque::new(),
            departing: VecDeque::new(),
        };
        let members = order.iter().map(member).collect();
        Some(Self {
            direction,
            members,
            first,
            last,
            reaches_end: last == end,
            source: None,
            leaving: VecDeque::new(),
            entered: 0,
            delays,
        })
    }

    /// Prepares the stages before the first packet.
    pub(super) fn prepare(&mut self, stages: &mut [NamedStage]) {
        for member in &mut self.members {
            let stage = &mut stages[member.index].stage;
            let background = stage.background(self.direction);
            match (stage.lookahead(self.direction), background) {
                (Ahead::Carries(stage), _) => {
                    stage.settle(Instant::ZERO);
                    member.carries = true;
                }
                (Ahead::Emits(emitter), Some(background)) => {
                    let origin = Origin::Background { leaves_after: background.leaves_after as u16 };
                    self.source = Some(Source { origin, packet: emitter.prepare(), next: emitter.next() });
                }
                (Ahead::Emits(_) | Ahead::Passes | Ahead::No, _) => {}
            }
        }
    }

    /// Returns whether a stage reads the bytes of packets.
    pub(super) fn reads_packets(&self, stages: &mut [NamedStage]) -> bool {
        self.members.iter().any(|member| match stages[member.index].stage.lookahead(self.direction) {
            Ahead::Carries(stage) => stage.reads_packets(),
            Ahead::Emits(_) | Ahead::Passes | Ahead::No => false,
        })
    }

    /// Number of stages.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Carries a packet that enters now. Returns when it leaves the last stage. `None`: it is dropped, or it
    /// is background traffic and leaves the path before.
    pub(super) fn enter(
        &mut self,
        stages: &mut [NamedStage],
        now: Instant,
        by_deadline: bool,
        packet: &Packet,
        accounts: &mut Accounts,
    ) -> Option<Instant> {
        // Deadlines at the same time are handled from the fixed to the mobile side. A packet that did not
        // arrive by a deadline entered the path after all these deadlines.
        let is_first = self.direction == Direction::Up || !by_deadline;
        if self.source.as_ref().is_some_and(|source| source.next <= now) {
            self.emit(stages, now, is_first, accounts);
        }
        let (direction, bytes, len) = (self.direction, packet.bytes.as_slice(), packet.len());
        let passing = PassingPacket { now, at: now, direction, bytes, len };
        cross(&mut self.members, stages, packet.origin, passing, accounts)
    }

    /// Emits the background traffic of the first stage before `now`, and with `inclusive` also at that time.
    fn emit(&mut self, stages: &mut [NamedStage], now: Instant, inclusive: bool, accounts: &mut Accounts) {
        let Some(source) = &mut self.source else { return };
        let Some((first, others)) = self.members.split_first_mut() else { return };
        let direction = self.direction;
        while source.next < now || (source.next == now && inclusive) {
            let Ahead::Emits(emitter) = stages[first.index].stage.lookahead(direction) else { return };
            let at = std::mem::replace(&mut source.next, emitter.emit());
            accounts.background[direction].enter(source.packet.len());
            let passing =
                PassingPacket { now, at, direction, bytes: &source.packet, len: source.packet.len() };
            cross(others, stages, source.origin, passing, accounts);
        }
    }

    /// Keeps a packet that leaves later.
    pub(super) fn keep(&mut self, at: Instant, packet: Packet) {
        self.leaving.push_back((at, packet));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.leaving.is_empty()
    }

    /// Returns the next packet that leaves at `now`, or the time of the next departure if no packet leaves now.
    pub(super) fn depart(&mut self, now: Instant) -> Result<Packet, Option<Instant>> {
        match self.leaving.pop_front_if(|(at, _)| *at <= now) {
            Some((_, packet)) => Ok(packet),
            None => Err(self.leaving.front().map(|(at, _)| *at)),
        }
    }

    /// Emits all background traffic up to `now`, and makes the counters of all stages refer to this time.
    pub(super) fn settle(&mut self, stages: &mut [NamedStage], now: Instant, accounts: &mut Accounts) {
        self.emit(stages, now, true, accounts);
        for member in &self.members {
            if let Ahead::Carries(stage) = stages[member.index].stage.lookahead(self.direction) {
                stage.settle(now);
            }
        }
    }

    /// Applies the changes up to `now` to the counters from time to time.
    #[inline]
    pub(super) fn apply_changes(&mut self, now: Instant, accounts: &mut Accounts) {
        self.entered += 1;
        if self.entered == CHANGES_INTERVAL {
            self.entered = 0;
            self.apply_past_changes(now, accounts);
        }
    }

    fn apply_past_changes(&mut self, now: Instant, accounts: &mut Accounts) {
        for member in &mut self.members {
            for changes in [&mut member.arriving, &mut member.departing] {
                while let Some((_, change)) = changes.pop_front_if(|(at, _)| *at <= now) {
                    change.apply(self.direction, accounts);
                }
            }
        }
    }

    /// Adds the changes up to `now` to copies of the counters.
    pub(super) fn add_changes(&self, now: Instant, accounts: &mut Accounts) {
        for member in &self.members {
            for changes in [&member.arriving, &member.departing] {
                for (_, change) in changes.iter().take_while(|(at, _)| *at <= now) {
                    change.apply(self.direction, accounts);
                }
            }
        }
    }
}

/// Lets a packet cross consecutive stages. Returns when it leaves the last one. `None`: it is dropped, or it is
/// background traffic and leaves the path before.
fn cross(
    members: &mut [Member],
    stages: &mut [NamedStage],
    origin: Origin,
    mut packet: PassingPacket<'_>,
    accounts: &mut Accounts,
) -> Option<Instant> {
    for Member { index, carries, arriving, departing } in members {
        if *carries && let Err(why) = stages[*index].stage.carry(&mut packet) {
            Change::Dropped(origin, why).apply_or_keep(&packet, arriving, accounts);
            return None;
        }
        if matches!(origin, Origin::Background { leaves_after } if usize::from(leaves_after) == *index) {
            Change::Left(packet.len).apply_or_keep(&packet, departing, accounts);
            return None;
        }
    }
    Some(packet.at)
}

impl Change {
    /// Applies a change of the past at once, because any number of changes may become known together.
    fn apply_or_keep(
        self,
        packet: &PassingPacket<'_>,
        kept: &mut VecDeque<(Instant, Self)>,
        accounts: &mut Accounts,
    ) {
        if packet.at <= packet.now {
            self.apply(packet.direction, accounts);
        } else {
            kept.push_back((packet.at, self));
        }
    }

    fn apply(self, direction: Direction, accounts: &mut Accounts) {
        match self {
            Self::Left(bytes) => accounts.background[direction].leave(bytes),
            Self::Dropped(origin, why) => accounts.of(direction, origin).dropped[why as usize] += 1,
        }
    }
}

/// Returns for each stage of `order` whether it can be part of a chain. A stage on the way of background traffic
/// must sustain it, because a chain does not count the memory of background traffic.
fn looking_ahead(stages: &mut [NamedStage], order: &[usize], direction: Direction) -> Vec<bool> {
    let mut passing: Vec<Background> = Vec::new();
    let mut ready = Vec::new();
    for index in order {
        let rate = passing.iter().fold(0, |sum: u64, background| sum.saturating_add(background.rate));
        let stage = &mut stages[*index].stage;
        let starts = stage.background(direction);
        ready.push(match stage.lookahead(direction) {
            Ahead::No => {
                // The stage may copy packets.
                if starts.is_none() {
                    passing.iter_mut().for_each(|background| background.rate = u64::MAX);
                }
                false
            }
            Ahead::Carries(stage) => stage.sustains(rate),
            Ahead::Passes | Ahead::Emits(_) => true,
        });
        passing.retain(|background| background.leaves_after != *index);
        passing.extend(starts);
    }
    ready
}
