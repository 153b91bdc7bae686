//! Quantities of radio links in their usual notation: "50km/h", "2GHz", "10dB", "20m".

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The number as written, with the name and factor of its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quantity {
    number: f64,
    unit: (&'static str, f64),
}

impl Quantity {
    fn parse(text: &str, units: &[(&'static str, f64)]) -> Option<Self> {
        let text = text.trim();
        let digits =
            text.find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = *units.iter().find(|(name, _)| *name == unit)?;
        let number: f64 = number.trim_end().parse().ok()?;
        number.is_finite().then_some(Self { number, unit })
    }

    fn value(self) -> f64 {
        self.number * self.unit.1
    }
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $value:ident, $value_doc:literal, $what:literal, $units:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name(Quantity);

        impl $name {
            #[doc = $value_doc]
            pub fn $value(self) -> f64 {
                self.0.value()
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                let quantity = Quantity::parse(text, &$units);
                quantity.map(Self).ok_or_else(|| format!("`{text}` is not {}", $what))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&format!("{}{}", self.0.number, self.0.unit.0))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_string())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}

quantity!(
    /// Speed of a mobile.
    Speed,
    metres_per_second,
    "In m/s.",
    "a speed: write a number and m/s or km/h, such as \"50km/h\"",
    [("m/s", 1.0), ("km/h", 1.0 / 3.6)]
);
quantity!(
    /// Frequency of a carrier.
    Frequency,
    hertz,
    "In Hz.",
    "a frequency: write a number and Hz, kHz, MHz or GHz, such as \"2GHz\"",
    [("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)]
);
quantity!(
    /// A power ratio in dB, which is ten times its decimal logarithm.
    Decibels,
    value,
    "In dB.",
    "a ratio: write a number and dB, such as \"10dB\"",
    [("dB", 1.0)]
);
quantity!(
    /// Distance that a mobile travels.
    Distance,
    metres,
    "In m.",
    "a distance: write a number and m or km, such as \"20m\"",
    [("m", 1.0), ("km", 1e3)]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed_and_written_with_units() {
        assert!(("50km/h".parse::<Speed>().unwrap().metres_per_second() - 13.888_888_888).abs() < 1e-6);
        assert_eq!("2 GHz".parse::<Frequency>().unwrap().hertz(), 2e9);
        assert_eq!("-3.5dB".parse::<Decibels>().unwrap().value(), -3.5);
        assert_eq!("0.02km".parse::<Distance>().unwrap().metres(), 20.0);
        assert_eq!("50km/h".parse::<Speed>().unwrap().to_string(), "50km/h");
        assert_eq!(" 1e3 MHz".parse::<Frequency>().unwrap().to_string(), "1000MHz");
        for text in ["50", "50mph", "km/h", "nankm/h", ""] {
            assert!(text.parse::<Speed>().unwrap_err().contains("\"50km/h\""), "{text}");
        }
        assert!("2".parse::<Frequency>().is_err() && "infdB".parse::<Decibels>().is_err());
    }
}
