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

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The displayed text.
    pub text: String,
    /// The sort key. `None` sorts by the text.
    pub value: Option<f64>,
}

impl Cell {
    /// A cell with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }

    /// A number with this number of decimal places.
    pub fn number(value: f64, digits: usize) -> Self {
        Self { text: format!("{value:.digits$}"), value: Some(value) }
    }

    /// A whole number.
    pub fn count(value: u64) -> Self {
        Self { text: value.to_string(), value: Some(value as f64) }
    }

    /// A dash.
    pub fn nothing() -> Self {
        Self::text("–")
    }
}

/// The runs that a click on a row displays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shows {
    /// Indices in [`Page::runs`](super::Page::runs).
    pub runs: Vec<usize>,
}

/// A table that can be sorted by clicking a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Displayed above the table.
    pub caption: String,
    /// The heading of each column, and an explanation of it.
    pub columns: Vec<(&'static str, &'static str)>,
    /// The runs that each row displays, and its cells.
    pub rows: Vec<(Shows, Vec<Cell>)>,
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
        for (shows, cells) in &self.rows {
            let runs: Vec<_> = shows.runs.iter().map(usize::to_string).collect();
            let _ = write!(html, "<tr data-runs=\"{}\">", runs.join(" "));
            let name = escape(cells.first().map_or("", |cell| &cell.text));
            match (ticks, shows.runs.as_slice()) {
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
                    0 if !shows.runs.is_empty() => {
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

/// Numbers are right-aligned. A cell that names a run is not: it may have a numeric sort key, but its text
/// can be wider than the table.
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
        let shows = Shows { runs: vec![0] };
        let table = Table {
            caption: name.to_owned(),
            columns: vec![("a", "b")],
            rows: vec![(shows, vec![Cell::text(name)])],
        };
        let html = table.html(true);
        assert!(!html.contains("<img") && !html.contains("</script"), "{html}");
    }

    #[test]
    fn number_cell_keeps_unrounded_value_for_sorting() {
        assert!(
            Table { rows: vec![(Shows::default(), vec![Cell::number(9.5, 0)])], ..Table::default() }
                .html(false)
                .contains("<td class=\"number\" data-value=\"9.5\">10</td>")
        );
    }
}
