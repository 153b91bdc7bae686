//! Notes above a plot: a mark for each note, and its text where there is room.

use std::collections::{BTreeMap, BTreeSet};

use super::axis::Axis;
use super::draw::{Colour, Item, Point, Shape, Step, Stroke, Text};
use super::font;
use super::layer::mark_shape;
use super::palette::{BLACK, GREY, Mark};

const LANES: usize = 4;
const LANE: f64 = 11.0;
const SIZE: f64 = 8.5;
/// The height reserved for the marks.
const FOOT: f64 = 8.0;
/// The distance between the text and its mark.
const ASIDE: f64 = 3.0;
/// The maximum width of a note's text. Longer text is truncated.
const MOST: f64 = 150.0;

/// A note about a point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The time, in billionths of the axis's unit.
    pub at: i64,
    /// A short text.
    pub text: String,
    /// The legend entry for all notes with this mark.
    pub kind: &'static str,
    /// The colour of the mark.
    pub colour: Colour,
    /// The mark.
    pub mark: Mark,
}

impl Note {
    /// The mark, centred at this point.
    pub(super) fn sample(&self, at: Point) -> Shape {
        let mut steps = Vec::new();
        self.mark.steps(at, &mut steps);
        mark_shape(steps, self.mark, self.colour)
    }
}

/// The notes in view and their x coordinates.
pub(super) fn seen<'a>(
    notes: &'a [Note],
    axis: &Axis,
    (left, width): (f64, f64),
) -> impl Iterator<Item = (f64, &'a Note)> {
    let places = notes.iter().map(move |note| (left + axis.place(note.at as f64 / 1e9) * width, note));
    places.filter(move |(x, _)| (left..=left + width).contains(x))
}

/// Draws the notes, starting at `top`. Returns their lower end, where the plot begins.
pub(super) fn strip(
    notes: &[Note],
    axis: &Axis,
    (left, width): (f64, f64),
    top: f64,
    items: &mut Vec<Item>,
) -> f64 {
    let seen: Vec<(f64, &Note)> = seen(notes, axis, (left, width)).collect();
    if seen.is_empty() {
        return top;
    }
    let labels = labels(&seen, left + width);
    let lanes = labels.iter().map(|label| label.lane + 1).max().unwrap_or(0);
    let foot = top + lanes as f64 * LANE + FOOT;
    let at = |x, y| Point { x, y };
    // One shape per kind. Marks in the same place are drawn once.
    let mut kinds: Vec<(&Note, BTreeSet<i64>)> = Vec::new();
    for (x, note) in &seen {
        let place = (x * 2.0).round() as i64;
        match kinds.iter_mut().find(|(known, _)| known.kind == note.kind) {
            Some((_, places)) => drop(places.insert(place)),
            None => kinds.push((note, BTreeSet::from([place]))),
        }
    }
    let marks = kinds.into_iter().map(|(Note { mark, colour, .. }, places)| {
        let mut steps = Vec::new();
        for place in places {
            mark.steps(at(place as f64 / 2.0, foot - FOOT / 2.0), &mut steps);
        }
        Item::Shape(mark_shape(steps, *mark, *colour))
    });
    let mut leads = Vec::new();
    let mut texts = Vec::new();
    for Label { mark, x, lane, text } in labels {
        let baseline = foot - FOOT - lane as f64 * LANE - 2.0;
        leads.extend([Step::Move(at(mark, baseline - SIZE * 0.7)), Step::Line(at(mark, foot - FOOT))]);
        texts.push(Item::Text(Text::new(x, baseline, SIZE, BLACK, text)));
    }
    let mut inside =
        vec![Item::Shape(Shape { steps: leads, stroke: Some(Stroke::solid(GREY, 0.5)), fill: None })];
    inside.extend(marks);
    inside.extend(texts);
    items.push(Item::Group { class: "decisions", clip: None, items: inside });
    foot
}

struct Label {
    /// The x coordinate of the mark.
    mark: f64,
    /// The x coordinate of the text.
    x: f64,
    /// The lane, counted from the bottom.
    lane: usize,
    text: String,
}

/// Chooses the notes whose text is shown. The rarest texts come first because they carry the most
/// information.
fn labels(seen: &[(f64, &Note)], right: f64) -> Vec<Label> {
    let mut often: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, note) in seen {
        *often.entry(&note.text).or_default() += 1;
    }
    let mut order: Vec<&(f64, &Note)> = seen.iter().collect();
    order.sort_by_key(|(_, note)| (often[note.text.as_str()], note.at));
    // For each lane, the spans occupied by text and by the lead lines from higher lanes.
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
