//! Common parts of bearer settings: times and counts that cannot be 0, and values that can be switched off.

use airwire::time::Duration;

use crate::settings::Invalid;

pub(super) fn positive_time(key: &str, time: Duration) -> Result<(), Invalid> {
    if time.is_zero() {
        return Err(Invalid::new(key, "must be above 0: write for example \"100ms\""));
    }
    Ok(())
}

pub(super) fn positive_if_set(key: &str, time: Option<Duration>) -> Result<(), Invalid> {
    if time.is_some_and(Duration::is_zero) {
        let message = "must be above 0: write for example \"100ms\", or \"off\" to disable it";
        return Err(Invalid::new(key, message));
    }
    Ok(())
}

pub(super) fn positive_count(key: &str, value: u16) -> Result<(), Invalid> {
    if value == 0 { Err(Invalid::new(key, "must be at least 1")) } else { Ok(()) }
}

/// A time that can be switched off, with `"off"` or with 0 in any unit.
pub(in crate::rlc) mod off_time {
    use airwire::time::Duration;
    use serde::Deserializer;

    pub(crate) use super::off::serialize;

    pub(in crate::rlc) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(super::off::deserialize(deserializer)?.filter(|time: &Duration| !time.is_zero()))
    }
}

/// Represents `None` as `"off"`.
pub(crate) mod off {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, Visitor};
    use serde::{Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => value.serialize(serializer),
            None => serializer.serialize_str("off"),
        }
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_any(OffOr(PhantomData))
    }

    struct OffOr<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for OffOr<T> {
        type Value = Option<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value, or \"off\"")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<T>, E> {
            match text {
                "off" => Ok(None),
                text => T::deserialize(text.into_deserializer()).map(Some),
            }
        }
        fn visit_i64<E: de::Error>(self, value: i64) -> Result<Option<T>, E> {
            T::deserialize(value.into_deserializer()).map(Some)
        }
        fn visit_u64<E: de::Error>(self, value: u64) -> Result<Option<T>, E> {
            T::deserialize(value.into_deserializer()).map(Some)
        }
    }
}
