//! Block errors of a dedicated transport channel.
//!
//! In every model, each block takes one random number. The random number of the n-th block therefore
//! depends on n only, not on the timing of the protocol. The states of a Gilbert–Elliott channel have their
//! own random stream.

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

use crate::fading::Fading;
use crate::maths;
use crate::rlc::config::BlockErrors;

/// Blocks of a transport channel since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockCounters {
    pub(super) ttis: u64,
    pub(super) blocks: u64,
    pub(super) lost: u64,
    /// Blocks lost in an outage. `lost` includes them.
    pub(super) lost_in_outage: u64,
}

/// Block errors of one direction.
#[derive(Clone, Debug)]
pub(crate) struct BlockErrorProcess {
    model: BlockErrors,
    block_stream: Stream,
    fading_stream: Stream,
    /// Index of the next block.
    next_block: u64,
    state: State,
    /// The fading process, if the model has one.
    fading: Option<Box<Fading>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// State before the first transmission: the first state is drawn from the stationary distribution.
    #[default]
    Unknown,
    Good {
        tti: u64,
    },
    Bad {
        tti: u64,
    },
}

/// Block errors in one TTI.
pub(crate) struct TtiErrors<'a> {
    model: TtiModel<'a>,
    block_stream: &'a mut Stream,
    next_block: &'a mut u64,
}

enum TtiModel<'a> {
    /// Blocks are damaged independently of each other, at this rate.
    Rate(f64),
    /// All blocks are damaged, or none.
    Whole(bool),
    /// The blocks with these indices are damaged.
    Listed(&'a [u64]),
}

impl BlockErrorProcess {
    /// Creates the process. `name` identifies the direction, such as `radio/down`, and names its random
    /// streams.
    pub(crate) fn new(model: BlockErrors, seed: u64, name: &str) -> Self {
        let mut process = Self {
            model: BlockErrors::default(),
            block_stream: Stream::new(seed, &format!("{name}/blocks")),
            fading_stream: Stream::new(seed, &format!("{name}/fading")),
            next_block: 0,
            state: State::Unknown,
            fading: None,
        };
        process.set_model(model);
        process
    }

    /// Applies `model` from the next block on. The random streams and the fading process continue.
    pub(crate) fn set_model(&mut self, model: BlockErrors) {
        match (model.fading(), &mut self.fading) {
            (Some(config), Some(fading)) => fading.set(&config),
            (Some(config), None) => {
                self.fading = Some(Box::new(Fading::new(&config, &mut self.fading_stream)))
            }
            (None, _) => {}
        }
        self.model = model;
    }

    /// Converts the TTI number of the state to TTIs of a new length. A Gilbert–Elliott chain makes one step
    /// per TTI of any length.
    pub(crate) fn change_tti(&mut self, old: Duration, new: Duration) {
        match &mut self.state {
            State::Unknown => {}
            State::Good { tti } | State::Bad { tti } => {
                *tti = (u128::from(*tti) * u128::from(old.as_nanos()) / u128::from(new.as_nanos())) as u64;
            }
        }
    }

    /// Begins TTI number `tti` at `at`. The result decides for each of its blocks whether it is damaged.
    pub(crate) fn begin_tti(&mut self, tti: u64, at: Instant) -> TtiErrors<'_> {
        let model = match &self.model {
            BlockErrors::Independent { bler } => TtiModel::Rate(bler.value()),
            BlockErrors::PerTti { bler } => TtiModel::Whole(self.block_stream.clone().chance(bler.value())),
            BlockErrors::GilbertElliott { .. } => {
                let [good, bad, down, up] = self.model.two_states().unwrap_or_default();
                let draw = self.fading_stream.unit();
                self.state = self.state.at(tti, down, up, draw);
                TtiModel::Rate(if matches!(self.state, State::Bad { .. }) { bad } else { good })
            }
            BlockErrors::Rayleigh { .. } | BlockErrors::Shadowing { .. } => {
                TtiModel::Whole(self.fading.as_mut().is_some_and(|fading| fading.loses(at)))
            }
            BlockErrors::Listed { lost } => TtiModel::Listed(lost),
        };
        TtiErrors { model, block_stream: &mut self.block_stream, next_block: &mut self.next_block }
    }
}

impl TtiErrors<'_> {
    /// Transmits the next block. Returns `true` if it is damaged.
    pub(crate) fn damages_next(&mut self) -> bool {
        let draw = self.block_stream.unit();
        let block = *self.next_block;
        *self.next_block += 1;
        match self.model {
            TtiModel::Rate(bler) => draw < bler,
            TtiModel::Whole(is_damaged) => is_damaged,
            TtiModel::Listed(lost) => lost.contains(&block),
        }
    }
}

impl State {
    /// Draws the state in a later TTI. One draw is enough for any number of TTIs, because the n-step
    /// transition probability of the chain has a closed form.
    fn at(self, tti: u64, good_to_bad: f64, bad_to_good: f64, draw: f64) -> Self {
        let transitions = good_to_bad + bad_to_good;
        // A chain without transitions stays in its initial state, the good one.
        let stationary = if transitions > 0.0 { good_to_bad / transitions } else { 0.0 };
        let correlation = |before: u64| maths::powi(1.0 - transitions, tti - before);
        let bad = match self {
            Self::Unknown => stationary,
            Self::Good { tti: before } => stationary * (1.0 - correlation(before)),
            Self::Bad { tti: before } => stationary + (1.0 - stationary) * correlation(before),
        };
        if draw < bad { Self::Bad { tti } } else { Self::Good { tti } }
    }
}

#[cfg(test)]
mod tests {
    use airwire::units::Probability;

    use super::*;
    use crate::stages::testing::within_binomial;

    fn decisions(model: BlockErrors, ttis: impl Iterator<Item = (u64, usize)>) -> Vec<Vec<bool>> {
        let mut process = BlockErrorProcess::new(model, 7, "radio/down");
        ttis.map(|(tti, count)| transmit(&mut process, tti, count)).collect()
    }

    /// Transmits `count` blocks in a TTI of 10 ms. Returns whether each is damaged.
    fn transmit(process: &mut BlockErrorProcess, tti: u64, count: usize) -> Vec<bool> {
        let mut errors = process.begin_tti(tti, Instant::from_millis(10 * tti));
        std::iter::repeat_with(|| errors.damages_next()).take(count).collect()
    }

    fn bler(p: f64) -> BlockErrors {
        BlockErrors::Independent { bler: Probability::new(p) }
    }

    #[test]
    fn independent_errors_match_configured_rate() {
        for p in [0.0, 0.01, 0.1, 0.5, 1.0] {
            let lost = decisions(bler(p), (0..20_000).map(|tti| (tti, 12)));
            within_binomial(lost.iter().flatten().filter(|lost| **lost).count(), 240_000, p);
        }
    }

    #[test]
    fn block_errors_do_not_depend_on_tti_grouping() {
        let in_twelves = decisions(bler(0.1), (0..100).map(|tti| (tti, 12))).concat();
        let in_ones = decisions(bler(0.1), (0..1200).map(|tti| (tti, 1))).concat();
        assert_eq!(in_twelves, in_ones);
    }

    #[test]
    fn per_tti_errors_damage_all_blocks_or_none() {
        let model = BlockErrors::PerTti { bler: Probability::new(0.1) };
        let damaged = decisions(model, (0..50_000).map(|tti| (tti, 1 + tti as usize % 12)));
        assert!(damaged.iter().all(|tti| tti.iter().all(|lost| *lost == tti[0])));
        within_binomial(damaged.iter().filter(|tti| tti[0]).count(), 50_000, 0.1);
    }

    fn gilbert_elliott() -> BlockErrors {
        let [one, leave_good, leave_bad] = [1.0, 0.02, 0.2].map(Probability::new);
        BlockErrors::gilbert_elliott(Probability::ZERO, one, leave_good, leave_bad)
    }

    #[test]
    fn gilbert_elliott_matches_loss_rate_and_burst_length() {
        let damaged = decisions(gilbert_elliott(), (0..200_000).map(|tti| (tti, 1))).concat();
        let lost = damaged.iter().filter(|lost| **lost).count() as f64;
        let bursts = damaged.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // The bad state has a stationary probability of 0.02 / 0.22 and a mean duration of 1 / 0.2. The
        // number of bursts has about the variance of a binomial count, and the number of losses has the
        // variance of a sum of geometric lengths.
        let expected = 200_000.0 / 11.0;
        assert!((lost - expected).abs() < 3.29 * (expected * (1.0 + 0.8) / 0.2).sqrt(), "{lost}");
        assert!((lost / bursts - 5.0).abs() < 3.29 * (20.0 / bursts).sqrt(), "{}", lost / bursts);
    }

    #[test]
    fn mean_and_burst_parameters_match_transition_probabilities() {
        // The mean is 1/11 in bursts of 5 TTIs: α = (1/11) / (5 · 10/11) = 0.02.
        let bursts = BlockErrors::bursts(Probability::new(1.0 / 11.0), 5.0);
        let ttis = || (0..20_000).map(|tti| (3 * tti, 2));
        assert_eq!(decisions(bursts, ttis()), decisions(gilbert_elliott(), ttis()));
        let mut config = crate::rlc::config::RlcConfig::wcdma_384();
        config.down.channel.errors = BlockErrors::bursts(Probability::new(0.1), 5.0);
        config.validate().unwrap();
        assert_eq!(
            config.down.channel.remarks(),
            ["10.00 % of the blocks are damaged on average; the bad state lasts 0.050 s on average"]
        );
        for (mean, burst, key) in [(0.9, 5.0, "mean"), (0.1, 0.5, "burst")] {
            config.down.channel.errors = BlockErrors::bursts(Probability::new(mean), burst);
            assert_eq!(config.validate().unwrap_err().key, format!("down.channel.errors.{key}"));
        }
    }

    #[test]
    fn gilbert_elliott_state_evolves_during_idle_ttis() {
        let correlation = |step: u64| {
            let damaged = decisions(gilbert_elliott(), (0..100_000).map(|n| (n * step, 1))).concat();
            let bad_again = damaged.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
            bad_again / damaged.iter().filter(|lost| **lost).count() as f64
        };
        // P(bad after n | bad) = 1/11 + 10/11 · 0.78^n.
        for step in [1, 3, 10] {
            let expected = 1.0 / 11.0 + 10.0 / 11.0 * 0.78_f64.powi(step as i32);
            let spread = 3.29 * (expected * (1.0 - expected) / 8_500.0).sqrt();
            let found = correlation(step);
            assert!((found - expected).abs() < spread, "{step}: {found} {expected}");
        }
    }

    #[test]
    fn change_of_tti_keeps_time_of_state() {
        let mut process = BlockErrorProcess::new(gilbert_elliott(), 7, "radio/down");
        process.state = State::Bad { tti: 100 };
        process.change_tti(Duration::from_millis(10), Duration::from_millis(20));
        assert_eq!(process.state, State::Bad { tti: 50 });
    }

    #[test]
    fn listed_errors_damage_exactly_listed_blocks() {
        let model = BlockErrors::Listed { lost: vec![0, 5, 6] };
        let damaged = decisions(model, (0..4).map(|tti| (tti, 2))).concat();
        let lost: Vec<_> = (0..8).filter(|block| damaged[*block]).collect();
        assert_eq!(lost, [0, 5, 6]);
    }

    #[test]
    fn changing_error_rate_does_not_shift_random_draws() {
        let mut changed = BlockErrorProcess::new(bler(1.0), 7, "radio/down");
        assert_eq!(transmit(&mut changed, 0, 5), [true; 5]);
        changed.set_model(bler(0.1));
        let damaged = transmit(&mut changed, 1, 1000);
        let always = decisions(bler(0.1), [(0, 5), (1, 1000)].into_iter());
        assert_eq!(damaged, always[1]);
    }

    fn rayleigh(margin: &str) -> BlockErrors {
        BlockErrors::Rayleigh {
            speed: "50km/h".parse().unwrap(),
            carrier: "2GHz".parse().unwrap(),
            margin: margin.parse().unwrap(),
            deviation: None,
            decorrelation: None,
        }
    }

    #[test]
    fn rayleigh_fade_damages_whole_ttis_at_expected_rate() {
        for decibels in [3, 10] {
            let mut lost = 0;
            for seed in 0..50 {
                let mut process =
                    BlockErrorProcess::new(rayleigh(&format!("{decibels}dB")), seed, "radio/down");
                // Samples are one second apart, which is 93 wavelengths.
                for n in 0..400 {
                    let damaged = transmit(&mut process, 100 * n, 4);
                    assert!(damaged.iter().all(|block| *block == damaged[0]));
                    lost += usize::from(damaged[0]);
                }
            }
            let p = 1.0 - (-(10.0_f64.powf(-f64::from(decibels) / 10.0))).exp();
            within_binomial(lost, 20_000, p);
        }
    }

    #[test]
    fn fading_process_follows_time_across_margin_changes() {
        let all = decisions(rayleigh("5dB"), (0..400).map(|tti| (tti, 1))).concat();
        let some = decisions(rayleigh("5dB"), (0..400).step_by(7).map(|tti| (tti, 1))).concat();
        assert_eq!(some, all.iter().copied().step_by(7).collect::<Vec<_>>());
        assert!(all.iter().any(|lost| *lost) && all.iter().any(|lost| !*lost));
        let mut process = BlockErrorProcess::new(rayleigh("30dB"), 7, "radio/down");
        transmit(&mut process, 0, 1);
        process.set_model(rayleigh("5dB"));
        let mut damaged = vec![all[0]];
        for tti in 1..400 {
            damaged.extend(transmit(&mut process, tti, 1));
        }
        assert_eq!(damaged, all);
    }

    #[test]
    fn incomplete_slow_fading_and_excessive_margin_are_rejected() {
        let mut config = crate::rlc::config::RlcConfig::wcdma_384();
        let BlockErrors::Rayleigh { speed, carrier, margin, .. } = rayleigh("5dB") else { unreachable!() };
        let deviation = Some("8dB".parse().unwrap());
        config.up.channel.errors =
            BlockErrors::Rayleigh { speed, carrier, margin, deviation, decorrelation: None };
        assert_eq!(config.validate().unwrap_err().key, "up.channel.errors.decorrelation");
        config.up.channel.errors = rayleigh("99dB");
        assert_eq!(config.validate().unwrap_err().key, "up.channel.errors.margin");
    }
}
