//! The length of a queue, in the unit of a setting.

use std::fmt;

use airwire::units::Size;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::QueueCounters;

/// A queue length, in packets or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Length {
    /// In packets, written `5`.
    Packets(u32),
    /// In bytes, written `"7.5kB"`.
    Bytes(Size),
}

impl Length {
    pub(super) fn value(self) -> f64 {
        match self {
            Self::Packets(packets) => f64::from(packets),
            Self::Bytes(size) => size.as_bytes() as f64,
        }
    }

    /// Returns the current length of the queue in the same unit.
    pub(super) fn of(self, counters: &QueueCounters) -> f64 {
        match self {
            Self::Packets(_) => counters.packets as f64,
            Self::Bytes(_) => counters.bytes as f64,
        }
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Length;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of packets such as 5, or a size such as \"7.5kB\"")
            }
            fn visit_i64<E: de::Error>(self, packets: i64) -> Result<Length, E> {
                u32::try_from(packets)
                    .map(Length::Packets)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(packets), &self))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Length, E> {
                text.parse().map(Length::Bytes).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Either)
    }
}
