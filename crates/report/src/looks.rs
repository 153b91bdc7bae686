//! The appearance of every kind of item, on the page, in SVG and in PNG.
//!
//! This module is the only definition. The panels take their series from here, and the page's script
//! receives the definitions as constants. A colour never carries information that the shape lacks.

use serde_json::{Value, json};

use crate::plot::draw::{Colour, Dash};
use crate::plot::palette::{
    BLACK, BLUE, GREEN, GREY, LINES, Mark, ORANGE, PURPLE, SILVER, SKY, VERMILION, on_dark,
};
use crate::plot::{Data, Series};

/// The appearance of one kind of item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    /// Identifier: the name on the page, and the class in an SVG.
    pub(crate) name: &'static str,
    /// Text in the legend.
    pub(crate) label: &'static str,
    /// The colour on white. Dark pages use the matching colour from the palette.
    pub(crate) colour: Colour,
    pub(crate) sign: Sign,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sign {
    Mark(Mark),
    /// A vertical stroke from the first byte to the last.
    Bar,
    Line(Dash),
    /// A pale area over the full height.
    Area,
    /// Bands differ in fill and height: filled, hatched, or half as high.
    FullBand,
    HatchedBand,
    LowBand,
}

impl Sign {
    /// Returns the mark, or [`Mark::Dot`] for anything that is not drawn as a mark.
    pub(crate) fn mark(self) -> Mark {
        if let Self::Mark(mark) = self { mark } else { Mark::Dot }
    }

    /// Returns the name of the shape in `page/marks.js`.
    fn name(self) -> &'static str {
        match self {
            Self::Mark(mark) => match mark {
                Mark::Dot => "dot",
                Mark::Up => "up",
                Mark::Down => "down",
                Mark::Square => "square",
                Mark::Diamond => "diamond",
                Mark::Disc | Mark::Plate => "disc",
                Mark::Ring => "ring",
                Mark::OpenSquare => "open-square",
                Mark::Frame => "frame",
                Mark::Cross => "cross",
                Mark::CrossInRing => "cross-in-ring",
                Mark::CrossInSquare => "cross-in-square",
                Mark::Plus => "plus",
                Mark::Tick => "tick",
            },
            Self::Bar => "bar",
            Self::Line(Dash::Solid) => "line",
            Self::Line(_) => "dashes",
            Self::Area => "area",
            Self::FullBand => "full",
            Self::HatchedBand => "hatched",
            Self::LowBand => "half",
        }
    }
}

const fn look(name: &'static str, label: &'static str, colour: Colour, sign: Sign) -> Look {
    Look { name, label, colour, sign }
}

const fn mark(name: &'static str, label: &'static str, colour: Colour, mark: Mark) -> Look {
    look(name, label, colour, Sign::Mark(mark))
}

const fn line(name: &'static str, label: &'static str, colour: Colour, dash: Dash) -> Look {
    look(name, label, colour, Sign::Line(dash))
}

// Segments, by the reason for sending them.
pub(crate) const NEW: Look = look("new", "sent", BLUE, Sign::Bar);
pub(crate) const FAST: Look = mark("fast", "fast retransmission", ORANGE, Mark::Up);
pub(crate) const TIMEOUT: Look = mark("timeout", "after a timeout", VERMILION, Mark::Square);
pub(crate) const TAIL: Look = mark("tail", "tail probe", PURPLE, Mark::Diamond);
pub(crate) const PROBE: Look = mark("probe", "window probe", BLACK, Mark::Disc);
pub(crate) const UNEXPLAINED: Look = mark("unexplained", "unexplained retransmission", BLACK, Mark::Plus);
// The outcome of segments.
pub(crate) const LOST_RADIO: Look = mark("lost-radio", "lost on the radio link", BLACK, Mark::CrossInRing);
pub(crate) const LOST_QUEUE: Look = mark("lost-congestion", "lost in a queue", BLACK, Mark::CrossInSquare);
pub(crate) const LOST_BETWEEN: Look = mark("lost-between", "lost on the path", BLACK, Mark::Cross);
pub(crate) const SPURIOUS: Look = mark("spurious", "spurious", PURPLE, Mark::Ring);
// ACKs and the silence before a timeout.
pub(crate) const ACK: Look = line("ack", "acknowledged", GREEN, Dash::Solid);
pub(crate) const DUPLICATE_ACK: Look = mark("duplicate-ack", "duplicate ACK", GREEN, Mark::Tick);
pub(crate) const SACK: Look = look("sack", "SACK", PURPLE, Sign::Bar);
pub(crate) const WINDOW: Look = line("window", "receiver window", SILVER, Dash::Long);
pub(crate) const IDLE: Look = look("idle", "idle until a timeout", GREY, Sign::Area);
// The sender's log: the states of its loss recovery, and its decisions.
pub(crate) const RECOVERY: Look = look("recovery", "recovery", SKY, Sign::FullBand);
pub(crate) const RESTARTED: Look = look("restarted", "restarted", VERMILION, Sign::HatchedBand);
pub(crate) const REDUCED: Look = look("reduced", "reduced", ORANGE, Sign::LowBand);
/// A frame, so that it stays visible around the triangle of a window reduction at the same time.
pub(crate) const TIMER: Look = mark("timer-fired", "timer expired", VERMILION, Mark::Frame);
pub(crate) const LOWERED: Look = mark("lowered", "window reduced", VERMILION, Mark::Down);
pub(crate) const RAISED: Look = mark("raised", "window increased", GREEN, Mark::Up);
pub(crate) const DECLARED: Look = mark("declared-lost", "declared lost", BLACK, Mark::Cross);
pub(crate) const JUDGED: Look = mark("judged", "loss attributed", GREY, Mark::Disc);
pub(crate) const DECISION: Look = mark("decision", "other decision", GREY, Mark::Tick);
// Windows, round-trip times and rates.
pub(crate) const CWND: Look = line("cwnd", "cwnd", BLUE, Dash::Solid);
pub(crate) const SSTHRESH: Look = line("ssthresh", "ssthresh", ORANGE, Dash::Short);
pub(crate) const FLIGHT: Look = line("in-flight", "in flight", SILVER, Dash::Solid);
pub(crate) const ESTIMATED: Look = line("estimated", "estimated window", SKY, Dash::Long);
pub(crate) const RTT_TIMESTAMPS: Look = mark("rtt-timestamps", "from timestamps", BLUE, Mark::Dot);
pub(crate) const RTT_KARN: Look = mark("rtt-karn", "from segments sent once (Karn)", VERMILION, Mark::Tick);
pub(crate) const GOODPUT: Look = line("goodput", "acknowledged", GREEN, Dash::Solid);
pub(crate) const SENT_RATE: Look = line("sent-rate", "sent, including retransmissions", BLUE, Dash::Short);
pub(crate) const MEAN: Look = line("mean-goodput", "mean", BLACK, Dash::Long);
// Transmissions on the radio link.
pub(crate) const PDUS: Look = line("pdus", "transmitted over the radio link", BLUE, Dash::Solid);
pub(crate) const PDUS_RETRANSMITTED: Look = line("pdus-again", "retransmitted", VERMILION, Dash::Long);
pub(crate) const PDUS_DAMAGED: Look = line("pdus-damaged", "damaged", BLACK, Dash::Dotted);

/// Maximum number of queues in a picture. More lines cannot be distinguished.
pub(crate) const QUEUES: usize = LINES.len();

/// Returns the look of the queue with this index. The caller sets its name.
pub(crate) fn queue(index: usize) -> Look {
    line("queue", "queue", LINES[index % QUEUES], Dash::ALL[index % Dash::ALL.len()])
}

/// The page's own colours, on a light and on a dark background. `text` becomes `--text` in the style sheet.
const PAGE: [(&str, &str, &str); 9] = [
    ("text", "#1d1f21", "#e6e6e6"),
    ("faint", "#5c6166", "#a6abb0"),
    ("paper", "#ffffff", "#16181b"),
    ("raised", "#f5f6f7", "#202327"),
    ("line", "#d5d8db", "#3a3f45"),
    ("shown", "#e3f0f8", "#17303f"),
    ("grid", "#0000001a", "#ffffff1c"),
    ("frame", "#00000055", "#ffffff55"),
    // Covers the part of the overview that is out of view.
    ("shade", "#00000026", "#00000088"),
];
/// The colours that the graphs also use.
const IN_GRAPHS: [&str; 6] = ["text", "faint", "paper", "grid", "frame", "shade"];
/// The colour of clickable items and of the selection.
const ACCENT: Colour = BLUE;

/// Everything that the page draws, in the order of its legend.
const ON_PAGE: [Look; 30] = [
    NEW,
    FAST,
    TIMEOUT,
    TAIL,
    PROBE,
    UNEXPLAINED,
    LOST_RADIO,
    LOST_QUEUE,
    LOST_BETWEEN,
    SPURIOUS,
    ACK,
    DUPLICATE_ACK,
    SACK,
    WINDOW,
    IDLE,
    RECOVERY,
    RESTARTED,
    REDUCED,
    TIMER,
    LOWERED,
    RAISED,
    DECLARED,
    JUDGED,
    DECISION,
    CWND,
    SSTHRESH,
    FLIGHT,
    ESTIMATED,
    RTT_TIMESTAMPS,
    RTT_KARN,
];

/// The look of each kind of decision, by [`DecisionSeen::what`](airtcp_analyze::trace::DecisionSeen::what).
const DECISIONS: [(&str, Look); 8] = [
    ("timeout", TIMER),
    ("window", LOWERED),
    ("undo", RAISED),
    ("opened", RAISED),
    ("resume", RAISED),
    ("lost", DECLARED),
    ("cause", JUDGED),
    ("judged", JUDGED),
];

pub(crate) fn decision(what: &str) -> Look {
    DECISIONS.iter().find(|(known, _)| *known == what).map_or(DECISION, |(_, look)| *look)
}

/// Returns constants for the page's script: all looks, the look of each decision, and the background colours.
pub(crate) fn for_script() -> [(&'static str, Value); 3] {
    let looks = ON_PAGE.iter().chain([&GOODPUT]).map(|look| {
        let Look { name, label, colour, sign } = look;
        json!({ "name": name, "words": label, "light": colour.hex(), "dark": on_dark(*colour).hex(), "sign": sign.name() })
    });
    let decisions: serde_json::Map<_, _> =
        DECISIONS.iter().map(|(what, look)| ((*what).to_owned(), json!(look.name))).collect();
    let of = |(name, light, dark): &(&str, &str, &str)| {
        ((*name).to_owned(), json!({ "light": light, "dark": dark }))
    };
    let ground = PAGE.iter().filter(|(name, ..)| IN_GRAPHS.contains(name)).map(of);
    [
        ("LOOKS", looks.collect()),
        ("DECISION_LOOKS", Value::Object(decisions)),
        ("GROUND", Value::Object(ground.collect())),
    ]
}

/// Returns rules for the page's style sheet. Dark colours apply if the browser prefers them and the page is not being
/// printed.
pub(crate) fn for_style() -> String {
    let (mut light, mut dark) =
        (format!("--accent: {};", ACCENT.hex()), format!("--accent: {};", on_dark(ACCENT).hex()));
    for (name, on_light, on_dark) in PAGE {
        light += &format!(" --{name}: {on_light};");
        dark += &format!(" --{name}: {on_dark};");
    }
    format!(
        ":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root:not(.printing) {{ {dark} }} }}\n"
    )
}

impl Look {
    /// Returns a series with this look and a name in the legend.
    pub(crate) fn series(self, data: Data) -> Series {
        Series { name: Some(self.label.to_owned()), class: self.name, colour: self.colour, data }
    }

    /// Returns a series with a mark at each point.
    pub(crate) fn marks(self, points: Vec<(f64, f64)>) -> Series {
        self.series(Data::Marks { points, mark: self.sign.mark(), below: 0.0 })
    }

    /// Returns a line of steps.
    pub(crate) fn steps(self, points: Vec<(f64, f64)>, width: f64) -> Series {
        self.series(Data::Steps { points, width, dash: self.dash() })
    }

    /// Returns a line from point to point.
    pub(crate) fn line(self, points: Vec<(f64, f64)>, width: f64) -> Series {
        self.series(Data::Line { points, width, dash: self.dash() })
    }

    fn dash(self) -> Dash {
        if let Sign::Line(dash) = self.sign { dash } else { Dash::Solid }
    }

    /// Returns a series of vertical strokes.
    pub(crate) fn bars(self, bars: Vec<(f64, f64, f64)>, width: f64) -> Series {
        self.series(Data::Bars { bars, width })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Collects the lines that name a colour, in all files below this directory.
    fn colours(directory: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                colours(&path, found);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let is_colour = |line: &&str| {
                let hex = |part: &str| part.chars().take_while(char::is_ascii_hexdigit).count() >= 6;
                line.replace("palette::Mark;", "").contains("palette::") || line.split('#').skip(1).any(hex)
            };
            found.extend(text.lines().filter(is_colour).map(|line| format!("{}: {line}", path.display())));
        }
    }

    #[test]
    fn panels_and_page_define_no_colours() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        for directory in ["panels", "html"] {
            colours(&source.join(directory), &mut found);
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
