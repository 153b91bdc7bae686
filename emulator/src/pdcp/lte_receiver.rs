//! Receiving side of PDCP in LTE, for a bearer with one RLC AM entity (TS 36.323 §5.1.2.1.2) or in RLC UM
//! (§5.1.2.1.3).
//!
//! RLC delivers PDUs in order, so PDCP does not reorder. After a re-establishment of RLC AM, the sender
//! retransmits all unconfirmed SDUs in order. Only then PDCP waits for missing SDUs.

use std::collections::{BTreeMap, VecDeque};

use airwire::time::Instant;

use super::Count;
use super::nr_receiver::{ReceiverCounters, Reception};
use super::pdu::{Format, StatusReport};

/// The receiving side. `P` is a PDU. Delivered PDUs are taken with [`poll_pdu`](Self::poll_pdu).
#[derive(Debug)]
pub struct LteReceiver<P> {
    format: Format,
    /// The COUNT after Last_Submitted_PDCP_RX_SN.
    next_to_submit: Count,
    held: BTreeMap<Count, (P, Instant)>,
    delivered: VecDeque<(Count, P)>,
    counters: ReceiverCounters,
}

/// The reason why RLC delivers a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveredBy {
    /// RLC has received it in order.
    Reception,
    /// RLC had received it completely, maybe out of order, when it was re-established.
    Reestablishment,
    /// RLC is in unacknowledged mode. Every SDU is new, because RLC discards duplicates.
    Unacknowledged,
}

impl<P> LteReceiver<P> {
    /// Creates the receiving side. The first COUNT is 0.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            next_to_submit: 0,
            held: BTreeMap::new(),
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
        self.held.len()
    }

    /// Whether the receiver has the SDU, but has not delivered it.
    pub fn holds(&self, count: Count) -> bool {
        self.held.contains_key(&count)
    }

    /// Takes the next delivered PDU with its COUNT.
    pub fn poll_pdu(&mut self) -> Option<(Count, P)> {
        self.delivered.pop_front()
    }

    /// Handles a data PDU with the sequence number `sn`.
    ///
    /// The comparisons of the standard with Last_Submitted_PDCP_RX_SN and Next_PDCP_RX_SN accept the PDUs
    /// within Reordering_Window after the last submitted one.
    pub fn receive(&mut self, now: Instant, sn: u32, pdu: P, by: DeliveredBy) -> Reception {
        let window = self.format.window();
        let ahead = u64::from(sn).wrapping_sub(self.next_to_submit) & (2 * window - 1);
        if by == DeliveredBy::Unacknowledged {
            self.deliver(now, self.next_to_submit + ahead, (pdu, now));
            return Reception::Accepted;
        }
        if ahead >= window {
            self.counters.discarded += 1;
            return Reception::Discarded { count: (self.next_to_submit + ahead).wrapping_sub(2 * window) };
        }
        let count = self.next_to_submit + ahead;
        if self.held.contains_key(&count) {
            self.counters.discarded += 1;
            return Reception::Discarded { count };
        }
        match by {
            DeliveredBy::Reception => {
                // "all stored PDCP SDU(s) with an associated COUNT value less than the COUNT value associated
                // with the received PDCP SDU"
                let later = self.held.split_off(&count);
                for (count, held) in std::mem::replace(&mut self.held, later) {
                    self.deliver(now, count, held);
                }
                self.deliver(now, count, (pdu, now));
                self.deliver_run(now);
            }
            DeliveredBy::Reestablishment if ahead == 0 => {
                self.deliver(now, count, (pdu, now));
                self.deliver_run(now);
            }
            DeliveredBy::Reestablishment | DeliveredBy::Unacknowledged => {
                self.held.insert(count, (pdu, now));
            }
        }
        Reception::Accepted
    }

    fn deliver(&mut self, now: Instant, count: Count, (pdu, since): (P, Instant)) {
        self.counters.delivered += 1;
        if since < now {
            self.counters.count_hold(now - since);
        }
        self.delivered.push_back((count, pdu));
        self.next_to_submit = count + 1;
    }

    /// Delivers the stored SDUs that follow the last delivered one without a gap.
    fn deliver_run(&mut self, now: Instant) {
        while let Some(held) = self.held.remove(&self.next_to_submit) {
            self.deliver(now, self.next_to_submit, held);
        }
    }

    /// The COUNT after the last SDU that was delivered.
    pub fn next_count(&self) -> Count {
        self.next_to_submit
    }

    /// Sets the state variables to their initial values, as a re-establishment in unacknowledged mode does.
    pub fn restart(&mut self) {
        self.next_to_submit = 0;
    }

    /// The status report that a re-establishment triggers (TS 36.323 §5.3.1).
    pub fn status_report(&self) -> StatusReport {
        let last = self.held.last_key_value().map_or(self.next_to_submit, |(count, _)| *count);
        let arrived = (self.next_to_submit + 1..=last).map(|count| self.held.contains_key(&count));
        StatusReport::new(self.format, self.next_to_submit, arrived)
    }
}

#[cfg(test)]
mod tests {
    use DeliveredBy::{Reception as InOrder, Reestablishment};

    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn delivered(receiver: &mut LteReceiver<()>) -> Vec<Count> {
        std::iter::from_fn(|| receiver.poll_pdu()).map(|(count, ())| count).collect()
    }

    fn receive(receiver: &mut LteReceiver<()>, count: Count, by: DeliveredBy) -> Reception {
        receiver.receive(NOW, receiver.format.sn(count), (), by)
    }

    #[test]
    fn gap_does_not_delay_later_sdus() {
        let mut receiver = LteReceiver::new(Format::Lte12);
        for count in [0, 2, 3] {
            assert_eq!(receive(&mut receiver, count, InOrder), Reception::Accepted);
        }
        assert_eq!(delivered(&mut receiver), [0, 2, 3]);
        assert_eq!(receive(&mut receiver, 1, InOrder), Reception::Discarded { count: 1 });
    }

    #[test]
    fn sdus_from_reestablishment_wait_for_retransmission() {
        let mut receiver = LteReceiver::new(Format::Lte12);
        receive(&mut receiver, 0, InOrder);
        for count in [2, 4] {
            receive(&mut receiver, count, Reestablishment);
        }
        assert_eq!((delivered(&mut receiver), receiver.held()), (vec![0], 2));
        assert_eq!(receiver.status_report().encode(Format::Lte12), [0, 1, 0b1010_0000]);
        // The sender retransmits from SDU 1. SDU 2 is a duplicate.
        for (count, result) in [
            (1, Reception::Accepted),
            (2, Reception::Discarded { count: 2 }),
            (3, Reception::Accepted),
            (5, Reception::Accepted),
        ] {
            assert_eq!(receive(&mut receiver, count, InOrder), result);
        }
        assert_eq!(delivered(&mut receiver), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn later_sdu_releases_stored_ones() {
        let mut receiver = LteReceiver::new(Format::Lte12);
        receive(&mut receiver, 2, Reestablishment);
        receive(&mut receiver, 7, Reestablishment);
        receive(&mut receiver, 5, InOrder);
        assert_eq!((delivered(&mut receiver), receiver.held()), (vec![2, 5], 1));
        receive(&mut receiver, 6, InOrder);
        assert_eq!(delivered(&mut receiver), [6, 7]);
    }

    #[test]
    fn um_accepts_gaps_above_half_the_number_space() {
        let mut receiver = LteReceiver::new(Format::Lte12);
        for count in [0, 3_000, 3_001, 7_000] {
            assert_eq!(receive(&mut receiver, count, DeliveredBy::Unacknowledged), Reception::Accepted);
        }
        assert_eq!(delivered(&mut receiver), [0, 3_000, 3_001, 7_000]);
        assert_eq!(receiver.next_count(), 7_001);
        receiver.restart();
        receive(&mut receiver, 0, DeliveredBy::Unacknowledged);
        assert_eq!(delivered(&mut receiver), [0]);
    }

    #[test]
    fn sequence_numbers_wrap() {
        for format in [Format::Lte12, Format::Lte15, Format::Lte18] {
            let mut receiver = LteReceiver::new(format);
            for count in 0..5 * format.window() {
                assert_eq!(receive(&mut receiver, count, InOrder), Reception::Accepted);
            }
            assert_eq!(delivered(&mut receiver), Vec::from_iter(0..5 * format.window()));
            let next = 5 * format.window();
            assert_eq!(receive(&mut receiver, next - 1, InOrder), Reception::Discarded { count: next - 1 });
            assert_eq!(
                receive(&mut receiver, next + format.window() - 1, Reestablishment),
                Reception::Accepted
            );
            assert_eq!(receiver.held(), 1);
        }
    }
}
