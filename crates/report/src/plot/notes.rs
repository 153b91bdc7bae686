//! Notes above a plot: a mark for each note, and its text if there is enough space.

use std::collections::{BTreeMap, BTreeSet};

use super::axis::Axis;
use super::draw::{Colour, Item, Point, Shape, Step, Stroke, Text};
use super::font;
use super::layer::mark_shape;
use super::palette::{BLACK, GREY, Mark};

const LANES: usize = 4;
const LANE_HEIGHT: f64 = 11.0;
const TEXT_SIZE: f64 = 8.5;
/// The height reserved for the marks.
const MARK_HEIGHT: f64 = 8.0;
/// The distance between the text and its mark.
const MARGIN: f64 = 3.0;
/// The maximum width of a note's text. Longer text is truncated.
const MAX_TEXT_WIDTH: f64 = 150.0;

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
    /// Returns the mark, centred at this point.
    pub(super) fn sample(&self, at: Point) -> Shape {
        let mut steps = Vec::new();
        self.mark.steps(at, &mut steps);
        mark_shape(steps, self.mark, self.colour)
    }
}

/// Returns the notes in view and their x coordinates.
pub(super) fn visible<'a>(
    notes: &'a [Note],
    axis: &Axis,
    (left, width): (f64, f64),
) -> impl Iterator<Item = (f64, &'a Note)> {
    let places = notes.iter().map(move |note| (left + axis.position(note.at as f64 / 1e9) * width, note));
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
    let visible_notes: Vec<(f64, &Note)> = visible(notes, axis, (left, width)).collect();
    if visible_notes.is_empty() {
        return top;
    }
    let labels = labels(&visible_notes, left + width);
    let lanes = labels.iter().map(|label| label.lane + 1).max().unwrap_or(0);
    let foot = top + lanes as f64 * LANE_HEIGHT + MARK_HEIGHT;
    let at = |x, y| Point { x, y };
    // One shape per kind. Marks in the same place are drawn once.
    let mut kinds: Vec<(&Note, BTreeSet<i64>)> = Vec::new();
    for (x, note) in &visible_notes {
        let place = (x * 2.0).round() as i64;
        match kinds.iter_mut().find(|(known, _)| known.kind == note.kind) {
            Some((_, places)) => drop(places.insert(place)),
            None => kinds.push((note, BTreeSet::from([place]))),
        }
    }
    let marks = kinds.into_iter().map(|(Note { mark, colour, .. }, places)| {
        let mut steps = Vec::new();
        for place in places {
            mark.steps(at(place as f64 / 2.0, foot - MARK_HEIGHT / 2.0), &mut steps);
        }
        Item::Shape(mark_shape(steps, *mark, *colour))
    });
    let mut lead_lines = Vec::new();
    let mut texts = Vec::new();
    for Label { mark, x, lane, text } in labels {
        let baseline = foot - MARK_HEIGHT - lane as f64 * LANE_HEIGHT - 2.0;
        lead_lines.extend([
            Step::Move(at(mark, baseline - TEXT_SIZE * 0.7)),
            Step::Line(at(mark, foot - MARK_HEIGHT)),
        ]);
        texts.push(Item::Text(Text::new(x, baseline, TEXT_SIZE, BLACK, text)));
    }
    let mut inside =
        vec![Item::Shape(Shape { steps: lead_lines, stroke: Some(Stroke::solid(GREY, 0.5)), fill: None })];
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
fn labels(visible_notes: &[(f64, &Note)], right: f64) -> Vec<Label> {
    let mut frequency: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, note) in visible_notes {
        *frequency.entry(&note.text).or_default() += 1;
    }
    let mut order: Vec<&(f64, &Note)> = visible_notes.iter().collect();
    order.sort_by_key(|(_, note)| (frequency[note.text.as_str()], note.at));
    // For each lane, the spans of its texts and of the lines that lead from higher lanes to marks.
    let mut occupied: Vec<Vec<(f64, f64)>> = vec![Vec::new(); LANES];
    let mut labelled: BTreeSet<(i64, &str)> = BTreeSet::new();
    let mut labels = Vec::new();
    for (mark, note) in order {
        let text = font::fitted(&note.text, TEXT_SIZE, MAX_TEXT_WIDTH);
        let wide = font::width(&text, TEXT_SIZE);
        let x = (mark + MARGIN).min(right - wide);
        let free = |lane: usize, (from, to): (f64, f64), room: f64| {
            occupied[lane].iter().all(|(left, end)| to + room < *left || from > *end + room)
        };
        let lead = |lane: usize| (0..lane).all(|below| free(below, (*mark, *mark), MARGIN - 1.0));
        let words = (x, x + wide);
        let room = (0..LANES).find(|lane| free(*lane, words, 5.0) && lead(*lane));
        let Some(lane) = room.filter(|_| labelled.insert(((mark * 2.0).round() as i64, &note.text))) else {
            continue;
        };
        occupied[lane].push(words);
        occupied[..lane].iter_mut().for_each(|below| below.push((*mark, *mark)));
        labels.push(Label { mark: *mark, x, lane, text });
    }
    labels
}
