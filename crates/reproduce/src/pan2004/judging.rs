//! Measurements of a run, and helpers for claims.

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::FlowReport;
use serde::Serialize;

use super::setting::Setting;
use crate::{mean, shown};

/// One sender in one run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Measured {
    #[serde(rename = "packets acknowledged")]
    pub(super) acked: f64,
    pub(super) timeouts: f64,
    /// Timeouts by the number of preceding duplicate ACKs: 0, 1, 2, more ("x-dupack").
    #[serde(rename = "timeouts by duplicate ACKs before them")]
    pub(super) by_dupacks: [f64; 4],
    /// Timeouts after every outstanding packet but the first had caused a duplicate ACK ("failed-dupack").
    #[serde(rename = "failed-dupack")]
    pub(super) failed: f64,
    /// The part of `failed` with one outstanding packet and no duplicate ACK (x = 0).
    #[serde(rename = "failed-dupack with one packet outstanding")]
    pub(super) failed_alone: f64,
    /// Fast retransmissions ("succeeded-dupack").
    #[serde(rename = "succeeded-dupack")]
    pub(super) succeeded: f64,
}

impl Measured {
    pub(super) fn of(setting: &Setting, flow: &FlowReport) -> Self {
        let counters = &flow.counters;
        Self {
            acked: setting.acknowledged(flow),
            timeouts: counters.timeouts as f64,
            by_dupacks: counters.timeouts_by_dupacks.map(|count| count as f64),
            failed: f64::from(counters.failed_dupack + counters.failed_alone),
            failed_alone: f64::from(counters.failed_alone),
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

pub(super) fn packets(one: &Measured) -> f64 {
    one.acked
}

/// The gain of `with` over `without`, paired by seed.
pub(super) fn gain(with: &[f64], without: &[f64]) -> Mean {
    mean(&gains(with, without))
}

/// The reduction from `than` to `less`, as a share of `than`.
pub(super) fn reduction(less: &[f64], than: &[f64]) -> Mean {
    negated(&gain(less, than))
}

/// The same mean with the opposite sign.
pub(super) fn negated(value: &Mean) -> Mean {
    Mean { mean: -value.mean, ..*value }
}

/// A share in percent.
pub(super) fn percent(share: &Mean) -> String {
    let half_width = share.half_width.map(|width| 100.0 * width);
    format!("{} %", shown(&Mean { mean: 100.0 * share.mean, half_width, ..*share }, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduction_is_negated_gain() {
        assert!((reduction(&[8.0, 6.0], &[10.0, 10.0]).mean - 0.3).abs() < 1e-12);
        assert_eq!(percent(&Mean { mean: 0.123, half_width: Some(0.02), samples: 9 }), "12.3 ± 2.0 %");
        assert_eq!(percent(&negated(&Mean { mean: 0.5, half_width: None, samples: 1 })), "-50.0 %");
    }
}
