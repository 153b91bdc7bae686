//! Serialization of quantities as text, such as "384kbit".

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::{PROBABILITY, Probability, RATE, Rate, SIZE, Size, TIME, UnitError, exact_time};
use crate::time::{Duration, Instant};

/// Returns `wrong` without its "not ", because serde's message contains "expected …".
fn expected(wrong: &'static str) -> &'static str {
    wrong.strip_prefix("not ").unwrap_or(wrong)
}

/// A visitor that parses text with `FromStr` and passes its error on.
struct Text<T>(std::marker::PhantomData<T>, &'static str);

impl<T: FromStr<Err = UnitError>> Visitor<'_> for Text<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(expected(self.1))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! as_text {
    ($type:ty, $wanted:expr, $write:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text(std::marker::PhantomData, $wanted))
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let write: fn(&Self) -> String = $write;
                serializer.serialize_str(&write(self))
            }
        }
    };
}

as_text!(Rate, RATE, |rate| rate.to_string());
as_text!(Size, SIZE, |size| size.to_string());
as_text!(Duration, TIME, |time| exact_time(*time));

/// As the time since zero.
impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (*self - Self::ZERO).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::ZERO + Duration::deserialize(deserializer)?)
    }
}

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = Probability;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(expected(PROBABILITY))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Probability, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Probability, E> {
                self.visit_str(&value.to_string())
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Probability, E> {
                self.visit_str(&value.to_string())
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}
