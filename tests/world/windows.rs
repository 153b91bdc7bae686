//! Congestion windows end to end, in virtual time: each algorithm behaves on a path as in its paper, and
//! stays passive without a reason to act.

use airlink::packet::Direction;
use airlink::scenario::Scenario;
use airlink::stage::DropReason;
use airtcp::host::{ConnId, Host, HostConfig};
use airtcp::profile::{AckPolicy, Profile, SackOffer};
use airtcp::recovery::{Decision, What};
use airtcp::tcp::SocketOptions;
use airtcp_sim::world::{Flow, HostSpec, Length, Watch, World, WorldConfig};
use airtcp_testkit::sample::{sample, size};
use airwire::options::Options;
use airwire::rng::Stream;
use airwire::segment;
use airwire::time::{Duration, Instant};

const WINDOWS: [&str; 8] =
    ["aimd", "rebate+tax=0.02", "westwood", "veno", "jtcp", "tcp-fit", "vegas-window", "cubic"];

/// 2 Mbit/s and a round trip of 80 ms, with a queue of almost two bandwidth-delay products.
const LINK: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "wire"
both = { rate = "2Mbit", delay = "40ms", queue = { packets = 25 } }
"#;

fn lossy(per: &str) -> String {
    format!("{LINK}[[stage]]\nkind = \"loss\"\ndown = {{ model = \"uniform\", per = \"{per}\" }}\n")
}

/// Returns a preset with additional settings.
fn preset(name: &str, more: &str) -> String {
    format!("schema = 1\nextends = \"{name}\"\n{more}")
}

struct Run<'a> {
    scenario: &'a str,
    sender: &'a str,
    receiver: &'a str,
    seconds: u64,
    seed: u64,
}

impl Run<'_> {
    /// Runs one endless flow down the path. The receiver permits SACK to every sender that offers it.
    fn world(&self) -> World {
        let mut mobile = HostSpec::receiver();
        mobile.recipe = self.receiver.parse().unwrap();
        mobile.profile.handshake.sack = SackOffer::Always;
        let flow = Flow { watch: Watch::Decisions, ..Flow::down(Length::Endless) };
        let mut world = World::new(WorldConfig {
            scenario: Scenario::parse(self.scenario, "test").unwrap(),
            seed: self.seed,
            fixed: HostSpec::sender(self.sender.parse().unwrap()),
            mobile,
            flows: vec![flow],
        })
        .unwrap();
        world.run_until(Instant::from_secs(self.seconds)).unwrap();
        world
    }
}

fn run(scenario: &str, sender: &str) -> World {
    Run { scenario, sender, receiver: "newreno", seconds: 60, seed: 1 }.world()
}

/// Returns the bytes delivered in a minute, summed over three seeds.
fn goodput_to(scenario: &str, sender: &str, receiver: &str) -> f64 {
    let delivered =
        |seed| Run { scenario, sender, receiver, seconds: 60, seed }.world().result(0).delivered as f64;
    (1..=3).map(delivered).sum()
}

fn goodput(scenario: &str, sender: &str) -> f64 {
    goodput_to(scenario, sender, "newreno")
}

/// Returns the sender's decisions, without the algorithm that made them.
fn decisions(mut world: World) -> Vec<(Instant, What, &'static str)> {
    world.decisions(0).iter().map(|Decision { at, what, why, .. }| (*at, what.clone(), *why)).collect()
}

fn gain(scenario: &str, recipe: &str, over: &str) -> f64 {
    goodput(scenario, recipe) / goodput(scenario, over)
}

fn assert_same(scenario: &str, receiver: &str, seed: u64, a: &str, b: &str) {
    let trace = |sender| decisions(Run { scenario, sender, receiver, seconds: 20, seed }.world());
    let (one, other) = (trace(a), trace(b));
    let differs = one.iter().zip(&other).position(|(one, other)| one != other);
    if let Some(at) = differs {
        panic!("seed {seed}: {a} {:?}, {b} {:?} on\n{scenario}", one[at], other[at]);
    }
    assert_eq!(one.len(), other.len(), "seed {seed}: {a} and {b} on\n{scenario}");
    assert!(one.len() > 20, "seed {seed}: nothing happened on\n{scenario}");
}

/// Returns a path with random rate, delay, queue and loss.
fn random_path(seed: u64) -> String {
    let mut random = Stream::new(seed, "path");
    let mut between = |low: f64, high: f64| low + (high - low) * random.unit();
    let (rate, delay) = (between(200.0, 8000.0) as u64, between(1.0, 150.0) as u64);
    let (queue, per) = (between(3.0, 60.0) as u64, between(0.0, 8.0));
    format!(
        r#"
schema = 1
[[stage]]
kind = "link"
both = {{ rate = "{rate}kbit", delay = "{delay}ms", queue = {{ packets = {queue} }} }}
[[stage]]
kind = "loss"
both = {{ model = "uniform", per = "{per:.2}%" }}
"#
    )
}

/// Returns a random path whose radio link also reorders packets by its own retransmissions.
fn random_reordering(seed: u64) -> String {
    let mut random = Stream::new(seed, "arq");
    let per = 1.0 + 14.0 * random.unit();
    let arq = format!("{{ per = \"{per:.2}%\", retries = 2, rate = \"3Mbit\", delay = \"15ms\" }}");
    format!("{}[[stage]]\nkind = \"arq\"\nboth = {arq}\n", random_path(seed))
}

#[test]
fn untaxed_rebate_decides_exactly_like_aimd() {
    for seed in 1..=size(3, 8) {
        let path = random_path(seed);
        assert_same(&path, "newreno", seed, "newreno+rebate", "newreno");
        assert_same(&path, "newreno", seed, "sack+rebate", "sack");
        let reordering = random_reordering(seed);
        assert_same(&reordering, "newreno", seed, "reno+rebate+tax=0", "reno");
        assert_same(&reordering, "newreno", seed, "sack+rebate+tax=0", "sack");
    }
}

#[test]
fn rebate_equals_aimd_on_clean_path() {
    assert_same(LINK, "newreno", 1, "newreno+rebate", "newreno");
    assert_same(LINK, "newreno", 1, "sack+rebate", "sack");
}

#[test]
fn lossless_station_imposes_no_tax() {
    let scenario = preset("tax-rebate", "[[stage]]\nname = \"radio-errors\"\ndown.per = \"0%\"\n");
    assert_same(&scenario, "newreno", 1, "newreno+rebate", "newreno");
    assert_same(&scenario, "newreno", 1, "sack+rebate", "sack");
}

#[test]
fn rebate_with_known_tax_compensates_random_loss() {
    // P3 Fig. 2a: up to twice NewReno's goodput. Half of the tax gives less, but more than NewReno (§IV C).
    let path = lossy("2%");
    let full = gain(&path, "newreno+rebate+tax=0.02", "newreno");
    let half = gain(&path, "newreno+rebate+tax=0.02+tax-scale=0.5", "newreno");
    assert!(full > 1.8, "{full:.2}");
    assert!(half > 1.2 && half < full, "half of the tax {half:.2}, all of it {full:.2}");
}

#[test]
fn station_report_is_as_good_as_known_tax() {
    for recipe in sample("reports", ["newreno", "sack", "rr", "dcr"], 1) {
        let scenario = preset("tax-rebate", "[[stage]]\nname = \"radio-errors\"\ndown.per = \"3%\"\n");
        let plain = goodput(&scenario, recipe);
        let reported = goodput(&scenario, &format!("{recipe}+rebate"));
        let known = goodput(&scenario, &format!("{recipe}+rebate+tax=0.03"));
        assert!(reported > 1.5 * plain, "{recipe}: {:.2}", reported / plain);
        let ratio = reported / known;
        assert!((ratio - 1.0).abs() < 0.1, "{recipe}: {ratio:.2} of the goodput with known tax");
    }
}

#[test]
fn rebate_compensates_reordering_mistaken_for_loss() {
    // P3 Fig. 2c: losses are repaired locally, and the local retransmissions arrive late.
    let scenario = preset("tax-rebate-llrtx", "[[stage]]\nname = \"radio\"\ndown.per = \"5%\"\n");
    let plain = goodput(&scenario, "newreno");
    let counted = goodput_to(&scenario, "newreno+rebate", "reordering-alarm") / plain;
    let inferred = goodput_to(&scenario, "newreno+rebate", "newreno") / plain;
    assert!(counted > 1.8, "{counted:.2} with a receiver that counts");
    assert!(inferred > 1.3, "{inferred:.2} with a receiver that does not count");
    for detector in ["rr", "dcr", "pr"] {
        assert_same(&scenario, "reordering-alarm", 1, &format!("{detector}+rebate"), detector);
    }
}

/// A sender and a receiver. The test decides which packet arrives when.
struct ManualPath {
    now: Instant,
    hosts: [Host; 2],
    sender: ConnId,
}

impl ManualPath {
    /// Creates a connection whose sender has received ACKs for its whole initial window.
    fn new(sender: &str, receiver: &str) -> Self {
        let host = |recipe: &str, addr: [u8; 4], sack| {
            let profile = Profile::default().with(|it| {
                it.handshake.sack = sack;
                it.acks.policy = AckPolicy::EVERY;
            });
            let recipe = recipe.parse().unwrap();
            Host::new(HostConfig { addrs: vec![addr.into()], mtu: 1500, profile, recipe, seed: 1 })
        };
        let now = Instant::from_secs(1);
        let mut hosts = [
            host(sender, [192, 0, 2, 1], SackOffer::IfUsed),
            host(receiver, [192, 0, 2, 2], SackOffer::Always),
        ];
        let addr = ([192, 0, 2, 2], 80).into();
        let options = SocketOptions::of(hosts[1].profile());
        hosts[1].listen(addr, 1, options.clone()).unwrap();
        let sender = hosts[0].connect(now, None, addr, options).unwrap();
        let mut path = Self { now, hosts, sender };
        for _ in 0..2 {
            path.exchange();
        }
        path
    }

    fn packets_from(&mut self, host: usize) -> Vec<Vec<u8>> {
        let (mut packets, mut packet) = (Vec::new(), Vec::new());
        while self.hosts[host].poll_packet(self.now, &mut packet) {
            packets.push(packet.clone());
        }
        packets
    }

    /// Delivers all pending packets of both hosts, each after 50 ms.
    fn exchange(&mut self) {
        for host in [0, 1] {
            let packets = self.packets_from(host);
            self.now += Duration::from_millis(50);
            for packet in packets {
                self.hosts[1 - host].handle_packet(self.now, &packet);
            }
        }
    }

    /// Sends this many full segments, one per millisecond.
    fn segments(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        for _ in 0..count {
            self.now += Duration::from_millis(1);
            self.hosts[0].write(self.now, self.sender, &[7; 1448]).unwrap();
            packets.extend(self.packets_from(0));
        }
        assert_eq!(packets.len(), count);
        packets
    }

    /// Delivers a segment and returns the options of its ACK.
    fn deliver(&mut self, packet: &[u8]) -> Options {
        self.now += Duration::from_millis(1);
        self.hosts[1].handle_packet(self.now, packet);
        let answers = self.packets_from(1);
        segment::parse(answers.first().expect("every segment is acknowledged")).unwrap().options
    }

    fn alarms(&mut self, packets: &[Vec<u8>], order: &[usize]) -> Vec<Option<u16>> {
        order.iter().map(|index| self.deliver(&packets[*index]).reordered).collect()
    }
}

#[test]
fn receiver_counts_segments_overtaken_by_three() {
    let mut path = ManualPath::new("newreno", "reordering-alarm");
    let packets = path.segments(9);
    let order = [0, 2, 3, 1, 5, 6, 7, 4, 8];
    let alarms = path.alarms(&packets, &order);
    let expected = [0, 0, 0, 0, 0, 0, 0, 1, 1].map(Some);
    assert_eq!(alarms, expected, "segment 1 was overtaken by two, segment 4 by three");
}

#[test]
fn retransmission_is_not_counted_as_reordering() {
    let mut path = ManualPath::new("newreno", "reordering-alarm");
    let packets = path.segments(5);
    // Four ACKs, three of which are duplicates, reach the sender.
    for index in [0, 2, 3, 4] {
        path.hosts[1].handle_packet(path.now, &packets[index]);
        for ack in path.packets_from(1) {
            path.now += Duration::from_millis(5);
            path.hosts[0].handle_packet(path.now, &ack);
        }
    }
    let resent = path.packets_from(0);
    assert_eq!(resent.len(), 1, "the fast retransmit");
    assert_eq!(path.deliver(&resent[0]).reordered, Some(0));
    assert!(path.deliver(&packets[1]).reordered == Some(0), "the late original is not counted either");
}

#[test]
fn reordering_alarm_needs_request_timestamps_and_space() {
    let mut path = ManualPath::new("newreno", "newreno");
    let packets = path.segments(5);
    assert_eq!(path.alarms(&packets, &[0, 2, 3, 4, 1]), [None; 5], "the receiver does not use the option");

    let mut path = ManualPath::new("newreno+no-timestamps", "reordering-alarm");
    path.now += Duration::from_secs(1);
    path.hosts[0].write(path.now, path.sender, &[7; 1460 * 5]).unwrap();
    let packets = path.packets_from(0);
    assert_eq!(path.alarms(&packets, &[0, 2, 3, 4, 1]), [None; 5], "no alarm without timestamps");

    let mut path = ManualPath::new("sack", "reordering-alarm");
    let packets = path.segments(8);
    let answers: Vec<_> = [0, 2, 4, 6, 1].map(|index| path.deliver(&packets[index])).into();
    let blocks: Vec<_> = answers.iter().map(|options| options.sack.as_slice().len()).collect();
    let alarms: Vec<_> = answers.iter().map(|options| options.reordered).collect();
    assert_eq!(blocks, [0, 1, 2, 3, 2]);
    assert_eq!(alarms, [Some(0), Some(0), Some(0), None, Some(1)], "three blocks leave no room");
}

#[test]
fn loss_compensating_windows_gain_under_random_loss() {
    let path = lossy("2%");
    for repair in ["newreno", "sack"] {
        let plain = goodput(&path, repair);
        let windows = [("westwood", 1.8), ("veno", 1.4), ("jtcp", 1.3), ("tcp-fit", 1.8)];
        for (window, least) in sample(repair, windows, 2) {
            let gained = goodput(&path, &format!("{repair}+{window}")) / plain;
            assert!(gained > least, "{repair}+{window}: {gained:.2}");
        }
    }
}

#[test]
fn loss_compensating_windows_back_off_for_full_queue() {
    // Only the queue drops packets. An algorithm that attributes these drops to random loss would lose more
    // and more packets.
    let drops = |window: &str| {
        let world =
            Run { scenario: LINK, sender: window, receiver: "newreno", seconds: 120, seed: 1 }.world();
        (world.totals()[Direction::Down].dropped_for(DropReason::QueueFull), world.result(0).delivered)
    };
    let (aimd, _) = drops("sack");
    for window in sample("full queue", ["westwood", "veno", "jtcp", "tcp-fit", "cubic"], 2) {
        let (dropped, delivered) = drops(&format!("sack+{window}"));
        assert!(dropped < 4 * aimd, "{window} lost {dropped}, AIMD {aimd}");
        // 2 Mbit/s, of which 1448 of 1500 bytes are payload.
        assert!(delivered as f64 > 0.9 * 120.0 * 250_000.0 * 1448.0 / 1500.0, "{window}: {delivered}");
    }
}

#[test]
fn vegas_window_fills_path_without_losses() {
    let world = run(LINK, "newreno+vegas-window");
    let result = world.result(0);
    assert_eq!((result.counters.fast_retransmits, result.counters.timeouts), (0, 0));
    assert!(result.delivered as f64 > 0.9 * 60.0 * 250_000.0 * 1448.0 / 1500.0, "{}", result.delivered);
    // α to β segments in the queue add less than 25 ms to the 80 ms.
    let rtt = world.sender(0).and_then(|sender| sender.rtt().srtt()).unwrap();
    assert!(rtt < Duration::from_millis(110), "{rtt}");
}

#[test]
fn cubic_gains_only_on_long_fat_path() {
    let path = |rate: &str, delay: &str, queue: u32| {
        LINK.replace("2Mbit", rate).replace("40ms", delay).replace("= 25", &format!("= {queue}"))
            + "[[stage]]\nkind = \"loss\"\ndown = { model = \"uniform\", per = \"0.01%\" }\n"
    };
    let gain = |path: &str| {
        let delivered = |sender| run(path, sender).result(0).delivered as f64;
        delivered("sack+cubic") / delivered("sack")
    };
    // With p = 10⁻⁴ and RTT = 0.2 s, the average windows are 315 segments for CUBIC (RFC 9438 §5.1) and 120
    // for Reno.
    let long = gain(&path("50Mbit", "100ms", 1000));
    assert!(long > 1.5, "{long:.2}");
    let short = gain(&path("2Mbit", "10ms", 25));
    assert!((0.95..1.05).contains(&short), "{short:.2}");
}

#[test]
fn windows_stay_finite_and_above_minimum() {
    for seed in 100..100 + size(2, 6) {
        for window in WINDOWS {
            for (path, repair) in [(random_path(seed), "newreno"), (random_reordering(seed), "sack")] {
                let sender = format!("{repair}+{window}");
                let mut world =
                    Run { scenario: &path, sender: &sender, receiver: "reordering-alarm", seconds: 15, seed }
                        .world();
                assert!(world.result(0).delivered > 0, "{sender} on {path}");
                for decision in world.decisions(0) {
                    if let What::Window { cwnd, ssthresh, .. } = decision.what {
                        let sane = cwnd >= 1.0 && cwnd.is_finite() && ssthresh >= 2.0 && !ssthresh.is_nan();
                        assert!(sane, "{sender}: {decision:?} on {path}");
                    }
                }
            }
        }
    }
}
