//! TOML values with their positions in the text, before they are interpreted as settings.

use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::error::{Location, Problem, Quoting, Source};

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) at: Location,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Array(Vec<Node>),
    Table(Table),
}

/// Entries in the order of the text.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(pub(super) Vec<Entry>);

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Position of the key.
    pub(super) at: Location,
    pub(super) node: Node,
}

/// Keys that select the variant of a table. A table of another variant replaces the old one completely.
const TAGS: [&str; 4] = ["model", "mode", "source", "discipline"];

/// Upper bound on the keys of a table. Tables are searched linearly, and a larger one is considered a
/// mistake.
const MOST_KEYS: usize = 10_000;

/// Parses a whole document.
pub(super) fn parse(source: &Arc<Source>) -> Result<Table, Problem> {
    let document = DeTable::parse(&source.text).map_err(|error| {
        let at = Location::new(source, error.span().unwrap_or(0..0));
        let why = match source.quoting {
            Quoting::Lines => format!(": {}", error.message().trim().replace('\n', ", ")),
            Quoting::Positions => String::new(),
        };
        Problem::new(format!("this is not TOML{why}")).at(&at)
    })?;
    table(source, document.get_ref())
}

/// Parses the right side of an assignment.
pub(super) fn parse_value(source: &Arc<Source>) -> Option<Node> {
    let value = DeValue::parse(&source.text).ok()?;
    node(source, value.get_ref(), value.span()).ok()
}

fn table(source: &Arc<Source>, table: &DeTable<'_>) -> Result<Table, Problem> {
    let mut entries = Vec::new();
    if table.len() > MOST_KEYS {
        let at = Location::new(source, 0..0);
        let message = format!("a table has {} keys; the limit is {MOST_KEYS}", table.len());
        return Err(Problem::new(message).at(&at));
    }
    for (key, value) in table {
        let at = Location::new(source, key.span());
        let node = node(source, value.get_ref(), value.span())?;
        entries.push(Entry { key: key.get_ref().to_string(), at, node });
    }
    entries.sort_by_key(|entry| entry.at.start);
    Ok(Table(entries))
}

fn node(source: &Arc<Source>, value: &DeValue<'_>, span: std::ops::Range<usize>) -> Result<Node, Problem> {
    let at = Location::new(source, span);
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => return Err(Problem::new("this number is too large").at(&at)),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => Value::Float(number),
            Err(_) => return Err(Problem::new("this is not a number").at(&at)),
        },
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(_) => return Err(Problem::new("a scenario cannot contain dates").at(&at)),
        DeValue::Array(items) => Value::Array(
            items.iter().map(|item| node(source, item.get_ref(), item.span())).collect::<Result<_, _>>()?,
        ),
        DeValue::Table(inner) => Value::Table(table(source, inner)?),
    };
    Ok(Node { value, at })
}

impl Node {
    pub(super) fn as_table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    pub(super) fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("\"{text}\""),
            Value::Integer(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Bool(value) => format!("`{value}`"),
            Value::Array(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// Finds the first key or value that equals `word`, to locate a word that an error message quotes.
    pub(super) fn find(&self, word: &str) -> Option<&Location> {
        match &self.value {
            Value::Text(text) => (text == word).then_some(&self.at),
            Value::Integer(number) => (number.to_string() == word).then_some(&self.at),
            Value::Float(number) => (number.to_string() == word).then_some(&self.at),
            Value::Bool(value) => (value.to_string() == word).then_some(&self.at),
            Value::Array(items) => items.iter().find_map(|item| item.find(word)),
            Value::Table(table) => {
                let key = table.0.iter().find(|entry| entry.key == word).map(|entry| &entry.at);
                key.or_else(|| table.0.iter().find_map(|entry| entry.node.find(word)))
            }
        }
    }
}

impl Table {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Entry> {
        let index = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(index))
    }

    fn set(&mut self, entry: Entry) {
        match self.0.iter_mut().find(|old| old.key == entry.key) {
            Some(old) => *old = entry,
            None => self.0.push(entry),
        }
    }

    /// Merges `over` into this table. Its values replace the old ones key by key, and inner tables are
    /// merged.
    pub(super) fn overlay(&mut self, over: &Self) {
        let has_other_variant = TAGS.iter().any(|tag| match (self.get(tag), over.get(tag)) {
            (Some(old), Some(new)) => old.describe() != new.describe(),
            _ => false,
        });
        if has_other_variant {
            *self = over.clone();
            return;
        }
        for entry in &over.0 {
            let old = self.0.iter_mut().find(|old| old.key == entry.key);
            match (old, &entry.node.value) {
                (Some(Entry { node: Node { value: Value::Table(old), at }, .. }), Value::Table(new)) => {
                    old.overlay(new);
                    *at = entry.node.at.clone();
                }
                _ => self.set(entry.clone()),
            }
        }
    }

    /// Copies `both = { … }` into `down` and `up`, whose own entries take precedence.
    pub(super) fn spread_both(&mut self) {
        let Some(both) = self.take("both") else { return };
        for key in ["down", "up"] {
            let mut spread = Self(vec![Entry { key: key.to_owned(), ..both.clone() }]);
            if let Some(own) = self.take(key) {
                spread.overlay(&Self(vec![own]));
            }
            self.0.append(&mut spread.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Table {
        parse(&Source::new("t", text)).unwrap()
    }

    fn keys(table: &Table) -> Vec<&str> {
        table.0.iter().map(|entry| entry.key.as_str()).collect()
    }

    #[test]
    fn keys_keep_order_of_text() {
        assert_eq!(keys(&read("z = 1\na = 2\nm.x = 3\nb = 4")), ["z", "a", "m", "b"]);
    }

    #[test]
    fn overlay_replaces_named_keys_and_keeps_others() {
        let mut base = read("a = { x = 1, y = 2 }\nb = 3");
        base.overlay(&read("a.y = 5\nc = 6"));
        let a = base.get("a").unwrap().as_table().unwrap();
        assert!(matches!(a.get("x").unwrap().value, Value::Integer(1)));
        assert!(matches!(a.get("y").unwrap().value, Value::Integer(5)));
        assert_eq!(keys(&base), ["a", "b", "c"]);
    }

    #[test]
    fn overlay_with_another_model_replaces_table() {
        let mut base = read("down = { model = 'uniform', per = '2%' }");
        base.overlay(&read("down = { model = 'list', drop = [] }"));
        assert_eq!(keys(base.get("down").unwrap().as_table().unwrap()), ["model", "drop"]);
    }

    #[test]
    fn both_applies_to_down_and_up_unless_overridden() {
        let mut table = read("both = { rate = 1, delay = 2 }\nup.rate = 3");
        table.spread_both();
        let rate = |key| table.get(key).unwrap().as_table().unwrap().get("rate").unwrap().describe();
        assert_eq!((rate("down"), rate("up")), ("the number 1".into(), "the number 3".into()));
    }

    #[test]
    fn invalid_toml_error_has_line_number() {
        let problem = parse(&Source::new("t", "a = 1\nb = = 2\n")).unwrap_err();
        assert_eq!(problem.position.unwrap().line, 2);
    }

    #[test]
    fn deeply_nested_text_is_rejected() {
        for text in [format!("a = {}", "[".repeat(100_000)), format!("{}b = 1", "a.".repeat(100_000))] {
            assert!(parse(&Source::new("t", &text)).is_err());
        }
    }
}
