//! A path that consists of one bearer.

use airlink::machine::{Machine, catch_up, drain};
use airlink::packet::Direction;
use airlink::path::{FIXED, MOBILE, NamedStage, Path};
use airlink::rlc::config::BlockErrors;
use airlink::settings::{Position, Settings};
use airlink::stage::{RadioPdu, Recording};
use airwire::time::{Duration, Instant};
use airwire::units::Probability;

/// A path that consists of one bearer, and the packets that have left it.
pub(crate) struct Run {
    pub(crate) path: Path,
    pub(crate) left: Vec<(Instant, Direction, Vec<u8>)>,
}

impl Run {
    pub(crate) fn new(config: &dyn Settings, seed: u64) -> Self {
        Self::recording(config, seed, Recording::Off, false)
    }

    pub(crate) fn recording(config: &dyn Settings, seed: u64, recording: Recording, radio: bool) -> Self {
        let stage = config.build(Position { index: 0, names: &["radio"] }, seed).unwrap();
        let path = Path::new(vec![NamedStage { name: "radio".to_owned(), stage }], recording, radio);
        Self { path, left: Vec::new() }
    }

    pub(crate) fn until(&mut self, now: Instant) {
        let Self { path, left } = self;
        catch_up(path, now, |at, port, bytes| left.push((at, direction(port), bytes)));
    }

    pub(crate) fn send(&mut self, now: Instant, direction: Direction, bytes: Vec<u8>) {
        self.until(now);
        let port = if direction == Direction::Down { FIXED } else { MOBILE };
        self.path.handle_packet(now, port, bytes);
        let Self { path, left } = self;
        drain(path, now, |at, port, bytes| left.push((at, self::direction(port), bytes)));
    }

    /// Numbers of the packets that have left, in order.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.left.iter().map(|(_, _, bytes)| number_of(bytes)).collect()
    }

    /// The PDUs transmitted down since the last call.
    pub(crate) fn take_down_pdus(&mut self) -> Vec<RadioPdu> {
        let pdus = self.path.take_pdus().into_iter();
        pdus.filter(|pdu| pdu.direction == Direction::Down).collect()
    }

    /// Runs until `end` and checks packet conservation after every deadline.
    pub(crate) fn step_through(&mut self, end: Instant) {
        while let Some(deadline) = self.path.next_deadline().filter(|deadline| *deadline <= end) {
            self.until(deadline);
            self.check_conservation();
        }
    }

    /// `Σ entered = Σ left + Σ dropped + held`.
    pub(crate) fn check_conservation(&self) {
        let totals = self.path.totals();
        let (mut entered, mut settled) = (0, 0);
        for (_, totals) in totals.iter() {
            entered += totals.entered;
            settled += totals.left + totals.dropped.iter().sum::<u64>();
        }
        assert_eq!(entered, settled + self.path.held() as u64, "{totals:?}");
    }

    pub(crate) fn counter(&self, direction: Direction, pointer: &str) -> u64 {
        let stats = self.path.stats();
        let value = stats.pointer(&format!("/radio/{direction}/{pointer}"));
        value.and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {stats:#}"))
    }
}

/// Direction of a packet that leaves through this port.
pub(crate) fn direction(port: airlink::machine::Port) -> Direction {
    if port == MOBILE { Direction::Down } else { Direction::Up }
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

pub(crate) fn bler(p: f64) -> BlockErrors {
    BlockErrors::Independent { bler: Probability::new(p) }
}

/// Packet number `n`: it starts with the number, followed by bytes that depend on it.
pub(crate) fn numbered(n: u32, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = n.to_be_bytes().into_iter().collect();
    let mut state = n.wrapping_mul(2_654_435_761).wrapping_add(length as u32);
    bytes.resize_with(length.max(4), || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    bytes
}

pub(crate) fn number_of(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(*bytes.first_chunk().expect("at least four bytes"))
}
