//! The window against a model that repeats the wording of the standards and searches octet by octet.

use std::collections::BTreeSet;

use airtcp_testkit::sample::{cases, size};
use proptest::prelude::*;

use super::*;

/// Octets of each unit.
const LENGTH: usize = 4;
const WINDOW: u64 = 32;
const TIMER: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Model {
    octets: BTreeMap<u64, [bool; LENGTH]>,
    /// RX_Next, VR(R).
    next: u64,
    /// RX_Next_Highest, VR(H).
    next_highest: u64,
    /// RX_Highest_Status, VR(MS).
    highest_status: u64,
    /// Expiry of the timer, and RX_Next_Status_Trigger or VR(X).
    timer: Option<(Instant, u64)>,
}

impl Model {
    fn octets(&self, sn: u64) -> [bool; LENGTH] {
        self.octets.get(&sn).copied().unwrap_or_default()
    }

    fn is_complete(&self, sn: u64) -> bool {
        self.octets(sn) == [true; LENGTH]
    }

    fn first_incomplete(&self, from: u64) -> u64 {
        (from..).find(|sn| !self.is_complete(*sn)).unwrap()
    }

    /// "At least one missing byte segment of the SDU before the last byte of all received segments of this SDU."
    fn has_hole(&self, sn: u64) -> bool {
        let octets = self.octets(sn);
        octets.iter().rposition(|known| *known).is_some_and(|last| octets[..last].contains(&false))
    }

    fn receive(&mut self, generation: Generation, now: Instant, sn: u64, octets: std::ops::Range<usize>) {
        if !(self.next..self.next + WINDOW).contains(&sn) || !self.octets(sn)[octets.clone()].contains(&false)
        {
            return;
        }
        self.octets.entry(sn).or_default()[octets].fill(true);
        self.next_highest = self.next_highest.max(sn + 1);
        if self.is_complete(sn) && sn == self.highest_status {
            self.highest_status = self.first_incomplete(sn);
        }
        if self.is_complete(sn) && sn == self.next {
            self.next = self.first_incomplete(sn);
        }
        if let Some((_, mark)) = self.timer {
            let is_outside = !(self.next..self.next + WINDOW).contains(&mark) && mark != self.next + WINDOW;
            let no_hole = generation == Generation::Nr && mark == self.next + 1 && !self.has_hole(self.next);
            if mark == self.next || no_hole || is_outside {
                self.timer = None;
            }
        }
        if self.timer.is_none() {
            self.start_timer(generation, now, self.next);
        }
    }

    fn start_timer(&mut self, generation: Generation, now: Instant, lower: u64) {
        let starts = match generation {
            Generation::Lte => self.next_highest > lower,
            Generation::Nr => {
                self.next_highest > lower + 1 || self.next_highest == lower + 1 && self.has_hole(lower)
            }
        };
        if starts {
            self.timer = Some((now + TIMER, self.next_highest));
        }
    }

    fn expire(&mut self, generation: Generation, now: Instant) {
        if let Some((_, mark)) = self.timer.take_if(|(expires, _)| *expires <= now) {
            self.highest_status = self.first_incomplete(mark);
            self.start_timer(generation, now, self.highest_status);
        }
    }

    /// All missing octets that a STATUS PDU reports.
    fn missing(&self) -> BTreeSet<(u64, usize)> {
        let octets = |sn| (0..LENGTH).map(move |octet| (sn, octet));
        (self.next..self.highest_status)
            .flat_map(octets)
            .filter(|(sn, octet)| !self.octets(*sn)[*octet])
            .collect()
    }
}

fn missing(window: &ReceiveWindow) -> BTreeSet<(u64, usize)> {
    let mut octets = BTreeSet::new();
    for missing in window.missing() {
        match missing {
            Missing::Units(start, end) => {
                octets.extend((start..end).flat_map(|sn| (0..LENGTH).map(move |octet| (sn, octet))));
            }
            Missing::Octets(sn, assembly) => {
                for (start, end) in assembly.holes() {
                    let end = end.map_or(LENGTH, |end| end as usize);
                    octets.extend((start as usize..end).map(|octet| (sn, octet)));
                }
            }
        }
    }
    octets
}

proptest! {
    #![proptest_config(cases(size(500, 3_000)))]

    #[test]
    fn window_follows_the_wording_of_the_standards(
        is_nr in any::<bool>(),
        steps in prop::collection::vec((0_u64..36, 0..LENGTH, 1..=LENGTH, 0_u64..8, 0_u64..3), 1..200),
    ) {
        let generation = if is_nr { Generation::Nr } else { Generation::Lte };
        let mut window = ReceiveWindow::new(generation, WINDOW, TIMER);
        let mut model = Model::default();
        let mut now = Instant::ZERO;
        for (distance, start, length, millis, whole) in steps {
            now += Duration::from_millis(millis);
            window.handle_deadline(now);
            model.expire(generation, now);
            // Mostly close to the lower edge, and often a whole unit.
            let sn = (model.next + if whole > 0 { distance % 6 } else { distance }).saturating_sub(1);
            let (start, end) = if whole == 1 { (0, LENGTH) } else { (start, (start + length).min(LENGTH)) };
            let octets: Vec<u8> = (start..end).map(|octet| octet as u8).collect();
            let segment = Segment { offset: start as u32, octets: &octets, is_last: end == LENGTH };
            if let Placement::Completed(octets) = window.receive(now, sn, segment) {
                prop_assert_eq!(octets, [0, 1, 2, 3]);
            }
            model.receive(generation, now, sn, start..end);
            prop_assert_eq!(window.next, model.next);
            prop_assert_eq!(window.next_highest, model.next_highest);
            prop_assert_eq!(window.highest_status, model.highest_status);
            prop_assert_eq!(window.timer.map(|timer| (timer.expires, timer.mark)), model.timer);
            prop_assert_eq!(missing(&window), model.missing());
        }
    }
}
