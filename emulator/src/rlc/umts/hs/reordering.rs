//! The reordering queue of a mobile (TS 25.321 §11.6.2.3). HARQ delivers blocks in any order, and the queue
//! forwards them in the order of their numbers. It stops waiting for a missing block when T1 expires or the
//! window moves past the block. In this file, "§" with a number is a clause of TS 25.321.
//!
//! Numbers have 6 bits. If at least 64 minus the window size consecutive blocks are lost, the number of the next
//! block is inside the receive window, like the number of an old block. The standard has no remedy: the queue
//! then drops blocks as late, or forwards a block in the place of a missing older one. RLC corrects both.

use airwire::time::{Duration, Instant};

/// Transmission sequence number of 6 bits, with arithmetic modulo 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tsn(u8);

impl Tsn {
    const MODULUS: u8 = 64;

    /// `count` modulo 64.
    pub(super) fn of(count: u64) -> Self {
        Self((count % u64::from(Self::MODULUS)) as u8)
    }

    fn plus(self, n: u8) -> Self {
        Self((self.0 + n) % Self::MODULUS)
    }

    /// Distance from `base`, 0 to 63.
    fn since(self, base: Self) -> u8 {
        (self.0 + Self::MODULUS - base.0) % Self::MODULUS
    }
}

/// The reordering queue, for blocks of any type.
pub(super) struct Reordering<T> {
    /// RECEIVE_WINDOW_SIZE.
    window: u8,
    t1: Duration,
    /// next_expected_TSN: a TSN in the window, or the first one above it.
    next_expected: Tsn,
    /// RcvWindow_UpperEdge: the highest TSN received.
    upper_edge: Tsn,
    /// Blocks that cannot be delivered yet, indexed by TSN.
    buffer: [Option<T>; Tsn::MODULUS as usize],
    timer: Option<Timer>,
    pub(super) counters: Counters,
}

/// The state of T1 while it is running.
#[derive(Clone, Copy)]
struct Timer {
    expires: Instant,
    /// T1_TSN.
    tsn: Tsn,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Duplicates, and blocks that arrived too late: the queue had already moved on.
    pub(super) late: u64,
    pub(super) t1_expiries: u64,
    /// Number of times that the window moved past a missing block.
    pub(super) window_moves: u64,
}

impl<T> Reordering<T> {
    pub(super) fn new(window: u8, t1: Duration) -> Self {
        Self {
            window,
            t1,
            next_expected: Tsn(0),
            upper_edge: Tsn(Tsn::MODULUS - 1),
            buffer: std::array::from_fn(|_| None),
            timer: None,
            counters: Counters::default(),
        }
    }

    /// Sets the duration of T1 from its next start on.
    pub(super) fn set_t1(&mut self, t1: Duration) {
        self.t1 = t1;
    }

    /// Returns to the initial state, and drops the blocks in the queue.
    pub(super) fn reset(&mut self) {
        *self = Self { counters: self.counters, ..Self::new(self.window, self.t1) };
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.timer.map(|timer| timer.expires)
    }

    fn lower_edge(&self) -> Tsn {
        self.upper_edge.plus(Tsn::MODULUS - self.window + 1)
    }

    fn is_in_window(&self, tsn: Tsn) -> bool {
        tsn.since(self.lower_edge()) < self.window
    }

    /// Handles the arrival of a block. Appends the blocks that can be forwarded to `delivered`.
    pub(super) fn receive(&mut self, now: Instant, tsn: Tsn, block: T, delivered: &mut Vec<T>) {
        if self.is_in_window(tsn) {
            // §11.6.2.3: within the receiver window, a block is discarded if SN < next_expected_TSN or if it has
            // been received before.
            let lower = self.lower_edge();
            let is_awaited = tsn.since(lower) >= self.next_expected.since(lower);
            if !is_awaited || self.buffer[usize::from(tsn.0)].is_some() {
                self.counters.late += 1;
                return;
            }
        } else {
            // §11.6.2.3: outside the window, RcvWindow_UpperEdge := SN. Blocks that are no longer in the window
            // are delivered, and next_expected_TSN := RcvWindow_UpperEdge − RECEIVE_WINDOW_SIZE + 1.
            self.upper_edge = tsn;
            let mut missing = false;
            while !self.is_in_window(self.next_expected) {
                missing |= !self.deliver_next(delivered);
            }
            self.counters.window_moves += u64::from(missing);
        }
        self.buffer[usize::from(tsn.0)] = Some(block);
        self.deliver_consecutive(delivered);
        self.run_timer(now);
    }

    /// Handles an expiry of T1. §11.6.2.3: all received blocks up to T1_TSN − 1, and all blocks up to the next
    /// one that was not received, are delivered.
    pub(super) fn handle_deadline(&mut self, now: Instant, delivered: &mut Vec<T>) {
        let Some(Timer { tsn, .. }) = self.timer.take_if(|timer| timer.expires <= now) else { return };
        self.counters.t1_expiries += 1;
        while self.next_expected != tsn {
            self.deliver_next(delivered);
        }
        self.deliver_consecutive(delivered);
        self.run_timer(now);
    }

    /// Stops waiting for the next expected block. Returns `false` if that block had not arrived.
    fn deliver_next(&mut self, delivered: &mut Vec<T>) -> bool {
        let block = self.buffer[usize::from(self.next_expected.0)].take();
        self.next_expected = self.next_expected.plus(1);
        let received = block.is_some();
        delivered.extend(block);
        received
    }

    fn deliver_consecutive(&mut self, delivered: &mut Vec<T>) {
        while self.buffer[usize::from(self.next_expected.0)].is_some() {
            self.deliver_next(delivered);
        }
    }

    /// Stops and starts T1. §11.6.2.3: T1 is stopped if the block with TSN = T1_TSN can be delivered. If blocks
    /// then remain that cannot be delivered, T1 is started, and T1_TSN is set to the highest TSN among them.
    fn run_timer(&mut self, now: Instant) {
        if self.timer.is_some_and(|timer| self.buffer[usize::from(timer.tsn.0)].is_none()) {
            self.timer = None;
        }
        if self.timer.is_none() {
            let mut ahead = (0..Tsn::MODULUS).rev().map(|n| self.next_expected.plus(n));
            let highest = ahead.find(|tsn| self.buffer[usize::from(tsn.0)].is_some());
            self.timer = highest.map(|tsn| Timer { expires: now + self.t1, tsn });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T1: Duration = Duration::from_millis(50);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Returns the forwarded blocks after the arrival of blocks with these numbers, one per millisecond from
    /// 1 ms on. Each block contains its number.
    fn through(queue: &mut Reordering<u64>, tsns: &[u64]) -> Vec<u64> {
        let mut delivered = Vec::new();
        for (n, tsn) in (1..).zip(tsns) {
            queue.receive(at(n), Tsn::of(*tsn), *tsn, &mut delivered);
        }
        delivered
    }

    #[test]
    fn in_order_blocks_pass_immediately_across_tsn_wraps() {
        let mut queue = Reordering::new(16, T1);
        let all: Vec<u64> = (0..1000).collect();
        assert_eq!(through(&mut queue, &all), all);
        assert_eq!((queue.next_deadline(), queue.counters), (None, Counters::default()));
    }

    #[test]
    fn block_waits_for_missing_predecessors() {
        let mut queue = Reordering::new(16, T1);
        assert_eq!(through(&mut queue, &[0, 2, 3, 5]), [0]);
        assert_eq!(queue.next_deadline(), Some(at(52)), "T1 started when block 2 arrived");
        assert_eq!(through(&mut queue, &[1]), [1, 2, 3]);
        assert_eq!(queue.next_deadline(), Some(at(51)), "T1 restarts for block 5");
        assert_eq!(through(&mut queue, &[4]), [4, 5]);
        assert_eq!((queue.next_deadline(), queue.counters), (None, Counters::default()));
    }

    #[test]
    fn t1_expiry_skips_missing_earlier_blocks() {
        let mut queue = Reordering::new(16, T1);
        let mut delivered = through(&mut queue, &[1, 3, 4, 6]);
        queue.handle_deadline(at(50), &mut delivered);
        assert_eq!(delivered, [] as [u64; 0]);
        queue.handle_deadline(at(51), &mut delivered);
        // T1 ran only for block 1.
        assert_eq!(delivered, [1]);
        assert_eq!(queue.next_deadline(), Some(at(101)), "T1 restarts for block 6");
        queue.handle_deadline(at(101), &mut delivered);
        assert_eq!(delivered, [1, 3, 4, 6]);
        assert_eq!(through(&mut queue, &[0, 2, 5, 7]), [7]);
        assert_eq!(queue.counters, Counters { late: 3, t1_expiries: 2, window_moves: 0 });
    }

    #[test]
    fn window_advance_skips_missing_blocks() {
        let mut queue = Reordering::new(4, T1);
        assert_eq!(through(&mut queue, &[1, 2, 3]), [] as [u64; 0]);
        // Block 4 moves the window to 1 to 4.
        assert_eq!(through(&mut queue, &[4]), [1, 2, 3, 4]);
        assert_eq!(through(&mut queue, &[7, 9]), [] as [u64; 0]);
        // Block 11 moves the window to 8 to 11. Block 7 has arrived. Blocks 5 and 6 are missing.
        assert_eq!(through(&mut queue, &[11]), [7]);
        assert_eq!(through(&mut queue, &[8]), [8, 9]);
        assert_eq!(queue.counters, Counters { late: 0, t1_expiries: 0, window_moves: 3 });
    }

    #[test]
    fn block_after_many_losses_takes_place_of_older_block() {
        let mut queue = Reordering::new(32, T1);
        let mut delivered = through(&mut queue, &[1, 31]);
        queue.handle_deadline(at(51), &mut delivered);
        assert_eq!(delivered, [1], "the queue waits for block 2");
        queue.receive(at(60), Tsn::of(64), 64, &mut delivered);
        assert_eq!(
            (queue.counters.late, delivered.len()),
            (1, 1),
            "blocks 32 to 63 are lost: 64 looks like 0"
        );
        queue.receive(at(62), Tsn::of(66), 66, &mut delivered);
        assert_eq!(delivered, [1, 66], "66 looks like 2");
        queue.handle_deadline(at(101), &mut delivered);
        assert_eq!(delivered, [1, 66, 31]);
    }

    #[test]
    fn duplicates_are_dropped_and_reset_restarts_numbering() {
        let mut queue = Reordering::new(16, T1);
        assert_eq!(through(&mut queue, &[0, 0, 2, 2]), [0]);
        assert_eq!(queue.counters.late, 2);
        queue.reset();
        assert_eq!(queue.next_deadline(), None);
        assert_eq!(through(&mut queue, &[0, 1]), [0, 1]);
    }
}
