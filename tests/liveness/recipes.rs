//! The recipes of the matrix, generated from the catalogue, so that new algorithms are included
//! automatically.

use std::collections::BTreeSet;

use airtcp::recovery::catalogue::{Build, CATALOGUE, Row};
use airtcp::recovery::{Recipe, RecipeError};
use airwire::rng::Stream;

/// Options that a triple may contain: those that change what the sender transmits, or what it learns.
const OPTIONS: [&str; 5] = ["limited-transmit", "liw", "ecn", "no-sack", "no-timestamps"];

/// Number of triples.
const TRIPLES: usize = 200;

/// Number of catalogue entries that a recipe names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    Alone,
    Pair,
    Triple,
}

impl Family {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Pair => "pair",
            Self::Triple => "triple",
        }
    }
}

/// A recipe of the matrix.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) recipe: Recipe,
    pub(crate) family: Family,
}

/// Returns the recipes of the matrix, those with fewer parts first. `seed` determines the triples.
pub(crate) fn matrix(seed: u64) -> Vec<Entry> {
    let answers = answers();
    // Judges only observe, so they are tried alone.
    let changes: Vec<_> = answers.iter().copied().filter(|name| *name != "judges").collect();
    let mut matrix = Matrix::default();
    matrix.add_single(&answers);
    matrix.add_pairs(&changes);
    matrix.add_triples(&changes, seed);
    matrix.entries
}

#[derive(Default)]
struct Matrix {
    known: BTreeSet<String>,
    entries: Vec<Entry>,
}

impl Matrix {
    /// Adds a recipe. Returns whether it is valid and new: two texts may have the same canonical form.
    fn add(&mut self, text: &str, family: Family) -> bool {
        let Ok(recipe) = canonical(text) else { return false };
        let new = self.known.insert(recipe.to_string());
        if new {
            self.entries.push(Entry { recipe, family });
        }
        new
    }

    fn add_single(&mut self, answers: &[&str]) {
        self.add(&Recipe::default().to_string(), Family::Alone);
        for name in answers {
            self.add(name, Family::Alone);
        }
        // A parameter without a number turns its algorithm into a different one.
        for row in CATALOGUE {
            for word in row.parameters.iter().filter(|word| word.range().is_none()) {
                self.add(&format!("{}+{}", row.name, word.name), Family::Alone);
            }
        }
    }

    fn add_pairs(&mut self, changes: &[&str]) {
        for (index, first) in changes.iter().enumerate() {
            for second in &changes[index + 1..] {
                self.add(&format!("{first}+{second}"), Family::Pair);
            }
        }
    }

    fn add_triples(&mut self, changes: &[&str], seed: u64) {
        let words: Vec<&str> = changes.iter().copied().chain(OPTIONS).collect();
        let mut draw = Stream::new(seed, "triples");
        let mut word = || words[draw.below(words.len() as u64) as usize];
        let mut triples = 0;
        while triples < TRIPLES {
            // Most combinations contradict themselves; the catalogue rejects them.
            let text = format!("{}+{}+{}", word(), word(), word());
            triples += usize::from(self.add(&text, Family::Triple));
        }
    }
}

/// Returns the recipe of this text, and every valid recipe that has one more answer of the catalogue.
pub(crate) fn with_one_more(text: &str) -> Vec<Recipe> {
    let more = answers().into_iter().map(|name| format!("{text}+{name}"));
    std::iter::once(text.to_owned()).chain(more).filter_map(|text| canonical(&text).ok()).collect()
}

/// Parses a recipe into its canonical form, which `reasons.toml` uses.
fn canonical(text: &str) -> Result<Recipe, RecipeError> {
    text.parse::<Recipe>()?.canonical().parse()
}

fn answers() -> Vec<&'static str> {
    CATALOGUE.iter().filter(|row| is_answer(row)).map(|row| row.name).collect()
}

/// Returns whether the row is a non-default answer or an add-on.
fn is_answer(row: &Row) -> bool {
    let plain = matches!(row.build, Build::Option(_) | Build::Number(..) | Build::Alias(_));
    !plain && !row.is_parameter() && !row.is_default
}
