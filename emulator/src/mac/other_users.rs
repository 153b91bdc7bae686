//! Other terminals of the cell, which compete for downlink slots.
//!
//! Choice: their packets are not modelled. Such a terminal either always has data, or receives data at a
//! constant rate.

use airwire::time::{Duration, Instant};
use airwire::units::Rate;

use super::grid::{Grid, Slot};
use super::link_adaptation::LinkAdaptation;
use super::scheduler::{Scheduler, Scheduling};
use crate::packet::Direction;

/// Data that another terminal receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// There is always data.
    FullBuffer,
    /// Data arrives at a constant rate.
    Constant(Rate),
}

/// The other terminals of a cell, and the scheduler that assigns the slots. A slot serves one terminal.
pub struct OtherUsers {
    scheduling: Scheduling,
    /// Number of slots over which the scheduler averages rates.
    window: u32,
    scheduler: Scheduler,
    users: Vec<OtherUser>,
    /// Number of the first slot that is not assigned.
    next: u64,
    /// Slots assigned to other terminals.
    assigned: u64,
}

struct OtherUser {
    demand: Demand,
    adaptation: LinkAdaptation,
    /// Octets that wait, as of `since`. Only with a constant rate.
    backlog: f64,
    since: Instant,
    octets: u64,
}

/// Index of the terminal on the path in the scheduler.
const OWN: usize = 0;

impl OtherUser {
    fn accumulate(&mut self, now: Instant) {
        if let Demand::Constant(rate) = self.demand {
            self.backlog += rate.as_bits_per_second() as f64 / 8.0 * (now - self.since).as_secs_f64();
        }
        self.since = now;
    }

    /// Number of waiting octets that a slot with `capacity` octets can carry to the terminal.
    fn sendable(&self, capacity: usize) -> usize {
        match self.demand {
            Demand::FullBuffer => capacity,
            Demand::Constant(_) => capacity.min(self.backlog as usize),
        }
    }
}

impl OtherUsers {
    /// Creates the cell with these other terminals.
    pub fn new(
        scheduling: Scheduling,
        window: u32,
        users: impl IntoIterator<Item = (Demand, LinkAdaptation)>,
    ) -> Self {
        let users = users.into_iter().map(|(demand, adaptation)| OtherUser {
            demand,
            adaptation,
            backlog: 0.0,
            since: Instant::ZERO,
            octets: 0,
        });
        let users: Vec<_> = users.collect();
        let scheduler = Scheduler::new(1 + users.len());
        Self { scheduling, window, scheduler, users, next: 0, assigned: 0 }
    }

    /// Whether the cell has no other terminals.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Number of slots assigned to other terminals, and the octets that each terminal has received.
    pub fn counters(&self) -> (u64, impl Iterator<Item = u64>) {
        (self.assigned, self.users.iter().map(|user| user.octets))
    }

    /// Assigns the slots up to and including `slot`. Returns whether the terminal on the path gets `slot`, in
    /// which it could receive `own` octets. In the earlier slots, nothing waited for it.
    pub fn assign(&mut self, grid: &Grid, slot: Slot, own: usize) -> bool {
        if self.users.is_empty() {
            return true;
        }
        while self.next < slot.number {
            let start = Instant::ZERO + grid.slot() * self.next;
            let earlier = Slot { number: self.next, start };
            self.assign_one(grid, earlier, None);
        }
        self.next == slot.number && self.assign_one(grid, slot, Some(own)) == Some(OWN)
    }

    fn assign_one(&mut self, grid: &Grid, slot: Slot, own: Option<usize>) -> Option<usize> {
        self.next = slot.number + 1;
        let mut sendable = Vec::with_capacity(1 + self.users.len());
        sendable.extend(own.map(|octets| (OWN, octets)));
        for (n, user) in (1..).zip(&mut self.users) {
            user.accumulate(slot.start);
            let octets = user.adaptation.octets(slot.start);
            sendable.push((n, user.sendable(grid.octets(Direction::Down, slot, octets))));
        }
        let candidates = sendable.iter().filter(|(_, octets)| *octets > 0);
        let candidates = candidates.map(|(n, octets)| (*n, 8.0 * *octets as f64));
        let chosen = self.scheduler.choose(self.scheduling, self.window, slot.number, candidates)?;
        let octets = sendable.iter().find(|(n, _)| *n == chosen).map_or(0, |(_, octets)| *octets);
        self.scheduler.record(self.window, slot.number, chosen, 8.0 * octets as f64);
        if let Some(user) = chosen.checked_sub(1).and_then(|index| self.users.get_mut(index)) {
            self.assigned += 1;
            user.octets += octets as u64;
            user.backlog = (user.backlog - octets as f64).max(0.0);
        }
        Some(chosen)
    }

    /// Continues on another grid, whose slots have other numbers.
    pub fn change_grid(&mut self, old: Duration, new: Duration) {
        self.next =
            (u128::from(self.next) * u128::from(old.as_nanos())).div_ceil(new.as_nanos().into()) as u64;
        self.scheduler = Scheduler::new(1 + self.users.len());
    }
}

#[cfg(test)]
mod tests {
    use airwire::rng::Stream;

    use super::*;
    use crate::mac::link_adaptation::State;

    fn users(scheduling: Scheduling, demands: &[(Demand, usize)]) -> OtherUsers {
        let users = demands.iter().map(|(demand, octets)| {
            let states = vec![State { octets: *octets, mean: Duration::ZERO }];
            (*demand, LinkAdaptation::new(states, Instant::ZERO, Stream::new(1, "x")))
        });
        OtherUsers::new(scheduling, 100, users)
    }

    /// Number of slots out of `slots` that the terminal on the path gets if it always has data.
    fn own_slots(others: &mut OtherUsers, slots: u64) -> u64 {
        let grid = Grid::new(Duration::from_millis(1), "D".parse().unwrap());
        let slots = (0..slots).map(|number| Slot { number, start: Instant::from_millis(number) });
        slots.filter(|slot| others.assign(&grid, *slot, 1_000)).count() as u64
    }

    #[test]
    fn full_buffers_share_slots_equally() {
        for scheduling in [Scheduling::RoundRobin, Scheduling::ProportionalFair] {
            let mut others = users(scheduling, &[(Demand::FullBuffer, 5_000), (Demand::FullBuffer, 200)]);
            assert!(own_slots(&mut others, 3_000).abs_diff(1_000) <= 20, "{scheduling:?}");
            let (assigned, octets) = others.counters();
            assert!(assigned.abs_diff(2_000) <= 20);
            assert!(octets.zip([5_000, 200]).all(|(octets, size)| (octets / size).abs_diff(1_000) <= 20));
        }
    }

    #[test]
    fn constant_demand_takes_slots_it_needs() {
        // 1 Mbit/s are 125 octets per slot of 1000.
        let mut others =
            users(Scheduling::RoundRobin, &[(Demand::Constant(Rate::bits_per_second(1_000_000)), 1_000)]);
        let own = own_slots(&mut others, 8_000);
        let (assigned, mut octets) = others.counters();
        assert_eq!(own + assigned, 8_000);
        assert!(octets.next().unwrap().abs_diff(1_000_000) <= 1_000);
    }

    #[test]
    fn idle_slots_go_to_others() {
        let grid = Grid::new(Duration::from_millis(1), "D".parse().unwrap());
        let mut others = users(Scheduling::RoundRobin, &[(Demand::FullBuffer, 1_000)]);
        let slot = Slot { number: 99, start: Instant::from_millis(99) };
        assert!(others.assign(&grid, slot, 1), "the terminal that has waited longest");
        assert_eq!(others.counters().0, 99);
        assert!(users(Scheduling::RoundRobin, &[]).assign(&grid, slot, 1));
    }
}
