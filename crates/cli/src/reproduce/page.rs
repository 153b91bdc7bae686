//! All papers as one HTML page: a summary of the verdicts, then each figure with its charts, its claims and
//! the command that reproduces it.

use std::fmt::Write;

use airtcp_report::html::table::escape;
use airtcp_reproduce::{Claim, Counts, Figure, Judged, Paper, Table, Verdict};

use super::record::{ABOUT_LINKS, CHOICES, PLAYGROUND, SHARED_CHOICES, Tally};
use super::{FinishedFigure, of};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(super) fn page(made: &[FinishedFigure]) -> std::io::Result<String> {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Reproduced papers</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Reproduced papers</h1>\n\
         <p>{}</p>\n",
        inline(ABOUT_LINKS)
    );
    text += &summary(made);
    text += &filters(made);
    let shown: Vec<Figure> = made.iter().map(|made| made.figure).collect();
    let mut paper: Option<Paper> = None;
    for made in made {
        let FinishedFigure { figure, finding, .. } = made;
        if paper.replace(figure.paper) != Some(figure.paper) {
            let name = figure.paper.name();
            let _ = writeln!(text, "<h2 data-paper=\"{name}\">{}</h2>", escape(figure.paper.reference()));
            text += &shared(figure.paper, &of(figure.paper, &shown));
        }
        let _ = writeln!(
            text,
            "<section id=\"{id}\" data-paper=\"{paper}\">\n<h3><a href=\"#{id}\">{}</a></h3>\n<p class=\"how\"><code>{}</code>, {}{link}</p>",
            escape(&heading(figure.title)),
            made.command(),
            made.runs(),
            id = figure.id,
            paper = figure.paper.name(),
            link = figure.playground().map_or_else(String::new, |setup| {
                format!(". <a href=\"{PLAYGROUND}#{}\">Run this</a>", escape(&setup.address()))
            }),
        );
        for chart in &finding.charts {
            let svg = made.svg(chart)?;
            let _ = writeln!(text, "<figure>{}</figure>", String::from_utf8_lossy(&svg));
        }
        text += &claims(&finding.claims);
        for remark in &finding.remarks {
            let _ = writeln!(text, "<p>{}</p>", inline(remark));
        }
        text += &details(CHOICES, !finding.choices.is_empty(), &listed(&finding.choices));
        let numbers = tables(&finding.tables);
        // A figure without charts shows its tables unfolded.
        text += &match finding.charts.is_empty() {
            true => numbers,
            false => details("Numbers", !finding.tables.is_empty(), &numbers),
        };
        text += "</section>\n";
    }
    let _ = write!(text, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    Ok(text)
}

/// Formats the choices that these figures of a paper share.
fn shared(paper: Paper, figures: &[Figure]) -> String {
    let lists: Vec<String> = paper
        .shared_by(figures)
        .map(|shared| format!("<p>{}</p>\n{}", inline(&shared.scope.heading()), listed(&shared.choices)))
        .collect();
    details(SHARED_CHOICES, !lists.is_empty(), &lists.concat())
}

/// Returns the number of claims per verdict, and the number of claims that do not count.
pub(super) fn count<'a>(claims: impl Iterator<Item = &'a Claim>) -> (Tally, usize) {
    let mut tally = Tally::default();
    let mut not_counted = 0;
    for claim in claims {
        match (&claim.counts, Verdict::column(&claim.verdict_name())) {
            (Counts::Yes, Some(column)) => tally[column] += 1,
            (..) => not_counted += 1,
        }
    }
    (tally, not_counted)
}

fn summary(made: &[FinishedFigure]) -> String {
    let headings: String = Verdict::COLUMNS.iter().map(|name| format!("<th>{name}</th>")).collect();
    let mut text =
        format!("<table class=\"summary\">\n<tr><th>Paper</th>{headings}<th>not counted</th></tr>\n");
    for paper in Paper::ALL {
        let mine: Vec<&FinishedFigure> = made.iter().filter(|made| made.figure.paper == paper).collect();
        let Some(first) = mine.first() else { continue };
        let (tally, rest) = count(mine.iter().flat_map(|made| &made.finding.claims));
        let cells: String =
            tally.into_iter().chain([rest]).map(|count| format!("<td>{count}</td>")).collect();
        let _ = writeln!(
            text,
            "<tr><td><a href=\"#{}\">{}</a></td>{cells}</tr>",
            first.figure.id,
            escape(paper.cited())
        );
    }
    text + "</table>\n"
}

/// Formats the selection of the claims to show, by paper and by verdict.
fn filters(made: &[FinishedFigure]) -> String {
    let option = |value: &str, text: &str| format!("<option value=\"{value}\">{}</option>", escape(text));
    let has = |paper: &Paper| made.iter().any(|made| made.figure.paper == *paper);
    let papers: String =
        Paper::ALL.into_iter().filter(has).map(|paper| option(paper.name(), paper.cited())).collect();
    let verdicts: String = Verdict::COLUMNS.iter().map(|column| option(column, column)).collect();
    format!(
        "<form id=\"filters\" hidden>\n\
         <label>Paper <select>{}{papers}</select></label>\n\
         <label>Claims that <select>{}{verdicts}</select></label>\n\
         <output></output>\n</form>\n",
        option("", "all"),
        option("", "have any verdict"),
    )
}

fn claims(claims: &[Claim]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let mut text =
        "<table class=\"claims\">\n<tr><th>paper</th><th>reproduction</th><th>verdict</th></tr>\n".to_owned();
    for claim in claims {
        let verdict = claim.verdict();
        let class = match (&claim.counts, &verdict) {
            (Counts::Yes, Verdict::Always(Judged::Holds)) => "holds",
            (Counts::Yes, Verdict::Always(Judged::DoesNotHold)) => "not",
            (Counts::Yes, _) => "undecided",
            (..) => "aside",
        };
        let readings =
            claim.readings_shown().map_or_else(String::new, |text| format!("<p>{}</p>", inline(&text)));
        let column = Verdict::column(&claim.verdict_name()).filter(|_| claim.counts == Counts::Yes);
        let column = column
            .map_or_else(String::new, |column| format!(" data-verdict=\"{}\"", Verdict::COLUMNS[column]));
        let note = claim.counts.note().map_or_else(String::new, |note| format!("; not counted, {note}"));
        let _ = writeln!(
            text,
            "<tr class=\"{class}\"{column}><td>{} <span class=\"place\">{}</span></td><td>{}{readings}</td><td>{}{}</td></tr>",
            inline(&claim.sentence),
            escape(&claim.place),
            inline(&claim.result),
            escape(&claim.verdict_name()),
            inline(&note),
        );
    }
    text + "</table>\n"
}

/// Capitalises a title. Titles are in lower case because they follow the figure's id elsewhere.
fn heading(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

fn details(title: &str, has_content: bool, inside: &str) -> String {
    if has_content {
        format!("<details><summary>{title}</summary>\n{inside}</details>\n")
    } else {
        String::new()
    }
}

fn listed(items: &[String]) -> String {
    let items: String = items.iter().map(|item| format!("<li>{}</li>\n", inline(item))).collect();
    format!("<ul>\n{items}</ul>\n")
}

fn tables(tables: &[Table]) -> String {
    let mut text = String::new();
    for table in tables {
        let row = |cells: &[String], tag: &str| {
            let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", inline(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = table.rows.iter().map(|cells| row(cells, "td")).collect();
        let _ = writeln!(
            text,
            "<p>{}</p>\n<div class=\"wide\"><table>\n{}{rows}</table></div>",
            inline(&table.title),
            row(&table.columns, "th")
        );
    }
    text
}

/// Converts Markdown's `code` and *emphasis* to HTML and escapes the rest.
fn inline(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => emphasised(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.map(part).collect()
}

/// Converts `*emphasis*`. An asterisk without a closing one is kept as text.
fn emphasised(text: &str) -> String {
    let Some((before, rest)) = text.split_once('*') else { return escape(text) };
    match rest.split_once('*') {
        Some((word, after)) if !word.is_empty() && word.trim() == word => {
            format!("{}<em>{}</em>{}", escape(before), escape(word), emphasised(after))
        }
        _ => format!("{}*{}", escape(before), emphasised(rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(counts: Counts, judged: Judged) -> Claim {
        Claim::new("§4", "“more <b>”", "`sack` +3 %".to_owned(), judged).not_counted(counts)
    }

    #[test]
    fn summary_excludes_uncounted_claims() {
        let claims = [
            claim(Counts::Yes, Judged::Holds),
            claim(Counts::Yes, Judged::DoesNotHold),
            claim(Counts::Yes, Judged::Undecided),
            claim(Counts::Own("an addition".to_owned()), Judged::Holds),
        ];
        assert_eq!(count(claims.iter()), ([1, 1, 0, 1, 0, 0, 0], 1));
    }

    #[test]
    fn heading_starts_with_capital_letter() {
        assert_eq!(heading("half of the tax is not known"), "Half of the tax is not known");
        assert_eq!(heading("Fig. 5: losses"), "Fig. 5: losses");
    }

    #[test]
    fn text_between_asterisks_is_emphasized() {
        assert_eq!(inline("*x* = *y* = 0.08"), "<em>x</em> = <em>y</em> = 0.08");
        assert_eq!(inline("2 * 3 < 7 * 1, `a*b*c`"), "2 * 3 &lt; 7 * 1, <code>a*b*c</code>");
    }

    #[test]
    fn quotations_are_escaped_and_backticks_become_code() {
        let text = claims(&[claim(Counts::Own("an addition".to_owned()), Judged::Holds)]);
        assert!(text.contains("“more &lt;b&gt;”"), "{text}");
        assert!(text.contains("<code>sack</code> +3 %"), "{text}");
        assert!(text.contains("holds; not counted, not the paper&#39;s: an addition"), "{text}");
    }
}
