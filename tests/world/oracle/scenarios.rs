//! The scenarios and agents of ns-2 for airtcp. P0's scenario is defined with P0's figures.

use std::ops::Range;

use airlink::scenario::Scenario;
use airtcp::profile::recovery::InitialWindow;
use airtcp::profile::{AckPolicy, Profile};
use airtcp::recovery::Recipe;
use airtcp::rtt::{RtoLimits, TimerStyle};
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length};
use airwire::time::{Duration, Instant};

/// ns-2's Tahoe, Reno, NewReno and Sack1.
pub(crate) const SENDERS: [&str; 4] = ["tahoe", "reno", "newreno", "sack"];

/// Bytes per packet in ns-2's goodput.
pub(crate) const PACKET: u16 = 1000;

/// Adapts a profile to ns-2, whose receivers do not report duplicates.
fn host(profile: Profile, mss: u16) -> Profile {
    profile.with(|it| {
        it.handshake.mss = Some(mss);
        it.handshake.timestamps = false;
        it.acks.dsack = false;
        it.acks.policy = AckPolicy::EVERY;
    })
}

struct Agents {
    /// Payload bytes of a segment; headers add 40 bytes.
    mss: u16,
    /// In milliseconds.
    tick: u64,
    min_rto: u64,
    /// The receive window in packets.
    window: usize,
}

fn plan(agents: &Agents, scenario: &str, flows: Vec<Flow>, from: u64, until: u64) -> Run {
    let mut sender = host(Profile::ns2(), agents.mss);
    let tick = Duration::from_millis(agents.tick);
    // Phase of ns-2's clock within a tick.
    let phase = Duration::from_nanos(agents.tick * 555_881);
    sender.timers.rto.style = TimerStyle::Ns2 { tick, phase, min_before_backoff: true };
    sender.timers.rto.limits = RtoLimits {
        min: Duration::from_millis(agents.min_rto),
        max: Duration::from_secs(60),
        initial: Duration::from_secs(3),
    };
    sender.recovery.initial.window = InitialWindow::Segments(2);
    let buffer = Some(agents.window * usize::from(agents.mss));
    Run {
        scenario: Scenario::parse(scenario, "oracle").unwrap(),
        seed: 0,
        fixed: HostSpec { profile: sender, recipe: Recipe::default() },
        mobile: HostSpec {
            profile: host(HostSpec::receiver().profile, agents.mss),
            recipe: Recipe::default(),
        },
        flows: flows.into_iter().map(|flow| Flow { receive_buffer: buffer, ..flow }).collect(),
        until: Until::At(Instant::from_secs(until)),
        from: Instant::from_secs(from),
        score: false,
    }
}

fn flow(recipe: &str) -> Flow {
    Flow { recipe: Some(recipe.parse().unwrap()), ..Flow::down(Length::Endless) }
}

/// Returns a path of two links, the second one with uniform loss of data. With a limit of L in ns-2, L − 1
/// packets can wait.
fn two_links(first: (&str, &str), second: (&str, &str), limit: u32, per: f64) -> String {
    let link = |(rate, delay): (&str, &str)| {
        let queue = limit - 1;
        format!(
            "[[stage]]\nkind = \"link\"\nboth = {{ rate = \"{rate}\", delay = \"{delay}\", queue = {{ packets = {queue} }} }}\n"
        )
    };
    let loss = format!("[[stage]]\nkind = \"loss\"\ndown = {{ model = \"uniform\", per = {per} }}\n");
    ["schema = 1\n", &link(first), &link(second), &loss].concat()
}

/// Seconds in which ns-2's goodput of P3 was measured. The goodput is steady long before. A change therefore
/// measures [`SHORT_PERIOD`], with a wider confidence interval.
pub(crate) const NS2_PERIOD: Range<u64> = 1000..2000;
pub(crate) const SHORT_PERIOD: Range<u64> = 20..170;

/// P3's agents, whose packets include headers on the wire.
const P3_AGENTS: Agents = Agents { mss: PACKET, tick: 10, min_rto: 200, window: 1000 };

/// Returns the run of P3 Fig. 1. `measured` is the period of the measurement in seconds.
pub(crate) fn backbone(recipe: &str, per: f64, measured: Range<u64>) -> Run {
    let path = two_links(("10Mbit", "50ms"), ("2Mbit", "10ms"), 50, per);
    plan(&P3_AGENTS, &path, vec![flow(recipe)], measured.start, measured.end)
}

/// Returns the run of P3 Fig. 3. Each of the twelve flows has its own access link on either side, with 10
/// Mbit/s and 10 ms. No queue builds up there, so the path only includes their part of the round trip: 40 ms,
/// and 1.73 ms of transmission.
pub(crate) fn dumbbell(per: f64, measured: Range<u64>) -> Run {
    let path = two_links(("1Gbit", "20.86ms"), ("2Mbit", "20ms"), 50, per);
    let flows = vec![flow("newreno+limited-transmit"); 12];
    plan(&P3_AGENTS, &path, flows, measured.start, measured.end)
}

/// Returns the run of P1 Fig. 3a.
pub(crate) fn last_hop(recipe: &str, per: f64) -> Run {
    let path = two_links(("10Mbit", "5ms"), ("500kbit", "30ms"), 20, per);
    // A packet has 1000 bytes on the wire, including headers: with headers on top, 477 kbit/s at 1 % loss
    // would exceed the capacity.
    let agents = Agents { mss: PACKET - 40, tick: 100, min_rto: 1000, window: 20 };
    plan(&agents, &path, vec![flow(recipe)], 0, 400)
}
