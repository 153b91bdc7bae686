//! Model-based congestion control (BBR) end to end: it fills the path with a short queue, random losses cost
//! little, and after a pause of the application it continues at the known rate.

use airlink::scenario::Scenario;
use airtcp::host::{ConnId, IoError, ListenId};
use airtcp::profile::{Profile, SackOffer};
use airtcp::recovery::{Recipe, What};
use airtcp::tcp::SocketOptions;
use airtcp_sim::world::{Flow, HostSpec, Length, Watch, World, WorldConfig};
use airtcp_testkit::pair::{Impairments, Pair, Peer, RIGHT};
use airtcp_testkit::sample::size;
use airwire::segment;
use airwire::time::{Duration, Instant};

const MODELS: [&str; 2] = ["bbr", "bbr3"];

/// 10 Mbit/s and a round trip of 40 ms, with a queue of one bandwidth-delay product.
const LINK: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "wire"
both = { rate = "10Mbit", delay = "20ms", queue = { packets = 34 } }
"#;

fn world(scenario: &str, senders: &[String]) -> World {
    world_with(scenario, senders, HostSpec::receiver())
}

fn world_with(scenario: &str, senders: &[String], mobile: HostSpec) -> World {
    let flow = |sender: &String| Flow {
        recipe: Some(sender.parse().unwrap()),
        watch: Watch::Decisions,
        ..Flow::down(Length::Endless)
    };
    World::new(WorldConfig {
        scenario: Scenario::parse(scenario, "test").unwrap(),
        seed: 1,
        fixed: HostSpec::sender("sack".parse().unwrap()),
        mobile,
        flows: senders.iter().map(flow).collect(),
    })
    .unwrap()
}

/// Returns the data delivered in 30 s, as a fraction of the path's capacity.
fn share(scenario: &str, sender: &str) -> f64 {
    let mut world = world(scenario, &[sender.to_owned()]);
    world.run_until(Instant::from_secs(30)).unwrap();
    world.result(0).delivered as f64 * 8.0 / (10e6 * 30.0 * 1448.0 / 1500.0)
}

#[test]
fn bbr_fills_path_with_short_queue() {
    for model in MODELS {
        let mut world = world(LINK, &[format!("rack+{model}")]);
        world.run_until(Instant::from_secs(2)).unwrap();
        let before = world.result(0).delivered;
        let mut round_trips = Vec::new();
        for ms in (2000..30_000).step_by(10) {
            world.run_until(Instant::from_millis(ms)).unwrap();
            round_trips.extend(world.sender(0).and_then(|sender| sender.rtt().latest()));
        }
        let rate = (world.result(0).delivered - before) as f64 * 8.0 / 28.0;
        assert!(rate > 0.95 * 10e6 * 1448.0 / 1500.0, "{model}: {rate} bit/s");
        let mean = round_trips.iter().map(|rtt| rtt.as_secs_f64()).sum::<f64>() / round_trips.len() as f64;
        // A full queue would add 41 ms.
        assert!(mean < 0.060, "{model}: a mean round trip of {mean} s");
        assert_eq!(world.result(0).counters.timeouts, 0, "{model}");
    }
}

#[test]
fn bbr_outperforms_cubic_under_random_loss() {
    let lossy = format!("{LINK}[[stage]]\nkind = \"loss\"\ndown = {{ model = \"uniform\", per = \"1%\" }}\n");
    let cubic = share(&lossy, "sack+rack+cubic");
    for (model, least) in [("bbr", 0.93), ("bbr3", 0.8)] {
        let share = share(&lossy, &format!("sack+rack+{model}"));
        assert!(share > least, "{model}: {share}");
        assert!(share > 3.0 * cubic, "{model}: {share}, cubic {cubic}");
    }
}

#[test]
fn bbr_works_without_sack() {
    for model in MODELS {
        let mut mobile = HostSpec::receiver();
        mobile.profile.handshake.sack = SackOffer::Never;
        let mut world = world_with(LINK, &[model.to_owned()], mobile);
        world.run_until(Instant::from_secs(30)).unwrap();
        let share = world.result(0).delivered as f64 * 8.0 / (10e6 * 30.0 * 1448.0 / 1500.0);
        assert!(share > 0.7, "{model}: {share} of the capacity");
    }
}

#[test]
fn only_bbr_sets_congestion_window() {
    for model in MODELS {
        let mut world = world(LINK, &[format!("rack+{model}")]);
        world.run_until(Instant::from_secs(12)).unwrap();
        for decision in world.decisions(0) {
            if matches!(decision.what, What::Window { .. }) {
                assert_eq!(decision.by, model, "{decision:?}");
            }
        }
    }
}

#[test]
fn equal_bbr_flows_share_path() {
    for model in MODELS {
        let mut world = world(LINK, &[model.to_owned(), model.to_owned()]);
        world.run_until(Instant::from_secs(10)).unwrap();
        let before = world.results();
        world.run_until(Instant::from_secs(size(40, 70))).unwrap();
        let gained: Vec<f64> = (world.results().iter().zip(&before))
            .map(|(now, then)| (now.delivered - then.delivered) as f64)
            .collect();
        let less = gained[0].min(gained[1]) / (gained[0] + gained[1]);
        assert!(less > 0.25, "{model}: the smaller share is {less}");
    }
}

/// A sender on a path of 10 Mbit/s and 40 ms. The test determines the rate of its application.
struct PacedTransfer {
    pair: Pair,
    listener: ListenId,
    sender: ConnId,
    receiver: Option<ConnId>,
}

impl PacedTransfer {
    fn new(model: &str) -> Self {
        let profile = Profile::default();
        let path = Impairments {
            per_byte: Duration::from_nanos(800),
            queue: 60,
            ..Impairments::lossless(Duration::from_millis(20))
        };
        let sender: Recipe = model.parse().unwrap();
        let mut pair = Pair::new(1, (&sender, &"sack".parse().unwrap()), (&profile, &profile), path);
        pair.tap = Some(Vec::new());
        let options = SocketOptions::of(&profile);
        let listener = pair.right.listen((RIGHT, 80).into(), 1, options.clone()).unwrap();
        let sender = pair.left.connect(pair.now, None, (RIGHT, 80).into(), options).unwrap();
        let mut transfer = Self { pair, listener, sender, receiver: None };
        transfer.run(Duration::from_millis(200), 0);
        transfer
    }

    /// Runs for `time`. The application writes `rate` bytes per millisecond if the send buffer has room.
    fn run(&mut self, time: Duration, rate: u64) {
        let end = self.pair.now + time;
        let mut written_at = self.pair.now;
        while self.pair.now < end {
            let milliseconds = (self.pair.now - written_at).as_millis();
            if milliseconds > 0 && rate > 0 {
                written_at += Duration::from_millis(milliseconds);
                let text = vec![0; (milliseconds * rate) as usize];
                match self.pair.left.write(self.pair.now, self.sender, &text) {
                    Ok(_) | Err(IoError::WouldBlock) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            self.receiver = self.receiver.or_else(|| self.pair.right.accept(self.listener));
            if let Some(receiver) = self.receiver {
                let mut buffer = [0; 65_536];
                while self.pair.right.read(receiver, &mut buffer).is_ok_and(|count| count > 0) {}
            }
            let before = self.pair.now;
            // The next event may be far in the future, but the application writes before that.
            if !self.pair.step() {
                self.pair.now = if rate > 0 { before + Duration::from_millis(1) } else { end };
            }
        }
    }

    fn delivered(&self) -> u64 {
        self.pair.left.connection(self.sender).unwrap().flight().una()
    }

    /// Returns the time and payload bytes of each segment sent from `since` on.
    fn departures(&self, since: Instant) -> Vec<(Instant, usize)> {
        let tap = self.pair.tap.as_ref().unwrap();
        let ours = tap.iter().filter(|(at, from, _)| *at >= since && *from == Peer::Left);
        ours.map(|(at, _, packet)| (*at, segment::parse(packet).unwrap().payload.len())).collect()
    }
}

#[test]
fn bbr_resumes_paced_at_known_rate_after_pause() {
    for model in MODELS {
        let mut transfer = PacedTransfer::new(model);
        transfer.run(Duration::from_secs(3), 10_000);
        transfer.run(Duration::from_secs(20), 0);
        let (resumed, delivered) = (transfer.pair.now, transfer.delivered());
        transfer.run(Duration::from_secs(1), 10_000);
        let first: usize = transfer
            .departures(resumed)
            .iter()
            .filter(|(at, _)| *at < resumed + Duration::from_millis(20))
            .map(|(_, bytes)| bytes)
            .sum();
        // 20 ms at 9.65 Mbit/s correspond to 24,100 bytes.
        assert!((15_000..30_000).contains(&first), "{model}: {first} bytes in 20 ms");
        let rate = (transfer.delivered() - delivered) as f64 / 1e6 * 8.0;
        // From the first ACK after the pause, the sender uses the full rate. One round trip is 40 ms of the
        // second.
        assert!(rate > 0.9 * 9.65, "{model}: {rate} Mbit in the next second");
    }
}

#[test]
fn application_limited_rate_does_not_lower_estimate() {
    for model in MODELS {
        let mut transfer = PacedTransfer::new(model);
        transfer.run(Duration::from_secs(3), 10_000);
        // The data in the send buffer leaves.
        transfer.run(Duration::from_secs(5), 0);
        // The application writes a twelfth of the path's capacity, for longer than any estimate is kept.
        transfer.run(Duration::from_secs(8), 100);
        let delivered = transfer.delivered();
        transfer.run(Duration::from_secs(1), 10_000);
        let rate = (transfer.delivered() - delivered) as f64 / 1e6 * 8.0;
        assert!(rate > 0.9 * 9.65, "{model}: {rate} Mbit in the next second");
    }
}
