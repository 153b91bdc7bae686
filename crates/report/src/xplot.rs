//! Files for xplot (Shepard, 1991; Debian's xplot-xplot.org), in the style of tcptrace: segments are white
//! with an arrow at both ends, ACKs green, the window yellow, retransmissions red with an R, SACK purple with
//! an S.

use std::fmt::{self, Write};

use airtcp_analyze::trace::{Fate, Loss, Offset, Sending, SentSegment, Trace, WindowPoint};
use airwire::Cause;

/// The graphs, named as in tcptrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graph {
    /// Sequence numbers over time.
    TimeSequence,
    /// Round-trip times.
    Rtt,
    /// Data in flight, and the window.
    Window,
}

impl Graph {
    /// All graphs.
    pub const ALL: [Self; 3] = [Self::TimeSequence, Self::Rtt, Self::Window];

    /// Returns the part of the file name that identifies the graph, as in tcptrace.
    pub fn name(self) -> &'static str {
        match self {
            Self::TimeSequence => "tsg",
            Self::Rtt => "rtt",
            Self::Window => "owin",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::TimeSequence => "time sequence graph",
            Self::Rtt => "rtt samples",
            Self::Window => "outstanding data",
        }
    }

    fn ordinate(self) -> &'static str {
        match self {
            Self::TimeSequence => "sequence number",
            Self::Rtt => "rtt (ms)",
            Self::Window => "bytes",
        }
    }
}

/// Returns the content of an xplot file.
pub fn xplot(trace: &Trace, graph: Graph) -> String {
    let mut file = File { text: String::new(), origin: trace.origin, colour: "" };
    file.line(format_args!("timeval double"));
    // The title must be one line, and xplot derives file names from the title.
    let name: String = trace.name.replace(" → ", "_==>_").chars().filter(|c| !c.is_control()).collect();
    file.line(format_args!("title\n{name} ({})", graph.title()));
    file.line(format_args!("xlabel\ntime\nylabel\n{}", graph.ordinate()));
    match graph {
        Graph::TimeSequence => file.time_sequence(trace),
        Graph::Rtt => file.rtt(trace),
        Graph::Window => file.window(&trace.windows),
    }
    file.line(format_args!("go"));
    file.text
}

struct File {
    text: String,
    origin: i64,
    /// The current pen colour.
    colour: &'static str,
}

/// Nanoseconds since 1970, written as seconds with nine digits.
struct Time(i128);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(nanos) = self;
        // xplot applies a minus sign to the seconds only, so negative times are written as zero.
        let nanos = (*nanos).max(0);
        write!(f, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }
}

impl File {
    fn line(&mut self, line: fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("a String takes everything");
    }

    fn time(&self, at: Offset) -> Time {
        Time(i128::from(self.origin) + i128::from(at))
    }

    fn pen(&mut self, colour: &'static str) {
        if self.colour != colour {
            self.colour = colour;
            self.line(format_args!("{colour}"));
        }
    }

    fn mark(&mut self, mark: &str, at: Offset, y: impl fmt::Display) {
        let x = self.time(at);
        self.line(format_args!("{mark} {x} {y}"));
    }

    fn text(&mut self, command: &str, at: Offset, y: impl fmt::Display, text: &str) {
        self.mark(command, at, y);
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        self.line(format_args!("{text}"));
    }

    fn stroke(&mut self, from: (Offset, f64), to: (Offset, f64)) {
        let (x1, x2) = (self.time(from.0), self.time(to.0));
        self.line(format_args!("line {x1} {} {x2} {}", from.1, to.1));
    }

    /// Draws steps: each value holds until the next one.
    fn steps(&mut self, points: impl Iterator<Item = (Offset, f64)>) {
        let mut last: Option<(Offset, f64)> = None;
        for (at, value) in points {
            if let Some(last) = last {
                self.stroke(last, (at, last.1));
                if last.1 != value {
                    self.stroke((at, last.1), (at, value));
                }
            }
            last = Some((at, value));
        }
    }

    fn time_sequence(&mut self, trace: &Trace) {
        for segment in &trace.segments {
            self.segment(segment);
        }
        self.pen("green");
        self.steps(trace.acks.iter().map(|ack| (ack.at, ack.ack as f64)));
        for ack in trace.acks.iter().filter(|ack| ack.duplicate) {
            self.mark("dtick", ack.at, ack.ack);
        }
        self.pen("yellow");
        self.steps(trace.acks.iter().map(|ack| (ack.at, ack.edge as f64)));
        self.pen("purple");
        for ack in &trace.acks {
            for (from, to) in &ack.sack {
                self.stroke((ack.at, *from as f64), (ack.at, *to as f64));
                self.text("ctext", ack.at, to, "S");
            }
        }
        self.pen("orange");
        for decision in &trace.decisions {
            if let Some((_, end)) = decision.about {
                self.text("rtext", decision.at, end, &format!("{}: {}", decision.by, decision.what));
            }
        }
    }

    fn segment(&mut self, segment: &SentSegment) {
        let SentSegment { at, number: _, start, end, sending, dupacks: _, in_flight: _, fate } = segment;
        // tcptrace writes only R. The letter before the R gives the reason.
        let letters = match sending {
            Sending::New => None,
            Sending::Fast => Some("R"),
            Sending::Timeout => Some("TR"),
            Sending::Tail => Some("LR"),
            Sending::Probe => Some("P"),
            Sending::Unexplained => Some("?R"),
        };
        self.pen(if letters.is_some() { "red" } else { "white" });
        self.mark("darrow", *at, end);
        self.mark("uarrow", *at, start);
        self.stroke((*at, *start as f64), (*at, *end as f64));
        if let Some(letters) = letters {
            self.text("atext", *at, end, letters);
        }
        match fate {
            Fate::Lost(loss) => {
                self.pen("magenta");
                self.mark("x", *at, start);
                let location = match loss {
                    Loss::Airlink(Cause::Congestion) => "queue".to_owned(),
                    Loss::Airlink(Cause::Radio) => "radio".to_owned(),
                    Loss::Between { before } => format!("before {}", before + 1),
                };
                self.text("btext", *at, start, &location);
            }
            Fate::Spurious { .. } => {
                self.pen("blue");
                self.mark("box", *at, start);
                self.text("btext", *at, start, "spurious");
            }
            Fate::Unknown | Fate::Arrived { .. } => {}
        }
    }

    fn rtt(&mut self, trace: &Trace) {
        for sample in &trace.rtt {
            self.pen(if sample.timestamps { "green" } else { "white" });
            self.mark("dot", sample.at, sample.seconds * 1e3);
        }
    }

    /// Outstanding data is red, as in tcptrace.
    fn window(&mut self, windows: &[WindowPoint]) {
        let points = |value: fn(&WindowPoint) -> Option<f64>| {
            windows.iter().filter_map(move |point| Some((point.at, value(point)?)))
        };
        self.pen("red");
        self.steps(points(|point| Some(point.in_flight as f64)));
        self.pen("blue");
        self.steps(points(|point| Some(point.cwnd.unwrap_or(point.estimated as f64))));
        self.pen("yellow");
        self.steps(points(|point| point.ssthresh.filter(|ssthresh| *ssthresh < 1e9)));
    }
}
