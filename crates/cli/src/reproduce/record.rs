//! The record of all figures: a directory with an index of all claims, a page per paper and the method. Its
//! directory `data` contains the pictures (SVG) and the numbers (CSV).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airtcp_numbers::csv;
use airtcp_numbers::table::wrapped;
use airtcp_reproduce::{Central, Figure, Paper, Table, Verdict, figures, listed};
use airtcp_sim::file;
use anyhow::Context;

use super::{FinishedFigure, of};

const METHOD: &str = include_str!("method.md");

const INDEX: &str = "\
# Reproduced papers

Every figure and table of five papers that has numbers or a curve, run in virtual time with the
algorithms of this repository. [Method](method.md) explains how claims are counted and judged.
`airtcp reproduce FIGURE` prints one figure with its numbers, and
`airtcp reproduce --all --html papers.html` writes one HTML page with all figures and filters for
the claims. `airtcp reproduce --verify-record docs/evidence/papers` runs everything again and
compares it byte for byte.
";

/// The playground's file, in the directory of a page that links to this file.
pub(super) const PLAYGROUND: &str = "playground.html";
pub(super) const ABOUT_LINKS: &str = "“Run this” opens `playground.html` in the directory of this page, with the \
    path of a figure and similar senders. `airtcp playground -o playground.html` writes this file.";

/// Heading of the choices for one figure.
pub(super) const CHOICES: &str = "Choices";
/// Heading of the choices at the beginning of a paper.
pub(super) const SHARED_CHOICES: &str = "Choices for several figures";

/// Maximum size of the tables in the pages. Larger tables are in their CSV files only.
const MAX_ROWS: usize = 12;
const MAX_COLUMNS: usize = 4;

/// Maximum number of words of a claim's quotation in the index.
const MAX_WORDS: usize = 18;

pub(super) struct Record {
    directory: PathBuf,
    /// The text of each figure's section, without the heading.
    sections: BTreeMap<String, String>,
}

impl Record {
    /// Opens a record, or begins one. Figures that are not run again are kept.
    pub(super) fn open(directory: &Path) -> anyhow::Result<Self> {
        let data = directory.join("data");
        fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
        Self::read(directory)
    }

    /// Reads a record.
    pub(super) fn read(directory: &Path) -> anyhow::Result<Self> {
        let mut record = Self { directory: directory.to_owned(), sections: BTreeMap::new() };
        for paper in papers() {
            let page = record.path(&file_name(paper));
            match airfiles::read_result(&page) {
                Ok(text) => record.sections.extend(sections(&text)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", page.display())),
            }
        }
        Ok(record)
    }

    /// Returns the text of a figure, without its heading.
    pub(super) fn section(&self, id: &str) -> Option<&String> {
        self.sections.get(id)
    }

    /// Adds a figure, or replaces it.
    pub(super) fn put(&mut self, made: &FinishedFigure) -> anyhow::Result<()> {
        let Recorded { section, files, stale } = Recorded::of(made)?;
        files.iter().try_for_each(|(name, bytes)| self.write(name, bytes))?;
        stale.iter().try_for_each(|name| self.remove(name))?;
        self.sections.insert(made.figure.id.to_owned(), section);
        self.pages().into_iter().try_for_each(|(name, text)| self.write(&name, text.as_bytes()))
    }

    /// Returns the names and texts of the pages: one per paper, the method and the index.
    pub(super) fn pages(&self) -> Vec<(String, String)> {
        let with_figures = papers().filter(|paper| !self.figures(*paper).is_empty());
        let of_papers = with_figures.map(|paper| (file_name(paper), self.page(paper)));
        let others = [("method.md".to_owned(), METHOD.to_owned()), ("README.md".to_owned(), self.index())];
        of_papers.chain(others).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.path(name);
        file::replace(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Removes a file of an earlier run, if there is one.
    fn remove(&self, name: &str) -> anyhow::Result<()> {
        let stale = self.path(name);
        match fs::remove_file(&stale) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", stale.display()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the figures of a paper that the record contains, with their sections.
    fn figures(&self, paper: Paper) -> Vec<(Figure, &String)> {
        let known = of(paper, &figures());
        known.into_iter().filter_map(|figure| Some((figure, self.sections.get(figure.id)?))).collect()
    }

    fn page(&self, paper: Paper) -> String {
        let figures = self.figures(paper);
        let mut text = format!("# {}\n", paper.reference());
        let tally = tally(&figures);
        if tally.iter().sum::<usize>() > 0 {
            let counts = Verdict::COLUMNS.iter().zip(tally).map(|(name, count)| format!("{count} {name}"));
            let counts = format!("Claims: {}.", counts.collect::<Vec<_>>().join(", "));
            let _ = write!(text, "\n{}", wrapped("", &counts, 100));
        }
        text += "\n[Method](method.md) · [All claims](README.md)\n";
        if figures.iter().any(|(figure, _)| figure.playground().is_some()) {
            let _ = write!(text, "\n{}", wrapped("", ABOUT_LINKS, 100));
        }
        if let Some(central) = paper.central() {
            text += &central_claims(&central, &figures);
        }
        let figures_of_paper: Vec<Figure> = figures.iter().map(|(figure, _)| *figure).collect();
        let shared: String = paper.shared_by(&figures_of_paper).map(|shared| shared.markdown()).collect();
        if !shared.is_empty() {
            let _ = write!(text, "\n{}\n", folded(SHARED_CHOICES, &shared).trim_end());
        }
        for (figure, section) in figures {
            let _ = write!(text, "\n{}\n\n{section}\n", heading(&figure));
        }
        text
    }

    fn index(&self) -> String {
        let mut text = format!(
            "{INDEX}\n| paper | {} |\n|---|{}\n",
            Verdict::COLUMNS.join(" | "),
            "---|".repeat(Verdict::COLUMNS.len())
        );
        let mut all = Tally::default();
        let with_claims: Vec<Paper> =
            Paper::ALL.into_iter().filter(|paper| !self.figures(*paper).is_empty()).collect();
        for paper in &with_claims {
            let tally = tally(&self.figures(*paper));
            all = std::array::from_fn(|column| all[column] + tally[column]);
            let (name, file) = (paper.cited(), file_name(*paper));
            let _ =
                writeln!(text, "| [{name}]({file}) | {} |", tally.map(|count| count.to_string()).join(" | "));
        }
        let _ = writeln!(text, "| all | {} |", all.map(|count| count.to_string()).join(" | "));
        if !self.figures(Paper::Every).is_empty() {
            let _ = write!(text, "\n[{}]({})\n", Paper::Every.reference(), file_name(Paper::Every));
        }
        for paper in with_claims {
            let _ = write!(text, "\n## {}\n\n| claim | verdict | figure |\n|---|---|---|\n", paper.cited());
            for (figure, section) in self.figures(paper) {
                let link = format!("[{}]({}#{})", figure.id, file_name(paper), anchor(&heading(&figure)));
                for Entry { verdict, claim } in entries(section) {
                    let _ = writeln!(text, "| {claim} | {verdict} | {link} |");
                }
            }
        }
        text
    }
}

/// A figure in the form of the record.
pub(super) struct Recorded {
    /// The text under its heading.
    pub(super) section: String,
    /// The names and contents of its pictures and tables.
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// Names of files that an earlier run may have left: one more picture or table, or other readings.
    pub(super) stale: Vec<String>,
}

impl Recorded {
    pub(super) fn of(made: &FinishedFigure) -> anyhow::Result<Self> {
        let FinishedFigure { figure, finding, .. } = made;
        let data = |name: &str| format!("data/{name}");
        let mut files = Vec::new();
        let mut pictures = Vec::new();
        for (index, chart) in finding.charts.iter().enumerate() {
            let name = data(&numbered(figure.id, index, "svg"));
            files.push((name.clone(), made.svg(chart)?));
            pictures.push((name, chart.title.clone()));
        }
        let mut numbers = Vec::new();
        for (index, table) in finding.tables.iter().enumerate() {
            numbers.push((numbered(figure.id, index, "csv"), as_csv(table)));
        }
        let mut stale = vec![
            data(&numbered(figure.id, pictures.len(), "svg")),
            data(&numbered(figure.id, finding.tables.len(), "csv")),
        ];
        let readings = format!("{}-readings.csv", figure.id);
        match finding.readings(figure.paper.factors()) {
            Some(table) => numbers.push((readings, as_csv(&table))),
            None => stale.push(data(&readings)),
        }
        let names: Vec<&str> = numbers.iter().map(|(name, _)| name.as_str()).collect();
        let section = section(made, &pictures, &names);
        files.extend(numbers.iter().map(|(name, text)| (data(name), text.clone().into_bytes())));
        Ok(Self { section, files, stale })
    }
}

/// Formats the central claims of a page with one picture. Claims of figures that are not recorded are left out.
fn central_claims(central: &Central, figures: &[(Figure, &String)]) -> String {
    let mut rows = String::new();
    for (id, begin) in central.claims {
        let Some((figure, section)) = figures.iter().find(|(figure, _)| figure.id == id) else { continue };
        let is_meant = |entry: &Entry| entry.claim.trim_start_matches('“').starts_with(begin);
        if let Some(Entry { verdict, claim }) = entries(section).into_iter().find(is_meant) {
            let _ = writeln!(rows, "| {claim} | {verdict} | [{id}](#{}) |", anchor(&heading(figure)));
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let picture = figures.iter().find(|(figure, _)| figure.id == central.picture);
    let picture = picture.and_then(|(_, section)| section.lines().find(|line| line.starts_with("![")));
    let picture = picture.map_or_else(String::new, |line| format!("\n{line}\n"));
    format!("\nCentral claims:\n\n| claim | verdict | figure |\n|---|---|---|\n{rows}{picture}")
}

/// Returns the papers, and the ranking of all their proposals.
fn papers() -> impl Iterator<Item = Paper> {
    Paper::ALL.into_iter().chain([Paper::Every])
}

fn file_name(paper: Paper) -> String {
    format!("{}.md", paper.name())
}

fn heading(figure: &Figure) -> String {
    format!("## `{}`: {}", figure.id, figure.title)
}

/// Returns the link target of a heading, as mdBook and repository hosts generate it.
fn anchor(heading: &str) -> String {
    let letters = heading.trim_start_matches('#').trim().chars();
    let allowed = letters.filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    allowed.collect::<String>().to_lowercase().replace(' ', "-")
}

fn section(made: &FinishedFigure, pictures: &[(String, String)], numbers: &[&str]) -> String {
    let FinishedFigure { finding, .. } = made;
    let command = format!("`{}`, {}.", made.command(), made.runs());
    let link = made.figure.playground();
    let link =
        link.map_or_else(String::new, |setup| format!(" [Run this]({PLAYGROUND}#{}).", setup.address()));
    let numbers = numbers.iter().map(|name| format!("[{name}](data/{name})")).collect::<Vec<_>>().join(", ");
    let numbers = if numbers.is_empty() { numbers } else { format!(" Numbers: {numbers}") };
    let mut text = wrapped("", &(command + &link + &numbers), 100) + "\n";
    for (name, title) in pictures {
        // Writing into a string does not fail.
        let _ = writeln!(text, "![{title}]({name})\n");
    }
    let is_small = |table: &&Table| table.rows.len() <= MAX_ROWS && table.columns.len() <= MAX_COLUMNS;
    if pictures.is_empty() {
        finding.tables.iter().filter(is_small).for_each(|table| text += &table.markdown());
    }
    text.push_str(&finding.claims_markdown());
    text.push_str(&finding.remarks_markdown());
    if !finding.choices.is_empty() {
        text.push_str(&folded(CHOICES, &listed(&finding.choices)));
    }
    text.trim_end().to_owned()
}

/// Formats a section that the reader can expand.
fn folded(summary: &str, inside: &str) -> String {
    format!("<details><summary>{summary}</summary>\n\n{}\n\n</details>\n\n", inside.trim_end())
}

/// Returns a file name: `p0-fig5.csv`, `p0-fig5-2.csv`, …
pub(super) fn numbered(id: &str, index: usize, extension: &str) -> String {
    match index {
        0 => format!("{id}.{extension}"),
        _ => format!("{id}-{}.{extension}", index + 1),
    }
}

/// Splits a page into the sections of its figures, without the headings.
fn sections(text: &str) -> BTreeMap<String, String> {
    let parts = text.split("\n## `").skip(1).filter_map(|part| {
        let (heading, text) = part.split_once('\n')?;
        let (id, _) = heading.split_once('`')?;
        Some((id.to_owned(), text.trim().to_owned()))
    });
    parts.collect()
}

/// A counted claim in the index.
struct Entry {
    verdict: String,
    claim: String,
}

/// Parses the counted claims of a section: `- **holds**: “…” (§4)`.
fn entries(section: &str) -> Vec<Entry> {
    let parts = section.split("\n- **").skip(1).filter_map(|part| {
        let (verdict, rest) = part.split_once("**: ")?;
        let claim = rest.split("\n\n").next()?;
        // The index shows only the first quotation.
        let claim = claim.split_inclusive('”').next()?;
        let words: Vec<&str> = claim.split_whitespace().collect();
        let claim = match words.len() <= MAX_WORDS {
            true => words.join(" "),
            false => format!("{} …”", words[..MAX_WORDS].join(" ")),
        };
        Some(Entry { verdict: verdict.to_owned(), claim })
    });
    parts.collect()
}

/// The number of claims in each column of [`Verdict::COLUMNS`].
pub(super) type Tally = [usize; Verdict::COLUMNS.len()];

fn tally(figures: &[(Figure, &String)]) -> Tally {
    let mut tally = Tally::default();
    for entry in figures.iter().flat_map(|(_, section)| entries(section)) {
        if let Some(column) = Verdict::column(&entry.verdict) {
            tally[column] += 1;
        }
    }
    tally
}

/// A cell such as `12.3 ± 0.4 %`.
struct Interval<'a> {
    mean: &'a str,
    half_width: Option<&'a str>,
    unit: &'a str,
}

impl<'a> Interval<'a> {
    fn of(cell: &'a str) -> Option<Self> {
        let (number, unit) = match cell.rsplit_once(' ') {
            Some((number, unit)) if is_number(number.split(' ').next()?) && !is_number(unit) => {
                (number, unit)
            }
            _ => (cell, ""),
        };
        let (mean, half_width) = match number.split_once(" ± ") {
            Some((mean, half_width)) => (mean, Some(half_width)),
            None => (number, None),
        };
        let all = is_number(mean) && half_width.is_none_or(is_number);
        all.then_some(Self { mean: mean.strip_prefix('+').unwrap_or(mean), half_width, unit })
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Converts a table to CSV. A column whose cells are all means with intervals becomes two columns of numbers,
/// with the unit in the headings.
fn as_csv(table: &Table) -> String {
    let columns: Vec<Vec<String>> = (0..table.columns.len()).flat_map(|index| column(table, index)).collect();
    let mut out = String::new();
    for row in 0..=table.rows.len() {
        out += &csv::record(columns.iter().map(|column| &column[row]));
    }
    out
}

fn column(table: &Table, index: usize) -> Vec<Vec<String>> {
    const NOTHING: [&str; 2] = ["", "–"];
    let heading = table.columns[index].replace('`', "");
    let cells: Vec<&str> = table.rows.iter().map(|row| row.get(index).map_or("", String::as_str)).collect();
    let intervals: Vec<Option<Interval<'_>>> = cells.iter().map(|cell| Interval::of(cell)).collect();
    let units: Vec<&str> = intervals.iter().flatten().map(|interval| interval.unit).collect();
    let whole =
        cells.iter().zip(&intervals).all(|(cell, interval)| interval.is_some() || NOTHING.contains(cell));
    if !whole || units.is_empty() || units.iter().any(|unit| *unit != units[0]) {
        let cells = cells.iter().map(|cell| cell.replace('`', ""));
        return vec![[heading].into_iter().chain(cells).collect()];
    }
    let headed = |suffix: &str, cell: fn(&Interval<'_>) -> String| {
        let unit = if units[0].is_empty() { String::new() } else { format!(" ({})", units[0]) };
        let heading = format!("{heading}{suffix}{unit}");
        let cells = intervals.iter().map(|interval| interval.as_ref().map(cell).unwrap_or_default());
        [heading].into_iter().chain(cells).collect()
    };
    let mut columns = vec![headed("", |interval| interval.mean.to_owned())];
    if intervals.iter().flatten().any(|interval| interval.half_width.is_some()) {
        columns.push(headed(" ±", |interval| interval.half_width.unwrap_or_default().to_owned()));
    }
    columns
}

#[cfg(test)]
mod tests {
    use airtcp_reproduce::{Claim, Finding, Judged};
    use serde_json::json;

    use super::*;
    use crate::reproduce::plan::SeedPlan;

    fn made(id: &str, judged: Judged) -> FinishedFigure {
        let figure = figures().into_iter().find(|figure| figure.id == id).unwrap();
        let mut table = Table::new("Packets:", &["z", "`sack`", "gain"]);
        table.row(["1 %", "12.5 ± 0.5", "+3.0 ± 1.0 %"].map(str::to_owned));
        table.row(["2 %", "–", "-2.0 ± 1.5 %"].map(str::to_owned));
        let claim = Claim::new("§4", "“more”", "+3 %".to_owned(), judged);
        let finding = Finding { tables: vec![table], claims: vec![claim], ..Finding::default() };
        FinishedFigure { figure, seeds: 30, plan: SeedPlan::default(), finding, notices: Vec::new() }
    }

    #[test]
    fn csv_table_has_plain_numbers() {
        let FinishedFigure { finding, .. } = made("p0-fig5", Judged::Holds);
        let text = as_csv(&finding.tables[0]);
        assert_eq!(text, "z (%),sack,sack ±,gain (%),gain ± (%)\n1,12.5,0.5,3.0,1.0\n2,,,-2.0,1.5\n");
    }

    #[test]
    fn csv_table_keeps_text_cells() {
        let mut table = Table::new("", &["sender", "at most"]);
        table.row(["`reno`", "3 ± 1 % (4 % lost)"].map(str::to_owned));
        table.row(["a, b", "5"].map(str::to_owned));
        let text = as_csv(&table);
        assert_eq!(text, "sender,at most\nreno,3 ± 1 % (4 % lost)\n\"a, b\",5\n");
    }

    #[test]
    fn shared_choices_are_in_head_own_in_section() {
        let directory = std::env::temp_dir().join(format!("record-common-{}", std::process::id()));
        let mut record = Record::open(&directory).unwrap();
        record.put(&made("p1-fig12", Judged::Holds)).unwrap();
        let mut own = made("p1-fig14", Judged::Holds);
        own.finding.choices = vec!["Queues of 20.".to_owned()];
        record.put(&own).unwrap();
        // The same figure again, in an existing record.
        let mut record = Record::open(&directory).unwrap();
        record.put(&own).unwrap();
        let text = fs::read_to_string(directory.join("ni2002.md")).unwrap();
        let (head, sections) = text.split_once("## `p1-fig12`").unwrap();
        let unwrapped = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for shared in own.figure.shared() {
            let [first, ..] = &shared.choices[..] else { panic!("{:?} shares no choices", shared.scope) };
            let first = unwrapped(first);
            assert!(unwrapped(head).contains(&first) && !unwrapped(sections).contains(&first), "{text}");
        }
        assert_eq!(sections.matches("- Queues of 20.\n").count(), 1, "{text}");
        let judges = "`p1-judges-small-queue`, `p1-judges-narrow`";
        assert!(!unwrapped(head).contains(judges), "the record has no figure of these: {head}");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn repeated_figure_replaces_only_its_own_section() {
        let directory = std::env::temp_dir().join(format!("record-{}", std::process::id()));
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        let mut record = Record::open(&directory).unwrap();
        record.put(&made("p1-fig4", Judged::Holds)).unwrap();
        record.put(&made("p0-fig7", Judged::Holds)).unwrap();
        record.put(&made("p0-fig5", Judged::Holds)).unwrap();
        let first = read("pan2004.md");
        assert!(read("README.md").contains("| all | 3 | 0 | 0 | 0 | 0 |"), "{}", read("README.md"));
        assert!(first.find("## `p0-fig5`") < first.find("## `p0-fig7`"), "{first}");

        let mut record = Record::open(&directory).unwrap();
        record.put(&made("p0-fig5", Judged::DoesNotHold)).unwrap();
        let index = read("README.md");
        assert!(index.contains("| [Pan et al. 2004](pan2004.md) | 1 | 1 | 0 | 0 | 0 |"), "{index}");
        assert!(index.contains("| [Ni et al. 2002](ni2002.md) | 1 | 0 | 0 | 0 | 0 |"), "{index}");
        let row = "| “more” | does not hold | [p0-fig5](pan2004.md#p0-fig5-fig-5-";
        assert!(index.contains(row), "{index}");
        let second = read("pan2004.md");
        assert!(second.contains("[p0-fig5.csv](data/p0-fig5.csv)"), "{second}");
        assert!(directory.join("data/p0-fig5.csv").exists());
        let body = |text: &str| {
            let text = text.replace("**does not hold**", "**holds**");
            text.split_once("\n## `").unwrap().1.to_owned()
        };
        assert_eq!(body(&second), body(&first), "only the verdict differs");
        fs::remove_dir_all(&directory).unwrap();
    }

    /// Each link opens a set-up that the page can run.
    #[test]
    fn playground_accepts_every_link() {
        let mut core = airtcp_playground::Core::default();
        for setup in figures().iter().filter_map(Figure::playground) {
            let address = setup.address();
            let decode = |value: &str| value.replace("%5B", "[").replace("%5D", "]").replace("%25", "%");
            let mut fields = json!({ "senders": [], "set": [] });
            for (name, value) in address.split('&').filter_map(|word| word.split_once('=')) {
                match name {
                    "sender" => fields["senders"].as_array_mut().unwrap().push(json!(decode(value))),
                    "set" => fields["set"].as_array_mut().unwrap().push(json!(decode(value))),
                    "shared" => fields["shared"] = json!(value == "yes"),
                    _ => fields[name] = json!(decode(value)),
                }
            }
            let request = json!({ "ask": "check", "setup": fields }).to_string();
            let answer = core.answer(request.as_bytes(), &mut |_| {});
            let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
            assert!(answer["ok"]["commands"].is_array(), "{address}: {answer}");
            assert_eq!(answer["ok"]["remarks"], json!([]), "{address}");
        }
    }

    #[test]
    fn index_shortens_long_quotations() {
        let long = "word ".repeat(40);
        let section = format!(
            "30 seeds.\n\n- **holds**: “{long}” (§4)\n\n  Here: yes.\n- holds (not counted, ours): x\n"
        );
        let entries = entries(&section);
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].claim, format!("“{} …”", vec!["word"; MAX_WORDS].join(" ")));
    }
}
