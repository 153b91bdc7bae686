//! The sender's window over time.

use airtcp_analyze::trace::{Trace, WindowPoint};

use super::{View, seconds};
use crate::looks;
use crate::plot::axis::{Axis, Unit};
use crate::plot::figure::Panel;

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
    // The initial ssthresh can be arbitrarily high (RFC 5681 §3.1).
    let thresholds = view.values(&ssthresh).filter(|value| *value <= 1.5 * most);
    // With a log, cwnd is known and the estimate is not shown.
    let guesses: Vec<f64> = if cwnd.is_empty() { view.values(&estimated).collect() } else { Vec::new() };
    let y = Axis::from_zero("window", Unit::Octets, windows().chain(thresholds).chain(guesses));
    let mut series = vec![looks::FLIGHT.steps(flight, 0.9)];
    if cwnd.is_empty() {
        series.push(looks::ESTIMATED.steps(estimated, 1.5));
    }
    series.push(looks::SSTHRESH.steps(ssthresh, 1.3));
    series.push(looks::CWND.steps(cwnd, 1.5));
    Some(Panel { y, height, series, notes: Vec::new() })
}
