//! CSV output (RFC 4180).

/// Formats one record, with quotes around fields that need them, and a line feed.
pub fn record(fields: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted = |field: &str| match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    };
    let fields: Vec<_> = fields.into_iter().map(|field| quoted(field.as_ref())).collect();
    fields.join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_field_with_comma_or_quote_is_quoted() {
        assert_eq!(record(["a,b", "c\"d", "e"]), "\"a,b\",\"c\"\"d\",e\n");
    }
}
