//! The record of all figures: one document with what held up, the claims and the pictures, and beside it a directory
//! with the pictures (SVG) and the numbers (CSV).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use airtcp_report::plot::Format;
use airtcp_reproduce::{Figure, Judged, Paper, Shared, Table, figures, listed};
use airtcp_sim::file;
use anyhow::Context;

use super::{Made, of, picture};
use crate::shared::csv;

const HEAD: &str = "\
# Reproduced papers

Every figure and table of five papers that has numbers or a curve, run in virtual time with the
algorithms of this repository. Each point is the mean over the seeds ± half the width of its 95 %
confidence interval (Student's t). Compared senders run with the same seeds, and comparisons are
made within pairs of runs with the same seed. A gain is the mean difference, in percent of the
reference's mean.

A claim is a sentence of a paper. It counts once, even if it covers several curves. Claims that this
project added, claims about values that were calibrated to the paper, and claims that hold by
construction do not count. One rule (crates/reproduce/src/judge.rs) judges all claims by their
confidence intervals:

- *better* requires a gain above zero. An interval within ±1 % counts as no gain.
- *similar* (also *trivial*, *almost the same*) is within ±10 %, *slightly* is up to 10 %, and
  *considerably* (also *obvious*, *relatively long*) is at least 20 %.
- *in most cases* refers to the data of all points together.
- A number is met if its interval overlaps the paper's number ± the variation of one run of the
  paper's length.
- For rare events such as timeouts, the interval includes one additional run in which the event
  occurs, because zero observations do not prove that it never happens.

While a claim of a figure is undecided, the number of seeds is doubled, up to 240 or the number
given in the section. The intervals that decide are 1.2 times as wide as the printed ones, to allow
for these repeated tests. The papers ran each point once.

`airtcp reproduce FIGURE` prints one figure with its numbers.
`airtcp reproduce --all --html papers.html` writes a page with all figures.
";

/// For one figure.
pub(super) const CHOSEN: &str = "Choices";
/// At the head of a paper.
pub(super) const CHOSEN_FOR_SEVERAL: &str = "Choices for several figures";

/// Longer tables are in their files only.
const LONG: usize = 40;

pub(super) struct Record {
    file: PathBuf,
    /// Without a path: how the document names it.
    folder: String,
    /// What stands under the heading of each figure.
    sections: BTreeMap<String, String>,
}

impl Record {
    /// A document that is there already keeps the figures that are not made anew.
    pub(super) fn open(file: &Path) -> anyhow::Result<Self> {
        let text = match airfiles::read_kept(file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
        };
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let folder = stem.with_context(|| format!("{} is not the name of a file", file.display()))?;
        let record = Self { file: file.to_owned(), folder, sections: sections(&text) };
        fs::create_dir_all(record.path(""))
            .with_context(|| format!("cannot create {}", record.path("").display()))?;
        Ok(record)
    }

    /// A figure that was made takes the place of what the record had of it.
    pub(super) fn put(&mut self, made: &Made) -> anyhow::Result<()> {
        let keep = |name: &str, octets: &[u8]| {
            let path = self.path(name);
            airfiles::write(&path, octets).with_context(|| format!("cannot write {}", path.display()))
        };
        let Made { figure, seeds, finding } = made;
        let mut pictures = Vec::new();
        for (index, chart) in finding.charts.iter().enumerate() {
            let name = numbered(figure.id, index, "svg");
            keep(&name, &Format::Svg.render(&picture::figure(chart, figure.paper.cited(), *seeds).draw())?)?;
            pictures.push((name, chart.title.clone()));
        }
        let mut numbers = Vec::new();
        for (index, table) in finding.tables.iter().enumerate() {
            let name = numbered(figure.id, index, "csv");
            keep(&name, &as_csv(table)?)?;
            numbers.push(name);
        }
        self.sections.insert(figure.id.to_owned(), self.section(made, &pictures, &numbers));
        // A picture or a table fewer than before.
        for stale in [numbered(figure.id, pictures.len(), "svg"), numbered(figure.id, numbers.len(), "csv")] {
            match fs::remove_file(self.path(&stale)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error)
                        .with_context(|| format!("cannot remove {}", self.path(&stale).display()));
                }
                _ => {}
            }
        }
        file::replace(&self.file, self.document().as_bytes())
            .with_context(|| format!("cannot write {}", self.file.display()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.file.with_file_name(&self.folder).join(name)
    }

    fn section(&self, made: &Made, pictures: &[(String, String)], numbers: &[String]) -> String {
        let Made { seeds, finding, .. } = made;
        let mut text = format!("{seeds} seeds.");
        for (index, name) in numbers.iter().enumerate() {
            let before = if index == 0 { " Numbers: " } else { ", " };
            // Writing into a string does not fail.
            let _ = write!(text, "{before}[{name}]({}/{name})", self.folder);
        }
        text.push_str("\n\n");
        for (name, title) in pictures {
            let _ = writeln!(text, "![{title}]({}/{name})\n", self.folder);
        }
        if pictures.is_empty() {
            finding.tables.iter().filter(|table| table.rows.len() <= LONG).for_each(|table| {
                text.push_str(&table.markdown());
            });
        }
        text.push_str(&finding.claims_markdown());
        text.push_str(&finding.remarks_markdown());
        if !finding.choices.is_empty() {
            text.push_str(&folded(CHOSEN, &listed(&finding.choices)));
        }
        text.trim_end().to_owned()
    }

    fn document(&self) -> String {
        let mut text = format!("{HEAD}\n{}", self.summary());
        let known = figures();
        let has = |figure: &&Figure| self.sections.contains_key(figure.id);
        let mine = |paper| of(paper, &known.iter().filter(has).copied().collect::<Vec<_>>());
        let mut paper: Option<Paper> = None;
        for figure in &known {
            let Some(section) = self.sections.get(figure.id) else { continue };
            if paper.replace(figure.paper) != Some(figure.paper) {
                let _ = write!(text, "\n## {}\n", figure.paper.reference());
                let shared: String =
                    figure.paper.shared_by(&mine(figure.paper)).map(Shared::markdown).collect();
                if !shared.is_empty() {
                    let _ = write!(text, "\n{}\n", folded(CHOSEN_FOR_SEVERAL, &shared).trim_end());
                }
            }
            let _ = write!(text, "\n### `{}`: {}\n\n{section}\n", figure.id, figure.title);
        }
        text
    }

    /// By the verdicts in the sections: these are what a reader counts.
    fn summary(&self) -> String {
        let mut text =
            "## Summary\n\n| | holds | does not hold | undecided |\n|---|---|---|---|\n".to_owned();
        let mut all = [0; 3];
        for paper in Paper::ALL {
            let mine: Vec<&String> = figures()
                .iter()
                .filter(|figure| figure.paper == paper)
                .filter_map(|figure| self.sections.get(figure.id))
                .collect();
            if mine.is_empty() {
                continue;
            }
            let verdicts = [Judged::Holds, Judged::DoesNotHold, Judged::Undecided].map(|verdict| {
                let cell = format!("| **{}** |", verdict.name());
                mine.iter().map(|section| section.matches(&cell).count()).sum::<usize>()
            });
            all = std::array::from_fn(|index| all[index] + verdicts[index]);
            let [holds, not, undecided] = verdicts;
            let _ = writeln!(text, "| {} | {holds} | {not} | {undecided} |", paper.cited());
        }
        let [holds, not, undecided] = all;
        let _ = writeln!(text, "| all | {holds} | {not} | {undecided} |");
        text
    }
}

/// Something that a reader may unfold.
fn folded(summary: &str, inside: &str) -> String {
    format!("<details><summary>{summary}</summary>\n\n{}\n\n</details>\n\n", inside.trim_end())
}

/// `p0-fig5.csv`, `p0-fig5-2.csv` …
pub(super) fn numbered(id: &str, index: usize, extension: &str) -> String {
    match index {
        0 => format!("{id}.{extension}"),
        _ => format!("{id}-{}.{extension}", index + 1),
    }
}

/// What stands under each heading of a figure.
fn sections(text: &str) -> BTreeMap<String, String> {
    let parts = text.split("\n### `").skip(1).filter_map(|part| {
        let (heading, text) = part.split_once('\n')?;
        let (id, _) = heading.split_once('`')?;
        let text = text.split("\n## ").next()?;
        Some((id.to_owned(), text.trim().to_owned()))
    });
    parts.collect()
}

// ----- numbers for programs -----

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

/// Where all cells of a column are means with intervals, it becomes two columns of numbers, and its unit stands in the
/// headings.
fn as_csv(table: &Table) -> io::Result<Vec<u8>> {
    let columns: Vec<Vec<String>> = (0..table.columns.len()).flat_map(|index| column(table, index)).collect();
    let mut out = Vec::new();
    for row in 0..=table.rows.len() {
        csv::record(&mut out, columns.iter().map(|column| column[row].clone()))?;
    }
    Ok(out)
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
    let headed = |what: &str, cell: fn(&Interval<'_>) -> String| {
        let unit = if units[0].is_empty() { String::new() } else { format!(" ({})", units[0]) };
        let heading = format!("{heading}{what}{unit}");
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
    use airtcp_reproduce::{Claim, Counts, Finding};

    use super::*;

    fn made(id: &str, judged: Judged) -> Made {
        let figure = figures().into_iter().find(|figure| figure.id == id).unwrap();
        let mut table = Table::new("Packets:", &["z", "`sack`", "gain"]);
        table.row(["1 %", "12.5 ± 0.5", "+3.0 ± 1.0 %"].map(str::to_owned));
        table.row(["2 %", "–", "-2.0 ± 1.5 %"].map(str::to_owned));
        let claim = Claim {
            paper: "“more”".to_owned(),
            place: "§4".to_owned(),
            counts: Counts::Yes,
            ours: "+3 %".to_owned(),
            judged,
        };
        let finding = Finding { tables: vec![table], claims: vec![claim], ..Finding::default() };
        Made { figure, seeds: 30, finding }
    }

    #[test]
    fn a_table_for_programs_has_plain_numbers() {
        let Made { finding, .. } = made("p0-fig5", Judged::Holds);
        let text = String::from_utf8(as_csv(&finding.tables[0]).unwrap()).unwrap();
        assert_eq!(text, "z (%),sack,sack ±,gain (%),gain ± (%)\n1,12.5,0.5,3.0,1.0\n2,,,-2.0,1.5\n");
    }

    #[test]
    fn words_stay_words() {
        let mut table = Table::new("", &["sender", "at most"]);
        table.row(["`reno`", "3 ± 1 % (4 % lost)"].map(str::to_owned));
        table.row(["a, b", "5"].map(str::to_owned));
        let text = String::from_utf8(as_csv(&table).unwrap()).unwrap();
        assert_eq!(text, "sender,at most\nreno,3 ± 1 % (4 % lost)\n\"a, b\",5\n");
    }

    #[test]
    fn what_figures_have_in_common_stands_once_and_a_figures_own_in_its_section() {
        let folder = std::env::temp_dir().join(format!("record-common-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("papers.md");
        let mut record = Record::open(&file).unwrap();
        record.put(&made("p1-fig12", Judged::Holds)).unwrap();
        let mut own = made("p1-fig14", Judged::Holds);
        own.finding.choices = vec!["Queues of 20.".to_owned()];
        record.put(&own).unwrap();
        // Once more over what is there.
        let mut record = Record::open(&file).unwrap();
        record.put(&own).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let (head, sections) = text.split_once("### `p1-fig12`").unwrap();
        for shared in own.figure.shared() {
            let [first, ..] = &(shared.choices)()[..] else { panic!("nothing is shared by {:?}", shared.by) };
            assert!(head.contains(&format!("- {first}\n")) && !sections.contains(first), "{text}");
        }
        assert_eq!(sections.matches("- Queues of 20.\n").count(), 1, "{text}");
        let judges = "`p1-judges-small-queue`, `p1-judges-narrow`";
        assert!(!head.contains(judges), "no figure of the record has it: {head}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_figure_made_anew_takes_its_place_and_the_others_stay() {
        let folder = std::env::temp_dir().join(format!("record-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("papers.md");
        let mut record = Record::open(&file).unwrap();
        record.put(&made("p1-fig4", Judged::Holds)).unwrap();
        record.put(&made("p0-fig5", Judged::Holds)).unwrap();
        let first = fs::read_to_string(&file).unwrap();
        assert!(first.contains("| all | 2 | 0 | 0 |"), "{first}");
        assert!(first.find("### `p0-fig5`") < first.find("### `p1-fig4`"), "{first}");

        let mut record = Record::open(&file).unwrap();
        record.put(&made("p0-fig5", Judged::DoesNotHold)).unwrap();
        let second = fs::read_to_string(&file).unwrap();
        assert!(second.contains("| Pan et al. 2004 | 0 | 1 | 0 |"), "{second}");
        assert!(second.contains("| Ni et al. 2002 | 1 | 0 | 0 |"), "{second}");
        assert!(second.contains("[p0-fig5.csv](papers/p0-fig5.csv)"), "{second}");
        assert!(folder.join("papers/p0-fig5.csv").exists());
        let verdict = |text: &str| text.replace("| **does not hold** |", "| **holds** |");
        let body = |text: &str| verdict(text).split_once("\n## J. Pan").unwrap().1.to_owned();
        assert_eq!(body(&second), body(&first), "nothing else has changed");
        fs::remove_dir_all(&folder).unwrap();
    }
}
