use airtcp_testkit::sample::size;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpAddress, IpProtocol, IpRepr, Ipv4Address, Ipv6Address, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};

use super::*;
use crate::packet::{Content, Direction, Origin, PacketId};
use crate::stage::Recording;

fn loss(config: &LossConfig, seed: u64) -> Loss {
    Loss::new(config, Stream::new(seed, "test/damage"), Stream::new(seed, "test/state")).unwrap()
}

/// Whether the channel lets these octets through.
fn passes(loss: &mut Loss, now: Instant, bytes: Vec<u8>) -> bool {
    let mut out = Outbox::new(Recording::Off, false);
    let packet = Packet::from(Content {
        id: PacketId(0),
        direction: Direction::Down,
        origin: Origin::Host,
        entered: now,
        bytes,
    });
    loss.handle_packet(now, packet, &mut out);
    out.take().len() == 1
}

/// Of the packets 1, 2, … of so many octets, those that are lost.
fn lost_of(config: &LossConfig, seed: u64, packets: usize, octets: usize) -> Vec<usize> {
    let mut loss = loss(config, seed);
    (1..=packets).filter(|_| !passes(&mut loss, Instant::ZERO, vec![0; octets])).collect()
}

fn p(value: f64) -> Probability {
    Probability::new(value)
}

/// 99.9 % of a normal distribution is within so many standard deviations.
const SIGMAS: f64 = 3.2905;

#[track_caller]
fn within(count: usize, n: usize, probability: f64, variance_per_packet: f64) {
    let (mean, deviation) = (n as f64 * probability, (n as f64 * variance_per_packet).sqrt());
    assert!(
        (count as f64 - mean).abs() <= SIGMAS * deviation,
        "{count} of {n}, expected {mean:.1} ± {:.1}",
        SIGMAS * deviation
    );
}

#[track_caller]
fn within_binomial(count: usize, n: usize, probability: f64) {
    within(count, n, probability, probability * (1.0 - probability));
}

#[test]
fn uniform_losses_come_at_their_rate() {
    for (seed, per) in [(1, 0.0001), (2, 0.01), (3, 0.12), (4, 0.5), (5, 0.99)] {
        let n = 200_000;
        within_binomial(lost_of(&LossConfig::uniform(p(per)), seed, n, 1500).len(), n, per);
    }
    assert!(lost_of(&LossConfig::uniform(p(0.0)), 1, 10_000, 40).is_empty());
    assert_eq!(lost_of(&LossConfig::uniform(p(1.0)), 1, 10_000, 40).len(), 10_000);
}

#[test]
fn bit_errors_hit_long_packets_more_often() {
    for (seed, ber, octets) in
        [(1, 1e-5, 40), (2, 1e-5, 1500), (3, 1e-3, 40), (4, 1e-3, 552), (5, 1e-7, 65_535), (6, 0.6, 1)]
    {
        let n = 100_000;
        let per = 1.0 - (1.0_f64 - ber).powi(8 * octets as i32);
        within_binomial(lost_of(&LossConfig::bit_errors(p(ber)), seed, n, octets).len(), n, per);
    }
    assert_eq!(lost_of(&LossConfig::bit_errors(p(1.0)), 1, 100, 1).len(), 100);
}

/// Of a chain with a step per packet: the stationary loss rate, and the variance of the number of losses per packet
/// when there are many: z(1 − z) + 2 Σ cov(k), where losses k packets apart are correlated through the state.
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
    // Where the state is, weighted with its losses, k packets later.
    let mut later: Vec<f64> = share.iter().zip(per).map(|(a, b)| a * b).collect();
    for _ in 0..10_000 {
        later = step(&later);
        variance += 2.0 * (dot(&later) - z * z);
    }
    (z, variance)
}

#[test]
fn the_two_states_of_p0_lose_packets_at_the_overall_rate_z() {
    let (alpha, beta) = (0.3, 0.3);
    for (seed, x, y) in [(1, 0.01, 0.15), (2, 0.08, 0.08), (3, 0.0, 0.06), (4, 0.01, 0.25)] {
        let config = LossConfig::gilbert_elliott(p(x), p(y), p(alpha), p(beta));
        let (z, variance) = stationary(&[&[1.0 - alpha, alpha], &[beta, 1.0 - beta]], &[x, y]);
        assert!((z - (x * beta + y * alpha) / (alpha + beta)).abs() < 1e-12);
        let n = 200_000;
        within(lost_of(&config, seed, n, 552).len(), n, z, variance);
    }
}

/// Lengths of the runs of numbers that follow each other.
fn runs(numbers: &[usize]) -> Vec<usize> {
    numbers.chunk_by(|a, b| a + 1 == *b).map(<[_]>::len).collect()
}

#[test]
fn a_bad_state_that_loses_everything_makes_geometric_bursts() {
    let beta = 0.2;
    let config = LossConfig::gilbert_elliott(p(0.0), p(1.0), p(0.05), p(beta));
    let bursts = runs(&lost_of(&config, 7, 400_000, 100));
    let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
    let deviation = ((1.0 - beta) / (beta * beta) / bursts.len() as f64).sqrt();
    assert!(bursts.len() > 10_000 && (mean - 1.0 / beta).abs() < SIGMAS * deviation, "mean burst {mean}");
}

fn three_states(step: Step) -> LossConfig {
    let state = |name: &str, per, to: &[(&str, f64)]| State {
        name: name.to_owned(),
        per: Some(p(per)),
        ber: None,
        to: to.iter().map(|(name, probability)| ((*name).to_owned(), p(*probability))).collect(),
    };
    let states = vec![
        state("near", 0.0, &[("edge", 0.5)]),
        state("edge", 0.3, &[("hole", 0.25), ("near", 0.25)]),
        state("hole", 1.0, &[("near", 0.125)]),
    ];
    LossConfig::markov(states, step)
}

const THREE: [&[f64]; 3] = [&[0.5, 0.5, 0.0], &[0.25, 0.5, 0.25], &[0.125, 0.0, 0.875]];

#[test]
fn a_chain_of_three_states_loses_at_its_stationary_rate() {
    let (z, variance) = stationary(&THREE, &[0.0, 0.3, 1.0]);
    let n = 400_000;
    within(lost_of(&three_states(Step::Packet), 11, n, 100).len(), n, z, variance);
}

#[test]
fn steps_in_time_go_by_whether_packets_come_or_not() {
    // A packet in the middle of each step sees what one step per packet would be.
    let (z, variance) = stationary(&THREE, &[0.0, 0.3, 1.0]);
    let step = Duration::from_millis(10);
    let mut channel = loss(&three_states(Step::Every(step)), 12);
    let n = 200_000;
    let lost =
        (0..n).filter(|i| !passes(&mut channel, Instant::from_millis(5) + step * *i, vec![0; 100])).count();
    within(lost, n as usize, z, variance);

    // One in a million steps sees an independent state, and costs no million draws.
    let n = 3_000;
    let lost = (1..=n)
        .filter(|i| !passes(&mut channel, Instant::from_secs(10_000) + step * (*i * 10_000), vec![0; 100]))
        .count();
    within_binomial(lost, n as usize, z);
}

#[test]
fn a_state_in_time_lasts_whole_steps() {
    let config = LossConfig {
        step: Some(Step::Every(Duration::from_millis(10))),
        ..LossConfig::gilbert_elliott(p(0.0), p(1.0), p(0.1), p(0.3))
    };
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
fn a_state_that_is_left_once_in_an_age_is_not_left_at_once() {
    for leave in [1e-20, 1e-300] {
        let config = LossConfig {
            step: Some(Step::Every(Duration::from_millis(10))),
            ..LossConfig::gilbert_elliott(p(0.0), p(1.0), p(leave), p(1.0))
        };
        for seed in 0..20 {
            let mut channel = loss(&config, seed);
            assert!(passes(&mut channel, Instant::from_secs(1_000_000_000), vec![0; 100]), "seed {seed}");
        }
    }
}

#[test]
fn a_packet_after_an_age_of_silence_sees_the_stationary_state_at_once() {
    // 30 years of steps: gone through one by one they would not end.
    let age = Duration::from_secs(30 * 365 * 86_400);
    let step = Step::Every(Duration::from_micros(100));
    let n = 2000;
    let lost = |config: &LossConfig| {
        let after_an_age = |seed| passes(&mut loss(config, seed), Instant::ZERO + age, vec![0; 100]);
        (0..n).filter(|seed| !after_an_age(*seed)).count()
    };
    let (z, _) = stationary(&THREE, &[0.0, 0.3, 1.0]);
    within_binomial(lost(&three_states(step)), n as usize, z);
    let two = LossConfig { step: Some(step), ..LossConfig::gilbert_elliott(p(0.0), p(1.0), p(0.3), p(0.9)) };
    within_binomial(lost(&two), n as usize, 0.3 / 1.2);
    // A chain that never rests: the bad state at each odd step, and this is an even one.
    let period =
        LossConfig { step: Some(step), ..LossConfig::gilbert_elliott(p(0.0), p(1.0), p(1.0), p(1.0)) };
    assert_eq!(lost(&period), 0);
}

#[test]
fn a_jump_over_many_changes_knows_how_many_steps_it_takes() {
    // Two states that change all the time, and a trap that is fallen into from either: the channel is free after n
    // steps with the probability (1 - trap)^n.
    let (trap, steps) = (1e-5, 100_000);
    let state = |name: &str, per, to: &[(&str, f64)]| State {
        name: name.to_owned(),
        per: Some(p(per)),
        ber: None,
        to: to.iter().map(|(name, probability)| ((*name).to_owned(), p(*probability))).collect(),
    };
    let states = vec![
        state("one", 0.0, &[("other", 0.9), ("trap", trap)]),
        state("other", 0.0, &[("one", 0.9), ("trap", trap)]),
        state("trap", 1.0, &[]),
    ];
    let step = Duration::from_millis(1);
    let config = LossConfig::markov(states, Step::Every(step));
    let n = 4000;
    let free = (0..n)
        .filter(|seed| passes(&mut loss(&config, *seed), Instant::ZERO + step * steps, vec![0; 100]))
        .count();
    within_binomial(free, n as usize, (1.0 - trap).powi(steps as i32));
}

#[test]
fn the_same_seed_decides_the_same_and_another_one_does_not() {
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

// ---- TCP

const FLOW: u16 = 40_000;

/// A segment of the flow with this port, from the fixed side.
struct Tcp {
    v6: bool,
    port: u16,
    seq: u32,
    control: TcpControl,
    ack: bool,
    payload: usize,
}

const DATA: Tcp = Tcp { v6: false, port: FLOW, seq: 0, control: TcpControl::None, ack: true, payload: 1000 };

fn data(seq: u32) -> Vec<u8> {
    Tcp { seq, ..DATA }.bytes()
}

fn ack() -> Vec<u8> {
    Tcp { payload: 0, ..DATA }.bytes()
}

impl Tcp {
    fn bytes(&self) -> Vec<u8> {
        let (src, dst): (IpAddress, IpAddress) = if self.v6 {
            (
                Ipv6Address::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).into(),
                Ipv6Address::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).into(),
            )
        } else {
            (Ipv4Address::new(10, 0, 0, 1).into(), Ipv4Address::new(10, 0, 0, 2).into())
        };
        let payload = vec![7; self.payload];
        let tcp = TcpRepr {
            src_port: self.port,
            dst_port: 80,
            control: self.control,
            seq_number: TcpSeqNumber(self.seq as i32),
            ack_number: self.ack.then_some(TcpSeqNumber(1)),
            window_len: 1000,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &payload,
        };
        let ip = IpRepr::new(src, dst, IpProtocol::Tcp, tcp.buffer_len(), 64);
        let mut bytes = vec![0; ip.buffer_len()];
        ip.emit(&mut bytes, &ChecksumCapabilities::default());
        tcp.emit(
            &mut TcpPacket::new_unchecked(&mut bytes[ip.header_len()..]),
            &src,
            &dst,
            &ChecksumCapabilities::default(),
        );
        bytes
    }
}

fn list(items: &[&str]) -> Loss {
    loss(&LossConfig::list(items.iter().map(|item| item.parse().unwrap()).collect()), 1)
}

fn pass(list: &mut Loss, bytes: Vec<u8>) -> bool {
    passes(list, Instant::ZERO, bytes)
}

#[test]
fn a_listed_segment_and_its_retransmission_are_lost_across_the_sequence_wrap() {
    for v6 in [false, true] {
        let isn = u32::MAX - 49_500;
        let segment = |n: u32| Tcp { v6, seq: isn.wrapping_add(1 + (n - 1) * 1000), ..DATA }.bytes();
        let mut list = list(&["segment 50", "segment 50 retransmission 1", "segment 52 retransmission 2"]);
        let syn = Tcp { v6, seq: isn, control: TcpControl::Syn, ack: false, payload: 0, ..DATA };
        assert!(pass(&mut list, syn.bytes()));
        for n in 1..=100 {
            assert_eq!(pass(&mut list, segment(n)), n != 50, "segment {n}");
        }
        assert!(pass(&mut list, segment(49)));
        assert!(!pass(&mut list, segment(50)), "the first retransmission");
        assert!(pass(&mut list, segment(50)), "the second one");
        assert!(pass(&mut list, segment(51)), "its neighbours");
        assert!(pass(&mut list, segment(52)));
        assert!(!pass(&mut list, segment(52)));
        assert!(pass(&mut list, segment(52)));
        assert!(pass(&mut list, segment(101)));
    }
}

#[test]
fn a_retransmission_is_one_that_carries_the_first_octet_again_however_it_is_cut() {
    let mut list = list(&["segment 2 retransmission 1", "segment 5"]);
    for n in 0..4 {
        assert!(pass(&mut list, data(n * 1000)));
    }
    // The second half of segment 2 is not its retransmission; both segments in one are.
    assert!(pass(&mut list, Tcp { seq: 1500, payload: 500, ..DATA }.bytes()));
    assert!(!pass(&mut list, Tcp { seq: 0, payload: 2000, ..DATA }.bytes()));
    // A retransmission that brings new octets along is no new segment, but they count as seen.
    assert!(pass(&mut list, Tcp { seq: 3000, payload: 1500, ..DATA }.bytes()));
    assert!(!pass(&mut list, data(4500)));
}

#[test]
fn flows_are_counted_apart_and_a_new_connection_anew() {
    let mut list = list(&["segment 2"]);
    let other = |seq| Tcp { port: FLOW + 1, seq, ..DATA }.bytes();
    assert!(pass(&mut list, data(5000)));
    assert!(pass(&mut list, other(100)));
    assert!(!pass(&mut list, data(6000)));
    assert!(!pass(&mut list, other(1100)));

    let syn = |seq| Tcp { seq, control: TcpControl::Syn, ack: false, payload: 0, ..DATA }.bytes();
    assert!(pass(&mut list, syn(90_000)));
    assert!(pass(&mut list, data(90_001)));
    assert!(pass(&mut list, syn(90_000)), "the SYN again is not another connection");
    assert!(!pass(&mut list, data(91_001)));
}

#[test]
fn packets_and_acks_are_counted_each_for_themselves() {
    let mut list = list(&["packets 2-3", "packet 7", "ack 3"]);
    // The third ACK is the sixth packet; what is no IP packet is a packet all the same.
    let sent = [data(0), ack(), vec![0xff], ack(), data(1000), ack(), data(2000), ack(), vec![]];
    let lost: Vec<usize> =
        (1..).zip(sent).filter(|(_, bytes)| !pass(&mut list, bytes.clone())).map(|(n, _)| n).collect();
    assert_eq!(lost, [2, 3, 6, 7]);
}

#[test]
fn a_list_follows_a_bounded_number_of_flows() {
    let mut list = list(&["segment 2"]);
    const LAST: u16 = 5000;
    for port in 0..=LAST {
        assert!(pass(&mut list, Tcp { port, ..DATA }.bytes()));
    }
    assert_eq!(list.stats()["flows"], 4096);
    // The newest ones are still known.
    assert!(!pass(&mut list, Tcp { port: LAST, seq: 1000, ..DATA }.bytes()));
}

#[test]
fn a_fragment_is_no_segment() {
    let mut list = list(&["segment 1"]);
    let mut fragment = data(0);
    fragment[7] = 100;
    assert!(pass(&mut list, fragment));
    assert!(!pass(&mut list, data(0)));
}

#[test]
fn a_list_entry_is_written_as_it_is_read() {
    for text in [
        "segment 50",
        "segment 50 retransmission 1",
        "segments 50-53",
        "packet 7",
        "packets 100-110",
        "ack 3",
    ] {
        assert_eq!(text.parse::<Listed>().unwrap().to_string(), text);
    }
    for text in
        ["segment", "segment 0", "packet x", "packets 9-3", "ack 3 retransmission 1", "fin 1", "7", ""]
    {
        let error = text.parse::<Listed>().unwrap_err().to_string();
        assert!(error.contains(&format!("`{text}` does not name a packet")), "{error}");
    }
}

#[test]
fn losses_can_be_for_data_only_or_for_acks_only() {
    let every = |affects| loss(&LossConfig { affects, ..LossConfig::uniform(p(1.0)) }, 1);
    let fin = Tcp { control: TcpControl::Fin, payload: 0, ..DATA }.bytes();
    for (affects, of_data, of_acks) in
        [(Affects::All, false, false), (Affects::Data, false, true), (Affects::Acks, true, false)]
    {
        assert_eq!(pass(&mut every(affects), data(0)), of_data);
        assert_eq!(pass(&mut every(affects), fin.clone()), of_data);
        assert_eq!(pass(&mut every(affects), ack()), of_acks);
        let mut fragment = ack();
        fragment[7] = 100;
        assert_eq!(pass(&mut every(affects), fragment), of_data, "octets of data that look like an ACK");
        assert_eq!(pass(&mut every(affects), vec![1, 2, 3]), of_data, "not an IP packet");
    }
}

#[test]
fn what_happens_to_a_packet_does_not_depend_on_what_the_others_are() {
    // ACKs in place of every other data segment: those that stay have the same fate, though ACKs are spared.
    for config in [
        LossConfig::uniform(p(0.3)),
        LossConfig::gilbert_elliott(p(0.1), p(0.9), p(0.2), p(0.2)),
        three_states(Step::Packet),
    ] {
        let config = LossConfig { affects: Affects::Data, ..config };
        let (mut plain, mut mixed) = (loss(&config, 3), loss(&config, 3));
        let mut lost = 0;
        for n in 0..2000 {
            let fate = pass(&mut plain, data(n * 1000));
            let other = pass(&mut mixed, if n % 2 == 0 { data(n * 1000) } else { ack() });
            assert_eq!(other, fate || n % 2 == 1, "packet {n}");
            lost += usize::from(!fate);
        }
        assert!(lost > 400);
    }
}

// ---- settings

fn read(text: &str) -> Result<LossConfig, String> {
    let config: LossConfig = toml::from_str(text).map_err(|e| e.to_string())?;
    config.validate().map_err(|e| e.to_string())?;
    Ok(config)
}

#[test]
fn settings_are_written_as_they_are_read() {
    for text in [
        "model = \"none\"",
        "model = \"uniform\"\nper = \"2%\"\naffects = \"acks\"",
        "model = \"bit-errors\"\nber = 1e-6",
        "model = \"gilbert-elliott\"\ngood = \"1%\"\nbad = \"15%\"\ngood_to_bad = 0.3\nbad_to_good = 0.3\nstep = \"10ms\"",
        "model = \"markov\"\nstep = \"packet\"\nstates = [{ name = \"a\", to = { b = 1 } }, { name = \"b\", ber = 1e-3, to = {} }]",
        "model = \"list\"\ndrop = [\"segment 50\", \"segment 50 retransmission 1\"]",
    ] {
        let config = read(text).unwrap();
        assert_eq!(read(&toml::to_string(&config).unwrap()).unwrap(), config, "{text}");
    }
}

#[test]
fn impossible_settings_are_refused_with_what_was_meant() {
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
fn a_running_channel_takes_over_new_settings_and_stays_in_its_state() {
    let mut out = Outbox::new(Recording::Off, false);
    let stuck = |per| LossConfig::gilbert_elliott(p(0.0), p(per), p(1.0), p(0.0));
    let mut channel = loss(&stuck(0.0), 1);
    assert!(pass(&mut channel, data(0)));
    assert_eq!(channel.stats()["state"], "bad");
    channel.reconfigure(Instant::ZERO, &stuck(1.0), &mut out);
    assert_eq!(channel.stats()["state"], "bad");
    assert!(!pass(&mut channel, data(0)));
    channel.reconfigure(Instant::ZERO, &LossConfig::none(), &mut out);
    assert!(pass(&mut channel, data(0)));
    assert_eq!((&channel.stats()["packets_in"], &channel.stats()["lost"]), (&3.into(), &1.into()));
}

/// What a chain with these steps loses in so many steps, a packet each: how many, and the number of bursts.
fn lost_in_bursts(config: &LossConfig, seed: u64, packets: u64, spacing: Duration) -> (f64, f64) {
    let mut loss = loss(config, seed);
    let fates: Vec<bool> =
        (0..packets).map(|n| !passes(&mut loss, Instant::ZERO + spacing * n, vec![0; 40])).collect();
    let lost = fates.iter().filter(|lost| **lost).count() as f64;
    (lost, fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64)
}

#[test]
fn bursts_have_their_mean_loss_and_their_mean_length() {
    let ms = Duration::from_millis;
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
            // Of a two-state chain with λ = 1 − α − β: n m (1 − m) (1 + λ) / (1 − λ); of geometric lengths: (1 − β) / β².
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
fn bursts_are_the_channel_of_their_four_probabilities() {
    // 2 % in bursts of 4: 0.02 / (4 · 0.98), and a quarter.
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
fn bursts_that_cannot_be_or_that_are_said_twice_are_refused() {
    let steps = |mean, steps| LossConfig::bursts(p(mean), Burst::Steps(steps), Step::Packet);
    let ms = Duration::from_millis;
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
fn a_channel_that_stands_still_while_nobody_sends_is_warned_of() {
    let warning = |config: &LossConfig| config.warning().unwrap_or_default();
    let bursts = |steps, step| LossConfig::bursts(p(0.02), Burst::Steps(steps), step);
    assert!(
        warning(&bursts(20.0, Step::Packet)).starts_with("in the state \"bad\" 20 packets in a row are lost")
    );
    assert_eq!(warning(&bursts(4.9, Step::Packet)), "");
    assert_ne!(warning(&bursts(5.0, Step::Packet)), "");
    assert_eq!(warning(&bursts(20.0, Step::Every(Duration::from_millis(10)))), "");
    // Where every second packet gets through, a long bad state is no standstill.
    assert_eq!(warning(&LossConfig::gilbert_elliott(p(0.0), p(0.5), p(0.01), p(0.001))), "");
    assert_ne!(warning(&LossConfig::gilbert_elliott(p(0.0), p(0.95), p(0.01), p(0.001))), "");
    let state = |name: &str, per, to: &[(&str, f64)]| State {
        name: name.to_owned(),
        per: Some(p(per)),
        ber: None,
        to: to.iter().map(|(to, probability)| ((*to).to_owned(), p(*probability))).collect(),
    };
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
        ..LossConfig::none()
    }
}

/// One packet each second: far more than a wave length, and than the distance of decorrelation.
#[test]
fn fading_loses_as_much_as_its_formula_says() {
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
fn what_comes_together_fades_together_and_a_new_margin_holds_at_once() {
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
    loss.reconfigure(Instant::from_secs(301), &LossConfig::none(), &mut out);
    assert!(passes(&mut loss, Instant::from_secs(301), vec![0; 40]));
    loss.reconfigure(Instant::from_secs(302), &config, &mut out);
    assert!((302..400).any(|second| !passes(&mut loss, Instant::from_secs(second), vec![0; 40])));
}

#[test]
fn fading_without_what_it_needs_or_with_what_it_does_not_is_refused() {
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
