//! The sender's window over time.

use airtcp_analyze::trace::{Trace, WindowPoint};

use super::{View, seconds};
use crate::plot::axis::{Axis, Unit};
use crate::plot::draw::{Colour, Dash};
use crate::plot::figure::Panel;
use crate::plot::palette::{BLUE, GREY, ORANGE, VERMILION};
use crate::plot::{Data, Series};

pub(super) fn panel(trace: &Trace, view: View, height: f64) -> Option<Panel> {
    let points = |value: fn(&WindowPoint) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = trace.windows.iter();
        points.filter_map(|point| Some((seconds(point.at), value(point)?))).collect()
    };
    let flight = points(|point| Some(point.in_flight as f64));
    let estimated = points(|point| Some(point.estimated as f64));
    let cwnd = points(|point| point.cwnd);
    let ssthresh = points(|point| point.ssthresh);
    view.values(&flight).next()?;
    let windows = || view.values(&flight).chain(view.values(&cwnd));
    let most = windows().chain(view.values(&estimated)).fold(0.0, f64::max);
    // The first ssthresh may be anything up to infinity.
    let thresholds = view.values(&ssthresh).filter(|value| *value <= 1.5 * most);
    // With a log there is nothing to estimate.
    let guesses: Vec<f64> = if cwnd.is_empty() { view.values(&estimated).collect() } else { Vec::new() };
    let y = Axis::from_zero("window", Unit::Octets, windows().chain(thresholds).chain(guesses));
    let steps = |name: &str, class, colour: Colour, points, width, dash| Series {
        name: Some(name.to_owned()),
        class,
        colour,
        data: Data::Steps { points, width, dash },
    };
    let mut series = vec![steps("in flight", "in-flight", GREY, flight, 0.9, Dash::Solid)];
    if cwnd.is_empty() {
        series.push(steps("window, estimated", "estimated", ORANGE, estimated, 1.5, Dash::Long));
    }
    series.push(steps("ssthresh", "ssthresh", VERMILION, ssthresh, 1.3, Dash::Short));
    series.push(steps("cwnd", "cwnd", BLUE, cwnd, 1.5, Dash::Solid));
    Some(Panel { y, height, series, notes: Vec::new() })
}
