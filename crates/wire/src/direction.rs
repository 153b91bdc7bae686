//! The two directions of a path.

use std::fmt;

/// Direction in which a packet travels. It never changes inside a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Direction {
    /// From the fixed side to the mobile side: the downlink.
    Down,
    /// From the mobile side to the fixed side: the uplink.
    Up,
}

/// One value per direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// Value for the downlink.
    pub down: T,
    /// Value for the uplink.
    pub up: T,
}

impl Direction {
    /// Both directions, down first.
    pub const BOTH: [Self; 2] = [Self::Down, Self::Up];

    /// The opposite direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }

    /// The name in scenarios, `down` or `up`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl<T> PerDirection<T> {
    /// Calls `make` for each direction, `Down` first.
    pub fn from_fn(mut make: impl FnMut(Direction) -> T) -> Self {
        Self { down: make(Direction::Down), up: make(Direction::Up) }
    }

    /// Calls `f` for each value, `down` first.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> PerDirection<U> {
        PerDirection { down: f(self.down), up: f(self.up) }
    }

    /// Iterates over both values, `Down` first.
    pub fn iter(&self) -> impl Iterator<Item = (Direction, &T)> {
        [(Direction::Down, &self.down), (Direction::Up, &self.up)].into_iter()
    }
}

impl<T> std::ops::Index<Direction> for PerDirection<T> {
    type Output = T;
    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }
}

impl<T> std::ops::IndexMut<Direction> for PerDirection<T> {
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}
