//! Builds figures from a trace. Each submodule builds one kind of panel.

mod emulation;
mod goodput;
mod rtt;
mod time_sequence;
mod window;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod traced;

use airtcp_analyze::trace::{Offset, Trace};

use super::emulation::EmulatedPath;
use super::plot::axis::{Axis, Scale, Unit};
use super::plot::breaks::Breaks;
use super::plot::figure::{Figure, Panel};

/// A panel that shows one aspect of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Sequence numbers over time: segments, ACKs, losses and the receiver's window.
    TimeSequence,
    /// cwnd, ssthresh and the data in flight.
    Window,
    /// Measured round-trip times.
    Rtt,
    /// The rates of sent and of acknowledged data.
    Goodput,
    /// The emulated path: its queues and drops, and the transmissions of its radio link.
    Emulation,
}

impl Picture {
    /// All panels, from top to bottom.
    pub const ALL: [Self; 5] = [Self::TimeSequence, Self::Window, Self::Rtt, Self::Goodput, Self::Emulation];

    /// Returns the part of the file name that identifies the panel.
    pub fn name(self) -> &'static str {
        match self {
            Self::TimeSequence => "time-sequence",
            Self::Window => "window",
            Self::Rtt => "rtt",
            Self::Goodput => "goodput",
            Self::Emulation => "link",
        }
    }
}

/// The time range to show, in seconds since the trace's origin. `None` includes all data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    /// The start.
    pub from: Option<f64>,
    /// The end.
    pub to: Option<f64>,
    /// Leaves out long silences. A break marks each one and gives its duration.
    pub fold: bool,
}

/// Builds a figure with some panels of one trace. Returns `None` if the range contains no data.
pub fn figure(trace: &Trace, pictures: &[Picture], emulated: &EmulatedPath, range: Range) -> Option<Figure> {
    let view = View::of(trace, range)?;
    let is_only_panel = pictures.len() == 1;
    let panels: Vec<Panel> = pictures
        .iter()
        .flat_map(|picture| match picture {
            Picture::TimeSequence => {
                time_sequence::panel(trace, view, if is_only_panel { 330.0 } else { 260.0 })
                    .into_iter()
                    .collect()
            }
            Picture::Window => window::panel(trace, view, height(is_only_panel)).into_iter().collect(),
            Picture::Rtt => rtt::panel(trace, view, height(is_only_panel)).into_iter().collect(),
            Picture::Goodput => goodput::panel(trace, view, height(is_only_panel)).into_iter().collect(),
            Picture::Emulation => emulation::panels(trace.origin, emulated, view, height(is_only_panel)),
        })
        .collect();
    let breaks = if range.fold { silence(trace, view) } else { Breaks::default() };
    let x = Axis {
        caption: "time".to_owned(),
        unit: Unit::Seconds,
        scale: if breaks.is_empty() { Scale::Linear } else { Scale::Broken(breaks) },
        min: view.from,
        max: view.to,
    };
    (!panels.is_empty()).then(|| Figure { title: trace.name.clone(), subtitle: String::new(), x, panels })
}

/// Returns breaks for silences. As on the page, they are longer than two median RTTs, 1 % of the range and
/// 1 ms.
fn silence(trace: &Trace, view: View) -> Breaks {
    let long = (2.0 * median_rtt(trace)).max(0.01 * (view.to - view.from)).max(1e-3);
    let times = trace.segments.iter().map(|segment| segment.at).chain(trace.acks.iter().map(|ack| ack.at));
    let mut times: Vec<f64> = times.map(seconds).filter(|at| view.contains(*at)).collect();
    times.sort_by(f64::total_cmp);
    let gaps = times.windows(2).filter(|pair| pair[1] - pair[0] > long).map(|pair| (pair[0], pair[1]));
    Breaks::new(gaps.collect(), view.from, view.to)
}

/// Returns the median RTT in seconds, rounded up to a sample as on the page. Zero without samples.
fn median_rtt(trace: &Trace) -> f64 {
    let mut rtts: Vec<f64> = trace.rtt.iter().map(|sample| sample.seconds).collect();
    rtts.sort_by(f64::total_cmp);
    rtts.get(rtts.len() / 2).copied().unwrap_or_default()
}

fn height(is_only_panel: bool) -> f64 {
    if is_only_panel { 220.0 } else { 120.0 }
}

/// The visible time range in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct View {
    from: f64,
    to: f64,
}

impl View {
    fn of(trace: &Trace, range: Range) -> Option<Self> {
        let Trace { segments, acks, idle, .. } = trace;
        // The view ends at the last new ACK. Later packets, such as a FIN minutes later, would compress the
        // graphs.
        let mut highest = None;
        let new = acks.iter().filter(|ack| {
            highest.replace(highest.map_or(ack.ack, |highest: u64| highest.max(ack.ack))) < Some(ack.ack)
        });
        let times = segments.iter().map(|segment| segment.at).chain(new.map(|ack| ack.at));
        let times = times.chain(idle.iter().map(|idle| idle.to));
        let (first, last) = times.fold(None, |ends: Option<(Offset, Offset)>, at| {
            let (first, last) = ends.unwrap_or((at, at));
            Some((first.min(at), last.max(at)))
        })?;
        let (first, last) = (seconds(first), seconds(last));
        // The margin is a share of the visible length, so that a folded picture has no wide empty margins.
        let breaks =
            if range.fold { silence(trace, Self { from: first, to: last }) } else { Breaks::default() };
        let room = if first < last { breaks.length(first, last) * 0.01 } else { 1e-6 };
        // If a connection starts soon after the capture, the range includes the capture's start.
        let first = if (0.0..(last - first) * 0.05).contains(&first) { 0.0 } else { first };
        let (from, to) = (range.from.unwrap_or(first - room), range.to.unwrap_or(last + room));
        (from < to).then_some(Self { from, to })
    }

    fn contains(&self, at: f64) -> bool {
        (self.from..=self.to).contains(&at)
    }

    /// Returns the values of the points in view, and of the last point before, which is the value at the start
    /// of the view.
    fn values(self, points: &[(f64, f64)]) -> impl Iterator<Item = f64> {
        let before = points.iter().take_while(move |(at, _)| *at < self.from).last();
        let inside = points.iter().filter(move |(at, _)| self.contains(*at));
        inside.chain(before).map(|(_, value)| *value)
    }
}

fn seconds(at: Offset) -> f64 {
    at as f64 / 1e9
}
