//! The window of a receiving side: which units are complete, partly received or missing, and the timer that
//! decides when a missing unit is reported: t-Reordering (36.322 §5.1.3.2) or t-Reassembly (38.322 §5.2.3.2).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use airwire::time::{Duration, Instant};

use super::Generation;
use crate::rlc::segments::{Addition, Assembly, Segment};

#[derive(Debug)]
pub(in crate::rlc) struct ReceiveWindow {
    generation: Generation,
    /// AM_Window_Size.
    size: u64,
    timer_length: Duration,
    /// RX_Next, VR(R): the first unit that is not complete.
    next: u64,
    /// RX_Next_Highest, VR(H): the sequence number after the highest one received.
    next_highest: u64,
    /// RX_Highest_Status, VR(MS): the highest ACK_SN that a STATUS PDU may have.
    highest_status: u64,
    timer: Option<Timer>,
    /// Ranges of units below `next_highest` without received octets: the first unit of a range, and the
    /// number after its last unit.
    gaps: BTreeMap<u64, u64>,
    /// Units that are partly received.
    partial: BTreeMap<u64, Assembly>,
}

/// t-Reordering or t-Reassembly while it is running.
#[derive(Clone, Copy, Debug)]
struct Timer {
    expires: Instant,
    /// RX_Next_Status_Trigger, VR(X).
    mark: u64,
}

/// Result of the reception of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::rlc) enum Placement {
    /// The segment is stored, and its unit is not complete.
    Stored,
    /// The segment is the whole unit.
    Whole,
    /// The segment completes the unit, which has these octets.
    Completed(Vec<u8>),
    /// The segment was discarded: it is outside the window, or all its octets have been received before.
    Discarded,
    /// The segment contradicts an earlier one about the length of the unit.
    Contradiction,
}

/// Units or octets that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rlc) enum Missing<'a> {
    /// All units from the first number to below the second one.
    Units(u64, u64),
    /// Octets of this unit.
    Octets(u64, &'a Assembly),
}

impl ReceiveWindow {
    pub(in crate::rlc) fn new(generation: Generation, size: u64, timer_length: Duration) -> Self {
        Self {
            generation,
            size,
            timer_length,
            next: 0,
            next_highest: 0,
            highest_status: 0,
            timer: None,
            gaps: BTreeMap::new(),
            partial: BTreeMap::new(),
        }
    }

    pub(in crate::rlc) const fn next(&self) -> u64 {
        self.next
    }

    pub(in crate::rlc) const fn highest_status(&self) -> u64 {
        self.highest_status
    }

    /// The received segments of a unit that is partly received.
    pub(in crate::rlc) fn partial(&self, sn: u64) -> Option<&Assembly> {
        self.partial.get(&sn)
    }

    /// Takes all units that are partly received.
    pub(in crate::rlc) fn take_partial(&mut self) -> BTreeMap<u64, Assembly> {
        std::mem::take(&mut self.partial)
    }

    /// Handles a received segment of the unit `sn`, which is at or above RX_Next. The number of an outdated
    /// PDU appears above the window.
    pub(in crate::rlc) fn receive(&mut self, now: Instant, sn: u64, segment: Segment<'_>) -> Placement {
        // 36.322 §5.1.3.2.2, 38.322 §5.2.3.2.2: a PDU outside the receiving window is discarded.
        if sn < self.next || sn - self.next >= self.size {
            return Placement::Discarded;
        }
        let placement = self.place(sn, segment);
        match placement {
            Placement::Discarded | Placement::Contradiction => return placement,
            Placement::Stored => {}
            // 36.322 §5.1.3.2.3, 38.322 §5.2.3.2.3: if SN = RX_Highest_Status, RX_Highest_Status becomes the
            // next SN of which not all bytes have been received. The same rule applies to RX_Next (LTE:
            // VR(MS) and VR(R)).
            Placement::Whole | Placement::Completed(_) => {
                if sn == self.highest_status {
                    self.highest_status = self.first_incomplete(sn);
                }
                if sn == self.next {
                    self.next = self.first_incomplete(sn);
                }
            }
        }
        self.update_timer(now);
        placement
    }

    /// Places a segment inside the window in the reception buffer.
    fn place(&mut self, sn: u64, segment: Segment<'_>) -> Placement {
        // 36.322 §5.1.3.2.3, 38.322 §5.2.3.2.3: if SN >= RX_Next_Highest (VR(H)), it becomes SN + 1.
        let is_new = if sn >= self.next_highest {
            if sn > self.next_highest {
                self.gaps.insert(self.next_highest, sn);
            }
            self.next_highest = sn + 1;
            true
        } else {
            self.fill_gap(sn)
        };
        if is_new {
            if segment.is_whole() {
                return Placement::Whole;
            }
            let mut assembly = Assembly::default();
            assembly.add(segment);
            self.partial.insert(sn, assembly);
            return Placement::Stored;
        }
        // 36.322 §5.1.3.2.2, 38.322 §5.2.3.2.2: bytes that have been received before are discarded.
        let Some(assembly) = self.partial.get_mut(&sn) else { return Placement::Discarded };
        match assembly.add(segment) {
            Addition::Known => Placement::Discarded,
            Addition::Contradiction => Placement::Contradiction,
            Addition::New if !assembly.is_complete() => Placement::Stored,
            Addition::New => {
                let assembly = self.partial.remove(&sn).unwrap_or_default();
                if segment.is_whole() {
                    Placement::Whole
                } else {
                    Placement::Completed(assembly.into_octets())
                }
            }
        }
    }

    /// Removes a unit from the gaps. Returns whether it was in one.
    fn fill_gap(&mut self, sn: u64) -> bool {
        let Some((&start, &end)) = self.gaps.range(..=sn).next_back().filter(|(_, end)| sn < **end) else {
            return false;
        };
        if start < sn {
            self.gaps.insert(start, sn);
        } else {
            self.gaps.remove(&start);
        }
        if sn + 1 < end {
            self.gaps.insert(sn + 1, end);
        }
        true
    }

    /// The first unit at or above `from` that is not complete.
    fn first_incomplete(&self, from: u64) -> u64 {
        let around = self.gaps.range(..=from).next_back().filter(|(_, end)| from < **end).map(|_| from);
        let gap = around.or_else(|| self.gaps.range(from..).next().map(|(start, _)| *start));
        let partial = self.partial.range(from..).next().map(|(sn, _)| *sn);
        [gap, partial].into_iter().flatten().fold(self.next_highest.max(from), u64::min)
    }

    /// Whether octets are missing from `lower` to below `upper`, and the timer has to run because of them.
    fn is_missing(&self, lower: u64, upper: u64) -> bool {
        match self.generation {
            // 36.322 §5.1.3.2.3: VR(H) > VR(R).
            Generation::Lte => upper > lower,
            // 38.322 §5.2.3.2.3: RX_Next_Highest > RX_Next + 1; or RX_Next_Highest = RX_Next + 1 and there is
            // at least one missing byte segment of the SDU associated with SN = RX_Next before the last byte of
            // all received segments of this SDU.
            Generation::Nr => {
                upper > lower + 1
                    || upper == lower + 1 && self.partial.get(&lower).is_some_and(Assembly::has_hole)
            }
        }
    }

    /// Stops the timer if nothing is missing below its mark. Starts it if it is not running and something is
    /// missing (36.322 §5.1.3.2.3, 38.322 §5.2.3.2.3).
    fn update_timer(&mut self, now: Instant) {
        if let Some(Timer { mark, .. }) = self.timer
            && !self.is_missing(self.next, mark)
        {
            self.timer = None;
        }
        if self.timer.is_none() && self.is_missing(self.next, self.next_highest) {
            self.start_timer(now);
        }
    }

    fn start_timer(&mut self, now: Instant) {
        self.timer = Some(Timer { expires: now + self.timer_length, mark: self.next_highest });
    }

    /// Handles the expiry of the timer (36.322 §5.1.3.2.4, 38.322 §5.2.3.2.4). Returns whether it expires at
    /// `now`. If so, a STATUS report is to be triggered.
    pub(in crate::rlc) fn handle_deadline(&mut self, now: Instant) -> bool {
        let Some(Timer { mark, .. }) = self.timer.take_if(|timer| timer.expires <= now) else { return false };
        // RX_Highest_Status (VR(MS)) becomes the first SN >= RX_Next_Status_Trigger (VR(X)) of which not all
        // bytes have been received. The timer restarts if something above it is missing.
        self.highest_status = self.first_incomplete(mark);
        if self.is_missing(self.highest_status, self.next_highest) {
            self.start_timer(now);
        }
        true
    }

    pub(in crate::rlc) fn next_deadline(&self) -> Option<Instant> {
        self.timer.map(|timer| timer.expires)
    }

    /// The gaps and holes between RX_Next and RX_Highest_Status (LTE: VR(R), VR(MS)), in ascending order.
    pub(in crate::rlc) fn missing(&self) -> impl Iterator<Item = Missing<'_>> {
        let end = self.highest_status;
        let mut gaps = self.gaps.range(..end).map(move |(start, gap_end)| (*start, (*gap_end).min(end)));
        let mut gap = gaps.next();
        let mut partial = self.partial.range(..end).peekable();
        std::iter::from_fn(move || {
            let is_gap_next = match (gap, partial.peek()) {
                (Some((start, _)), Some((sn, _))) => start < **sn,
                (gap, _) => gap.is_some(),
            };
            if is_gap_next {
                let (start, end) = gap?;
                gap = gaps.next();
                return Some(Missing::Units(start, end));
            }
            partial.next().map(|(sn, assembly)| Missing::Octets(*sn, assembly))
        })
    }
}
