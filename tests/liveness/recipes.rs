//! The recipes of the matrix, from the catalogue: what is new in it is in here at once.

use std::collections::BTreeMap;

use airtcp::recovery::catalogue::{Build, CATALOGUE, Row};
use airtcp::recovery::{Recipe, RecipeError};
use airwire::rng::Stream;

/// Plain options that may stand in a triple: those that change what is sent, or what the sender learns.
const OPTIONS: [&str; 5] = ["limited-transmit", "liw", "ecn", "no-sack", "no-timestamps"];

/// How many triples are sampled.
const TRIPLES: usize = 200;

/// How much of the catalogue a recipe names.
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

/// All of them, those that name less first. `seed` says which triples.
pub(crate) fn matrix(seed: u64) -> Vec<Entry> {
    let answers = answers();
    // What only watches is tried alone.
    let changes: Vec<_> = answers.iter().copied().filter(|name| *name != "judges").collect();
    let mut known = BTreeMap::new();
    let mut entries = Vec::new();
    // A name twice, of two that mean the same, is left out.
    let mut add = |text: &str, family| {
        let Ok(recipe) = canonical(text) else { return false };
        let new = known.insert(recipe.to_string(), ()).is_none();
        if new {
            entries.push(Entry { recipe, family });
        }
        new
    };
    add(&Recipe::ordinary().to_string(), Family::Alone);
    for name in &answers {
        add(name, Family::Alone);
    }
    // A word without a number makes another algorithm of the one that it belongs to.
    for row in CATALOGUE {
        for word in row.parameters.iter().filter(|word| word.range().is_none()) {
            add(&format!("{}+{}", row.name, word.name), Family::Alone);
        }
    }
    for (index, first) in changes.iter().enumerate() {
        for second in &changes[index + 1..] {
            add(&format!("{first}+{second}"), Family::Pair);
        }
    }
    let words: Vec<_> = changes.into_iter().chain(OPTIONS).collect();
    let mut draw = Stream::new(seed, "triples");
    let mut word = || words[draw.below(words.len() as u64) as usize];
    let mut triples = 0;
    while triples < TRIPLES {
        // Most contradict themselves: the catalogue says which.
        let text = format!("{}+{}+{}", word(), word(), word());
        triples += usize::from(add(&text, Family::Triple));
    }
    entries
}

/// The recipe of this text, and all of the catalogue that are this one and another answer.
pub(crate) fn with_one_more(text: &str) -> Vec<Recipe> {
    let more = answers().into_iter().map(|name| format!("{text}+{name}"));
    std::iter::once(text.to_owned()).chain(more).filter_map(|text| canonical(&text).ok()).collect()
}

/// Reasons are written under the one name of what means the same.
fn canonical(text: &str) -> Result<Recipe, RecipeError> {
    text.parse::<Recipe>()?.canonical().parse()
}

fn answers() -> Vec<&'static str> {
    CATALOGUE.iter().filter(|row| is_answer(row)).map(|row| row.name).collect()
}

/// It answers a question in another than the ordinary way, or stands beside an answer.
fn is_answer(row: &Row) -> bool {
    let plain = matches!(row.build, Build::Option(_) | Build::Number(..) | Build::Alias(_));
    !plain && !row.is_parameter() && !row.ordinary
}
