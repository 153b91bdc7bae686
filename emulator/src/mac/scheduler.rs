//! Assignment of the cell's TTIs to mobiles.

use serde::{Deserialize, Serialize};

use crate::maths;

/// The rule that chooses a mobile. Only mobiles that have data to send and can receive a PDU are considered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// The mobile that has waited longest.
    #[default]
    RoundRobin,
    /// The mobile whose possible rate is highest in relation to its average rate (Jalali et al., VTC 2000).
    ProportionalFair,
    /// The mobile with the best reception.
    MaxCqi,
}

/// The scheduler of a cell, which records the service of each mobile.
pub(crate) struct Scheduler {
    shares: Vec<Share>,
}

#[derive(Clone, Copy, Default)]
struct Share {
    /// Bits per TTI: exponentially weighted moving average up to and including the TTI before `next`.
    average: f64,
    next: u64,
    /// The TTI after the last one that the mobile was assigned. 0: it has not been assigned any.
    last_served: u64,
}

impl Share {
    /// Average at the beginning of `tti`. TTIs in which the mobile was not served count as 0 bits.
    fn average_at(&self, tti: u64, window: u32) -> f64 {
        self.average * maths::powi(1.0 - 1.0 / f64::from(window), tti - self.next)
    }
}

impl Scheduler {
    pub(crate) fn new(mobiles: usize) -> Self {
        Self { shares: vec![Share::default(); mobiles] }
    }

    /// Chooses the mobile for `tti`. `candidates` contains mobiles, each with the number of bits that it can
    /// receive. Among equal mobiles, the one that has waited longest is chosen. `window` is the number of
    /// TTIs in the average.
    pub(crate) fn choose(
        &self,
        scheduling: Scheduling,
        window: u32,
        tti: u64,
        candidates: impl Iterator<Item = (usize, f64)>,
    ) -> Option<usize> {
        let merit = |(mobile, bits): (usize, f64)| match scheduling {
            Scheduling::RoundRobin => 0.0,
            Scheduling::ProportionalFair => bits / self.shares[mobile].average_at(tti, window),
            Scheduling::MaxCqi => bits,
        };
        let mut best: Option<(usize, f64)> = None;
        for candidate in candidates {
            let (mobile, merit) = (candidate.0, merit(candidate));
            let is_better = best.is_none_or(|(other, highest)| {
                merit > highest
                    || merit == highest && self.shares[mobile].last_served < self.shares[other].last_served
            });
            if is_better {
                best = Some((mobile, merit));
            }
        }
        best.map(|(mobile, _)| mobile)
    }

    /// Records that `mobile` has been assigned `tti`. `bits` is the amount of data that was sent for the
    /// first time.
    pub(crate) fn record(&mut self, window: u32, tti: u64, mobile: usize, bits: f64) {
        let share = &mut self.shares[mobile];
        let weight = 1.0 / f64::from(window);
        share.average = (1.0 - weight) * share.average_at(tti, window) + weight * bits;
        (share.next, share.last_served) = (tti + 1, tti + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mobile of each TTI. `bits` is the number of bits that each mobile can receive in any TTI.
    fn run(scheduling: Scheduling, bits: &[f64], ttis: u64) -> Vec<usize> {
        let mut scheduler = Scheduler::new(bits.len());
        (0..ttis)
            .map(|tti| {
                let candidates = bits.iter().copied().enumerate().filter(|(_, bits)| *bits > 0.0);
                let mobile = scheduler.choose(scheduling, 100, tti, candidates).unwrap();
                scheduler.record(100, tti, mobile, bits[mobile]);
                mobile
            })
            .collect()
    }

    #[test]
    fn every_scheduler_alternates_between_equal_mobiles() {
        for scheduling in [Scheduling::RoundRobin, Scheduling::ProportionalFair, Scheduling::MaxCqi] {
            let mobiles = run(scheduling, &[320.0; 4], 12);
            assert_eq!(mobiles, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3], "{scheduling:?}");
        }
    }

    #[test]
    fn round_robin_ignores_channel_unlike_max_cqi() {
        assert_eq!(run(Scheduling::RoundRobin, &[320.0, 6720.0, 0.0], 4), [0, 1, 0, 1]);
        assert_eq!(run(Scheduling::MaxCqi, &[320.0, 6720.0, 6720.0], 4), [1, 2, 1, 2]);
    }

    #[test]
    fn proportional_fair_shares_time_equally_on_constant_channels() {
        let mobiles = run(Scheduling::ProportionalFair, &[320.0, 6720.0, 640.0], 3000);
        for mobile in 0..3 {
            let count = mobiles[300..].iter().filter(|other| **other == mobile).count();
            assert!(count.abs_diff(900) <= 3, "{mobile}: {count}");
        }
    }

    #[test]
    fn average_rate_decays_while_idle() {
        let mut scheduler = Scheduler::new(1);
        scheduler.record(4, 0, 0, 1000.0);
        assert_eq!(scheduler.shares[0].average_at(1, 4), 250.0);
        assert_eq!(scheduler.shares[0].average_at(3, 4), 250.0 * 0.75 * 0.75);
        scheduler.record(4, 3, 0, 1000.0);
        assert_eq!(scheduler.shares[0].average_at(4, 4), 250.0 * 0.75 * 0.75 * 0.75 + 250.0);
    }

    #[test]
    fn proportional_fair_prefers_mobile_above_its_average() {
        let mut scheduler = Scheduler::new(2);
        for tti in 0..200 {
            scheduler.record(100, tti, (tti % 2) as usize, [1000.0, 4000.0][(tti % 2) as usize]);
        }
        let choose = |bits: [f64; 2]| {
            scheduler.choose(Scheduling::ProportionalFair, 100, 200, bits.into_iter().enumerate())
        };
        assert_eq!(choose([1500.0, 4000.0]), Some(0));
        assert_eq!(choose([1000.0, 6000.0]), Some(1));
        assert_eq!(scheduler.choose(Scheduling::MaxCqi, 100, 200, std::iter::empty()), None);
    }
}
