//! Receiving side of PDCP in NR (TS 38.323 §5.2.2).

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use super::Count;
use super::pdu::{Format, StatusReport};

/// Settings of the receiving side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NrReceiverConfig {
    /// t-Reordering: the time after which a missing SDU is given up. `None`: infinity.
    pub t_reordering: Option<Duration>,
    /// outOfOrderDelivery: SDUs are delivered as soon as they arrive.
    pub out_of_order: bool,
}

/// The receiving side. `P` is a PDU. Delivered PDUs are taken with [`poll_pdu`](Self::poll_pdu).
#[derive(Debug)]
pub struct NrReceiver<P> {
    format: Format,
    config: NrReceiverConfig,
    /// RX_NEXT: COUNT of the next SDU that is expected.
    rx_next: Count,
    /// RX_DELIV: COUNT of the first SDU that has not been delivered and is still waited for.
    rx_deliv: Count,
    reordering: Option<Reordering>,
    /// The SDUs from RX_DELIV to RX_NEXT. The first one is missing.
    slots: VecDeque<Slot<P>>,
    held: usize,
    delivered: VecDeque<(Count, P)>,
    counters: ReceiverCounters,
}

/// t-Reordering while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reordering {
    /// RX_REORD: the COUNT after the SDU that started the timer.
    rx_reord: Count,
    expires: Instant,
}

#[derive(Debug)]
enum Slot<P> {
    Missing,
    Held {
        pdu: P,
        since: Instant,
    },
    /// Delivered out of order.
    Delivered,
}

/// Counters of a receiving side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// SDUs that were delivered.
    pub delivered: u64,
    /// SDUs that waited for earlier ones before they were delivered.
    pub held: u64,
    /// Sum of the times for which SDUs waited.
    pub hold_time: Duration,
    /// Longest time for which an SDU waited.
    pub longest_hold: Duration,
    /// Discarded PDUs: duplicates, and PDUs that arrived after t-Reordering had given them up.
    pub discarded: u64,
    /// Expiries of t-Reordering.
    pub t_reordering_expiries: u64,
}

impl ReceiverCounters {
    pub(super) fn count_hold(&mut self, time: Duration) {
        self.held += 1;
        self.hold_time += time;
        self.longest_hold = self.longest_hold.max(time);
    }
}

/// Result of the reception of a data PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// It was delivered, or is held until earlier ones have arrived.
    Accepted,
    /// It was discarded: it had arrived before, or the receiver no longer waits for it.
    Discarded {
        /// COUNT of its SDU.
        count: Count,
    },
}

impl<P> NrReceiver<P> {
    /// Creates the receiving side. The first COUNT is 0.
    pub fn new(format: Format, config: NrReceiverConfig) -> Self {
        Self {
            format,
            config,
            rx_next: 0,
            rx_deliv: 0,
            reordering: None,
            slots: VecDeque::new(),
            held: 0,
            delivered: VecDeque::new(),
            counters: ReceiverCounters::default(),
        }
    }

    /// Current counters.
    pub fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    /// Number of SDUs that wait for earlier ones.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Whether the receiver has the SDU, but has not delivered it.
    pub fn holds(&self, count: Count) -> bool {
        matches!(self.index(count).and_then(|index| self.slots.get(index)), Some(Slot::Held { .. }))
    }

    /// Changes the settings. If t-Reordering changes while it runs, it is restarted with its new value (TS
    /// 38.323 §5.2.2.3).
    pub fn reconfigure(&mut self, now: Instant, config: NrReceiverConfig) {
        let restart = config.t_reordering != self.config.t_reordering;
        self.config = config;
        if config.out_of_order {
            for index in 0..self.slots.len() {
                self.deliver(now, index);
            }
        }
        if restart && self.reordering.take().is_some() {
            self.start_if_needed(now);
        }
    }

    /// Takes the next delivered PDU with its COUNT.
    pub fn poll_pdu(&mut self) -> Option<(Count, P)> {
        self.delivered.pop_front()
    }

    /// RCVD_COUNT of a sequence number (§5.2.2.1): the COUNT with this number that differs from RX_DELIV by
    /// at most half of the number space. Returns `None` for a COUNT below 0.
    fn rcvd_count(&self, sn: u32) -> Option<Count> {
        let window = self.format.window();
        let distance = u64::from(sn).wrapping_sub(self.rx_deliv).wrapping_add(window) & (2 * window - 1);
        (self.rx_deliv + distance).checked_sub(window)
    }

    fn index(&self, count: Count) -> Option<usize> {
        usize::try_from(count.checked_sub(self.rx_deliv)?).ok()
    }

    /// Handles a data PDU with the sequence number `sn`.
    pub fn receive(&mut self, now: Instant, sn: u32, pdu: P) -> Reception {
        let Some(count) = self.rcvd_count(sn) else { return Reception::Discarded { count: Count::MAX } };
        let Some(index) = self.index(count) else {
            // §5.2.2.1: a PDU with RCVD_COUNT < RX_DELIV is discarded. It was delivered before, or given up.
            self.counters.discarded += 1;
            return Reception::Discarded { count };
        };
        while self.slots.len() <= index {
            self.slots.push_back(Slot::Missing);
        }
        // §5.2.2.1: a PDU whose COUNT has been received before is discarded.
        if !matches!(self.slots[index], Slot::Missing) {
            self.counters.discarded += 1;
            return Reception::Discarded { count };
        }
        self.rx_next = self.rx_next.max(count + 1);
        self.slots[index] = Slot::Held { pdu, since: now };
        self.held += 1;
        if self.config.out_of_order {
            self.deliver(now, index);
        }
        // §5.2.2.1: if RCVD_COUNT = RX_DELIV, all SDUs with consecutive COUNTs from RX_DELIV on are delivered.
        if count == self.rx_deliv {
            self.deliver_run(now);
        }
        // §5.2.2.1: t-Reordering stops if RX_DELIV >= RX_REORD.
        if self.reordering.is_some_and(|timer| self.rx_deliv >= timer.rx_reord) {
            self.reordering = None;
        }
        self.start_if_needed(now);
        Reception::Accepted
    }

    /// Starts t-Reordering if it is not running and RX_DELIV < RX_NEXT (§5.2.2.1, §5.2.2.2).
    fn start_if_needed(&mut self, now: Instant) {
        if self.reordering.is_none() && self.rx_deliv < self.rx_next {
            let expires = self.config.t_reordering.map_or(Instant::from_nanos(u64::MAX), |time| now + time);
            self.reordering = Some(Reordering { rx_reord: self.rx_next, expires });
        }
    }

    /// Delivers the SDU at `index`, if it is held.
    fn deliver(&mut self, now: Instant, index: usize) {
        let Slot::Held { .. } = self.slots[index] else { return };
        let Slot::Held { pdu, since } = std::mem::replace(&mut self.slots[index], Slot::Delivered) else {
            return;
        };
        self.held -= 1;
        self.counters.delivered += 1;
        if since < now {
            self.counters.count_hold(now - since);
        }
        self.delivered.push_back((self.rx_deliv + index as Count, pdu));
    }

    /// Delivers the SDUs from RX_DELIV to the next missing one, which becomes RX_DELIV.
    fn deliver_run(&mut self, now: Instant) {
        while !matches!(self.slots.front(), None | Some(Slot::Missing)) {
            self.deliver_first(now);
        }
    }

    /// Delivers the SDU at RX_DELIV, if it is held, and increments RX_DELIV.
    fn deliver_first(&mut self, now: Instant) {
        self.deliver(now, 0);
        self.slots.pop_front();
        self.rx_deliv += 1;
    }

    /// The expiry time of t-Reordering.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.reordering.map(|timer| timer.expires).filter(|at| *at < Instant::from_nanos(u64::MAX))
    }

    /// Gives up missing SDUs if t-Reordering has expired (§5.2.2.2).
    pub fn handle_deadline(&mut self, now: Instant) {
        let Some(Reordering { rx_reord, .. }) = self.reordering.filter(|timer| timer.expires <= now) else {
            return;
        };
        self.counters.t_reordering_expiries += 1;
        self.reordering = None;
        // §5.2.2.2: all stored SDUs with COUNT < RX_REORD are delivered, and then those with consecutive COUNTs
        // from RX_REORD on.
        while self.rx_deliv < rx_reord {
            self.deliver_first(now);
        }
        self.deliver_run(now);
        self.start_if_needed(now);
    }

    /// RX_DELIV: COUNT of the first SDU for which the receiver waits.
    pub fn next_count(&self) -> Count {
        self.rx_deliv
    }

    /// Delivers all SDUs that wait, as a re-establishment in unacknowledged mode does (§5.1.2).
    pub fn flush(&mut self, now: Instant) {
        while !self.slots.is_empty() {
            self.deliver_first(now);
        }
        self.reordering = None;
    }

    /// Sets the state variables to their initial values, after [`flush`](Self::flush).
    pub fn restart(&mut self) {
        (self.rx_next, self.rx_deliv) = (0, 0);
    }

    /// The status report that a re-establishment triggers (§5.4.1).
    pub fn status_report(&self) -> StatusReport {
        let arrived = self.slots.iter().skip(1).map(|slot| !matches!(slot, Slot::Missing));
        StatusReport::new(self.format, self.rx_deliv, arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: NrReceiverConfig =
        NrReceiverConfig { t_reordering: Some(Duration::from_millis(20)), out_of_order: false };

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn delivered(receiver: &mut NrReceiver<Count>) -> Vec<Count> {
        std::iter::from_fn(|| receiver.poll_pdu())
            .map(|(count, pdu)| {
                assert_eq!(count, pdu);
                count
            })
            .collect()
    }

    /// Receives the PDU with this COUNT at `now` ms.
    fn receive(receiver: &mut NrReceiver<Count>, now: u64, count: Count) -> Reception {
        receiver.receive(at(now), receiver.format.sn(count), count)
    }

    #[test]
    fn flush_delivers_held_sdus_before_restart() {
        let mut receiver = NrReceiver::new(Format::Nr12, TIMER);
        for count in [1, 3] {
            receiver.receive(at(0), count, ());
        }
        receiver.flush(at(1));
        let delivered: Vec<_> = std::iter::from_fn(|| receiver.poll_pdu()).map(|(count, ())| count).collect();
        assert_eq!((delivered, receiver.held(), receiver.next_count()), (vec![1, 3], 0, 4));
        receiver.restart();
        assert_eq!((receiver.next_deadline(), receiver.receive(at(2), 0, ())), (None, Reception::Accepted));
        assert_eq!(receiver.poll_pdu(), Some((0, ())));
    }

    #[test]
    fn filled_gap_delivers_held_sdus_in_order() {
        let mut receiver = NrReceiver::new(Format::Nr12, TIMER);
        for (now, count) in [(0, 0), (1, 2), (2, 3)] {
            assert_eq!(receive(&mut receiver, now, count), Reception::Accepted);
        }
        assert_eq!(delivered(&mut receiver), [0]);
        assert_eq!((receiver.held(), receiver.next_deadline()), (2, Some(at(21))));
        receive(&mut receiver, 6, 1);
        assert_eq!(delivered(&mut receiver), [1, 2, 3]);
        assert_eq!((receiver.held(), receiver.next_deadline()), (0, None));
        let counters = receiver.counters();
        assert_eq!((counters.delivered, counters.held), (4, 2));
        assert_eq!((counters.hold_time.as_millis(), counters.longest_hold.as_millis()), (9, 5));
    }

    #[test]
    fn t_reordering_gives_up_missing_sdus_and_restarts() {
        let mut receiver = NrReceiver::new(Format::Nr12, TIMER);
        for (now, count) in [(0, 1), (5, 3), (6, 6)] {
            receive(&mut receiver, now, count);
        }
        assert_eq!(receiver.next_deadline(), Some(at(20)));
        receiver.handle_deadline(at(19));
        assert_eq!(delivered(&mut receiver), [0; 0]);
        // RX_REORD is 2: SDU 0 is given up, 2 is still waited for.
        receiver.handle_deadline(at(20));
        assert_eq!(delivered(&mut receiver), [1]);
        assert_eq!(receiver.next_deadline(), Some(at(40)), "restarted with RX_REORD = 7");
        assert_eq!(receive(&mut receiver, 21, 0), Reception::Discarded { count: 0 });
        receiver.handle_deadline(at(40));
        assert_eq!(delivered(&mut receiver), [3, 6]);
        assert_eq!(receiver.next_deadline(), None);
        let counters = receiver.counters();
        assert_eq!((counters.discarded, counters.t_reordering_expiries), (1, 2));
    }

    #[test]
    fn timer_continues_for_gaps_that_opened_later() {
        let mut receiver = NrReceiver::new(Format::Nr12, TIMER);
        for (now, count) in [(0, 1), (5, 3)] {
            receive(&mut receiver, now, count);
        }
        // RX_DELIV becomes 2 = RX_REORD: the timer stops and starts again for SDU 2.
        receive(&mut receiver, 7, 0);
        assert_eq!(delivered(&mut receiver), [0, 1]);
        assert_eq!(receiver.next_deadline(), Some(at(27)));
    }

    #[test]
    fn out_of_order_delivery_neither_waits_nor_repeats() {
        let mut receiver = NrReceiver::new(Format::Nr12, NrReceiverConfig { out_of_order: true, ..TIMER });
        for (now, count) in [(0, 2), (1, 0), (2, 3), (3, 3), (4, 1), (5, 0)] {
            receive(&mut receiver, now, count);
        }
        assert_eq!(delivered(&mut receiver), [2, 0, 3, 1]);
        let counters = receiver.counters();
        assert_eq!((counters.discarded, counters.held), (2, 0));
    }

    #[test]
    fn hyper_frame_number_is_guessed_around_rx_deliv() {
        for format in [Format::Nr12, Format::Nr18] {
            let mut receiver = NrReceiver::new(format, TIMER);
            let wrap = 2 * format.window();
            for count in 0..wrap - 2 {
                receive(&mut receiver, 0, count);
            }
            delivered(&mut receiver);
            // The next SDUs are on both sides of the wrap.
            for count in [wrap + 1, wrap, wrap - 2, wrap - 1] {
                assert_eq!(receive(&mut receiver, 1, count), Reception::Accepted);
            }
            assert_eq!(delivered(&mut receiver), [wrap - 2, wrap - 1, wrap, wrap + 1]);
            assert_eq!(receive(&mut receiver, 1, wrap - 1), Reception::Discarded { count: wrap - 1 });
            let edge = wrap + 2 + format.window();
            assert_eq!(
                receive(&mut receiver, 1, edge - 1),
                Reception::Accepted,
                "the last one in the window"
            );
            // The next sequence number belongs to an SDU before RX_DELIV.
            assert_eq!(receive(&mut receiver, 1, edge), Reception::Discarded { count: edge - wrap });
        }
    }

    #[test]
    fn infinite_timer_never_expires() {
        let mut receiver = NrReceiver::new(Format::Nr12, NrReceiverConfig { t_reordering: None, ..TIMER });
        receive(&mut receiver, 0, 1);
        assert_eq!(receiver.next_deadline(), None);
        receiver.handle_deadline(at(1_000_000));
        assert_eq!(delivered(&mut receiver), [0; 0]);
        receiver.reconfigure(at(100), TIMER);
        assert_eq!(receiver.next_deadline(), Some(at(120)));
    }

    #[test]
    fn zero_timer_delivers_at_next_deadline() {
        let config = NrReceiverConfig { t_reordering: Some(Duration::ZERO), ..TIMER };
        let mut receiver = NrReceiver::new(Format::Nr12, config);
        receive(&mut receiver, 3, 1);
        assert_eq!(receiver.next_deadline(), Some(at(3)));
        receiver.handle_deadline(at(3));
        assert_eq!(delivered(&mut receiver), [1]);
    }

    #[test]
    fn status_report_names_first_gap_and_later_arrivals() {
        let mut receiver = NrReceiver::new(Format::Nr18, TIMER);
        assert_eq!(receiver.status_report().encode(Format::Nr18), [0, 0, 0, 0, 0]);
        for count in [0, 3, 4] {
            receive(&mut receiver, 0, count);
        }
        assert_eq!(receiver.status_report().encode(Format::Nr18), [0, 0, 0, 0, 1, 0x60]);
        assert!(receiver.holds(3) && !receiver.holds(1) && !receiver.holds(0));
    }
}
