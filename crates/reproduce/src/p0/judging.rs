//! What is measured in a run, and how a statement of the paper is judged.

use airtcp_numbers::statistics::{self, Mean};
use airtcp_sim::run::FlowReport;

use super::super::{Claim, Counts, Judged, mean};
use super::setting::acknowledged;

/// One sender in one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// Packets acknowledged.
    pub(super) acked: f64,
    pub(super) timeouts: f64,
    /// Timeouts by how many duplicate ACKs had come: 0, 1, 2, more ("x-dupack").
    pub(super) by_dupacks: [f64; 4],
    /// Timeouts when every packet outstanding but the first had caused a duplicate ACK ("failed-dupack").
    pub(super) failed: f64,
    /// Fast retransmits ("succeeded-dupack").
    pub(super) succeeded: f64,
}

impl Measured {
    pub(super) fn of(flow: &FlowReport) -> Self {
        let counters = &flow.counters;
        Self {
            acked: acknowledged(flow),
            timeouts: counters.timeouts as f64,
            by_dupacks: counters.timeouts_by_dupacks.map(|count| count as f64),
            failed: counters.failed_dupack as f64,
            succeeded: counters.fast_retransmits as f64,
        }
    }

    /// Per 1000 acknowledged packets (Fig. 12b).
    pub(super) fn per_thousand(&self, count: f64) -> f64 {
        1000.0 * count / self.acked.max(1.0)
    }
}

pub(super) fn values(samples: &[Measured], value: impl Fn(&Measured) -> f64) -> Vec<f64> {
    samples.iter().map(value).collect()
}

pub(super) fn acked(samples: &[Measured]) -> Vec<f64> {
    values(samples, |outcome| outcome.acked)
}

/// The standard deviation of a single run.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let average = mean(values).mean;
    let squares: f64 = values.iter().map(|value| (value - average).powi(2)).sum();
    (squares / (values.len().max(2) - 1) as f64).sqrt()
}

/// The gain in per cent, seed by seed.
pub(super) fn gain(with: &[f64], without: &[f64]) -> Vec<f64> {
    statistics::gains(with, without).into_iter().map(|gain| 100.0 * gain).collect()
}

/// Each seed's average over several points, so that an interval of the whole can be given.
pub(super) fn across(points: &[Vec<f64>]) -> Vec<f64> {
    let seeds = points.iter().map(Vec::len).min().unwrap_or(0);
    let average = |seed: usize| points.iter().map(|point| point[seed]).sum::<f64>() / points.len() as f64;
    (0..seeds).map(average).collect()
}

/// A mean with its sign and interval, for a sentence.
pub(super) fn signed(mean: &Mean, digits: usize) -> String {
    match mean.half_width {
        Some(width) => format!("{:+.digits$} ± {width:.digits$}", mean.mean),
        None => format!("{:+.digits$}", mean.mean),
    }
}

pub(super) fn gain_claim(paper: &str, paper_gain: f64, ours: &Mean) -> Claim {
    let judged = Judged::extent(ours, paper_gain);
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: paper.to_owned(),
        ours: format!("{} %", signed(ours, 1)),
        judged,
    }
}

/// A straight line through points: its slope, and the share of the variance it explains.
pub(super) fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| f(p.0 - mx, p.1 - my)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    (xy / xx, xy * xy / (xx * yy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_of_pairs() {
        assert_eq!(gain(&[110.0, 130.0], &[90.0, 110.0]), [20.0, 20.0]);
        assert_eq!(across(&[vec![1.0, 2.0], vec![3.0, 6.0]]), [2.0, 4.0]);
        assert!((deviation(&[1.0, 3.0]) - 2.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_line_is_found() {
        let (slope, explained) = line(&[(0.0, 5.0), (1.0, 3.0), (2.0, 1.0)]);
        assert!((slope + 2.0).abs() < 1e-12 && (explained - 1.0).abs() < 1e-12);
    }
}
