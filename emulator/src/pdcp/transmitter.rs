//! Transmitting side of PDCP (TS 38.323 §5.2.1, TS 36.323 §5.1.1).

use std::collections::VecDeque;
use std::sync::Arc;

use airwire::time::{Duration, Instant};

use super::Count;
use super::pdu::{Format, StatusReport, encode_data};

/// The transmitting side of a bearer. It keeps each PDU until RLC or a status report confirms its delivery, or
/// until discardTimer expires.
#[derive(Debug)]
pub struct Transmitter {
    format: Format,
    /// The time after which an SDU is discarded, counted from its arrival in PDCP. `None`: infinity.
    discard_timer: Option<Duration>,
    /// COUNT of the first entry.
    first: Count,
    /// `None`: confirmed or discarded.
    entries: VecDeque<Option<Entry>>,
    /// COUNT of the first SDU whose discardTimer may be running. Earlier SDUs are confirmed or discarded.
    next_expiry: Count,
    /// Octets of all PDUs in `entries`.
    octets: u64,
}

#[derive(Debug)]
struct Entry {
    pdu: Arc<[u8]>,
    arrived: Instant,
}

impl Transmitter {
    /// Creates the transmitting side. The first COUNT is 0.
    pub fn new(format: Format, discard_timer: Option<Duration>) -> Self {
        Self { format, discard_timer, first: 0, entries: VecDeque::new(), next_expiry: 0, octets: 0 }
    }

    /// Changes discardTimer. The new value applies to all SDUs.
    pub fn set_discard_timer(&mut self, discard_timer: Option<Duration>) {
        self.discard_timer = discard_timer;
    }

    /// TX_NEXT: COUNT of the next SDU.
    pub fn tx_next(&self) -> Count {
        self.first + self.entries.len() as Count
    }

    /// COUNT of the first SDU that is neither confirmed nor discarded. TX_NEXT if there is none.
    pub fn first_unconfirmed(&self) -> Count {
        self.first
    }

    /// Octets of the PDUs that are neither confirmed nor discarded.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Gives an SDU the next COUNT, and returns its PDU for RLC. Its time of arrival, `arrived`, must not be
    /// before the arrival of the previous SDU.
    pub fn submit(&mut self, arrived: Instant, sdu: &[u8]) -> (Count, Arc<[u8]>) {
        let count = self.tx_next();
        let pdu = encode_data(self.format, count, sdu);
        self.octets += pdu.len() as u64;
        self.entries.push_back(Some(Entry { pdu: pdu.clone(), arrived }));
        (count, pdu)
    }

    fn entry(&mut self, count: Count) -> Option<&mut Option<Entry>> {
        self.entries.get_mut(usize::try_from(count.checked_sub(self.first)?).ok()?)
    }

    fn forget(&mut self, count: Count) -> bool {
        let Some(Entry { pdu, .. }) = self.entry(count).and_then(Option::take) else { return false };
        self.octets -= pdu.len() as u64;
        while self.entries.pop_front_if(|entry| entry.is_none()).is_some() {
            self.first += 1;
        }
        true
    }

    /// RLC has confirmed the delivery of a PDU.
    pub fn confirm(&mut self, count: Count) {
        self.forget(count);
    }

    /// Forgets all PDUs through this COUNT, because RLC in unacknowledged mode has begun to transmit them.
    pub fn confirm_through(&mut self, count: Count) {
        while self.first <= count && !self.entries.is_empty() {
            self.forget(self.first);
        }
    }

    /// Whether the SDU is neither confirmed nor discarded.
    pub fn holds(&self, count: Count) -> bool {
        let index = count.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        index.is_some_and(|index| self.entries.get(index).is_some_and(Option::is_some))
    }

    /// The time at which discardTimer expires for the next SDU.
    pub fn next_deadline(&self) -> Option<Instant> {
        let discard_timer = self.discard_timer?;
        let skip = self.next_expiry.saturating_sub(self.first) as usize;
        let entry = self.entries.range(skip.min(self.entries.len())..).flatten().next()?;
        Some(entry.arrived + discard_timer)
    }

    /// Discards the next SDU whose discardTimer has expired, and returns its COUNT. The caller passes
    /// the discard on to RLC, which transmits the PDU nevertheless if its transmission has begun.
    pub fn take_expired(&mut self, now: Instant) -> Option<Count> {
        let discard_timer = self.discard_timer?;
        self.next_expiry = self.next_expiry.max(self.first);
        loop {
            let count = self.next_expiry;
            match self.entry(count)? {
                Some(entry) if entry.arrived + discard_timer > now => return None,
                Some(_) => {
                    self.next_expiry += 1;
                    self.forget(count);
                    return Some(count);
                }
                None => self.next_expiry += 1,
            }
        }
    }

    /// Re-establishes the entity: returns the PDUs that RLC has not confirmed, in ascending order of COUNT, to
    /// be submitted to RLC again (TS 38.323 §5.1.2, TS 36.323 §5.2.1.1).
    pub fn reestablish(&self) -> impl Iterator<Item = (Count, Arc<[u8]>)> {
        (self.first..)
            .zip(&self.entries)
            .filter_map(|(count, entry)| Some((count, entry.as_ref()?.pdu.clone())))
    }

    /// Discards all unconfirmed SDUs, because a handover does not forward them. Their COUNTs are not reused.
    pub fn clear(&mut self) {
        self.first = self.tx_next();
        self.entries.clear();
        self.octets = 0;
    }

    /// Discards the SDUs whose delivery a status report confirms (TS 38.323 §5.4.2), and calls `discard` with
    /// each of them, so that RLC can discard its PDU.
    pub fn receive_report(&mut self, report: &StatusReport, mut discard: impl FnMut(Count)) {
        let first_missing = report.first_missing_count(self.format, self.first);
        let before = self.first..first_missing.min(self.tx_next());
        for count in before.chain(report.arrived().map(|n| first_missing + n)) {
            if self.forget(count) {
                discard(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn transmitter(sdus: u64, discard_timer: Option<u64>) -> Transmitter {
        let mut transmitter = Transmitter::new(Format::Nr12, discard_timer.map(Duration::from_millis));
        for n in 0..sdus {
            assert_eq!(transmitter.submit(at(n), &[n as u8]).0, n);
        }
        transmitter
    }

    fn unconfirmed(transmitter: &Transmitter) -> Vec<Count> {
        transmitter.reestablish().map(|(count, _)| count).collect()
    }

    #[test]
    fn reestablishment_retransmits_unconfirmed_sdus_in_order() {
        let mut transmitter = transmitter(5, None);
        for count in [0, 3, 3, 9] {
            transmitter.confirm(count);
        }
        assert_eq!(unconfirmed(&transmitter), [1, 2, 4]);
        assert_eq!((transmitter.first_unconfirmed(), transmitter.octets()), (1, 9));
        let (_, pdu) = transmitter.reestablish().next().unwrap();
        assert_eq!(*pdu, [0x80, 1, 1], "the COUNT is kept");
        assert_eq!(transmitter.submit(at(9), b"x").0, 5);
    }

    #[test]
    fn status_report_confirms_sdus_selectively() {
        let mut transmitter = transmitter(6, None);
        transmitter.confirm(1);
        let report = StatusReport::new(Format::Nr12, 2, [false, true, false].into_iter());
        let mut discarded = Vec::new();
        transmitter.receive_report(&report, |count| discarded.push(count));
        assert_eq!(discarded, [0, 4]);
        assert_eq!(unconfirmed(&transmitter), [2, 3, 5]);
        // An outdated report, and one about SDUs that were never sent.
        transmitter.receive_report(&report, |count| panic!("{count}"));
        let report = StatusReport { first_missing: 700, bitmap: vec![0xff; 20] };
        transmitter.receive_report(&report, |_| {});
        assert_eq!((unconfirmed(&transmitter), transmitter.tx_next()), (vec![], 6));
    }

    #[test]
    fn transmitted_sdus_are_forgotten_in_unacknowledged_mode() {
        let mut transmitter = transmitter(4, None);
        transmitter.confirm(1);
        transmitter.confirm_through(2);
        assert_eq!((unconfirmed(&transmitter), transmitter.octets()), (vec![3], 3));
        transmitter.confirm_through(9);
        assert_eq!((transmitter.first_unconfirmed(), transmitter.tx_next()), (4, 4));
    }

    #[test]
    fn discard_timer_counts_from_arrival() {
        let mut transmitter = transmitter(4, Some(10));
        transmitter.confirm(1);
        assert_eq!(transmitter.next_deadline(), Some(at(10)));
        assert_eq!(transmitter.take_expired(at(9)), None);
        assert_eq!(transmitter.take_expired(at(12)), Some(0));
        assert_eq!(transmitter.take_expired(at(12)), Some(2));
        assert_eq!(transmitter.take_expired(at(12)), None);
        assert_eq!((transmitter.next_deadline(), unconfirmed(&transmitter)), (Some(at(13)), vec![3]));
        assert!(transmitter.holds(3) && !transmitter.holds(2));
        transmitter.set_discard_timer(None);
        assert_eq!((transmitter.next_deadline(), transmitter.take_expired(at(99))), (None, None));
    }

    #[test]
    fn handover_without_forwarding_keeps_counts() {
        let mut transmitter = transmitter(3, Some(10));
        transmitter.clear();
        assert_eq!(unconfirmed(&transmitter), [0; 0]);
        assert_eq!(transmitter.submit(at(3), b"x").0, 3);
        assert_eq!(transmitter.next_deadline(), Some(at(13)));
    }
}
