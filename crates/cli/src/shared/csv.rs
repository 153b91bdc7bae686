//! CSV output (RFC 4180).

use std::io::{self, Write};

/// Writes one record, with quotes around fields that need them.
pub(crate) fn record(out: &mut impl Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    let quoted = fields.map(|field| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    });
    writeln!(out, "{}", quoted.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_field_with_comma_or_quote_is_quoted() {
        let mut out = Vec::new();
        record(&mut out, ["a,b", "c\"d", "e"].map(str::to_owned).into_iter()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\"a,b\",\"c\"\"d\",e\n");
    }
}
