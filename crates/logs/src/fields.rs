//! The fields of an event or a span, in their original order.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};

/// The fields that `tracing` hands over, split by their special meanings.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Nanoseconds since 1970.
    pub(super) at: Option<u64>,
    /// The complete line of the text format, which replaces message and fields.
    pub(super) line: Option<String>,
    pub(super) message: String,
    pub(super) others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("at", Value::Number(at)) => self.at = at.as_u64(),
            ("line", Value::String(line)) => self.line = Some(line),
            ("message", Value::String(message)) => self.message = message,
            (name, value) => self.others.push((name, value)),
        }
    }

    /// Writes the fields as `key=value`, separated by blanks.
    pub(super) fn write_text(&self, out: &mut String) {
        for (index, (name, value)) in self.others.iter().enumerate() {
            let blank = if index > 0 { " " } else { "" };
            let _ = match value {
                // Quoted so that a reader who splits the line at blanks gets whole values.
                Value::String(text) if text.contains([' ', '"', '=', '\n']) || text.is_empty() => {
                    write!(out, "{blank}{name}={text:?}")
                }
                Value::String(text) => write!(out, "{blank}{name}={text}"),
                value => write!(out, "{blank}{name}={value}"),
            };
        }
    }

    pub(super) fn put_into(&self, object: &mut Map<String, Value>) {
        for (name, value) in &self.others {
            object.insert((*name).to_owned(), value.clone());
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::String(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON cannot represent infinity, the initial value of ssthresh.
        self.put(field, if value.is_finite() { value.into() } else { Value::Null });
    }
}
