//! Tables and text as HTML. Nothing in a name or a log becomes markup.

use std::fmt::Write;

/// Escapes text, for elements and for attributes in double quotes.
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
    /// What it says.
    pub text: String,
    /// What it is sorted by. `None`: by its text.
    pub value: Option<f64>,
}

impl Cell {
    /// A cell with words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }

    /// A number with so many digits after the point.
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

/// What a click on a row shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shows {
    /// Indices in [`Page::runs`](super::Page::runs).
    pub runs: Vec<usize>,
}

/// A table that a click sorts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Above it.
    pub caption: String,
    /// The heading of each column, and what it means.
    pub columns: Vec<(&'static str, &'static str)>,
    /// What a click on each row shows, and its cells.
    pub rows: Vec<(Shows, Vec<Cell>)>,
}

impl Table {
    /// The first cell of a row is a button, if there is something to show. With `ticks`, a row that shows one run has a box
    /// to tick.
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

/// Numbers stand under each other's ends. What names a run may be sorted by a number, and be longer than the table is wide.
fn is_number(cell: &Cell, at: usize, names_runs: bool) -> bool {
    cell.value.is_some() && !(names_runs && at == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_markup_is_text() {
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
    fn a_number_is_sorted_by_its_value() {
        assert!(
            Table { rows: vec![(Shows::default(), vec![Cell::number(9.5, 0)])], ..Table::default() }
                .html(false)
                .contains("<td class=\"number\" data-value=\"9.5\">10</td>")
        );
    }
}
