//! Text tables for terminals. A table that is wider than the terminal leaves out its least
//! important columns and lists them below. If it is still too wide, it breaks long names into
//! several lines.

use std::fmt::Write;

/// A table: its columns, and rows of one cell per column.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// A column of a [`Table`]. Text is aligned to the right unless [`Column::left`] is called.
#[derive(Clone, Debug)]
pub struct Column {
    group: &'static str,
    heading: String,
    is_left: bool,
    /// Whether the column belongs to the previous column, as in `12.3 ± 0.4`.
    is_joined: bool,
    /// Columns with the smallest rank are left out first. A column with `None` is never left out.
    rank: Option<u8>,
}

impl Column {
    /// A column with this heading that is always shown.
    pub fn new(heading: impl Into<String>) -> Self {
        Self { group: "", heading: heading.into(), is_left: false, is_joined: false, rank: None }
    }

    /// Aligns the column to the left.
    pub fn left(self) -> Self {
        Self { is_left: true, ..self }
    }

    /// Writes `group` above this column and its neighbours of the same group.
    pub fn of(self, group: &'static str) -> Self {
        Self { group, ..self }
    }

    /// Joins the column to the previous column. A narrower gap separates the two, and both are left out
    /// together.
    pub fn joined(self) -> Self {
        Self { is_joined: true, ..self }
    }

    /// Makes the column optional: a narrow table leaves out the columns with the smallest `rank`
    /// first.
    pub fn optional(self, rank: u8) -> Self {
        Self { rank: Some(rank), ..self }
    }

    fn gap(&self) -> usize {
        if self.is_joined { 1 } else { 2 }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the row does not have one cell per column.
    pub fn push(&mut self, row: impl IntoIterator<Item = String>) {
        let row: Vec<_> = row.into_iter().collect();
        assert_eq!(row.len(), self.columns.len(), "one cell per column");
        self.rows.push(row);
    }

    /// Returns the headings of the columns with text, and the cells of these columns in each row.
    pub fn cells(&self) -> (Vec<&str>, Vec<Vec<&str>>) {
        let shown: Vec<usize> = (0..self.columns.len()).filter(|column| self.width(*column) > 0).collect();
        let headings = shown.iter().map(|column| self.columns[*column].heading.as_str()).collect();
        let rows = self.rows.iter().map(|row| shown.iter().map(|column| row[*column].as_str()).collect());
        (headings, rows.collect())
    }

    /// Renders the table as lines of text that fit into `width`, or without a limit if it is
    /// `None`. Columns without any text are left out.
    pub fn render(&self, width: Option<usize>) -> String {
        let mut shown: Vec<usize> =
            (0..self.columns.len()).filter(|column| self.width(*column) > 0).collect();
        let mut left_out = Vec::new();
        while width.is_some_and(|width| self.total(&shown) > width)
            && let Some(column) = self.least(&shown)
        {
            left_out.push(column);
            shown.retain(|other| {
                *other != column && !(self.columns[*other].is_joined && *other == column + 1)
            });
        }
        // Leaving out a wide column may have made room for narrow ones that were left out earlier.
        for column in left_out.clone().into_iter().rev() {
            let more = self.with(&shown, column);
            if width.is_some_and(|width| self.total(&more) <= width) {
                shown = more;
                left_out.retain(|other| *other != column);
            }
        }
        let excess = width.map_or(0, |width| self.total(&shown).saturating_sub(width));
        let table = if excess > 0 { &self.narrowed(&shown, excess) } else { self };
        let widths = table.widths(&shown);
        let mut text = table.heading(&shown, &widths);
        for row in &table.rows {
            text += &table.line(&shown, &widths, |column| &row[column]);
        }
        left_out.sort_unstable();
        if !left_out.is_empty() {
            let names: Vec<_> =
                self.groups(&left_out).into_iter().map(|group| self.names(&left_out[group])).collect();
            let line = format!("not shown: {} (use --wide)\n", names.join(", "));
            text += &wrapped_lines(&line, width);
        }
        text
    }

    /// Returns the table with `excess` fewer characters per line, if its left-aligned columns are
    /// wide enough. Their long cells and headings continue in additional rows.
    fn narrowed(&self, shown: &[usize], excess: usize) -> Self {
        const NARROWEST: usize = 12;
        // A column without text is not shown, so its heading stays whole.
        let limit = |column| if self.width(column) == 0 { usize::MAX } else { self.width(column) };
        let mut limits: Vec<usize> = (0..self.columns.len()).map(limit).collect();
        for _ in 0..excess {
            let names = shown.iter().filter(|column| self.columns[**column].is_left);
            let widest = names.max_by_key(|column| limits[**column]).copied();
            let Some(column) = widest.filter(|column| limits[*column] > NARROWEST) else { break };
            limits[column] -= 1;
        }
        let lines = |cells: Vec<&str>| {
            let cells: Vec<Vec<String>> =
                cells.iter().zip(&limits).map(|(cell, limit)| broken(cell, *limit)).collect();
            let count = cells.iter().map(Vec::len).max().unwrap_or(0);
            let line =
                |at: usize| cells.iter().map(|cell| cell.get(at).cloned().unwrap_or_default()).collect();
            (0..count).map(line).collect::<Vec<Vec<String>>>()
        };
        let mut rows = lines(self.columns.iter().map(|column| column.heading.as_str()).collect());
        let columns = self.columns.iter().cloned().zip(rows.remove(0));
        let columns = columns.map(|(column, heading)| Column { heading, ..column }).collect();
        rows.extend(self.rows.iter().flat_map(|row| lines(row.iter().map(String::as_str).collect())));
        Self { columns, rows }
    }

    /// Returns the columns `shown` plus `column` and its joined columns.
    fn with(&self, shown: &[usize], column: usize) -> Vec<usize> {
        let joined = (column + 1..self.columns.len()).take_while(|other| self.columns[*other].is_joined);
        let joined = joined.filter(|other| self.width(*other) > 0);
        let mut all: Vec<_> = shown.iter().copied().chain([column]).chain(joined).collect();
        all.sort_unstable();
        all
    }

    /// Formats the headings of adjacent columns of one group: `timeouts (all, spurious)`.
    fn names(&self, columns: &[usize]) -> String {
        let headings: Vec<_> = columns.iter().map(|column| self.columns[*column].heading.as_str()).collect();
        match self.columns[columns[0]].group {
            "" => headings.join(", "),
            group => format!("{group} ({})", headings.join(", ")),
        }
    }

    /// Returns the column to leave out next.
    fn least(&self, shown: &[usize]) -> Option<usize> {
        let ranked = shown.iter().filter_map(|column| Some((self.columns[*column].rank?, *column)));
        ranked.min_by_key(|(rank, column)| (*rank, std::cmp::Reverse(*column))).map(|(_, column)| column)
    }

    /// Returns the width of a column's text. The heading counts if any cell has text, or if the
    /// table has no rows and the column is not optional.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| chars(&row[column])).max().unwrap_or(0);
        let has_text = cells > 0 || (self.rows.is_empty() && self.columns[column].rank.is_none());
        if has_text { cells.max(chars(&self.columns[column].heading)) } else { 0 }
    }

    fn total(&self, shown: &[usize]) -> usize {
        let gaps: usize = shown.iter().skip(1).map(|column| self.columns[*column].gap()).sum();
        gaps + self.widths(shown).iter().sum::<usize>()
    }

    /// Returns the widths of the columns. The first column of a group is widened if the group's
    /// name needs more room than its columns.
    fn widths(&self, shown: &[usize]) -> Vec<usize> {
        let mut widths: Vec<usize> = shown.iter().map(|column| self.width(*column)).collect();
        for group in self.groups(shown) {
            let columns = &shown[group.clone()];
            let room: usize = widths[group.clone()].iter().sum::<usize>()
                + columns.iter().skip(1).map(|column| self.columns[*column].gap()).sum::<usize>();
            widths[group.start] += chars(self.columns[columns[0]].group).saturating_sub(room);
        }
        widths
    }

    /// Returns the runs of adjacent columns of one group, as ranges of `shown`.
    fn groups(&self, shown: &[usize]) -> Vec<std::ops::Range<usize>> {
        let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
        for (at, column) in shown.iter().enumerate() {
            let group = self.columns[*column].group;
            match groups.last_mut() {
                Some(last) if self.columns[shown[last.start]].group == group => last.end = at + 1,
                _ => groups.push(at..at + 1),
            }
        }
        groups
    }

    fn heading(&self, shown: &[usize], widths: &[usize]) -> String {
        let mut line = String::new();
        for group in self.groups(shown) {
            let columns = &shown[group.clone()];
            let gaps = columns.iter().skip(1).map(|column| self.columns[*column].gap()).sum::<usize>();
            let room = widths[group.clone()].iter().sum::<usize>() + gaps;
            let gap = if group.start == 0 { 0 } else { self.columns[columns[0]].gap() };
            let name = self.columns[columns[0]].group;
            let _ = match name.is_empty() || chars(name) == room {
                true => write!(line, "{:gap$}{name:room$}", ""),
                // Dashes show how far the group extends.
                false => write!(line, "{:gap$}{name} {:-<rest$}", "", "", rest = room - chars(name) - 1),
            };
        }
        let groups = if line.trim().is_empty() { String::new() } else { format!("{}\n", line.trim_end()) };
        groups + &self.line(shown, widths, |column| &self.columns[column].heading)
    }

    fn line<'a>(&'a self, shown: &[usize], widths: &[usize], cell: impl Fn(usize) -> &'a str) -> String {
        let mut line = String::new();
        for (at, (column, width)) in shown.iter().zip(widths).enumerate() {
            let gap = if at == 0 { 0 } else { self.columns[*column].gap() };
            let _ = match self.columns[*column].is_left {
                true => write!(line, "{:gap$}{:<width$}", "", cell(*column)),
                false => write!(line, "{:gap$}{:>width$}", "", cell(*column)),
            };
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a name into lines of at most `width` characters, if possible after a space, a plus sign or a dot.
/// A longer part is broken anywhere. There is at least one line.
fn broken(name: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in name.split_inclusive([' ', '+', '.']) {
        let line = lines.last_mut().expect("there is a first line");
        if !line.is_empty() && chars(line) + chars(part.trim_end()) > width {
            lines.push(String::new());
        }
        for c in part.chars() {
            let line = lines.last_mut().expect("there is a first line");
            // A space may exceed the width, because it is removed.
            match chars(line) >= width && c != ' ' {
                true => lines.push(c.to_string()),
                false => line.push(c),
            }
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Breaks a text between words into lines of at most `width` characters. The first line begins with
/// `first`, and the other lines are indented by the width of `first`.
pub fn wrapped(first: &str, text: &str, width: usize) -> String {
    let indent = chars(first);
    let mut lines = vec![first.to_owned()];
    let mut has_word = false;
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        match (has_word, chars(line) + 1 + chars(word) <= width) {
            (false, _) => *line += word,
            (true, true) => *line += &format!(" {word}"),
            (true, false) => lines.push(format!("{:indent$}{word}", "")),
        }
        has_word = true;
    }
    lines.join("\n") + "\n"
}

/// Breaks the lines of a text that are longer than `width`. Continuation lines are indented by two
/// spaces or, after a label (`  label     text`), to the column where the text begins.
pub fn wrapped_lines(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.lines().map(|line| format!("{line}\n")).collect() };
    let wrap = |line: &str| match text_after_label(line) {
        Some(at) => wrapped(&line[..at], &line[at..], width),
        None => {
            let lines = wrapped("", line.trim_start(), width.saturating_sub(2 + leading(line)));
            let indent = " ".repeat(leading(line));
            let lines: Vec<_> = lines.lines().map(|line| format!("{indent}{line}")).collect();
            lines.join("\n  ") + "\n"
        }
    };
    text.lines().map(|line| if chars(line) > width { wrap(line) } else { format!("{line}\n") }).collect()
}

fn leading(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns where the text begins in a line that starts with a short label and at least two spaces.
fn text_after_label(line: &str) -> Option<usize> {
    const FARTHEST: usize = 24;
    let label = leading(line);
    let gap = label + line[label..].find("  ")?;
    let text = gap + leading(&line[gap..]);
    (text <= FARTHEST).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn senders() -> Table {
        let mut table = Table::new([
            Column::new("sender").left(),
            Column::new("mean").of("kbit/s"),
            Column::new("").of("kbit/s").joined(),
            Column::new("median").of("kbit/s").optional(2),
            Column::new("all").of("timeouts").optional(1),
            Column::new("spurious").of("timeouts").optional(0),
        ]);
        table.push(["newreno", "310.2", "± 12.3", "299.9", "1.0", "0.0"].map(str::to_owned));
        table.push(["linux:cubic", "95.0", "", "94.0", "0.0", "0.0"].map(str::to_owned));
        table
    }

    #[test]
    fn columns_are_aligned_under_group_headings() {
        let expected = [
            "             kbit/s -------------  timeouts ----\n",
            "sender        mean         median  all  spurious\n",
            "newreno      310.2 ± 12.3   299.9  1.0       0.0\n",
            "linux:cubic   95.0           94.0  0.0       0.0\n",
        ]
        .concat();
        assert_eq!(senders().render(None), expected);
        assert_eq!(senders().render(Some(48)), expected, "it fits");
    }

    #[test]
    fn narrow_table_omits_and_names_optional_columns() {
        let expected = [
            "             kbit/s -------------\n",
            "sender        mean         median\n",
            "newreno      310.2 ± 12.3   299.9\n",
            "linux:cubic   95.0           94.0\n",
            "not shown: timeouts (all,\n",
            "  spurious) (use --wide)\n",
        ]
        .concat();
        assert_eq!(senders().render(Some(36)), expected);
        let narrow = senders().render(Some(10));
        assert!(narrow.contains("newreno      310.2 ± 12.3\n"), "the other columns stay: {narrow}");
        let mut table = Table::new([
            Column::new("a"),
            Column::new("narrow").optional(0),
            Column::new("a much wider column").optional(1),
        ]);
        table.push(["1", "2", "3"].map(str::to_owned));
        assert!(table.render(Some(12)).starts_with("a  narrow\n1       2\n"), "{}", table.render(Some(12)));
    }

    #[test]
    fn narrow_table_continues_long_names_in_next_line() {
        let mut table = Table::new([
            Column::new("recipe").left(),
            Column::new("radio.down.channel.errors.bler").left(),
            Column::new("mean"),
            Column::new("an empty column"),
            Column::new("verdict").left(),
        ]);
        table.push(["sack+rack+prr+cubic", "1%", "1.0", "", "undecided: about 4 more"].map(str::to_owned));
        let expected = [
            "recipe      radio.down.  mean  verdict\n",
            "            channel.\n",
            "            errors.bler\n",
            "sack+rack+  1%            1.0  undecided:\n",
            "prr+cubic                      about 4 more\n",
        ]
        .concat();
        assert_eq!(table.render(Some(44)), expected);
        assert_eq!(table.render(Some(20)), expected, "names are not broken into very short lines");
        assert!(!table.render(None).contains("channel.\n"));
        assert_eq!(broken("loss-retransmission", 12), ["loss-retrans", "mission"]);
        assert_eq!(broken("", 12), [""]);
    }

    #[test]
    fn column_widens_to_fit_group_name() {
        let mut table = Table::new([Column::new("a").of("a long name"), Column::new("b")]);
        table.push(["1", "2"].map(str::to_owned));
        assert_eq!(table.render(None), "a long name\n          a  b\n          1  2\n");
    }

    #[test]
    fn empty_columns_are_omitted() {
        let mut table = Table::new([Column::new("a"), Column::new("b"), Column::new("c")]);
        table.push(["1", "", "3"].map(str::to_owned));
        assert_eq!(table.render(None), "a  c\n1  3\n");
    }

    #[test]
    fn only_long_lines_are_wrapped() {
        let text = "one two three four\n  kept  as it is\n";
        assert_eq!(wrapped_lines(text, Some(17)), "one two three\n  four\n  kept  as it is\n");
        assert_eq!(wrapped_lines(text, None), text);
        assert_eq!(wrapped_lines("a line without an end", None), "a line without an end\n");
        let labelled = "  SYNs    MSS 1460, window scale 8\n";
        assert_eq!(
            wrapped_lines(labelled, Some(20)),
            "  SYNs    MSS 1460,\n          window\n          scale 8\n"
        );
    }

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrapped("- ", "one two three", 9), "- one two\n  three\n");
        assert_eq!(wrapped("", "one two three", 7), "one two\nthree\n");
        assert_eq!(wrapped("- ", "a-word-that-is-too-long x", 9), "- a-word-that-is-too-long\n  x\n");
    }
}
