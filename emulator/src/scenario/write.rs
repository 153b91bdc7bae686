//! Output of settings as TOML and JSON.

use erased_serde::Serialize;

use super::error::Source;
use super::tree::{self, Node, Table, Value};
use crate::prefix::Prefix;

/// All settings, including defaults, in the order of the code. Fields that are `None` are omitted, because
/// TOML cannot express them.
pub(super) fn to_table(settings: &dyn Serialize) -> Table {
    tree::parse(&Source::new("settings", &to_text(settings))).expect("what was written can be read")
}

/// The same as TOML. The serializer of `toml` has six types, so a generic function would be compiled six
/// times for each type of settings.
pub(super) fn to_text(settings: &dyn Serialize) -> String {
    toml::to_string(settings).expect("settings have no maps with odd keys and no odd numbers")
}

/// Formats a value as TOML on one line.
pub(super) fn inline(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Bool(value) => value.to_string(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Table(table) if table.0.is_empty() => "{}".to_owned(),
        Value::Table(table) => {
            let entries: Vec<_> = table
                .0
                .iter()
                .map(|entry| format!("{} = {}", bare(&entry.key), inline(&entry.node)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

/// Formats addresses as a TOML list.
pub(super) fn prefixes(prefixes: &[Prefix]) -> String {
    format!("[{}]", prefixes.iter().map(|prefix| format!("\"{prefix}\"")).collect::<Vec<_>>().join(", "))
}

pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn bare(key: &str) -> String {
    if is_bare(key) { key.to_owned() } else { quoted(key) }
}

/// Whether the key can be written without quotes.
pub(super) fn is_bare(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Calls `each` with the key of each leaf, such as `down.queue.packets`, and its value as TOML. The key is
/// one for `airlink ctl set`.
pub(super) fn leaves(table: &Table, prefix: &str, each: &mut impl FnMut(String, String)) {
    for entry in &table.0 {
        let key = format!("{prefix}{}", bare(&entry.key));
        match &entry.node.value {
            Value::Table(inner) if !inner.0.is_empty() => leaves(inner, &format!("{key}."), each),
            _ => each(key, inline(&entry.node)),
        }
    }
}

pub(super) fn to_json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Text(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Bool(value) => (*value).into(),
        Value::Array(items) => items.iter().map(to_json).collect(),
        Value::Table(table) => table_to_json(table).into(),
    }
}

pub(super) fn table_to_json(table: &Table) -> serde_json::Map<String, serde_json::Value> {
    table.0.iter().map(|entry| (entry.key.clone(), to_json(&entry.node))).collect()
}
