//! Transport blocks between their transmission and their arrival.

use std::collections::VecDeque;

use airwire::time::Instant;

/// Blocks in the order of their arrival. Blocks that arrive at the same time keep their order.
#[derive(Debug)]
pub struct InFlight<T> {
    blocks: VecDeque<Flight<T>>,
    memory: u64,
}

#[derive(Debug)]
struct Flight<T> {
    at: Instant,
    memory: u64,
    block: T,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self { blocks: VecDeque::new(), memory: 0 }
    }
}

impl<T> InFlight<T> {
    /// Adds a block of `memory` bytes that arrives at `at`. Usually no other block arrives later.
    pub fn launch(&mut self, at: Instant, memory: u64, block: T) {
        let overtaken = self.blocks.iter().rev().take_while(|flight| flight.at > at).count();
        self.memory += memory;
        self.blocks.insert(self.blocks.len() - overtaken, Flight { at, memory, block });
    }

    /// Adds a block that does not overtake others, even if the delay was shortened while they were in flight.
    pub fn launch_in_order(&mut self, at: Instant, memory: u64, block: T) {
        let at = self.blocks.back().map_or(at, |last| at.max(last.at));
        self.launch(at, memory, block);
    }

    /// Memory of the blocks, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// The arrival time of the next block.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.blocks.front().map(|flight| flight.at)
    }

    /// Takes the next block that has arrived by `now`.
    pub fn take(&mut self, now: Instant) -> Option<T> {
        let Flight { memory, block, .. } = self.blocks.pop_front_if(|flight| flight.at <= now)?;
        self.memory -= memory;
        Some(block)
    }

    /// Discards all blocks, and returns them.
    pub fn clear(&mut self) -> impl Iterator<Item = T> {
        self.memory = 0;
        self.blocks.drain(..).map(|flight| flight.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_arrive_by_time_then_by_order() {
        let at = Instant::from_millis;
        let mut in_flight = InFlight::default();
        for (millis, block) in [(5, 'a'), (3, 'b'), (5, 'c'), (4, 'd'), (9, 'e')] {
            in_flight.launch(at(millis), 10, block);
        }
        assert_eq!(in_flight.next_arrival(), Some(at(3)));
        let arrived: Vec<_> = std::iter::from_fn(|| in_flight.take(at(5))).collect();
        assert_eq!(arrived, ['b', 'd', 'a', 'c']);
        assert_eq!(in_flight.memory(), 10);
        in_flight.launch_in_order(at(7), 10, 'f');
        assert_eq!(in_flight.clear().collect::<Vec<_>>(), ['e', 'f']);
        assert_eq!(in_flight.memory(), 0);
    }
}
