//! Data for the page's menus: the presets, and the catalogue of algorithms.

use airlink::scenario::{Scenario, presets};
use airtcp::recovery::catalogue::{self, Question, Row};
use serde_json::{Value, json};

/// Returns the data as JSON. It is embedded in the page, so that it is available immediately.
pub(crate) fn about() -> Value {
    let preset = |preset: &presets::Preset| {
        let scenario = Scenario::parse(preset.text, preset.name);
        let description = scenario.map(|it| it.description).unwrap_or_default();
        json!({ "name": preset.name, "description": description, "text": preset.text })
    };
    json!({
        "presets": presets::ALL.iter().map(preset).collect::<Vec<_>>(),
        "questions": Question::ALL.into_iter().map(question).collect::<Vec<_>>(),
        "aliases": catalogue::rows().filter(|row| row.is_alias()).map(part).collect::<Vec<_>>(),
    })
}

fn question(question: Question) -> Value {
    let rows = catalogue::rows().filter(|row| row.question() == question && !row.is_alias());
    json!({ "name": question.name(), "text": question.text(), "parts": rows.map(part).collect::<Vec<_>>() })
}

fn part(row: &'static Row) -> Value {
    let number = row.range().map(|range| json!({ "min": range.min, "max": range.max, "unit": range.unit }));
    json!({
        "name": row.name,
        "summary": row.summary,
        "citation": row.citation,
        // A recipe has one answer for each question.
        "answer": row.is_answer(),
        "default": row.is_default,
        "needs": row.needs.iter().map(|need| need.name()).collect::<Vec<_>>(),
        "number": number,
    })
}
