//! Helpers for tests of this crate.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use aircaptures::packet::{Packet, Timestamp};
use airlink::capture::Tap;
use airlink::path::{FIXED, MOBILE};
use airtcp_sim::world::World;
use airwire::options::Options;
use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

/// A scenario with a link and another stage.
macro_rules! scenario {
    ($link:literal, $stage:literal) => {
        concat!(
            "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\nboth = { ",
            $link,
            " }\n[[stage]]\n",
            $stage,
            "\n"
        )
    };
}
pub(crate) use scenario;

/// Delays all packets by two seconds once. No packet is lost.
pub(crate) const LATE: &str = scenario!(
    r#"rate = "1Mbit", delay = "50ms""#,
    "kind = \"outage\"\nboth = { at = [\"3s\"], lasts = \"2s\", packets = \"requeued\" }"
);

/// Packets with their times.
pub(crate) type Recording = Vec<(Instant, Vec<u8>)>;

/// Records packets at a capture point. Clones share the recording.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Recording>>);

impl Tap for Recorder {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        self.0.lock().unwrap().packet(at, packet);
    }
}

/// Runs one flow to its end. Returns the recordings at the fixed and at the mobile side.
pub(crate) fn run_flow(scenario: &str, recipe: &str, bytes: u64, seed: u64) -> (World, [Recording; 2]) {
    let mut world = World::one_flow(scenario, recipe, bytes, seed).unwrap();
    let recordings = [FIXED, MOBILE].map(|point| {
        let recorder = Recorder::default();
        world.tap(point, recorder.clone());
        recorder
    });
    assert!(world.run_to_end(Duration::from_secs(7200)).unwrap());
    (world, recordings.map(|recorder| std::mem::take(&mut *recorder.0.lock().unwrap())))
}

/// Returns a packet without data, options or ACK.
pub(crate) fn packet(src: SocketAddr, dst: SocketAddr) -> Packet {
    Packet {
        number: 0,
        at: Timestamp(0),
        src,
        dst,
        seq: Seq(0),
        ack: None,
        flags: Flags::ACK,
        window: 1000,
        ecn: Ecn::NotEct,
        len: 0,
        ip_id: None,
        options: Options::default(),
        options_cut: false,
    }
}
