//! The table of everything that a recipe can name.
//!
//! The recipe parser, `airtcp algorithms`, shell completion, the table in `docs/reference/recipes.md` and the
//! test matrix use it. An algorithm consists of a row here and its own file, which also defines its
//! parameters.

mod answer;
mod answers;
mod options;
mod row;

pub use answer::Answer;
pub(super) use answer::Author;
use answers::{ANSWERS, EMULATED_SACKS};
use options::OPTIONS;
pub use row::{Build, Need, Question, Row};

use crate::profile::Profile;
use crate::profile::recovery::RackDialect;

/// All rows except parameters, which are in the row of their algorithm. A recipe's canonical form has this
/// order.
pub static CATALOGUE: &[Row] = &{
    let mut rows = [ANSWERS[0]; ANSWERS.len() + OPTIONS.len()];
    let mut index = 1;
    while index < rows.len() {
        rows[index] = if index < ANSWERS.len() { ANSWERS[index] } else { OPTIONS[index - ANSWERS.len()] };
        index += 1;
    }
    rows
};

/// Returns all rows, each followed by its parameters. This is the order of names in a recipe's canonical
/// form.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    CATALOGUE.iter().flat_map(|row| std::iter::once(row).chain(row.parameters))
}

/// Returns the row with this name, including rows of parameters.
pub fn find(name: &str) -> Option<&'static Row> {
    rows().find(|row| row.name == name)
}

/// Returns the row that answers `question` if a recipe names no answer, or `None` for [`Question::Option`].
pub(crate) fn default_answer(question: Question) -> Option<&'static Row> {
    CATALOGUE.iter().find(|row| row.is_default && row.question() == question)
}

/// Returns the row that replaces an answer of a sender without `need`.
pub(crate) fn fallback(need: Need, question: Question, profile: &Profile) -> &'static Row {
    match (need, question, profile.recovery.dialects.rack) {
        (Need::Sack, Question::Detect, RackDialect::Linux) => &EMULATED_SACKS,
        _ => default_answer(question).expect("a test of the catalogue checks that there is one"),
    }
}

/// Returns the table of answers and options in `docs/reference/recipes.md`. A test compares page and table.
pub fn markdown() -> String {
    let mut table = String::from("| question | answers (the default first) |\n|---|---|\n");
    let code = |row: &Row| format!("`{}`", row.name);
    let name = |row: &Row| match row.parameters {
        [] => code(row),
        parameters => {
            let parameters: Vec<_> = parameters.iter().map(code).collect();
            format!("{} ({})", code(row), parameters.join(" "))
        }
    };
    let names = |rows: &[&Row]| rows.iter().map(|row| name(row)).collect::<Vec<_>>().join(" ");
    for question in Question::ALL {
        let rows = CATALOGUE.iter().filter(|row| row.question() == question && !row.is_alias());
        let (mut answers, add_ons): (Vec<_>, Vec<_>) =
            rows.partition(|row| row.is_answer() || question == Question::Option);
        answers.sort_by_key(|row: &&Row| !row.is_default);
        let add_ons = match add_ons.as_slice() {
            [] => String::new(),
            rows => format!("; add-ons: {}", names(rows)),
        };
        table += &format!("| {} | {}{add_ons} |\n", question.text(), names(&answers));
    }
    for row in CATALOGUE {
        if let Build::Alias(meaning) = row.build {
            table += &format!("| *alias* | `{}` = `{meaning}` |\n", row.name);
        }
    }
    table
}

/// Returns the name in the catalogue that is most similar to `name`, or `None` if none is similar.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(name, rows().map(|row| row.name))
}

/// Returns the word in `known` that is most similar to `name`, or `None` if none is similar.
pub fn nearest_of<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|known| (strsim::levenshtein(name, known), known))
        .min()
        .filter(|(distance, known)| *distance <= 1 + known.len() / 3)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_each_question_has_default() {
        for (i, row) in rows().enumerate() {
            assert!(rows().take(i).all(|other| other.name != row.name), "duplicate name {}", row.name);
            assert!(
                !row.summary.is_empty() && !row.citation.is_empty(),
                "{} has no summary or citation",
                row.name
            );
        }
        for question in Question::ALL {
            let count = CATALOGUE.iter().filter(|row| row.is_default && row.question() == question).count();
            assert_eq!(count, usize::from(question != Question::Option), "{question:?}");
        }
    }

    #[test]
    fn misspelt_name_suggests_nearest_name() {
        assert_eq!(nearest("newrno"), Some("newreno"));
        assert_eq!(nearest("limited-transmitt"), Some("limited-transmit"));
        assert_eq!(nearest("xyzzy-plugh"), None);
    }
}
