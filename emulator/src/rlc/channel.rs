//! Which blocks of a transport channel are damaged.
//!
//! Every block takes one random number, whatever the model. So the fate of the n-th block depends on n, not on what the
//! protocol sends when. The states of a Gilbert–Elliott channel have a stream of their own.

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

use crate::fading::Fading;
use crate::rlc::config::BlockErrors;

/// One direction's block errors.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    model: BlockErrors,
    blocks: Stream,
    fading: Stream,
    /// The index of the next block.
    next_block: u64,
    state: State,
    /// Of a model that fades.
    power: Option<Box<Fading>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before the first transmission: the stationary distribution decides.
    #[default]
    Unknown,
    Good {
        tti: u64,
    },
    Bad {
        tti: u64,
    },
}

impl Channel {
    /// `name` is the direction's, such as `radio/down`; it names the random streams.
    pub(crate) fn new(model: BlockErrors, seed: u64, name: &str) -> Self {
        let mut channel = Self {
            model: BlockErrors::default(),
            blocks: Stream::new(seed, &format!("{name}/blocks")),
            fading: Stream::new(seed, &format!("{name}/fading")),
            next_block: 0,
            state: State::Unknown,
            power: None,
        };
        channel.set_model(model);
        channel
    }

    /// From the next block on `model` decides. The streams go on, and fading goes on from where it is.
    pub(crate) fn set_model(&mut self, model: BlockErrors) {
        match (model.fading(), &mut self.power) {
            (Some(config), Some(power)) => power.set(&config),
            (Some(config), None) => self.power = Some(Box::new(Fading::new(&config, &mut self.fading))),
            (None, _) => {}
        }
        self.model = model;
    }

    /// TTIs have another length from now on, and are counted by it. A Gilbert–Elliott channel makes its steps with them.
    pub(crate) fn change_tti(&mut self, old: Duration, new: Duration) {
        match &mut self.state {
            State::Unknown => {}
            State::Good { tti } | State::Bad { tti } => {
                *tti = (u128::from(*tti) * u128::from(old.as_nanos()) / u128::from(new.as_nanos())) as u64;
            }
        }
    }

    /// Transmits `count` blocks in the TTI number `tti`, which begins at `at`, and calls `damaged` for each in order, with
    /// true if it is.
    pub(crate) fn transmit(&mut self, tti: u64, at: Instant, count: usize, mut damaged: impl FnMut(bool)) {
        let first = self.next_block;
        self.next_block += count as u64;
        let mut draws = std::iter::repeat_with(|| self.blocks.unit()).take(count);
        match &self.model {
            BlockErrors::Independent { bler } => draws.for_each(|draw| damaged(draw < bler.value())),
            BlockErrors::PerTti { bler } => {
                let Some(decides) = draws.next() else { return };
                damaged(decides < bler.value());
                draws.for_each(|_| damaged(decides < bler.value()));
            }
            BlockErrors::GilbertElliott { .. } => {
                let [good, bad, down, up] = self.model.two_states().unwrap_or_default();
                let draw = self.fading.unit();
                self.state = self.state.at(tti, down, up, draw);
                let bler = if matches!(self.state, State::Bad { .. }) { bad } else { good };
                draws.for_each(|draw| damaged(draw < bler));
            }
            BlockErrors::Rayleigh { .. } | BlockErrors::Shadowing { .. } => {
                let fades = self.power.as_mut().is_some_and(|power| power.loses(at));
                draws.for_each(|_| damaged(fades));
            }
            BlockErrors::Listed { lost } => {
                (first..).zip(draws).for_each(|(block, _)| damaged(lost.contains(&block)));
            }
        }
    }
}

impl State {
    /// The state in a later TTI. One draw decides, however many TTIs have passed: the n-step transition probability of
    /// the chain is known.
    fn at(self, tti: u64, good_to_bad: f64, bad_to_good: f64, draw: f64) -> Self {
        let leaving = good_to_bad + bad_to_good;
        // A chain that never moves stays where it began: in the good state.
        let stationary = if leaving > 0.0 { good_to_bad / leaving } else { 0.0 };
        let bad = match self {
            Self::Unknown => stationary,
            Self::Good { tti: before } => stationary * (1.0 - power(1.0 - leaving, tti - before)),
            Self::Bad { tti: before } => stationary + (1.0 - stationary) * power(1.0 - leaving, tti - before),
        };
        if draw < bad { Self::Bad { tti } } else { Self::Good { tti } }
    }
}

/// Powers by squaring: `powf` may differ in the last bit between platforms.
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
    use airwire::units::Probability;

    use super::*;

    fn decisions(model: BlockErrors, ttis: impl Iterator<Item = (u64, usize)>) -> Vec<Vec<bool>> {
        let mut channel = Channel::new(model, 7, "radio/down");
        ttis.map(|(tti, count)| {
            let mut fates = Vec::new();
            channel.transmit(tti, Instant::from_millis(10 * tti), count, |lost| fates.push(lost));
            fates
        })
        .collect()
    }

    fn bler(p: f64) -> BlockErrors {
        BlockErrors::Independent { bler: Probability::new(p) }
    }

    /// How far from n·p a count may be that is in the binomial 99.9 % interval (normal approximation).
    fn interval(n: usize, p: f64) -> f64 {
        3.29 * (n as f64 * p * (1.0 - p)).sqrt()
    }

    #[test]
    fn independent_errors_have_their_rate() {
        for p in [0.0, 0.01, 0.1, 0.5, 1.0] {
            let lost = decisions(bler(p), (0..20_000).map(|tti| (tti, 12)));
            let lost = lost.iter().flatten().filter(|lost| **lost).count();
            assert!((lost as f64 - 240_000.0 * p).abs() <= interval(240_000, p), "{p}: {lost}");
        }
    }

    #[test]
    fn what_becomes_of_a_block_does_not_depend_on_how_blocks_fall_into_ttis() {
        let in_twelves = decisions(bler(0.1), (0..100).map(|tti| (tti, 12))).concat();
        let in_ones = decisions(bler(0.1), (0..1200).map(|tti| (tti, 1))).concat();
        assert_eq!(in_twelves, in_ones);
    }

    #[test]
    fn errors_per_tti_damage_all_or_nothing() {
        let model = BlockErrors::PerTti { bler: Probability::new(0.1) };
        let fates = decisions(model, (0..50_000).map(|tti| (tti, 1 + tti as usize % 12)));
        assert!(fates.iter().all(|tti| tti.iter().all(|lost| *lost == tti[0])));
        let lost = fates.iter().filter(|tti| tti[0]).count();
        assert!((lost as f64 - 5_000.0).abs() <= interval(50_000, 0.1), "{lost}");
    }

    fn gilbert_elliott() -> BlockErrors {
        let [one, leave_good, leave_bad] = [1.0, 0.02, 0.2].map(Probability::new);
        BlockErrors::gilbert_elliott(Probability::ZERO, one, leave_good, leave_bad)
    }

    #[test]
    fn a_gilbert_elliott_channel_has_its_bursts_and_its_rate() {
        let fates = decisions(gilbert_elliott(), (0..200_000).map(|tti| (tti, 1))).concat();
        let lost = fates.iter().filter(|lost| **lost).count() as f64;
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // Stationary 0.02 / 0.22, mean burst 1 / 0.2. The number of bursts spreads about as a binomial count does,
        // the losses as the sum of so many geometric lengths.
        let expected = 200_000.0 / 11.0;
        assert!((lost - expected).abs() < 3.29 * (expected * (1.0 + 0.8) / 0.2).sqrt(), "{lost}");
        assert!((lost / bursts - 5.0).abs() < 3.29 * (20.0 / bursts).sqrt(), "{}", lost / bursts);
    }

    #[test]
    fn by_its_means_it_is_the_same_channel() {
        // The mean 1/11 in bursts of 5: α = (1/11) / (5 · 10/11) = 0.02.
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
    fn time_passes_for_a_gilbert_elliott_channel_while_nothing_is_transmitted() {
        let correlation = |step: u64| {
            let fates = decisions(gilbert_elliott(), (0..100_000).map(|n| (n * step, 1))).concat();
            let bad_again = fates.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
            bad_again / fates.iter().filter(|lost| **lost).count() as f64
        };
        // P(bad after n | bad) = 1/11 + 10/11 · 0.78^n.
        for step in [1, 3, 10] {
            let expected = 1.0 / 11.0 + 10.0 / 11.0 * 0.78_f64.powi(step as i32);
            let spread = 3.29 * (expected * (1.0 - expected) / 8_500.0).sqrt();
            assert!(
                (correlation(step) - expected).abs() < spread,
                "{step}: {} {expected}",
                correlation(step)
            );
        }
    }

    #[test]
    fn a_list_damages_exactly_what_it_names() {
        let model = BlockErrors::Listed { lost: vec![0, 5, 6] };
        let fates = decisions(model, (0..4).map(|tti| (tti, 2))).concat();
        let lost: Vec<_> = (0..8).filter(|block| fates[*block]).collect();
        assert_eq!(lost, [0, 5, 6]);
    }

    #[test]
    fn a_change_of_the_rate_under_way_shifts_no_later_draw() {
        let mut changed = Channel::new(bler(1.0), 7, "radio/down");
        changed.transmit(0, Instant::ZERO, 5, |lost| assert!(lost));
        changed.set_model(bler(0.1));
        let mut fates = Vec::new();
        changed.transmit(1, Instant::from_millis(10), 1000, |lost| fates.push(lost));
        let always = decisions(bler(0.1), [(0, 5), (1, 1000)].into_iter());
        assert_eq!(fates, always[1]);
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
    fn in_a_fade_all_blocks_of_a_tti_are_damaged_and_as_many_ttis_as_the_formula_says() {
        for decibels in [3, 10] {
            let mut lost = 0;
            for seed in 0..50 {
                let mut channel = Channel::new(rayleigh(&format!("{decibels}dB")), seed, "radio/down");
                // A second apart, which is 93 wave lengths.
                for n in 0..400 {
                    let mut fates = Vec::new();
                    channel.transmit(100 * n, Instant::from_secs(n), 4, |lost| fates.push(lost));
                    assert!(fates.iter().all(|fate| *fate == fates[0]));
                    lost += usize::from(fates[0]);
                }
            }
            let p = 1.0 - (-(10.0_f64.powf(-f64::from(decibels) / 10.0))).exp();
            assert!((lost as f64 - 20_000.0 * p).abs() <= interval(20_000, p), "{decibels} dB: {lost}");
        }
    }

    #[test]
    fn a_fade_goes_by_time_and_a_new_margin_leaves_its_path_alone() {
        let all = decisions(rayleigh("5dB"), (0..400).map(|tti| (tti, 1))).concat();
        let some = decisions(rayleigh("5dB"), (0..400).step_by(7).map(|tti| (tti, 1))).concat();
        assert_eq!(some, all.iter().copied().step_by(7).collect::<Vec<_>>());
        assert!(all.iter().any(|lost| *lost) && all.iter().any(|lost| !*lost));
        let mut channel = Channel::new(rayleigh("30dB"), 7, "radio/down");
        channel.transmit(0, Instant::ZERO, 1, |_| {});
        channel.set_model(rayleigh("5dB"));
        let mut fates = vec![all[0]];
        for tti in 1..400 {
            channel.transmit(tti, Instant::from_millis(10 * tti), 1, |lost| fates.push(lost));
        }
        assert_eq!(fates, all);
    }

    #[test]
    fn half_of_slow_fading_is_refused() {
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
