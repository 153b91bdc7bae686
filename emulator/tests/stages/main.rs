//! The stages other than RLC, alone and in chains, in virtual time.

mod arq;
mod chains;
mod link;
mod lookahead;
mod memory;
mod outage;
mod traffic;

use std::fmt::Debug;

use airlink::machine::{Machine, catch_up, drain};
use airlink::packet::Direction;
use airlink::path::{FIXED, MOBILE, NamedStage, Path};
use airlink::settings::Directions;
use airlink::stage::{DropReason, Event, Recording, Stage};
use airlink::stages::arq::{Arq, ArqConfig};
use airlink::stages::duplex::{Duplex, OneWay};
use airlink::stages::link::{Link, LinkConfig, LinkInputs};
use airlink::stages::outage::{Outage, OutageConfig};
use airlink::stages::trace::Trace;
use airlink::stages::traffic::{Traffic, TrafficConfig};
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::{Probability, Rate};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn at(time: Duration) -> Instant {
    Instant::ZERO + time
}

fn kbit(rate: u64) -> Rate {
    Rate::bits_per_second(rate * 1000)
}

fn p(value: f64) -> Probability {
    Probability::new(value)
}

fn stream(what: &str) -> Stream {
    Stream::new(1, what)
}

fn down_only<T>(config: T) -> Directions<T> {
    Directions { down: Some(config), up: None }
}

/// Builds a stage in the directions that have settings.
fn duplex<S: OneWay + 'static, E: Debug>(
    directions: &Directions<S::Config>,
    make: impl FnMut(Direction, &S::Config) -> Result<S, E>,
) -> Box<dyn Stage> {
    Box::new(Duplex::build(directions, make).unwrap())
}

fn link(config: &LinkConfig) -> Box<dyn Stage> {
    duplex(&down_only(config.clone()), |_, config| Link::new(config, stream("link/jitter").into()))
}

fn traced(trace: &str) -> Box<dyn Stage> {
    let config = LinkConfig { trace: Some("some.trace".into()), ..LinkConfig::default() };
    let given = LinkInputs { trace: Some(Trace::parse(trace).unwrap()), ..stream("link").into() };
    duplex(&down_only(config), |_, config| Link::new(config, given.clone()))
}

fn outage(config: &OutageConfig) -> Box<dyn Stage> {
    duplex(&down_only(config.clone()), |_, config| Outage::new(config))
}

fn arq(config: &ArqConfig) -> Box<dyn Stage> {
    duplex(&down_only(config.clone()), |_, config| {
        Arq::new(config, stream("arq/damage"), stream("arq/queue"))
    })
}

fn traffic(config: &TrafficConfig, leaves_after: u16) -> Box<dyn Stage> {
    traffic_of(config, leaves_after, "traffic/times")
}

fn traffic_of(config: &TrafficConfig, leaves_after: u16, name: &str) -> Box<dyn Stage> {
    duplex(&down_only(config.clone()), |direction, config| {
        Traffic::new(config, direction, leaves_after, stream(name))
    })
}

fn path(stages: Vec<Box<dyn Stage>>) -> Path {
    path_recording(stages, Recording::Events)
}

fn path_recording(stages: Vec<Box<dyn Stage>>, recording: Recording) -> Path {
    let named =
        stages.into_iter().enumerate().map(|(i, stage)| NamedStage { name: format!("stage-{i}"), stage });
    Path::new(named.collect(), recording, false)
}

/// A packet whose first two bytes are its number. It is not an IP packet, which every stage must accept.
fn numbered(number: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length.max(2)];
    bytes[..2].copy_from_slice(&(number as u16).to_be_bytes());
    bytes
}

fn number(bytes: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Sends packets (time, length) down and runs the path until `end`. Returns the numbers and arrival times at the mobile
/// side.
fn run(path: &mut Path, sent: &[(Instant, usize)], end: Instant) -> Vec<(usize, Instant)> {
    let mut arrived = Vec::new();
    let mut arrive = |now, port, bytes: Vec<u8>| {
        assert_eq!(port, MOBILE);
        arrived.push((number(&bytes), now));
    };
    for (n, (time, length)) in sent.iter().enumerate() {
        catch_up(path, *time, &mut arrive);
        path.handle_packet(*time, FIXED, numbered(n, *length));
        drain(path, *time, &mut arrive);
    }
    catch_up(path, end, &mut arrive);
    arrived
}

fn numbers(arrived: &[(usize, Instant)]) -> Vec<usize> {
    arrived.iter().map(|(number, _)| *number).collect()
}

/// `packets` packets of equal length, all sent at the start.
fn burst(packets: usize, length: usize) -> Vec<(Instant, usize)> {
    vec![(Instant::ZERO, length); packets]
}

fn dropped(path: &mut Path) -> Vec<(u64, DropReason)> {
    path.take_records()
        .into_iter()
        .filter_map(|record| match record.event {
            Event::Dropped { why } => Some((record.packet.0, why)),
            _ => None,
        })
        .collect()
}

const HOUR: Instant = Instant::from_secs(3600);
