//! Tables and text as HTML. Names and log lines never become markup.

use std::fmt::Write;

/// Escapes text for use in elements and in double-quoted attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Formats indices of runs for the attribute `data-runs`.
pub(super) fn run_list(runs: &[usize]) -> String {
    runs.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The displayed text.
    pub text: String,
    /// The sort key. `None` sorts by the text.
    pub value: Option<f64>,
}

impl Cell {
    /// Creates a cell with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }

    /// Creates a cell with a number with this number of decimal places.
    pub fn number(value: f64, digits: usize) -> Self {
        Self { text: format!("{value:.digits$}"), value: Some(value) }
    }

    /// Creates a cell with a whole number.
    pub fn count(value: u64) -> Self {
        Self { text: value.to_string(), value: Some(value as f64) }
    }

    /// Creates a cell with a dash.
    pub fn nothing() -> Self {
        Self::text("–")
    }
}

/// A table that can be sorted by clicking a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Displayed above the table.
    pub caption: String,
    /// The heading and the explanation of each column.
    pub columns: Vec<(&'static str, &'static str)>,
    /// For each row, the runs that a click displays, as indices in [`Page::runs`](super::Page::runs), and the
    /// cells.
    pub rows: Vec<(Vec<usize>, Vec<Cell>)>,
}

impl Table {
    /// Renders the table. The first cell of a row is a button if the row has runs. With `ticks`, a row with
    /// exactly one run has a checkbox.
    pub(super) fn html(&self, ticks: bool) -> String {
        let mut html =
            format!("<div class=\"wide\"><table><caption>{}</caption>\n<thead><tr>", escape(&self.caption));
        if ticks {
            html.push_str("<th scope=\"col\"><span class=\"hidden\">shown</span></th>");
        }
        for (at, (name, meaning)) in self.columns.iter().enumerate() {
            let (name, meaning) = (escape(name), escape(meaning));
            let numbers = self
                .rows
                .iter()
                .any(|(_, cells)| cells.get(at).is_some_and(|cell| is_number(cell, at, ticks)));
            let class = if numbers { " class=\"number\"" } else { "" };
            let _ = write!(
                html,
                "<th scope=\"col\"{class}><button type=\"button\" class=\"sort\" title=\"{meaning}\">{name}</button></th>"
            );
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for (runs, cells) in &self.rows {
            let _ = write!(html, "<tr data-runs=\"{}\">", run_list(runs));
            let name = escape(cells.first().map_or("", |cell| &cell.text));
            match (ticks, runs.as_slice()) {
                (false, _) => {}
                (true, [run]) => {
                    let _ = write!(
                        html,
                        "<td><input type=\"checkbox\" class=\"tick\" data-run=\"{run}\" aria-label=\"show run {}, {name}\"></td>",
                        run + 1
                    );
                }
                (true, _) => html.push_str("<td></td>"),
            }
            for (at, cell) in cells.iter().enumerate() {
                let text = escape(&cell.text);
                let value = cell.value.map_or_else(String::new, |value| format!(" data-value=\"{value}\""));
                let text = match at {
                    0 if !runs.is_empty() => {
                        format!("<button type=\"button\" class=\"show\">{text}</button>")
                    }
                    _ => text,
                };
                let class = if is_number(cell, at, ticks) { " class=\"number\"" } else { "" };
                let _ = write!(html, "<td{class}{value}>{text}</td>");
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        html
    }
}

/// Returns whether the cell is right-aligned as a number. A cell that names a run may have a numeric sort
/// key, but its text can be wider than the table.
fn is_number(cell: &Cell, at: usize, names_runs: bool) -> bool {
    cell.value.is_some() && !(names_runs && at == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_table_text_is_escaped() {
        let name = "</script><img src=x onerror=alert('1')>\"&";
        assert_eq!(escape(name), "&lt;/script&gt;&lt;img src=x onerror=alert(&#39;1&#39;)&gt;&quot;&amp;");
        let rows = vec![(vec![0], vec![Cell::text(name)])];
        let table = Table { caption: name.to_owned(), columns: vec![("a", "b")], rows };
        let html = table.html(true);
        assert!(!html.contains("<img") && !html.contains("</script"), "{html}");
    }

    #[test]
    fn number_cell_keeps_unrounded_value_for_sorting() {
        let table = Table { rows: vec![(Vec::new(), vec![Cell::number(9.5, 0)])], ..Table::default() };
        assert!(table.html(false).contains("<td class=\"number\" data-value=\"9.5\">10</td>"));
    }
}
