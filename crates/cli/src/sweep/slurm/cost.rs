//! Estimates the cost of a sweep's runs by executing some of them.

use std::collections::BTreeMap;

use airlink::reactor::Clock;
use airtcp_numbers::statistics::average;
use airtcp_sim::sweep::plan::Plan;
use airtcp_sim::sweep::store;
use airwire::time::Duration;
use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

/// The cost of runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cost {
    /// CPU time in seconds, by the index of the point. The seeds of a point cost about the same.
    seconds: BTreeMap<usize, f64>,
    /// CPU time of the runs of all other points, in seconds.
    usual: f64,
    /// Number of runs that were executed.
    pub(super) measured: usize,
    /// Size of a row in bytes. `None`: not measured.
    pub(super) octets: Option<u64>,
    /// Peak memory use of the process in bytes. `None`: not measured.
    pub(super) memory: Option<u64>,
}

impl Cost {
    /// Time after which no more runs are started.
    const LONGEST: Duration = Duration::from_secs(5);

    /// Returns the cost if every run takes this time.
    pub(super) fn of_each(each: Duration) -> Self {
        let usual = each.as_secs_f64();
        Self { seconds: BTreeMap::new(), usual, measured: 0, octets: None, memory: None }
    }

    /// Executes the first missing run of some points, one after the other, for five seconds and at least one
    /// run. The results are discarded.
    pub(super) fn measured(plan: &Plan, missing: &[usize]) -> anyhow::Result<Self> {
        let mut points: Vec<usize> = Vec::new();
        for run in missing {
            if points.last().is_none_or(|last| run / plan.seeds.len() != last / plan.seeds.len()) {
                points.push(*run);
            }
        }
        let clock = Clock::start();
        let (mut seconds, mut octets) = (BTreeMap::new(), 0);
        for run in spread(points.len()).map(|index| points[index]) {
            let planned = plan.run(run);
            let begin = core_time();
            let report = planned.execute().with_context(|| format!("run {run} ({})", planned.command()))?;
            octets += store::row(&plan.hash, &planned, &report)?.len() as u64;
            seconds.insert(run / plan.seeds.len(), core_time() - begin);
            if clock.now().as_secs_f64() > Self::LONGEST.as_secs_f64() {
                break;
            }
        }
        let all: Vec<f64> = seconds.values().copied().collect();
        let measured = seconds.len();
        // Linux reports KiB.
        let memory = getrusage(UsageWho::RUSAGE_SELF).ok().map(|usage| usage.max_rss() as u64 * 1024);
        Ok(Self {
            seconds,
            usual: average(&all).unwrap_or_default(),
            measured,
            octets: Some(octets.div_ceil(measured.max(1) as u64)),
            memory,
        })
    }

    /// Returns the estimated CPU time of this run in seconds.
    pub(super) fn seconds(&self, plan: &Plan, run: usize) -> f64 {
        self.seconds.get(&(run / plan.seeds.len())).copied().unwrap_or(self.usual)
    }
}

/// Returns the CPU time of this thread. Other load on the machine does not affect it.
fn core_time() -> f64 {
    // Every Linux kernel has this clock.
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(std::time::Duration::from);
    time.unwrap_or_default().as_secs_f64()
}

/// Returns all numbers below `count`, ordered so that the first ones are already spread over the whole range.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    // A step of about the golden section keeps the largest gap small.
    let mut step = (count as f64 * 0.618) as usize;
    while step < count && gcd(step, count) != 1 {
        step += 1;
    }
    (0..count).map(move |index| index * step % count)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn spread_order_is_permutation_with_even_start() {
        for count in [0, 1, 2, 3, 4, 10, 97, 1000] {
            let mut all: Vec<usize> = spread(count).collect();
            let mut first: Vec<usize> = all.iter().copied().take(10).collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
            first.sort_unstable();
            let gap = first.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            assert!(gap <= count.div_ceil(4), "{count}: {first:?}");
        }
    }

    #[test]
    fn unmeasured_points_use_mean_measured_cost() {
        let text = "schema = 1\nseeds = 2\n[fixed]\nscenario = \"sifest-random\"\nbytes = \"20k\"\n\
                    [axes]\nflows = [1, 8]\n";
        let plan = Plan::parse(text, "s.toml", Path::new("")).unwrap();
        let cost = Cost::measured(&plan, &[1, 2, 3]).unwrap();
        assert_eq!(cost.measured, 2);
        let [one, eight] = [1, 2].map(|run| cost.seconds(&plan, run));
        assert!(one > 0.0 && eight > one, "{cost:?}");
        assert_eq!([0, 3].map(|run| cost.seconds(&plan, run)), [one, eight]);
        assert!(cost.octets > Some(200) && cost.memory > Some(1_000_000), "{cost:?}");
        let only = Cost::measured(&plan, &[3]).unwrap();
        assert_eq!((only.measured, only.seconds(&plan, 0)), (1, only.seconds(&plan, 3)));
        assert_eq!(Cost::of_each(Duration::from_secs(2)).seconds(&plan, 3), 2.0);
    }
}
