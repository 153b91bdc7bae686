//! Transport blocks between their transmission and their arrival.

use std::collections::VecDeque;

use airwire::time::Instant;

/// Blocks in the order of their arrival. Blocks that arrive at the same time keep their order.
#[derive(Debug)]
pub struct InFlight<T> {
    blocks: VecDeque<(Instant, T)>,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self { blocks: VecDeque::new() }
    }
}

impl<T> InFlight<T> {
    /// Adds a block that arrives at `at`. Usually no other block arrives later.
    pub fn launch(&mut self, at: Instant, block: T) {
        let overtaken = self.blocks.iter().rev().take_while(|(other, _)| *other > at).count();
        self.blocks.insert(self.blocks.len() - overtaken, (at, block));
    }

    /// The arrival time of the next block.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.blocks.front().map(|(at, _)| *at)
    }

    /// Takes the next block that has arrived by `now`.
    pub fn take(&mut self, now: Instant) -> Option<T> {
        Some(self.blocks.pop_front_if(|(at, _)| *at <= now)?.1)
    }

    /// Discards all blocks, and returns them.
    pub fn clear(&mut self) -> impl Iterator<Item = T> {
        self.blocks.drain(..).map(|(_, block)| block)
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
            in_flight.launch(at(millis), block);
        }
        assert_eq!(in_flight.next_arrival(), Some(at(3)));
        let arrived: Vec<_> = std::iter::from_fn(|| in_flight.take(at(5))).collect();
        assert_eq!(arrived, ['b', 'd', 'a', 'c']);
        assert_eq!(in_flight.clear().collect::<Vec<_>>(), ['e']);
    }
}
