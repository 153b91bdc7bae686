//! A serde deserializer from the tree to settings that reports the position of errors.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, EnumAccess, Expected, IntoDeserializer, Unexpected, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

use super::error::{Location, Problem};
use super::tree::{Entry, Node, Value};
use crate::suggest::suggest;

#[derive(Debug)]
pub(super) struct ReadError {
    kind: ReadErrorKind,
    at: Option<Location>,
}

#[derive(Debug)]
enum ReadErrorKind {
    UnknownKey { key: String, known: &'static [&'static str] },
    UnknownWord { word: String, known: &'static [&'static str] },
    MissingKey { key: &'static str },
    WrongType { found: String, wanted: String },
    Other(String),
}

pub(super) fn read<T: for<'de> Deserialize<'de>>(node: &Node) -> Result<T, Problem> {
    T::deserialize(node).map_err(|error| error.at(node).into_problem())
}

impl ReadError {
    /// Adds a position if there is none yet, so that the innermost one is kept. An error in a table that
    /// serde had to buffer (an internally tagged enum) does not have a position, but its text quotes the
    /// offending word.
    fn at(mut self, node: &Node) -> Self {
        if self.at.is_none() {
            let word = match &self.kind {
                ReadErrorKind::UnknownKey { key: word, .. } | ReadErrorKind::UnknownWord { word, .. } => {
                    Some(word.as_str())
                }
                ReadErrorKind::WrongType { found: text, .. } | ReadErrorKind::Other(text) => {
                    text.split('`').nth(1)
                }
                ReadErrorKind::MissingKey { .. } => None,
            };
            self.at = Some(word.and_then(|word| node.find(word)).unwrap_or(&node.at).clone());
        }
        self
    }

    /// Adds this position if there is none yet.
    fn or_at(self, location: &Location) -> Self {
        Self { at: self.at.or_else(|| Some(location.clone())), ..self }
    }

    fn into_problem(self) -> Problem {
        let problem = match self.kind {
            ReadErrorKind::UnknownKey { key, known } => {
                Problem::new(format!("unknown key `{key}`")).help(suggest(&key, "keys", known))
            }
            ReadErrorKind::UnknownWord { word, known } => {
                Problem::new(format!("unknown value `{word}`")).help(suggest(&word, "values", known))
            }
            ReadErrorKind::MissingKey { key } => Problem::new(format!("the key `{key}` is missing")),
            ReadErrorKind::WrongType { found, wanted } => Problem::new(format!("{found} is not {wanted}")),
            ReadErrorKind::Other(message) => Problem::new(message),
        };
        match &self.at {
            Some(at) => problem.at(at),
            None => problem,
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { kind: ReadErrorKind::Other(message.to_string()), at: None }
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self {
            kind: ReadErrorKind::WrongType { found: describe_found(found), wanted: describe_wanted(wanted) },
            at: None,
        }
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::invalid_type(found, wanted)
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self { kind: ReadErrorKind::UnknownWord { word: word.to_owned(), known }, at: None }
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self { kind: ReadErrorKind::UnknownKey { key: key.to_owned(), known }, at: None }
    }

    fn missing_field(key: &'static str) -> Self {
        Self { kind: ReadErrorKind::MissingKey { key }, at: None }
    }
}

fn describe_found(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => format!("`{text}`"),
        Unexpected::Signed(number) => format!("`{number}`"),
        Unexpected::Unsigned(number) => format!("`{number}`"),
        Unexpected::Float(number) => format!("`{number}`"),
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map | Unexpected::StructVariant => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// Translates Rust type names for users who write scenarios.
fn describe_wanted(wanted: &dyn Expected) -> String {
    let wanted = wanted.to_string();
    let most = match wanted.as_str() {
        "u8" => u64::from(u8::MAX),
        "u16" => u64::from(u16::MAX),
        "u32" => u64::from(u32::MAX),
        "a nonzero u32" => return format!("a whole number from 1 to {}", u32::MAX),
        "u64" | "usize" => return "a whole number of 0 or more".to_owned(),
        "f64" => return "a number".to_owned(),
        "a boolean" => return "`true` or `false`".to_owned(),
        "a sequence" => return "a list, such as [1, 2]".to_owned(),
        "a string" | "string" => return "a string in quotes".to_owned(),
        "a map" => return "a table, such as { key = \"value\" }".to_owned(),
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum") => {
            return "a table, such as { key = \"value\" }".to_owned();
        }
        _ => return wanted,
    };
    format!("a whole number from 0 to {most}")
}

impl<'de> de::Deserializer<'de> for &'de Node {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match &self.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Array(items) => visitor.visit_seq(Items(items.iter())),
            Value::Table(table) => visitor.visit_map(Entries { rest: table.0.iter(), value: None }),
        }
        .map_err(|error| error.at(self))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match &self.value {
            Value::Text(word) => visitor.visit_enum(word.as_str().into_deserializer()),
            Value::Table(table) if table.0.len() == 1 => visitor.visit_enum(Variant(&table.0[0])),
            _ => Err(de::Error::custom(format!("{} is not one of: {}", self.describe(), known.join(", ")))),
        }
        .map_err(|error: ReadError| error.at(self))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de>(std::slice::Iter<'de, Node>);

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = ReadError;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        self.0.next().map(|node| seed.deserialize(node)).transpose()
    }
}

struct Entries<'de> {
    rest: std::slice::Iter<'de, Entry>,
    value: Option<&'de Node>,
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some(entry) = self.rest.next() else { return Ok(None) };
        self.value = Some(&entry.node);
        let key: StrDeserializer<'de, ReadError> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|error| error.or_at(&entry.at))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let node = self.value.take().expect("serde asks for a value after its key");
        seed.deserialize(node)
    }
}

/// A word that carries a value, such as `{ every = "10ms" }`.
struct Variant<'de>(&'de Entry);

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = ReadError;
    type Variant = Self;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let key: StrDeserializer<'de, ReadError> = self.0.key.as_str().into_deserializer();
        let word = seed.deserialize(key).map_err(|error| error.or_at(&self.0.at))?;
        Ok((word, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Err(ReadError {
            at: Some(self.0.at.clone()),
            ..de::Error::custom("this value takes no settings: write it alone, in quotes")
        })
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(&self.0.node)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, ReadError> {
        de::Deserializer::deserialize_any(&self.0.node, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        de::Deserializer::deserialize_any(&self.0.node, visitor)
    }
}
