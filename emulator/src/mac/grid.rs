//! The grid of slots, and the directions that use each of them.

use std::fmt;
use std::str::FromStr;

use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::packet::Direction;

/// Symbols of a slot.
pub const SYMBOLS: usize = 14;
/// Length of a frame.
const FRAME: Duration = Duration::from_millis(10);
/// Downlink symbols of a special slot. The other symbols are the guard period, and uplink symbols without
/// data.
pub const SPECIAL_DOWN: usize = 10;

/// A TDD pattern such as `DDDSU`, or `D` for FDD, where both directions can use every slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Vec<SlotKind>);

/// Use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotKind {
    Downlink,
    Special,
    Uplink,
}

/// Error: a text is not a pattern of slots.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a TDD pattern: write D, S and U for the slots, with at least one D and one U, such as \"DDDSU\", or \"D\" for FDD"
)]
pub struct PatternError(String);

impl Pattern {
    /// Both directions use every slot.
    pub fn fdd() -> Self {
        Self(vec![SlotKind::Downlink])
    }

    fn is_fdd(&self) -> bool {
        self.0.len() == 1
    }

    /// Number of symbols that carry data of this direction in the slot with this number.
    fn symbols(&self, direction: Direction, slot: u64) -> usize {
        if self.is_fdd() {
            return SYMBOLS;
        }
        match (self.0[(slot % self.0.len() as u64) as usize], direction) {
            (SlotKind::Downlink, Direction::Down) | (SlotKind::Uplink, Direction::Up) => SYMBOLS,
            (SlotKind::Special, Direction::Down) => SPECIAL_DOWN,
            _ => 0,
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let kinds = text.chars().map(|letter| match letter {
            'D' => Some(SlotKind::Downlink),
            'S' => Some(SlotKind::Special),
            'U' => Some(SlotKind::Uplink),
            _ => None,
        });
        let kinds: Option<Vec<_>> = kinds.collect();
        match kinds {
            Some(kinds)
                if text == "D"
                    || [SlotKind::Downlink, SlotKind::Uplink].iter().all(|kind| kinds.contains(kind)) =>
            {
                Ok(Self(kinds))
            }
            _ => Err(PatternError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|kind| {
            f.write_str(match kind {
                SlotKind::Downlink => "D",
                SlotKind::Special => "S",
                SlotKind::Uplink => "U",
            })
        })
    }
}

/// The slots of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    slot: Duration,
    pattern: Pattern,
}

/// A slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Number of the slot since time zero.
    pub number: u64,
    /// Its beginning.
    pub start: Instant,
}

impl Grid {
    /// Creates a grid with slots of this length. The pattern begins at time zero.
    pub fn new(slot: Duration, pattern: Pattern) -> Self {
        Self { slot, pattern }
    }

    /// Length of a slot.
    pub fn slot(&self) -> Duration {
        self.slot
    }

    /// Whether the directions use different slots (TDD).
    pub fn is_tdd(&self) -> bool {
        !self.pattern.is_fdd()
    }

    /// The number of the slot's frame modulo 1024 (SFN), and the number of the slot in its frame.
    pub fn position(&self, slot: Slot) -> (u16, u16) {
        let slots = FRAME.as_nanos() / self.slot.as_nanos();
        ((slot.number / slots % 1024) as u16, (slot.number % slots) as u16)
    }

    /// The first slot that begins at or after `at` and carries data of this direction.
    pub fn next(&self, direction: Direction, at: Instant) -> Slot {
        let first = (at - Instant::ZERO).as_nanos().div_ceil(self.slot.as_nanos());
        let number = (first..).find(|slot| self.pattern.symbols(direction, *slot) > 0).unwrap_or(first);
        Slot { number, start: Instant::ZERO + self.slot * number }
    }

    /// Size of a transport block in this slot. In a full slot, it has `octets` octets.
    pub fn octets(&self, direction: Direction, slot: Slot, octets: usize) -> usize {
        octets * self.pattern.symbols(direction, slot.number) / SYMBOLS
    }

    /// Data symbols of this direction, as a share of all symbols.
    pub fn share(&self, direction: Direction) -> f64 {
        let slots = self.pattern.0.len() as u64;
        let symbols: usize = (0..slots).map(|slot| self.pattern.symbols(direction, slot)).sum();
        symbols as f64 / (SYMBOLS as u64 * slots) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(pattern: &str) -> Grid {
        Grid::new(Duration::from_micros(500), pattern.parse().unwrap())
    }

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn slots_follow_pattern() {
        let grid = grid("DDDSU");
        for (direction, from, slot, start) in [
            (Direction::Down, 0, 0, 0),
            (Direction::Down, 1, 1, 500),
            (Direction::Down, 1_001, 3, 1_500),
            (Direction::Down, 1_501, 5, 2_500),
            (Direction::Up, 0, 4, 2_000),
            (Direction::Up, 2_000, 4, 2_000),
            (Direction::Up, 2_001, 9, 4_500),
        ] {
            assert_eq!(grid.next(direction, at(from)), Slot { number: slot, start: at(start) });
        }
    }

    #[test]
    fn frames_have_ten_milliseconds() {
        let grid = grid("DDDSU");
        let position = |micros| grid.position(grid.next(Direction::Down, at(micros)));
        assert_eq!([0, 9_500, 10_000, 10_240_500].map(position), [(0, 0), (1, 0), (1, 0), (0, 1)]);
    }

    #[test]
    fn special_slot_carries_part_of_block() {
        let grid = grid("DDDSU");
        let octets = |direction, number| {
            let slot = Slot { number, start: at(0) };
            grid.octets(direction, slot, 1_400)
        };
        let octets = |direction| (5..10).map(|number| octets(direction, number)).collect::<Vec<_>>();
        assert_eq!(octets(Direction::Down), [1_400, 1_400, 1_400, 1_000, 0]);
        assert_eq!(octets(Direction::Up), [0, 0, 0, 0, 1_400]);
        assert!((grid.share(Direction::Down) - 0.742_857).abs() < 1e-6);
    }

    #[test]
    fn fdd_uses_every_slot_in_both_directions() {
        let grid = grid("D");
        assert_eq!(grid.next(Direction::Up, at(501)).number, 2);
        assert_eq!(grid.share(Direction::Up), 1.0);
    }

    #[test]
    fn patterns_without_both_directions_are_refused() {
        for text in ["", "U", "DD", "DS", "SU", "DXU", "ddu"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
        for text in ["D", "DU", "DSUUU", "DDDDDDDSUU"] {
            assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
        }
    }
}
