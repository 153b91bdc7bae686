//! Data radio bearers of LTE and NR as a stage: delay, throughput, order and outcome of every packet,
//! compared with closed forms.

mod arq;
mod channel;
mod connection;
mod dedicated;
mod in_order_release;
#[path = "../common/packets.rs"]
mod packets;
#[path = "../rlc_bearer/run.rs"]
#[allow(dead_code, reason = "shared with the tests of the stage `rlc`")]
mod run;
mod tshark;
mod um;
mod uplink;

use airlink::drb::config::{Generation, NrConfig};
use airlink::mac::grid::Pattern;
use airlink::packet::Direction;
use airwire::time::Duration;
use airwire::units::{Probability, Size};
use run::{Run, bler, numbered};

/// An FDD bearer with these transport blocks and without errors. Every uplink slot is granted.
fn fdd(down: u64, up: u64) -> NrConfig {
    let mut config = NrConfig { pattern: Pattern::fdd(), ..NrConfig::default() };
    config.down.tbs = Some(Size::bytes(down));
    config.up.tbs = Some(Size::bytes(up));
    config.up.grant.get_or_insert_default().sr_period = None;
    config
}

/// Sets the probabilities that a first transmission and a retransmission fail.
fn set_bler<G: Generation>(harq: &mut airlink::drb::config::HarqSettings<G>, first: f64, again: f64) {
    harq.bler = bler(first);
    harq.retx_bler = Probability::new(again);
}

/// Sends packets of 1500 bytes down at this rate (packets per second) for `length`.
fn send_down(run: &mut Run, rate: u64, length: Duration) {
    let interval = Duration::from_nanos(1_000_000_000 / rate);
    for n in 0..length.as_nanos() / interval.as_nanos() {
        let at = airwire::time::Instant::ZERO + interval * n;
        run.send(at, Direction::Down, numbered(n as u32, 1500));
    }
}

fn is_in_order(numbers: &[u32]) -> bool {
    numbers.is_sorted()
}
