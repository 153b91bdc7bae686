//! The window of a transmitting side: which units have been transmitted, acknowledged and reported missing.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use super::Generation;
use super::status::{Nack, Status};
use crate::rlc::segments::Ranges;

/// Transmitted units with the sequence numbers from TX_Next_Ack (LTE: VT(A)) on. `T` is the content of a
/// unit.
#[derive(Debug)]
pub(in crate::rlc) struct SendWindow<T> {
    generation: Generation,
    /// AM_Window_Size.
    size: u64,
    max_retx_threshold: u32,
    /// TX_Next_Ack, VT(A).
    next_ack: u64,
    /// Unit `next_ack` + i is at index i.
    units: VecDeque<Unit<T>>,
    /// The highest ACK_SN received. All units below it are acknowledged, except those in `missing`.
    acked_below: u64,
    /// Units below `acked_below` that are not acknowledged. With this set, the work for a report is
    /// proportional to the changes that it makes.
    missing: BTreeSet<u64>,
    /// Units with octets that wait for retransmission.
    pending: BTreeSet<u64>,
    pending_octets: u64,
    /// Number of reports received. It identifies the NACKs of one report.
    reports: u64,
}

#[derive(Debug)]
struct Unit<T> {
    content: T,
    /// Octets of the unit.
    length: u32,
    /// Octets that have been transmitted. Only the last unit in the window can be incomplete (NR).
    transmitted: u32,
    is_acknowledged: bool,
    /// RETX_COUNT. `None` until the first consideration for retransmission.
    retx_count: Option<u32>,
    /// Number of the report that changed RETX_COUNT last.
    counted_in: u64,
    /// Octets that wait for retransmission.
    pending: Ranges,
}

/// Octets that wait for retransmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::rlc) struct Retransmission {
    pub(in crate::rlc) sn: u64,
    pub(in crate::rlc) range: Range<u32>,
    pub(in crate::rlc) retx_count: u32,
}

/// A change that a report makes to a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rlc) enum Change {
    Acknowledged,
    /// RETX_COUNT has reached maxRetxThreshold.
    MaxRetx,
}

impl<T> SendWindow<T> {
    pub(in crate::rlc) fn new(generation: Generation, size: u64, max_retx_threshold: u32) -> Self {
        Self {
            generation,
            size,
            max_retx_threshold,
            next_ack: 0,
            units: VecDeque::new(),
            acked_below: 0,
            missing: BTreeSet::new(),
            pending: BTreeSet::new(),
            pending_octets: 0,
            reports: 0,
        }
    }

    /// TX_Next_Ack, VT(A).
    pub(in crate::rlc) const fn next_ack(&self) -> u64 {
        self.next_ack
    }

    /// The sequence number after the highest one that was transmitted: VT(S) in LTE.
    pub(in crate::rlc) fn end(&self) -> u64 {
        self.next_ack + self.units.len() as u64
    }

    /// Whether no further sequence number falls within the window.
    pub(in crate::rlc) fn is_full(&self) -> bool {
        self.units.len() as u64 >= self.size
    }

    pub(in crate::rlc) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Adds a unit whose first `transmitted` octets are transmitted. Returns its sequence number.
    pub(in crate::rlc) fn push(&mut self, content: T, length: u32, transmitted: u32) -> u64 {
        self.units.push_back(Unit {
            content,
            length,
            transmitted,
            is_acknowledged: false,
            retx_count: None,
            counted_in: 0,
            pending: Ranges::default(),
        });
        self.end() - 1
    }

    /// The last unit with its sequence number and the number of its transmitted octets, if the unit has
    /// octets left.
    pub(in crate::rlc) fn unfinished(&self) -> Option<(u64, &T, u32)> {
        let last = self.units.back().filter(|unit| unit.transmitted < unit.length)?;
        Some((self.end() - 1, &last.content, last.transmitted))
    }

    /// Records the transmission of further octets of the last unit.
    pub(in crate::rlc) fn continue_last(&mut self, octets: u32) {
        if let Some(last) = self.units.back_mut() {
            last.transmitted += octets;
        }
    }

    pub(in crate::rlc) fn content(&self, sn: u64) -> Option<&T> {
        self.units.get(sn.checked_sub(self.next_ack)? as usize).map(|unit| &unit.content)
    }

    fn unit(&mut self, sn: u64) -> Option<&mut Unit<T>> {
        self.units.get_mut(sn.checked_sub(self.next_ack)? as usize)
    }

    /// Octets that wait for retransmission.
    pub(in crate::rlc) const fn pending_octets(&self) -> u64 {
        self.pending_octets
    }

    pub(in crate::rlc) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The retransmission with the lowest sequence number, and the content of its unit.
    pub(in crate::rlc) fn next_retransmission(&self) -> Option<(Retransmission, &T)> {
        let sn = *self.pending.first()?;
        let unit = self.units.get((sn - self.next_ack) as usize)?;
        let range = unit.pending.first()?;
        Some((Retransmission { sn, range, retx_count: unit.retx_count.unwrap_or(0) }, &unit.content))
    }

    /// Records that the first `octets` octets of the first retransmission of this unit were submitted.
    pub(in crate::rlc) fn retransmitted(&mut self, sn: u64, octets: u32) {
        let Some(unit) = self.unit(sn) else { return };
        unit.pending.remove_first(octets);
        if unit.pending.is_empty() {
            self.pending.remove(&sn);
        }
        self.pending_octets -= u64::from(octets);
    }

    /// Considers octets of a unit for retransmission (36.322 §5.2.1, 38.322 §5.3.2). Returns whether RETX_COUNT
    /// reaches maxRetxThreshold.
    fn consider(&mut self, sn: u64, range: Range<u32>) -> bool {
        let (reports, generation, limit) = (self.reports, self.generation, self.max_retx_threshold);
        let Some(unit) = self.unit(sn) else { return false };
        // Only octets that have been transmitted can be retransmitted.
        let range = range.start..range.end.min(unit.transmitted);
        if range.is_empty() || unit.is_acknowledged {
            return false;
        }
        let counts = match unit.retx_count {
            // The first time that a unit is considered for retransmission sets RETX_COUNT to zero.
            None => {
                unit.retx_count = Some(0);
                true
            }
            // Octets that are already pending for retransmission do not increment RETX_COUNT again.
            Some(_) if unit.pending.contain(&range) => false,
            // NR: one STATUS PDU increments RETX_COUNT at most once.
            Some(_) if generation == Generation::Nr && unit.counted_in == reports => false,
            Some(count) => {
                unit.retx_count = Some(count.saturating_add(1));
                true
            }
        };
        if counts {
            unit.counted_in = reports;
        }
        let before = unit.pending.octets();
        unit.pending.insert(range);
        // "If RETX_COUNT = maxRetxThreshold: indicate to upper layers that max retransmission has been reached".
        let reached = counts && unit.retx_count == Some(limit);
        self.pending_octets += unit.pending.octets() - before;
        self.pending.insert(sn);
        reached
    }

    /// Considers a unit for retransmission because t-PollRetransmit has expired (36.322 §5.2.2.3, 38.322
    /// §5.3.3.4). It is the unit with the highest sequence number, or the lowest unacknowledged unit if the
    /// highest one is acknowledged. Returns the unit if its RETX_COUNT reaches maxRetxThreshold.
    pub(in crate::rlc) fn retransmit_for_poll(&mut self) -> Option<&T> {
        let last = self.units.back()?;
        let sn = if last.is_acknowledged { self.next_ack } else { self.end() - 1 };
        self.reports += 1;
        let length = self.unit(sn)?.length;
        if self.consider(sn, 0..length) { self.content(sn) } else { None }
    }

    /// Handles a STATUS PDU whose ACK_SN is at most [`end`](Self::end). Calls `changed` for each change.
    pub(in crate::rlc) fn handle_status(&mut self, status: &Status, mut changed: impl FnMut(Change, &T)) {
        self.reports += 1;
        let mut from = self.next_ack;
        for nack in &status.nacks {
            self.acknowledge(from, nack.sn, &mut changed);
            from = from.max(nack.end());
            for sn in nack.sn.max(self.next_ack)..nack.end().min(status.ack_sn) {
                self.handle_nack(sn, nack, &mut changed);
            }
        }
        self.acknowledge(from, status.ack_sn, &mut changed);
        self.acked_below = self.acked_below.max(status.ack_sn);
        let next_ack = self.missing.first().map_or(self.acked_below, |sn| *sn);
        self.units.drain(..(next_ack - self.next_ack) as usize);
        self.next_ack = next_ack;
    }

    /// Handles the NACK of one unit.
    fn handle_nack(&mut self, sn: u64, nack: &Nack, changed: &mut impl FnMut(Change, &T)) {
        // Below ACK_SN of an earlier report, the unit is in `missing` already, or has been acknowledged.
        if sn >= self.acked_below {
            self.missing.insert(sn);
        }
        let start = nack.segment.filter(|_| sn == nack.sn).map_or(0, |segment| segment.start);
        let end = nack.segment.filter(|_| sn + 1 == nack.end()).and_then(|segment| segment.end);
        if self.consider(sn, start..end.map_or(u32::MAX, |end| end.saturating_add(1)))
            && let Some(content) = self.content(sn)
        {
            changed(Change::MaxRetx, content);
        }
    }

    /// Acknowledges the units with sequence numbers from `from` to below `to`.
    fn acknowledge(&mut self, from: u64, to: u64, changed: &mut impl FnMut(Change, &T)) {
        // The peer cannot have received a unit that was not transmitted completely.
        let to = match self.unfinished() {
            Some((sn, ..)) if sn < to => {
                self.missing.insert(sn);
                sn
            }
            _ => to,
        };
        if from >= to {
            return;
        }
        while let Some(sn) = self.missing.range(from..to).next().copied() {
            self.missing.remove(&sn);
            self.acknowledge_unit(sn, changed);
        }
        for sn in from.max(self.acked_below)..to {
            self.acknowledge_unit(sn, changed);
        }
    }

    fn acknowledge_unit(&mut self, sn: u64, changed: &mut impl FnMut(Change, &T)) {
        let Some(unit) = self.unit(sn) else { return };
        unit.is_acknowledged = true;
        let pending = std::mem::take(&mut unit.pending).octets();
        changed(Change::Acknowledged, &unit.content);
        if pending > 0 {
            self.pending_octets -= pending;
            self.pending.remove(&sn);
        }
    }
}
