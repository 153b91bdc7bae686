//! Notes above a plot: a mark for each, words as far as there is room.

use std::collections::{BTreeMap, BTreeSet};

use super::axis::Axis;
use super::draw::{Fill, Item, Point, Shape, Step, Stroke, Text};
use super::font;
use super::palette::{BLACK, GREY};

const LANES: usize = 4;
const LANE: f64 = 11.0;
const SIZE: f64 = 8.5;
/// The height of the marks.
const FOOT: f64 = 6.0;
/// The distance of words from their mark.
const ASIDE: f64 = 3.0;
/// The greatest width of a note's words: nobody reads more.
const MOST: f64 = 150.0;

/// Something that is said about a moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The moment, in billionths of the axis's unit.
    pub at: i64,
    /// A few words.
    pub text: String,
}

/// Draws the notes from `top` on. Returns where they end, which is where the plot begins.
pub(super) fn strip(
    notes: &[Note],
    axis: &Axis,
    (left, width): (f64, f64),
    top: f64,
    items: &mut Vec<Item>,
) -> f64 {
    let place = |note: &Note| left + axis.place(note.at as f64 / 1e9) * width;
    let seen: Vec<(f64, &Note)> = notes
        .iter()
        .map(|note| (place(note), note))
        .filter(|(x, _)| (left..=left + width).contains(x))
        .collect();
    if seen.is_empty() {
        return top;
    }
    let labels = labels(&seen, left + width);
    let lanes = labels.iter().map(|label| label.lane + 1).max().unwrap_or(0);
    let foot = top + lanes as f64 * LANE + FOOT;
    let (mut leads, mut marks) = (Vec::new(), Vec::new());
    let at = |x, y| Point { x, y };
    let pixels: BTreeSet<i64> = seen.iter().map(|(x, _)| (x * 2.0).round() as i64).collect();
    for x in pixels.into_iter().map(|cell| cell as f64 / 2.0) {
        marks.extend([
            Step::Move(at(x - 2.5, foot - 4.5)),
            Step::Line(at(x + 2.5, foot - 4.5)),
            Step::Line(at(x, foot)),
            Step::Close,
        ]);
    }
    let mut texts = Vec::new();
    for Label { mark, x, lane, text } in labels {
        let baseline = foot - FOOT - lane as f64 * LANE - 2.0;
        leads.extend([Step::Move(at(mark, baseline - SIZE * 0.7)), Step::Line(at(mark, foot - 4.5))]);
        texts.push(Item::Text(Text::new(x, baseline, SIZE, BLACK, text)));
    }
    let mut inside = vec![
        Item::Shape(Shape { steps: leads, stroke: Some(Stroke::solid(GREY, 0.5)), fill: None }),
        Item::Shape(Shape { steps: marks, stroke: None, fill: Some(Fill { colour: GREY, opacity: 1.0 }) }),
    ];
    inside.extend(texts);
    items.push(Item::Group { class: "decisions", clip: None, items: inside });
    foot
}

struct Label {
    /// Where its mark is.
    mark: f64,
    /// Where the words begin.
    x: f64,
    /// Counted from below.
    lane: usize,
    text: String,
}

/// Chooses the notes that get words. The rarest say most: they come first.
fn labels(seen: &[(f64, &Note)], right: f64) -> Vec<Label> {
    let mut often: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, note) in seen {
        *often.entry(&note.text).or_default() += 1;
    }
    let mut order: Vec<&(f64, &Note)> = seen.iter().collect();
    order.sort_by_key(|(_, note)| (often[note.text.as_str()], note.at));
    // By lane: the room that is taken by words, and by the lines that lead down from higher lanes.
    let mut taken: Vec<Vec<(f64, f64)>> = vec![Vec::new(); LANES];
    let mut said: BTreeSet<(i64, &str)> = BTreeSet::new();
    let mut labels = Vec::new();
    for (mark, note) in order {
        let text = font::fitted(&note.text, SIZE, MOST);
        let wide = font::width(&text, SIZE);
        let x = (mark + ASIDE).min(right - wide);
        let free = |lane: usize, (from, to): (f64, f64), room: f64| {
            taken[lane].iter().all(|(left, end)| to + room < *left || from > *end + room)
        };
        let lead = |lane: usize| (0..lane).all(|below| free(below, (*mark, *mark), ASIDE - 1.0));
        let words = (x, x + wide);
        let room = (0..LANES).find(|lane| free(*lane, words, 5.0) && lead(*lane));
        let Some(lane) = room.filter(|_| said.insert(((mark * 2.0).round() as i64, &note.text))) else {
            continue;
        };
        taken[lane].push(words);
        taken[..lane].iter_mut().for_each(|below| below.push((*mark, *mark)));
        labels.push(Label { mark: *mark, x, lane, text });
    }
    labels
}
