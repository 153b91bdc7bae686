//! A path that looks ahead has the same results as one that handles each event at its time.

use airlink::machine::{Port, catch_up};
use airlink::path::{FIXED, MOBILE, Path};
use airlink::stage::Recording;
use airlink::stages::link::LinkConfig;
use airlink::stages::queue::QueueConfig;
use airlink::stages::traffic::TrafficConfig;
use airtcp_testkit::sample::cases;
use airwire::time::{Duration, Instant};
use airwire::units::Size;
use proptest::prelude::*;

use super::chains::{StageConfig, any_bounds, any_loss, any_stage};
use super::traffic::cbr;
use super::*;

/// Times are multiples of 1 ms, so that many events happen at the same time.
fn any_coarse_link() -> impl Strategy<Value = StageConfig> {
    let rate = prop_oneof![Just(None), Just(Some(80)), Just(Some(800))];
    (rate, 0_u64..20, prop_oneof![3 => Just(0_u64), 1 => Just(7)], any_bounds()).prop_map(
        |(rate, delay, jitter, bounds)| {
            StageConfig::Link(LinkConfig {
                rate: rate.map(kbit),
                delay: ms(delay),
                jitter: ms(jitter),
                queue: QueueConfig::from(bounds),
                ..LinkConfig::default()
            })
        },
    )
}

fn any_coarse_traffic() -> impl Strategy<Value = StageConfig> {
    (1_u64..4, 1_u32..4, 0_u64..3, 1_usize..5).prop_map(|(packet, sources, starts, reach)| {
        let packet = Size::bytes(100 * packet);
        let config = TrafficConfig { packet, rate: kbit(40), sources, starts: ms(10 * starts), ..cbr() };
        StageConfig::Traffic(config, reach)
    })
}

fn any_path() -> impl Strategy<Value = Vec<StageConfig>> {
    let stage = prop_oneof![
        6 => any_coarse_link(),
        3 => any_coarse_traffic(),
        3 => any_loss(),
        1 => any_stage(),
    ];
    proptest::collection::vec(stage, 1..7)
}

/// Packets from both sides, as milliseconds since the previous packet, whether the packet travels down, and
/// hundreds of bytes.
fn any_coarse_packets() -> impl Strategy<Value = Vec<(u64, bool, usize)>> {
    proptest::collection::vec((prop_oneof![Just(0), 0_u64..40], any::<bool>(), 1_usize..6), 0..100)
}

/// A path, and the packets that have left it, by port. The order of packets of different directions that leave at
/// the same time is not specified.
struct Run {
    path: Path,
    left: [Vec<(Instant, Vec<u8>)>; 2],
}

impl Run {
    fn new(configs: &[StageConfig], seed: u64, looks_ahead: bool) -> Self {
        let stages = configs.iter().enumerate().map(|(index, config)| config.stage(index, seed));
        let mut path = path_recording(stages.collect(), Recording::Off);
        if looks_ahead {
            path.be_lazy(true);
            path.look_ahead(0);
        }
        Self { path, left: [Vec::new(), Vec::new()] }
    }

    fn run_until(&mut self, now: Instant) {
        catch_up(&mut self.path, now, |at, Port(port), packet| self.left[port].push((at, packet)));
    }

    fn send(&mut self, now: Instant, port: Port, packet: Vec<u8>) {
        self.run_until(now);
        self.path.handle_packet(now, port, packet);
        drain(&mut self.path, now, |at, Port(port), packet| self.left[port].push((at, packet)));
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn lookahead_changes_no_result(
        configs in any_path(),
        packets in any_coarse_packets(),
        seed in any::<u64>(),
        looks in 1_usize..20,
    ) {
        let [mut by_event, mut ahead] = [false, true].map(|ahead| Run::new(&configs, seed, ahead));
        let mut now = Instant::ZERO;
        for (n, (gap, down, hundreds)) in packets.iter().enumerate() {
            now += ms(*gap);
            for run in [&mut by_event, &mut ahead] {
                run.send(now, if *down { FIXED } else { MOBILE }, numbered(n, 100 * hundreds));
            }
            prop_assert_eq!(&by_event.left, &ahead.left, "at {}", now);
            prop_assert_eq!(by_event.path.totals(), ahead.path.totals(), "at {}", now);
            if n % looks == 0 {
                let look = now + Duration::from_micros(300 * (n as u64 % 4));
                for run in [&mut by_event, &mut ahead] {
                    run.run_until(look);
                    run.path.catch_up(look);
                }
                now = look;
                prop_assert_eq!(by_event.path.stats(), ahead.path.stats(), "at {}", look);
                prop_assert_eq!(by_event.path.totals(), ahead.path.totals(), "at {}", look);
                prop_assert_eq!(by_event.path.background(), ahead.path.background(), "at {}", look);
                prop_assert_eq!(by_event.path.held(), ahead.path.held(), "at {}", look);
            }
        }
        let end = now + ms(3000);
        for run in [&mut by_event, &mut ahead] {
            run.run_until(end);
            run.path.catch_up(end);
        }
        prop_assert_eq!(&by_event.left, &ahead.left);
        prop_assert_eq!(by_event.path.stats(), ahead.path.stats());
    }
}
