use std::net::SocketAddr;

use airtcp_testkit::sample::size;
use airwire::segment::{Flags, Header};
use airwire::seq::Seq;

use super::*;
use crate::scenario::{settings, to_text};
use crate::stage::Recording;
use crate::stages::testing::{SIGMAS, header, ms, packet, segment, within, within_binomial};

mod list;

fn loss(config: &LossConfig, seed: u64) -> Loss {
    Loss::new(config, Stream::new(seed, "test/damage"), Stream::new(seed, "test/state")).unwrap()
}

/// Returns whether the channel lets a packet with these bytes through.
fn passes(loss: &mut Loss, now: Instant, bytes: Vec<u8>) -> bool {
    let mut out = Outbox::new(Recording::Off, false);
    loss.handle_packet(now, packet(0, Direction::Down, now, bytes), &mut out);
    out.take().len() == 1
}

/// Sends packets 1, 2, … of `octets` bytes each and returns the numbers of the lost ones.
fn lost_of(config: &LossConfig, seed: u64, packets: usize, octets: usize) -> Vec<usize> {
    let mut loss = loss(config, seed);
    (1..=packets).filter(|_| !passes(&mut loss, Instant::ZERO, vec![0; octets])).collect()
}

fn p(value: f64) -> Probability {
    Probability::new(value)
}

#[test]
fn uniform_loss_matches_configured_rate() {
    for (seed, per) in [(1, 0.0001), (2, 0.01), (3, 0.12), (4, 0.5), (5, 0.99)] {
        let n = 200_000;
        within_binomial(lost_of(&LossConfig::uniform(p(per)), seed, n, 1500).len(), n, per);
    }
    assert!(lost_of(&LossConfig::uniform(p(0.0)), 1, 10_000, 40).is_empty());
    assert_eq!(lost_of(&LossConfig::uniform(p(1.0)), 1, 10_000, 40).len(), 10_000);
}

#[test]
fn bit_error_loss_grows_with_packet_length() {
    for (seed, ber, octets) in
        [(1, 1e-5, 40), (2, 1e-5, 1500), (3, 1e-3, 40), (4, 1e-3, 552), (5, 1e-7, 65_535), (6, 0.6, 1)]
    {
        let n = 100_000;
        let per = 1.0 - (1.0_f64 - ber).powi(8 * octets as i32);
        within_binomial(lost_of(&LossConfig::bit_errors(p(ber)), seed, n, octets).len(), n, per);
    }
    assert_eq!(lost_of(&LossConfig::bit_errors(p(1.0)), 1, 100, 1).len(), 100);
}

/// Returns the stationary loss rate z of a chain with a step per packet, and the asymptotic variance of the
/// number of losses per packet: z(1 − z) + 2 Σ cov(k). Losses k packets apart are correlated through the
/// state.
fn stationary(transitions: &[&[f64]], per: &[f64]) -> (f64, f64) {
    let step = |state: &[f64]| -> Vec<f64> {
        (0..per.len())
            .map(|to| (0..per.len()).map(|from| state[from] * transitions[from][to]).sum())
            .collect()
    };
    let dot = |state: &[f64]| state.iter().zip(per).map(|(a, b)| a * b).sum::<f64>();
    let mut share = vec![1.0 / per.len() as f64; per.len()];
    for _ in 0..10_000 {
        share = step(&share);
    }
    let z = dot(&share);
    let mut variance = z * (1.0 - z);
    // Distribution of the state k packets later, weighted by the losses of the first packet.
    let mut later: Vec<f64> = share.iter().zip(per).map(|(a, b)| a * b).collect();
    for _ in 0..10_000 {
        later = step(&later);
        variance += 2.0 * (dot(&later) - z * z);
    }
    (z, variance)
}

#[test]
fn gilbert_elliott_loss_matches_stationary_rate() {
    let (alpha, beta) = (0.3, 0.3);
    for (seed, x, y) in [(1, 0.01, 0.15), (2, 0.08, 0.08), (3, 0.0, 0.06), (4, 0.01, 0.25)] {
        let config = LossConfig::gilbert_elliott(p(x), p(y), p(alpha), p(beta));
        let (z, variance) = stationary(&[&[1.0 - alpha, alpha], &[beta, 1.0 - beta]], &[x, y]);
        assert!((z - (x * beta + y * alpha) / (alpha + beta)).abs() < 1e-12);
        let n = 200_000;
        within(lost_of(&config, seed, n, 552).len(), n, z, variance);
    }
}

/// Returns a channel that loses no packet in the good state and all packets in the bad state.
fn two_states(good_to_bad: f64, bad_to_good: f64, step: Step) -> LossConfig {
    let config = LossConfig::gilbert_elliott(p(0.0), p(1.0), p(good_to_bad), p(bad_to_good));
    LossConfig { step: Some(step), ..config }
}

/// Returns the lengths of the runs of consecutive numbers.
fn runs(numbers: &[usize]) -> Vec<usize> {
    numbers.chunk_by(|a, b| a + 1 == *b).map(<[_]>::len).collect()
}

#[test]
fn lossy_bad_state_makes_geometric_bursts() {
    let beta = 0.2;
    let config = LossConfig::gilbert_elliott(p(0.0), p(1.0), p(0.05), p(beta));
    let bursts = runs(&lost_of(&config, 7, 400_000, 100));
    let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
    let deviation = ((1.0 - beta) / (beta * beta) / bursts.len() as f64).sqrt();
    assert!(bursts.len() > 10_000 && (mean - 1.0 / beta).abs() < SIGMAS * deviation, "mean burst {mean}");
}

fn state(name: &str, per: f64, to: &[(&str, f64)]) -> State {
    let to = to.iter().map(|(name, probability)| ((*name).to_owned(), p(*probability))).collect();
    State { name: name.to_owned(), per: Some(p(per)), ber: None, to }
}

fn three_states(step: Step) -> LossConfig {
    let states = vec![
        state("near", 0.0, &[("edge", 0.5)]),
        state("edge", 0.3, &[("hole", 0.25), ("near", 0.25)]),
        state("hole", 1.0, &[("near", 0.125)]),
    ];
    LossConfig::markov(states, step)
}

const THREE: [&[f64]; 3] = [&[0.5, 0.5, 0.0], &[0.25, 0.5, 0.25], &[0.125, 0.0, 0.875]];

#[test]
fn markov_loss_matches_stationary_rate() {
    let (z, variance) = stationary(&THREE, &[0.0, 0.3, 1.0]);
    let n = 400_000;
    within(lost_of(&three_states(Step::Packet), 11, n, 100).len(), n, z, variance);
}

#[test]
fn time_steps_advance_without_packets() {
    // A packet in the middle of each step meets the same chain as with one step per packet.
    let (z, variance) = stationary(&THREE, &[0.0, 0.3, 1.0]);
    let step = ms(10);
    let mut channel = loss(&three_states(Step::Every(step)), 12);
    let n = 200_000;
    let lost =
        (0..n).filter(|i| !passes(&mut channel, Instant::from_millis(5) + step * *i, vec![0; 100])).count();
    within(lost, n as usize, z, variance);

    // With one packet per 10 000 steps, the states at the packets are independent. The chain does not draw
    // a number for each step.
    let n = 3_000;
    let lost = (1..=n)
        .filter(|i| !passes(&mut channel, Instant::from_secs(10_000) + step * (*i * 10_000), vec![0; 100]))
        .count();
    within_binomial(lost, n as usize, z);
}

#[test]
fn timed_states_last_whole_steps() {
    let config = two_states(0.1, 0.3, Step::Every(ms(10)));
    let mut channel = loss(&config, 13);
    let lost: Vec<usize> = (0..200_000)
        .filter(|i| !passes(&mut channel, Instant::from_millis(*i as u64), vec![0; 100]))
        .collect();
    let bursts = runs(&lost);
    assert!(bursts.len() > 1000);
    assert!(bursts.iter().all(|burst| burst % 10 == 0) && bursts.iter().any(|burst| *burst > 10));
    let mean = bursts.iter().sum::<usize>() as f64 / 10.0 / bursts.len() as f64;
    let deviation = (0.7 / 0.09 / bursts.len() as f64).sqrt();
    assert!((mean - 1.0 / 0.3).abs() < SIGMAS * deviation, "mean burst of {mean} steps");
}

#[test]
fn nearly_permanent_state_survives_long_idle_time() {
    for leave in [1e-20, 1e-300] {
        let config = two_states(leave, 1.0, Step::Every(ms(10)));
        for seed in 0..20 {
            let mut channel = loss(&config, seed);
            assert!(passes(&mut channel, Instant::from_secs(1_000_000_000), vec![0; 100]), "seed {seed}");
        }
    }
}

#[test]
fn long_idle_time_yields_stationary_state() {
    // 30 years of steps are too many to simulate one by one.
    let age = Duration::from_secs(30 * 365 * 86_400);
    let step = Step::Every(Duration::from_micros(100));
    let n = 2000;
    let lost = |config: &LossConfig| {
        let after_an_age = |seed| passes(&mut loss(config, seed), Instant::ZERO + age, vec![0; 100]);
        (0..n).filter(|seed| !after_an_age(*seed)).count()
    };
    let (z, _) = stationary(&THREE, &[0.0, 0.3, 1.0]);
    within_binomial(lost(&three_states(step)), n as usize, z);
    within_binomial(lost(&two_states(0.3, 0.9, step)), n as usize, 0.3 / 1.2);
    // A chain that never settles: it is bad at odd steps, and the packet arrives at an even one.
    assert_eq!(lost(&two_states(1.0, 1.0, step)), 0);
}

#[test]
fn skipping_many_steps_keeps_step_count_exact() {
    // Two states that alternate often, and a trap that the chain enters from either with the probability
    // `trap` per step. After n steps it is still outside with the probability (1 − trap)^n.
    let (trap, steps) = (1e-5, 100_000);
    let states = vec![
        state("one", 0.0, &[("other", 0.9), ("trap", trap)]),
        state("other", 0.0, &[("one", 0.9), ("trap", trap)]),
        state("trap", 1.0, &[]),
    ];
    let step = ms(1);
    let config = LossConfig::markov(states, Step::Every(step));
    let n = 4000;
    let free = (0..n)
        .filter(|seed| passes(&mut loss(&config, *seed), Instant::ZERO + step * steps, vec![0; 100]))
        .count();
    within_binomial(free, n as usize, (1.0 - trap).powi(steps as i32));
}

#[test]
fn seed_determines_losses() {
    for config in [
        LossConfig::uniform(p(0.1)),
        LossConfig::bit_errors(p(1e-5)),
        LossConfig::gilbert_elliott(p(0.01), p(0.5), p(0.1), p(0.1)),
        three_states(Step::Packet),
    ] {
        let first = lost_of(&config, 1, 5000, 1500);
        assert_eq!(first, lost_of(&config, 1, 5000, 1500));
        assert_ne!(first, lost_of(&config, 2, 5000, 1500));
    }
}

/// A segment from the fixed side.
struct Tcp {
    is_v4: bool,
    port: u16,
    seq: u32,
    flags: Flags,
    payload: usize,
}

const DATA: Tcp = Tcp { is_v4: true, port: 40_000, seq: 0, flags: Flags::ACK, payload: 1000 };

impl Tcp {
    fn bytes(&self) -> Vec<u8> {
        let header = header(self.is_v4);
        let src = SocketAddr::new(header.src.ip(), self.port);
        let header = Header { src, seq: Seq(self.seq), flags: self.flags, ..header };
        segment(&header, &vec![7; self.payload])
    }
}

fn data(seq: u32) -> Vec<u8> {
    Tcp { seq, ..DATA }.bytes()
}

fn ack() -> Vec<u8> {
    Tcp { payload: 0, ..DATA }.bytes()
}

fn pass(loss: &mut Loss, bytes: Vec<u8>) -> bool {
    passes(loss, Instant::ZERO, bytes)
}

#[test]
fn loss_can_be_limited_to_data_or_acks() {
    let every = |affects| loss(&LossConfig { affects, ..LossConfig::uniform(p(1.0)) }, 1);
    let fin = Tcp { flags: Flags::FIN.with(Flags::ACK), payload: 0, ..DATA }.bytes();
    for (affects, of_data, of_acks) in
        [(Affects::All, false, false), (Affects::Data, false, true), (Affects::Acks, true, false)]
    {
        assert_eq!(pass(&mut every(affects), data(0)), of_data);
        assert_eq!(pass(&mut every(affects), fin.clone()), of_data);
        assert_eq!(pass(&mut every(affects), ack()), of_acks);
        let mut fragment = ack();
        fragment[7] = 100;
        assert_eq!(pass(&mut every(affects), fragment), of_data, "a fragment whose data looks like an ACK");
        assert_eq!(pass(&mut every(affects), vec![1, 2, 3]), of_data, "not an IP packet");
    }
}

#[test]
fn packet_loss_is_independent_of_other_packet_types() {
    // Replace every other data segment by an ACK. The remaining segments pass or are lost as before,
    // although ACKs cannot be damaged.
    for config in [
        LossConfig::uniform(p(0.3)),
        LossConfig::gilbert_elliott(p(0.1), p(0.9), p(0.2), p(0.2)),
        three_states(Step::Packet),
    ] {
        let config = LossConfig { affects: Affects::Data, ..config };
        let (mut plain, mut mixed) = (loss(&config, 3), loss(&config, 3));
        let mut lost = 0;
        for n in 0..2000 {
            let has_passed = pass(&mut plain, data(n * 1000));
            let other = pass(&mut mixed, if n % 2 == 0 { data(n * 1000) } else { ack() });
            assert_eq!(other, has_passed || n % 2 == 1, "packet {n}");
            lost += usize::from(!has_passed);
        }
        assert!(lost > 400);
    }
}

fn read(text: &str) -> Result<LossConfig, String> {
    let config: LossConfig = settings(text).map_err(|e| e.to_string())?;
    config.validate().map_err(|e| e.to_string())?;
    Ok(config)
}

#[test]
fn settings_round_trip_through_toml() {
    for text in [
        "model = \"none\"",
        "model = \"uniform\"\nper = \"2%\"\naffects = \"acks\"",
        "model = \"bit-errors\"\nber = 1e-6",
        "model = \"gilbert-elliott\"\ngood = \"1%\"\nbad = \"15%\"\ngood_to_bad = 0.3\nbad_to_good = 0.3\nstep = \"10ms\"",
        "model = \"markov\"\nstep = \"packet\"\nstates = [{ name = \"a\", to = { b = 1 } }, { name = \"b\", ber = 1e-3, to = {} }]",
        "model = \"list\"\ndrop = [\"segment 50\", \"segment 50 retransmission 1\"]",
    ] {
        let config = read(text).unwrap();
        assert_eq!(read(&to_text(&config)).unwrap(), config, "{text}");
    }
}

#[test]
fn invalid_settings_are_rejected_with_hint() {
    for (text, hint) in [
        ("model = \"uniform\"", "`per`: required by the model \"uniform\""),
        ("model = \"uniform\"\nper = \"1%\"\nber = 1e-3", "`ber`: valid only with the model \"bit-errors\""),
        ("model = \"unifrom\"\nper = \"1%\"", "`uniform`"),
        ("model = \"none\"\nstep = \"10ms\"", "\"gilbert-elliott\" or \"markov\""),
        ("model = \"markov\"\nstates = []", "at least one state"),
        (
            "model = \"markov\"\nstates = [{ name = \"a\", to = { b = 0.5 } }]",
            "changes to an unknown state \"b\"",
        ),
        ("model = \"markov\"\nstates = [{ name = \"a\", to = { a = 0.5 } }]", "changes to itself"),
        (
            "model = \"markov\"\nstates = [{ name = \"a\", to = { b = 0.6, c = 0.6 } }, { name = \"b\", to = {} }, { name = \"c\", to = {} }]",
            "more than 1",
        ),
        ("model = \"list\"\ndrop = [\"segment fifty\"]", "`segment fifty` does not name a packet"),
        ("model = \"markov\"\nstates = [{ name = \"a\", to = {} }]\nstep = \"1us\"", "at least 100us"),
        (
            "model = \"markov\"\nstates = [{ name = \"a\", to = {} }]\nstep = \"often\"",
            "`often` is not a step",
        ),
        ("model = \"uniform\"\nper = \"1%\"\nper_ = 1", "per_"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(hint), "{text}\n{error}");
    }
}

#[test]
fn reconfiguration_applies_settings_and_keeps_state() {
    let mut out = Outbox::new(Recording::Off, false);
    let stuck = |per| LossConfig::gilbert_elliott(p(0.0), p(per), p(1.0), p(0.0));
    let mut channel = loss(&stuck(0.0), 1);
    assert!(pass(&mut channel, data(0)));
    assert_eq!(channel.stats()["state"], "bad");
    channel.reconfigure(Instant::ZERO, &stuck(1.0), &mut out);
    assert_eq!(channel.stats()["state"], "bad");
    assert!(!pass(&mut channel, data(0)));
    channel.reconfigure(Instant::ZERO, &LossConfig::default(), &mut out);
    assert!(pass(&mut channel, data(0)));
    assert_eq!((&channel.stats()["packets_in"], &channel.stats()["lost"]), (&3.into(), &1.into()));
}

#[test]
fn reconfiguration_keeps_present_state_of_timed_chain() {
    let mut out = Outbox::new(Recording::Off, false);
    // The state changes after the first step.
    let mut channel = loss(&two_states(1.0, 0.0, Step::Every(ms(10))), 1);
    let now = Instant::from_millis(100);
    channel.reconfigure(now, &two_states(0.0, 0.0, Step::Every(ms(10))), &mut out);
    assert!(!passes(&mut channel, now, vec![0; 100]), "it is bad since 10 ms");
}

/// Sends packets at this spacing. Returns the number of lost packets and the number of bursts.
fn lost_in_bursts(config: &LossConfig, seed: u64, packets: u64, spacing: Duration) -> (f64, f64) {
    let mut loss = loss(config, seed);
    let fates: Vec<bool> =
        (0..packets).map(|n| !passes(&mut loss, Instant::ZERO + spacing * n, vec![0; 40])).collect();
    let lost = fates.iter().filter(|lost| **lost).count() as f64;
    (lost, fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64)
}

#[test]
fn bursts_match_configured_loss_rate_and_length() {
    for (seed, mean, steps) in [(1, 0.02, 4.0), (2, 0.1, 1.0), (3, 0.3, 10.0), (4, 0.5, 1.0), (5, 0.01, 2.5)]
    {
        let by_packet = LossConfig::bursts(p(mean), Burst::Steps(steps), Step::Packet);
        let by_time = LossConfig::bursts(p(mean), Burst::Steps(steps), Step::Every(ms(10)));
        let lasting = LossConfig::bursts(
            p(mean),
            Burst::Time(Duration::from_secs_f64(0.01 * steps)),
            Step::Every(ms(10)),
        );
        for config in [by_packet, by_time, lasting] {
            config.validate().unwrap();
            let n = size(100_000, 300_000);
            let runs = (10 * seed..10 * seed + 10).map(|seed| lost_in_bursts(&config, seed, n / 10, ms(10)));
            let (lost, bursts) = runs.fold((0.0, 0.0), |(lost, bursts), run| (lost + run.0, bursts + run.1));
            // Variance of the losses of a two-state chain with λ = 1 − α − β: n m (1 − m) (1 + λ) / (1 − λ).
            // Variance of a geometric length: (1 − β) / β².
            let [alpha, beta] = [mean / (steps * (1.0 - mean)), 1.0 / steps];
            let lambda = 1.0 - alpha - beta;
            let variance = n as f64 * mean * (1.0 - mean) * (1.0 + lambda) / (1.0 - lambda);
            assert!((lost - n as f64 * mean).abs() <= SIGMAS * variance.sqrt(), "{config:?}: {lost}");
            let deviation = ((1.0 - beta) / (beta * beta) / bursts).sqrt();
            assert!(
                (lost / bursts - steps).abs() <= SIGMAS * deviation + 1e-9,
                "{config:?}: {}",
                lost / bursts
            );
        }
    }
}

#[test]
fn bursts_equal_equivalent_gilbert_elliott_channel() {
    // 2 % in bursts of 4: α = 0.02 / (4 · 0.98) and β = 1/4.
    let config = LossConfig::bursts(p(0.02), Burst::Steps(4.0), Step::Packet);
    assert_eq!(config.two_states(), Some([0.0, 1.0, 0.02 / 3.92, 0.25]));
    let four = LossConfig::gilbert_elliott(p(0.0), p(1.0), p(0.02 / 3.92), p(0.25));
    assert_eq!(lost_of(&config, 7, 50_000, 40), lost_of(&four, 7, 50_000, 40));
    assert_eq!(
        config.remarks()[..2],
        [
            "2.00 % of the packets are lost on average; the bad state lasts 4.0 packets on average",
            "equivalent to good = 0, bad = 1, good_to_bad = 0.005102, bad_to_good = 0.250000",
        ]
    );
}

#[test]
fn impossible_or_conflicting_burst_settings_are_rejected() {
    let steps = |mean, steps| LossConfig::bursts(p(mean), Burst::Steps(steps), Step::Packet);
    let base = steps(0.02, 4.0);
    for (config, key) in [
        (steps(0.02, 0.9), "burst"),
        (steps(0.02, f64::NAN), "burst"),
        (steps(0.81, 4.0), "mean"),
        (steps(1.0, 1e9), "mean"),
        (LossConfig { burst: Some(Burst::Time(ms(40))), ..base.clone() }, "burst"),
        (LossConfig::bursts(p(0.1), Burst::Time(ms(9)), Step::Every(ms(10))), "burst"),
        (LossConfig { burst: None, ..base.clone() }, "burst"),
        (LossConfig { mean: None, ..base.clone() }, "mean"),
        (LossConfig { good: Some(p(0.1)), ..base.clone() }, "good"),
        (LossConfig { bad_to_good: Some(p(0.1)), ..base.clone() }, "bad_to_good"),
        (LossConfig { model: Model::Uniform, per: Some(p(0.1)), ..base }, "mean"),
    ] {
        assert_eq!(config.validate().unwrap_err().key, key, "{config:?}");
    }
    assert!(steps(0.8, 4.0).validate().is_ok() && steps(0.0, 1.0).validate().is_ok());
}

#[test]
fn warning_reports_bad_state_that_stalls_sender() {
    let warning = |config: &LossConfig| config.warning().unwrap_or_default();
    let bursts = |steps, step| LossConfig::bursts(p(0.02), Burst::Steps(steps), step);
    assert!(
        warning(&bursts(20.0, Step::Packet)).starts_with("in the state \"bad\" 20 packets in a row are lost")
    );
    assert_eq!(warning(&bursts(4.9, Step::Packet)), "");
    assert_ne!(warning(&bursts(5.0, Step::Packet)), "");
    assert_eq!(warning(&bursts(20.0, Step::Every(ms(10)))), "");
    // A long bad state does not stall a sender if every second packet gets through.
    assert_eq!(warning(&LossConfig::gilbert_elliott(p(0.0), p(0.5), p(0.01), p(0.001))), "");
    assert_ne!(warning(&LossConfig::gilbert_elliott(p(0.0), p(0.95), p(0.01), p(0.001))), "");
    let markov = |leaves: &[(&str, f64)]| {
        LossConfig::markov(vec![state("in", 0.0, &[("out", 0.1)]), state("out", 1.0, leaves)], Step::Packet)
    };
    assert!(warning(&markov(&[])).starts_with("in the state \"out\" all packets are lost"));
    assert_eq!(warning(&markov(&[("in", 0.5)])), "");
    assert_eq!(warning(&LossConfig::uniform(p(0.99))), "");
}

fn fading(model: Model, carrier: Option<&str>, deviation: Option<&str>) -> LossConfig {
    LossConfig {
        model,
        speed: Some("50km/h".parse().unwrap()),
        margin: Some("5dB".parse().unwrap()),
        carrier: carrier.map(|carrier| carrier.parse().unwrap()),
        deviation: deviation.map(|deviation| deviation.parse().unwrap()),
        decorrelation: deviation.map(|_| "20m".parse().unwrap()),
        ..LossConfig::default()
    }
}

/// One packet every 10 s: the mobile moves much farther than a wavelength and the decorrelation distance.
#[test]
fn fading_loss_matches_theory() {
    let ratio = 10_f64.powf(0.5);
    for (config, share) in [
        (fading(Model::Rayleigh, Some("2GHz"), None), 1.0 - (-1.0 / ratio).exp()),
        (fading(Model::Shadowing, None, Some("4dB")), crate::maths::upper_tail(1.25)),
    ] {
        config.validate().unwrap();
        let lost: usize = (0..50)
            .map(|seed| {
                let mut loss = loss(&config, seed);
                (0..400)
                    .filter(|second| !passes(&mut loss, Instant::from_secs(*second * 10), vec![0; 40]))
                    .count()
            })
            .sum();
        within_binomial(lost, 20_000, share);
    }
}

#[test]
fn simultaneous_packets_fade_alike_and_margin_changes_immediately() {
    let config = fading(Model::Rayleigh, Some("2GHz"), Some("6dB"));
    let mut loss = loss(&config, 1);
    for second in 0..300 {
        let at = Instant::from_secs(second);
        let first = passes(&mut loss, at, vec![0; 1500]);
        assert_eq!(passes(&mut loss, at, vec![0; 40]), first);
    }
    let mut out = Outbox::new(Recording::Off, false);
    let hopeless = LossConfig { margin: Some("-60dB".parse().unwrap()), ..config.clone() };
    assert!(loss.check(&hopeless).is_ok());
    loss.reconfigure(Instant::from_secs(300), &hopeless, &mut out);
    assert!(!passes(&mut loss, Instant::from_secs(300), vec![0; 40]));
    loss.reconfigure(Instant::from_secs(301), &LossConfig::default(), &mut out);
    assert!(passes(&mut loss, Instant::from_secs(301), vec![0; 40]));
    loss.reconfigure(Instant::from_secs(302), &config, &mut out);
    assert!((302..400).any(|second| !passes(&mut loss, Instant::from_secs(second), vec![0; 40])));
}

#[test]
fn missing_or_extra_fading_settings_are_rejected() {
    let fast = fading(Model::Rayleigh, Some("2GHz"), None);
    let slow = fading(Model::Shadowing, None, Some("8dB"));
    for (config, key) in [
        (LossConfig { carrier: None, ..fast.clone() }, "carrier"),
        (LossConfig { speed: None, ..fast.clone() }, "speed"),
        (LossConfig { deviation: Some("8dB".parse().unwrap()), ..fast.clone() }, "decorrelation"),
        (LossConfig { decorrelation: Some("8m".parse().unwrap()), ..fast.clone() }, "deviation"),
        (LossConfig { per: Some(p(0.1)), ..fast.clone() }, "per"),
        (LossConfig { margin: Some("100dB".parse().unwrap()), ..fast }, "margin"),
        (LossConfig { carrier: Some("2GHz".parse().unwrap()), ..slow.clone() }, "carrier"),
        (LossConfig { deviation: None, ..slow }, "deviation"),
    ] {
        assert_eq!(config.validate().unwrap_err().key, key, "{config:?}");
    }
}
