//! Consecutive stages that look ahead: a packet crosses all of them in one step, ahead of the clock.

use std::collections::VecDeque;

use airwire::time::Instant;

use super::NamedStage;
use crate::packet::{Direction, Origin, Packet};
use crate::stage::{Ahead, DropReason};
use crate::totals::Accounts;

/// Consecutive stages of one direction that look ahead.
pub(super) struct Chain {
    pub(super) direction: Direction,
    /// In the direction of travel.
    members: Vec<Member>,
    /// Packets of hosts that have crossed the stages, with the times at which they leave the last one.
    leaving: VecDeque<(Instant, Packet)>,
    /// Number of packets that have entered since changes were last applied.
    entered: usize,
    /// The last stage that delays packets. Packets leave the chain at its deadline, so that events at the
    /// same time keep their order.
    pub(super) delays: usize,
}

/// A stage of a chain.
struct Member {
    index: usize,
    /// Changes of the path's counters that are still in the future: those at the time when a packet reaches
    /// the stage, and those at the time when a packet leaves it. Both are in order of time.
    arriving: VecDeque<(Instant, Change)>,
    departing: VecDeque<(Instant, Change)>,
}

/// A change of the path's counters.
#[derive(Clone, Copy)]
enum Change {
    /// Background traffic of this length entered.
    Entered(usize),
    /// Background traffic of this length left.
    Left(usize),
    Dropped(Origin, DropReason),
}

/// A packet on its way through a chain.
#[derive(Clone, Copy)]
struct PassingPacket<'a> {
    at: Instant,
    /// It got to this place by the deadline of a stage. Otherwise it entered the path at `at`, after all
    /// deadlines of that time.
    by_deadline: bool,
    origin: Origin,
    packet: &'a [u8],
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
        let mut chains = Vec::new();
        let mut rest = order.as_slice();
        while let Some((_, others)) = rest.split_first() {
            let length = Self::length(stages, rest, direction);
            chains.extend(Self::new(stages, &rest[..length], direction));
            rest = if length == 0 { others } else { &rest[length..] };
        }
        chains
    }

    /// Number of stages from the first of `order` that can form a chain.
    fn length(stages: &mut [NamedStage], order: &[usize], direction: Direction) -> usize {
        let mut looks_ahead = |index: &usize| !matches!(stages[*index].stage.lookahead(direction), Ahead::No);
        let mut length = order.iter().position(|index| !looks_ahead(index)).unwrap_or(order.len());
        // Background traffic must leave inside the chain, and the stages on its way must not fill up.
        loop {
            let mut is_carried =
                |place: usize| carries_background(stages, &order[..length], place, direction);
            match (0..length).find(|place| !is_carried(*place)) {
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
        let delays = delays?;
        let member =
            |index: &usize| Member { index: *index, arriving: VecDeque::new(), departing: VecDeque::new() };
        let members = order.iter().map(member).collect();
        Some(Self { direction, members, leaving: VecDeque::new(), entered: 0, delays })
    }

    /// Prepares the stages before the first packet.
    pub(super) fn prepare(&self, stages: &mut [NamedStage]) {
        for member in &self.members {
            match stages[member.index].stage.lookahead(self.direction) {
                Ahead::Carries(stage) => stage.settle(Instant::ZERO),
                Ahead::Emits(emitter) => emitter.settle(Instant::ZERO),
                Ahead::Passes | Ahead::No => {}
            }
        }
    }

    /// Number of stages.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn first(&self) -> usize {
        self.members[0].index
    }

    pub(super) fn last(&self) -> usize {
        self.members[self.members.len() - 1].index
    }

    /// Carries a packet that enters now. Returns when it leaves the last stage. `None`: it is dropped, or it
    /// is background traffic and leaves the path before.
    pub(super) fn enter(
        &mut self,
        stages: &mut [NamedStage],
        now: Instant,
        by_deadline: bool,
        packet: &Packet,
    ) -> Option<Instant> {
        let passing = PassingPacket { at: now, by_deadline, origin: packet.origin, packet: &packet.bytes };
        self.carry(stages, now, 0, passing)
    }

    fn carry(
        &mut self,
        stages: &mut [NamedStage],
        now: Instant,
        from: usize,
        mut passing: PassingPacket<'_>,
    ) -> Option<Instant> {
        for place in from..self.members.len() {
            let index = self.members[place].index;
            match stages[index].stage.lookahead(self.direction) {
                Ahead::Carries(stage) => match stage.carry(now, passing.at, passing.packet) {
                    Ok(leaves) => {
                        passing.by_deadline |= leaves > passing.at;
                        passing.at = leaves;
                    }
                    Err(why) => {
                        let change = Change::Dropped(passing.origin, why);
                        self.members[place].arriving.push_back((passing.at, change));
                        return None;
                    }
                },
                Ahead::Emits(_) => {
                    // Deadlines of one time are handled from the fixed to the mobile side.
                    let is_first = self.direction == Direction::Up || !passing.by_deadline;
                    self.emit(stages, now, place, passing.at, is_first);
                }
                Ahead::Passes | Ahead::No => {}
            }
            if matches!(passing.origin, Origin::Background { leaves_after } if usize::from(leaves_after) == index)
            {
                let change = Change::Left(passing.packet.len());
                self.members[place].departing.push_back((passing.at, change));
                return None;
            }
        }
        Some(passing.at)
    }

    /// Emits the background traffic of one stage before `until`, and with `inclusive` also at that time.
    fn emit(
        &mut self,
        stages: &mut [NamedStage],
        now: Instant,
        place: usize,
        until: Instant,
        inclusive: bool,
    ) {
        let index = self.members[place].index;
        while let Ahead::Emits(emitter) = stages[index].stage.lookahead(self.direction) {
            let at = emitter.next();
            if at > until || (at == until && !inclusive) {
                return;
            }
            let origin = Origin::Background { leaves_after: emitter.leaves_after() };
            let packet = emitter.emit(now);
            self.members[place].arriving.push_back((at, Change::Entered(packet.len())));
            let passing = PassingPacket { at, by_deadline: true, origin, packet: &packet };
            self.carry(stages, now, place + 1, passing);
        }
    }

    /// Keeps a packet that leaves later.
    pub(super) fn keep(&mut self, at: Instant, packet: Packet) {
        self.leaving.push_back((at, packet));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.leaving.is_empty()
    }

    pub(super) fn next_departure(&self) -> Option<Instant> {
        self.leaving.front().map(|(at, _)| *at)
    }

    pub(super) fn depart(&mut self, now: Instant) -> Option<Packet> {
        self.leaving.pop_front_if(|(at, _)| *at <= now).map(|(_, packet)| packet)
    }

    /// Emits all background traffic up to `now`, and makes the counters of all stages refer to this time.
    pub(super) fn settle(&mut self, stages: &mut [NamedStage], now: Instant) {
        for place in 0..self.members.len() {
            self.emit(stages, now, place, now, true);
            match stages[self.members[place].index].stage.lookahead(self.direction) {
                Ahead::Carries(stage) => stage.settle(now),
                Ahead::Emits(emitter) => emitter.settle(now),
                Ahead::Passes | Ahead::No => {}
            }
        }
    }

    /// Applies the changes up to `now` to the counters from time to time.
    pub(super) fn apply_changes(&mut self, now: Instant, accounts: &mut Accounts) {
        self.entered += 1;
        if self.entered < CHANGES_INTERVAL {
            return;
        }
        self.entered = 0;
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

impl Change {
    fn apply(self, direction: Direction, accounts: &mut Accounts) {
        match self {
            Self::Entered(bytes) => accounts.background[direction].enter(bytes),
            Self::Left(bytes) => accounts.background[direction].leave(bytes),
            Self::Dropped(origin, why) => accounts.of(direction, origin).dropped[why as usize] += 1,
        }
    }
}

/// Returns whether the background traffic of the stage at this place, if any, leaves inside the chain, and the
/// stages on its way sustain it together with the traffic from stages before.
fn carries_background(
    stages: &mut [NamedStage],
    order: &[usize],
    place: usize,
    direction: Direction,
) -> bool {
    let Ahead::Emits(emitter) = stages[order[place]].stage.lookahead(direction) else { return true };
    let leaves_after = usize::from(emitter.leaves_after());
    let Some(last) = order.iter().position(|index| *index == leaves_after) else { return false };
    let rate: u64 = order[..=place]
        .iter()
        .map(|index| match stages[*index].stage.lookahead(direction) {
            Ahead::Emits(emitter) => emitter.rate(),
            _ => 0,
        })
        .sum();
    last > place
        && order[place..=last].iter().all(|index| match stages[*index].stage.lookahead(direction) {
            Ahead::Carries(stage) => stage.sustains(rate),
            _ => true,
        })
}
