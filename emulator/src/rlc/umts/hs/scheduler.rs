//! Who has the next TTI of the cell.

use serde::{Deserialize, Serialize};

/// How the mobile is chosen. Only those count that have something to send and receive well enough for a PDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// The one that has waited for the longest.
    #[default]
    RoundRobin,
    /// The one that can have the most now, compared with what it has had (Jalali et al., VTC 2000).
    ProportionalFair,
    /// The one that receives best.
    MaxCqi,
}

/// What each mobile has had.
pub(crate) struct Scheduler {
    shares: Vec<Share>,
}

#[derive(Clone, Copy, Default)]
struct Share {
    /// Bits per TTI, an exponentially weighted moving average up to and with the TTI before `next`.
    average: f64,
    next: u64,
    /// The TTI after the one that it had last; 0: it has had none.
    served: u64,
}

impl Share {
    /// At the beginning of `tti`. A TTI in which it has nothing counts as 0 bits.
    fn average_at(&self, tti: u64, window: u32) -> f64 {
        self.average * power(1.0 - 1.0 / f64::from(window), tti - self.next)
    }
}

impl Scheduler {
    pub(crate) fn new(mobiles: usize) -> Self {
        Self { shares: vec![Share::default(); mobiles] }
    }

    /// Which of these has `tti`: each with the bits that it could be sent. Of equals it is the one that has waited for the
    /// longest. `window`: over how many TTIs the average goes.
    pub(crate) fn choose(
        &self,
        scheduling: Scheduling,
        window: u32,
        tti: u64,
        bids: impl Iterator<Item = (usize, f64)>,
    ) -> Option<usize> {
        let merit = |(mobile, bits): (usize, f64)| match scheduling {
            Scheduling::RoundRobin => 0.0,
            Scheduling::ProportionalFair => bits / self.shares[mobile].average_at(tti, window),
            Scheduling::MaxCqi => bits,
        };
        let mut best: Option<(usize, f64)> = None;
        for bid in bids {
            let (mobile, merit) = (bid.0, merit(bid));
            let is_better = best.is_none_or(|(other, highest)| {
                merit > highest || merit == highest && self.shares[mobile].served < self.shares[other].served
            });
            if is_better {
                best = Some((mobile, merit));
            }
        }
        best.map(|(mobile, _)| mobile)
    }

    /// `mobile` has `tti`, and is sent so many bits that it has not been sent before.
    pub(crate) fn serve(&mut self, window: u32, tti: u64, mobile: usize, bits: f64) {
        let share = &mut self.shares[mobile];
        let weight = 1.0 / f64::from(window);
        share.average = (1.0 - weight) * share.average_at(tti, window) + weight * bits;
        (share.next, share.served) = (tti + 1, tti + 1);
    }
}

/// By squaring: the same bits on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent % 2 == 1 {
            result *= base;
        }
        base *= base;
        exponent /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who has each of `ttis`, if the mobiles could be sent these bits each time.
    fn run(scheduling: Scheduling, bits: &[f64], ttis: u64) -> Vec<usize> {
        let mut scheduler = Scheduler::new(bits.len());
        (0..ttis)
            .map(|tti| {
                let bids = bits.iter().copied().enumerate().filter(|(_, bits)| *bits > 0.0);
                let mobile = scheduler.choose(scheduling, 100, tti, bids).unwrap();
                scheduler.serve(100, tti, mobile, bits[mobile]);
                mobile
            })
            .collect()
    }

    #[test]
    fn equals_take_turns_under_all_of_them() {
        for scheduling in [Scheduling::RoundRobin, Scheduling::ProportionalFair, Scheduling::MaxCqi] {
            let turns = run(scheduling, &[320.0; 4], 12);
            assert_eq!(turns, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3], "{scheduling:?}");
        }
    }

    #[test]
    fn round_robin_looks_at_nothing_else_and_max_cqi_at_nothing_but_the_channel() {
        assert_eq!(run(Scheduling::RoundRobin, &[320.0, 6720.0, 0.0], 4), [0, 1, 0, 1]);
        assert_eq!(run(Scheduling::MaxCqi, &[320.0, 6720.0, 6720.0], 4), [1, 2, 1, 2]);
    }

    #[test]
    fn proportional_fair_gives_equal_time_where_channels_stay_as_they_are() {
        let turns = run(Scheduling::ProportionalFair, &[320.0, 6720.0, 640.0], 3000);
        for mobile in 0..3 {
            let count = turns[300..].iter().filter(|turn| **turn == mobile).count();
            assert!(count.abs_diff(900) <= 3, "{mobile}: {count}");
        }
    }

    #[test]
    fn the_average_forgets_while_nothing_is_sent() {
        let mut scheduler = Scheduler::new(1);
        scheduler.serve(4, 0, 0, 1000.0);
        assert_eq!(scheduler.shares[0].average_at(1, 4), 250.0);
        assert_eq!(scheduler.shares[0].average_at(3, 4), 250.0 * 0.75 * 0.75);
        scheduler.serve(4, 3, 0, 1000.0);
        assert_eq!(scheduler.shares[0].average_at(4, 4), 250.0 * 0.75 * 0.75 * 0.75 + 250.0);
    }

    #[test]
    fn proportional_fair_prefers_who_receives_better_than_usual() {
        let mut scheduler = Scheduler::new(2);
        for tti in 0..200 {
            scheduler.serve(100, tti, (tti % 2) as usize, [1000.0, 4000.0][(tti % 2) as usize]);
        }
        let choose = |bids: [f64; 2]| {
            scheduler.choose(Scheduling::ProportionalFair, 100, 200, bids.into_iter().enumerate())
        };
        assert_eq!(choose([1500.0, 4000.0]), Some(0));
        assert_eq!(choose([1000.0, 6000.0]), Some(1));
        assert_eq!(scheduler.choose(Scheduling::MaxCqi, 100, 200, std::iter::empty()), None);
    }
}
