//! A self-contained HTML file with tables of runs and zoomable graphs for each run.
//!
//! [`Page::html`] makes the file. `page/*.js` draws the graphs in the browser from columns of numbers
//! ([`columns`]). The page fetches nothing, and its content security policy forbids it.
//!
//! Other pages can use the same graphs: [`graphs`] provides their modules, style and elements, [`modules`]
//! bundles modules into one script, [`document`] assembles the file, and [`Run::data`] provides the data of a
//! run.

pub mod chart;
mod codes;
pub mod columns;
pub mod decisions;
pub mod document;
pub mod graphs;
pub mod modules;
pub mod table;
pub mod waterfall;

use std::fmt::Write;
use std::sync::LazyLock;

use airtcp_analyze::trace::{Fate, Loss, Offset, SentSegment, Trace};
use serde::Serialize;
use serde_json::json;

use self::chart::Chart;
use self::columns::column;
use self::document::Document;
use self::modules::Module;
use self::table::{Table, escape};
use self::waterfall::Waterfall;

/// The script, which is the same on every page.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let mut modules = graphs::shared();
    modules.push(Module { name: "report.js", text: include_str!("page/report.js").into() });
    modules::bundle("report.js", &modules)
});

/// The content of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The heading.
    pub title: String,
    /// The experiments, from top to bottom.
    pub experiments: Vec<Experiment>,
    /// The runs that the tables refer to by their index in this list.
    pub runs: Vec<Run>,
    /// The runs that the page displays first, from left to right. If empty, the first runs of the list.
    pub opening: Vec<usize>,
    /// Whether the tables are above the graphs and not to their left, so that they can have many columns.
    pub has_wide_tables: bool,
}

/// Runs that belong together, and their results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// The heading.
    pub name: String,
    /// Names and values that describe the setup, such as the command and versions.
    pub facts: Vec<(String, String)>,
    /// The scenario file with every setting.
    pub scenario: Option<String>,
    /// The results in words.
    pub sentences: Vec<String>,
    /// A chart that compares all senders.
    pub chart: Option<Chart>,
    /// A row for each sender.
    pub summary: Option<Table>,
    /// A row for each run.
    pub runs: Table,
    /// The requests and responses of connections.
    pub waterfalls: Vec<Waterfall>,
}

/// One transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Shown above the graphs.
    pub name: String,
    /// Shown below the graphs: names and values.
    pub facts: Vec<(String, String)>,
    /// The data of the graphs.
    pub trace: Trace,
}

impl Page {
    /// Returns the whole file.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let opening: Vec<_> = self.opening.iter().map(usize::to_string).collect();
        let opening = opening.join(" ");
        let class = if self.has_wide_tables { " class=\"on-top\"" } else { "" };
        let mut body = format!(
            "<section id=\"tables\"{class} aria-label=\"Tables\" data-opening=\"{opening}\">\n<h1>{title}</h1>\n"
        );
        for experiment in &self.experiments {
            experiment.write(&mut body);
        }
        body.push_str("</section>\n<main id=\"graphs\" aria-label=\"Graphs\">\n");
        body.push_str(&graphs::bar(
            "<button type=\"button\" data-key=\"t\" title=\"show or hide the tables (t)\">tables</button>\n",
        ));
        body.push_str(&graphs::panels("Tick a run in the table, or click its row."));
        body.push_str("</main>\n");
        body.push_str(&graphs::help(
            &[("j k", "next or previous run of the tables")],
            &[
                ("t", "show or hide the tables"),
                ("Tab", "move between the tables, the legend and the graphs"),
            ],
        ));
        for (number, run) in self.runs.iter().enumerate() {
            let states = if run.trace.episodes.is_empty() { "" } else { " data-states" };
            let _ = writeln!(
                body,
                "<script type=\"application/json\" class=\"run\" id=\"run-{number}\"{states}>{}</script>",
                in_script(&run.data())
            );
        }
        let style = format!("{}{}", graphs::style(), tables_style());
        Document { title: &self.title, style: &style, body: &body, script: &SCRIPT, additional_sources: &[] }
            .html()
    }
}

/// Returns the style sheet of the report's tables and of the [`Chart`].
pub fn tables_style() -> &'static str {
    include_str!("page/tables.css")
}

impl Experiment {
    fn write(&self, html: &mut String) {
        let _ = writeln!(html, "<section class=\"experiment\"><h2>{}</h2>", escape(&self.name));
        html.push_str(&self.chart.as_ref().map(Chart::html).unwrap_or_default());
        if !self.sentences.is_empty() {
            html.push_str("<ul class=\"sentences\">\n");
            for sentence in &self.sentences {
                let _ = writeln!(html, "<li>{}</li>", escape(sentence));
            }
            html.push_str("</ul>\n");
        }
        if let Some(summary) = &self.summary {
            let table = summary.html(false);
            // The chart shows the most important metrics, so the table is collapsed.
            html.push_str(&match self.chart {
                Some(_) => format!(
                    "<details class=\"means\"><summary>All metrics of each sender</summary>\n{table}</details>\n"
                ),
                None => table,
            });
        }
        html.push_str(&self.runs.html(true));
        self.waterfalls.iter().for_each(|waterfall| html.push_str(&waterfall.html()));
        if !self.facts.is_empty() {
            html.push_str(
                "<details class=\"facts\"><summary>Setup, and command to repeat it</summary>\n<dl>",
            );
            for (name, value) in &self.facts {
                let _ = write!(html, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
            }
            html.push_str("</dl>\n");
            if let Some(scenario) = &self.scenario {
                let _ = writeln!(
                    html,
                    "<details class=\"scenario\"><summary>Scenario with all settings</summary><pre>{}</pre></details>",
                    escape(scenario)
                );
            }
            html.push_str("</details>\n");
        }
        html.push_str("</section>\n");
    }
}

/// Returns JSON in which no HTML parser can find the end of the script.
fn in_script(value: &impl Serialize) -> String {
    // In JSON, `<` occurs only inside strings.
    serde_json::to_string(value).map_or_else(|_| "null".to_owned(), |text| text.replace('<', "\\u003c"))
}

/// Converts nanoseconds to microseconds, which are precise enough for the graphs and take a byte less.
fn micros(nanos: i64) -> i64 {
    nanos.div_euclid(1000)
}

fn sorted_by_time<T>(points: &[T], at: impl Fn(&T) -> Offset) -> Vec<&T> {
    let mut points: Vec<_> = points.iter().collect();
    points.sort_by_key(|point| at(point));
    points
}

/// Encodes `None` as 0 and n as n + 1. `decodeRun` in `page/data.js` reverses this.
fn optional_bytes(bytes: Option<f64>) -> i64 {
    bytes.map_or(0, |bytes| bytes.round().max(0.0) as i64 + 1)
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn segment_columns(segments: &[&SentSegment]) -> serde_json::Value {
    json!({
        "at": column(segments.iter().map(|it| micros(it.at))),
        "number": column(segments.iter().map(|it| number(it.number))),
        "start": column(segments.iter().map(|it| number(it.start))),
        "length": column(segments.iter().map(|it| number(it.end.saturating_sub(it.start)))),
        "sending": column(segments.iter().map(|it| codes::of_sending(it.sending))),
        "dupacks": column(segments.iter().map(|it| i64::from(it.dupacks))),
        "flight": column(segments.iter().map(|it| i64::from(it.in_flight))),
        "fate": column(segments.iter().map(|it| codes::of_fate(it.fate))),
        "detail": column(segments.iter().map(|it| match it.fate {
            Fate::Arrived { at } => micros(at - it.at),
            Fate::Lost(Loss::Between { before }) => before as i64,
            _ => 0,
        })),
    })
}

impl Run {
    /// Returns the data that `decodeRun` in `page/data.js` decodes.
    pub fn data(&self) -> serde_json::Value {
        let Self { name, facts, trace } = self;
        let Trace {
            name: connection,
            origin,
            segments,
            acks,
            rtt,
            rtt_of,
            windows,
            idle,
            decisions,
            episodes,
        } = trace;
        // The page searches by time, and a capture's clock may have stepped backwards.
        let (segments, acks) = (sorted_by_time(segments, |it| it.at), sorted_by_time(acks, |it| it.at));
        let (rtt, windows) = (sorted_by_time(rtt, |it| it.at), sorted_by_time(windows, |it| it.at));
        let (idle, decisions) = (sorted_by_time(idle, |it| it.from), sorted_by_time(decisions, |it| it.at));
        let episodes = sorted_by_time(episodes, |it| it.from);
        let sacked: Vec<_> = acks
            .iter()
            .enumerate()
            .flat_map(|(at, ack)| ack.sack.iter().map(move |(left, right)| (at as u64, *left, *right)))
            .collect();
        json!({
            "name": name,
            "facts": facts,
            "connection": connection,
            "origin": origin,
            "measures": rtt_of.name(),
            "segments": segment_columns(&segments),
            "acks": {
                "at": column(acks.iter().map(|it| micros(it.at))),
                "number": column(acks.iter().map(|it| number(it.number))),
                "ack": column(acks.iter().map(|it| number(it.ack))),
                "window": column(acks.iter().map(|it| number(it.edge.saturating_sub(it.ack)))),
                "duplicate": column(acks.iter().map(|it| i64::from(it.duplicate))),
            },
            "sack": {
                "of": column(sacked.iter().map(|(at, ..)| number(*at))),
                "left": column(sacked.iter().map(|(_, left, _)| number(*left))),
                "right": column(sacked.iter().map(|(.., right)| number(*right))),
            },
            "rtt": {
                "at": column(rtt.iter().map(|it| micros(it.at))),
                "micros": column(rtt.iter().map(|it| (it.seconds * 1e6).round() as i64)),
                "timestamps": column(rtt.iter().map(|it| i64::from(it.timestamps))),
            },
            "windows": {
                "at": column(windows.iter().map(|it| micros(it.at))),
                "flight": column(windows.iter().map(|it| number(it.in_flight))),
                "estimated": column(windows.iter().map(|it| number(it.estimated))),
                "cwnd": column(windows.iter().map(|it| optional_bytes(it.cwnd))),
                "ssthresh": column(windows.iter().map(|it| optional_bytes(it.ssthresh))),
            },
            "idle": {
                "from": column(idle.iter().map(|it| micros(it.from))),
                "to": column(idle.iter().map(|it| micros(it.to))),
            },
            "decisions": {
                "at": column(decisions.iter().map(|it| micros(it.at))),
                "start": column(decisions.iter().map(|it| it.about.map_or(0, |(start, _)| number(start)))),
                "end": column(decisions.iter().map(|it| it.about.map_or(0, |(_, end)| number(end)))),
            },
            "episodes": {
                "from": column(episodes.iter().map(|it| micros(it.from))),
                "to": column(episodes.iter().map(|it| micros(it.to))),
            },
            "states": episodes.iter().map(|it| (&it.state, &it.why)).collect::<Vec<_>>(),
            "texts": decisions.iter().map(|it| (&it.by, &it.what, &it.text)).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests;
