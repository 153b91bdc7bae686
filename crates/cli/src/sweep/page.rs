//! The page of `airtcp report` for the results of a sweep: for each metric, the pictures of `sweep plot` and the
//! table of `sweep summary`.

use std::fmt::Write;
use std::path::Path;

use airtcp_numbers::table::Table;
use airtcp_numbers::verdict::MARGIN;
use airtcp_report::html::columns::base64;
use airtcp_report::html::document::Document;
use airtcp_report::html::graphs;
use airtcp_report::html::table::escape;
use airtcp_report::plot::Format;
use airtcp_sim::sweep::metric::Metric;
use airtcp_sim::sweep::results::Results;
use airtcp_sim::sweep::summary::{Line, summarise};

use super::picture::{Captions, Kind, PictureSpec, figure, values};
use super::plot::{about, description};
use super::summary::{default_base, heading, planned_metrics, preamble, remarks, table_of};
use crate::shared::scale::Scale;

/// Maximum number of pictures per metric.
const MAX_PICTURES: usize = 12;

const STYLE: &str = "body { max-width: 72rem; margin: 0 auto; padding: 0 1rem 2rem; }
img { max-width: 100%; background: #fff; }
.wide { overflow-x: auto; }
th, td { text-align: left; padding: 0.1rem 0.7rem 0.1rem 0; white-space: nowrap; }
";

/// Returns the page, and the number of points on it.
pub(crate) fn page(source: &Path) -> anyhow::Result<(String, usize)> {
    let results = super::results_of(source)?;
    let base = default_base(&results)?;
    let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let title = description(&results).unwrap_or(name);
    let (mut body, mut points) = (format!("<h1>{}</h1>\n", escape(&title)), 0);
    for (index, metric) in planned_metrics(&results).into_iter().enumerate() {
        let lines = summarise(&results, std::slice::from_ref(&metric), base.as_ref(), MARGIN)?;
        if index == 0 {
            points = lines.len();
            paragraphs(&preamble(&lines, base.as_ref()), &mut body);
            paragraphs(&remarks(&lines), &mut body);
        }
        let scale = Scale::of(&metric, lines.iter().filter_map(|line| line.numbers[0].as_ref()));
        let _ = writeln!(body, "<h2>{}</h2>", escape(heading(&metric, &scale).trim()));
        pictures(&results, &lines, &title, &metric, &mut body)?;
        table(&table_of(&lines, 0, &scale), &mut body);
    }
    let style = graphs::style() + STYLE;
    Ok((
        Document { title: &title, style: &style, body: &body, script: "", additional_sources: &[] }.html(),
        points,
    ))
}

/// Adds the pictures of a metric.
fn pictures(
    results: &Results,
    lines: &[Line],
    title: &str,
    metric: &Metric,
    html: &mut String,
) -> anyhow::Result<()> {
    let Some(View { x, by, selections }) = View::of(lines) else { return Ok(()) };
    for only in selections.iter().take(MAX_PICTURES) {
        let comparison = PictureSpec {
            title: title.to_owned(),
            about: about(results, lines, only)?,
            kind: Kind::Means(x.clone()),
            y: metric.clone(),
            captions: Captions::default(),
            by: by.clone(),
            only: only.clone(),
            log_x: false,
            log_y: false,
            from_data: false,
        };
        picture(lines, &comparison, html)?;
    }
    if let more @ 1.. = selections.len().saturating_sub(MAX_PICTURES) {
        paragraphs(&format!("{more} more pictures: use `airtcp sweep plot` with --only AXIS=VALUE"), html);
    }
    Ok(())
}

/// An axis and its values.
type AxisValues = (String, Vec<String>);

/// How the axes of a sweep are drawn.
#[derive(Debug, PartialEq)]
struct View {
    x: String,
    by: Option<String>,
    /// The values of all other axes, one selection per picture.
    selections: Vec<Vec<(String, String)>>,
}

impl View {
    /// Chooses the axes of the pictures: preferably an axis with numbers, and one line per recipe. `None` if
    /// nothing varies.
    fn of(lines: &[Line]) -> Option<Self> {
        let all: Vec<&Line> = lines.iter().collect();
        let names = lines.first()?.point.0.iter();
        let mut axes: Vec<AxisValues> = names.map(|(axis, _)| (axis.clone(), values(&all, axis))).collect();
        axes.retain(|(_, values)| values.len() > 1);
        let is_recipe = |(name, _): &AxisValues| name == "recipe";
        let has_numbers =
            |(_, values): &AxisValues| values.iter().all(|it| it.starts_with(|c: char| c.is_ascii_digit()));
        let numbers = axes.iter().position(|axis| !is_recipe(axis) && has_numbers(axis));
        let x = numbers.or_else(|| axes.iter().position(|axis| !is_recipe(axis))).unwrap_or(0);
        let (x, _) = (x < axes.len()).then(|| axes.remove(x))?;
        let by = axes.iter().position(is_recipe).or_else(|| (!axes.is_empty()).then_some(0));
        let by = by.map(|index| axes.remove(index).0);
        let mut selections = vec![Vec::new()];
        for (axis, values) in axes {
            let with = |only: &Vec<(String, String)>| {
                let of = |value: &String| [&only[..], &[(axis.clone(), value.clone())]].concat();
                values.iter().map(of).collect::<Vec<_>>()
            };
            selections = selections.iter().flat_map(with).collect();
        }
        Some(Self { x, by, selections })
    }
}

/// Adds a picture, or the reason why there is none.
fn picture(lines: &[Line], comparison: &PictureSpec, html: &mut String) -> anyhow::Result<()> {
    match figure(lines, &[], comparison) {
        Ok(figure) => {
            let svg = base64(&Format::Svg.render(&figure.draw())?);
            let title = escape(&format!("{}: {}", comparison.y, comparison.about));
            let _ = writeln!(html, "<p><img alt=\"{title}\" src=\"data:image/svg+xml;base64,{svg}\"></p>");
        }
        Err(why) => paragraphs(&format!("no picture: {why}"), html),
    }
    Ok(())
}

/// Adds one paragraph per line.
fn paragraphs(text: &str, html: &mut String) {
    for line in text.lines().filter(|line| !line.is_empty()) {
        let _ = writeln!(html, "<p>{}</p>", escape(line));
    }
}

fn table(table: &Table, html: &mut String) {
    let (headings, rows) = table.cells();
    let cells = |cells: &[&str], tag: &str| -> String {
        cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
    };
    let _ = writeln!(html, "<div class=\"wide\"><table><thead><tr>{}</tr></thead>", cells(&headings, "th"));
    for row in rows {
        let _ = writeln!(html, "<tr>{}</tr>", cells(&row, "td"));
    }
    html.push_str("</table></div>\n");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use airtcp_sim::sweep::labels::Labels;

    use super::*;

    /// Returns the view of a sweep with these points, each written `axis=value axis=value`.
    fn view(points: &[&str]) -> Option<View> {
        let line = |point: &&str| {
            let labels = point.split(' ').filter_map(|label| label.split_once('='));
            Line {
                point: Labels(labels.map(|(axis, value)| (axis.to_owned(), value.to_owned())).collect()),
                profiles: Vec::new(),
                runs: 1,
                notices: BTreeMap::new(),
                numbers: Vec::new(),
            }
        };
        View::of(&points.iter().map(line).collect::<Vec<_>>())
    }

    #[test]
    fn lines_are_recipes_over_axis_with_numbers() {
        let points = ["recipe=a case=y per=1%", "recipe=b case=y per=1%", "recipe=a case=z per=2%"];
        let View { x, by, selections } = view(&points).unwrap();
        assert_eq!((x.as_str(), by.as_deref()), ("per", Some("recipe")));
        let only = |case: &str| vec![("case".to_owned(), case.to_owned())];
        assert_eq!(selections, [only("y"), only("z")]);
    }

    #[test]
    fn single_axis_needs_no_lines() {
        let View { x, by, selections } = view(&["recipe=a per=1%", "recipe=b per=1%"]).unwrap();
        assert_eq!((x.as_str(), by, selections), ("recipe", None, vec![Vec::new()]));
        assert_eq!(view(&["recipe=a"]), None);
    }
}
