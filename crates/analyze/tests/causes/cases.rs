//! Transfers with a known cause, drawn over ranges of parameters.

use airtcp_analyze::connection::findings::Cause;
use airwire::rng::Stream;
use airwire::time::Duration;

use crate::transfer::{Pattern, Transfer};

/// Every cause with a generator.
pub(crate) const KINDS: [Cause; 28] = [
    Cause::ReceiverWindow,
    Cause::NoWindowScaling,
    Cause::SlowReader,
    Cause::SendBuffer,
    Cause::SlowWriter,
    Cause::ServerThinkTime,
    Cause::ClientThinkTime,
    Cause::SerialRequests,
    Cause::NagleDelayedAck,
    Cause::SlowStart,
    Cause::RandomLoss,
    Cause::BurstLoss,
    Cause::Policer,
    Cause::Bufferbloat,
    Cause::LinkRate,
    Cause::EcnMarks,
    Cause::Reordering,
    Cause::Duplication,
    Cause::AckLoss,
    Cause::ThinUplink,
    Cause::SpuriousTimeouts,
    Cause::Outage,
    Cause::PathMtuBlackHole,
    Cause::PathDeath,
    Cause::HandshakeRefused,
    Cause::HandshakeFailed,
    Cause::HandshakeDelayed,
    Cause::IdleRestart,
];

/// Returns one of the values.
fn any<T: Copy>(draw: &mut Stream, values: &[T]) -> T {
    values[draw.below(values.len() as u64) as usize]
}

/// Returns a value from a range.
fn within(draw: &mut Stream, low: f64, high: f64) -> f64 {
    low + draw.unit() * (high - low)
}

/// A path: rate in kbit/s, round trip in milliseconds, queue in bytes, and another stage.
pub(crate) fn path(rate: f64, rtt: f64, queue: f64, stage: &str) -> String {
    let delay = rtt * 500.0;
    format!(
        "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\n\
         down = {{ rate = \"{rate:.0}kbit\", delay = \"{delay:.0}us\", queue = {{ bytes = \"{queue:.0}B\" }} }}\n\
         up = {{ rate = \"{rate:.0}kbit\", delay = \"{delay:.0}us\" }}\n{stage}\n"
    )
}

/// Bytes of a bandwidth-delay product.
fn product(rate: f64, rtt: f64) -> f64 {
    rate * rtt / 8.0
}

/// Random values of a transfer.
struct Drawn {
    draw: Stream,
    /// Milliseconds.
    rtt: f64,
    /// Rates in kbit/s.
    fast: f64,
    slow: f64,
}

impl Drawn {
    fn within(&mut self, low: f64, high: f64) -> f64 {
        within(&mut self.draw, low, high)
    }

    /// Returns a fast path with another stage.
    fn path_with(&self, stage: &str) -> String {
        path(self.fast, self.rtt, 4e6, &format!("[[stage]]\n{stage}"))
    }
}

/// Returns the transfer of this kind with this seed.
pub(crate) fn transfer(cause: Cause, seed: u64) -> Transfer {
    let mut draw = Stream::new(seed, &format!("{cause:?}"));
    let rtt = within(&mut draw, 20.0, 160.0);
    let fast = within(&mut draw, 15_000.0, 40_000.0);
    let slow = within(&mut draw, 1_500.0, 8_000.0);
    let mut of = Transfer::over(path(fast, rtt, 4e6, ""));
    of.recipe = any(&mut draw, &["linux", "linux", "reno-linux"]);
    let drawn = &mut Drawn { draw, rtt, fast, slow };
    let is_known = end_limits(cause, drawn, &mut of)
        || applications(cause, drawn, &mut of)
        || links(cause, drawn, &mut of)
        || harmless_disturbances(cause, drawn, &mut of)
        || losses(cause, drawn, &mut of)
        || outages(cause, drawn, &mut of)
        || failures(cause, drawn, &mut of);
    assert!(is_known, "{cause:?} has no generator");
    of
}

/// Limits at the ends of the connection. Returns whether the cause is such a limit.
fn end_limits(cause: Cause, drawn: &mut Drawn, of: &mut Transfer) -> bool {
    let (rtt, fast) = (drawn.rtt, drawn.fast);
    match cause {
        Cause::ReceiverWindow => {
            of.receive_buffer = Some((product(fast, rtt) * drawn.within(0.1, 0.5)).max(9000.0) as usize);
        }
        Cause::NoWindowScaling => {
            of.scenario = path(40_000.0, drawn.within(40.0, 250.0), 4e6, "");
            of.window_scaling = false;
        }
        Cause::SlowReader => {
            of.read_rate = Some(drawn.within(30e3, 300e3) as u64);
            let buffer = drawn.within(16e3, 200e3) as usize;
            // Otherwise the buffer grows by itself.
            of.receive_buffer = Some(buffer).filter(|_| drawn.within(0.0, 1.0) < 0.5);
        }
        Cause::SendBuffer => {
            let buffer = (product(fast, rtt) * drawn.within(0.15, 0.5)).max(12_000.0);
            of.send_buffer = Some(buffer as usize);
        }
        _ => return false,
    }
    true
}

/// Applications that wait, and short transfers. Returns whether the cause belongs to this group.
fn applications(cause: Cause, drawn: &mut Drawn, of: &mut Transfer) -> bool {
    let (rtt, fast) = (drawn.rtt, drawn.fast);
    match cause {
        Cause::SlowWriter => {
            let (bytes, pause) = (drawn.within(1e3, 40e3) as usize, drawn.within(0.05, 0.8));
            of.pattern = Pattern::Chunks { bytes, pause: Duration::from_secs_f64(pause + 3.0 * rtt / 1e3) };
        }
        Cause::ServerThinkTime | Cause::ClientThinkTime => {
            let pause = Duration::from_secs_f64(drawn.within(3.0, 8.0) * rtt / 1e3 + 0.1);
            let [client_thinks, server_thinks] = match cause {
                Cause::ClientThinkTime => [pause, Duration::ZERO],
                _ => [Duration::ZERO, pause],
            };
            let answer = drawn.within(500.0, 14e3) as usize;
            of.pattern = Pattern::Requests { answer, client_thinks, server_thinks };
        }
        Cause::SerialRequests => {
            let answer = drawn.within(100.0, 12e3) as usize;
            let none = Duration::ZERO;
            of.pattern = Pattern::Requests { answer, client_thinks: none, server_thinks: none };
        }
        Cause::NagleDelayedAck => {
            of.scenario = path(fast, drawn.within(4.0, 25.0), 4e6, "");
            of.pattern =
                Pattern::Pieces([drawn.within(100.0, 500.0) as usize, drawn.within(100.0, 500.0) as usize]);
            (of.nagle, of.delays_acks) = (true, true);
        }
        Cause::SlowStart => of.pattern = Pattern::Bulk(drawn.within(30e3, 250e3) as usize),
        _ => return false,
    }
    true
}

/// Rates and queues of links. Returns whether the cause belongs to this group.
fn links(cause: Cause, drawn: &mut Drawn, of: &mut Transfer) -> bool {
    let (rtt, fast, slow) = (drawn.rtt, drawn.fast, drawn.slow);
    match cause {
        Cause::Bufferbloat => {
            let queue = slow / 8.0 * drawn.within(300.0, 1500.0).max(1.6 * rtt);
            of.scenario = path(slow, rtt, queue, "");
        }
        Cause::LinkRate => {
            let queue = product(slow, rtt.max(30.0)) * drawn.within(0.5, 1.0);
            of.scenario = path(slow, rtt.max(30.0), queue.max(15_000.0), "");
        }
        Cause::EcnMarks => {
            let delay = rtt * 500.0;
            of.scenario = format!(
                "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\n\
                 down = {{ rate = \"{slow:.0}kbit\", delay = \"{delay:.0}us\", \
                 queue = {{ discipline = \"codel\", ecn = true }} }}\nup = {{ delay = \"{delay:.0}us\" }}\n"
            );
            of.recipe = "linux+ecn";
        }
        Cause::ThinUplink => {
            let up = drawn.within(32.0, 96.0);
            of.receive_buffer = Some(400_000);
            let (delay, queue) = (rtt * 500.0, drawn.draw.below(80) + 40);
            of.scenario = format!(
                "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\n\
                 down = {{ rate = \"{fast:.0}kbit\", delay = \"{delay:.0}us\" }}\n\
                 up = {{ rate = \"{up:.0}kbit\", delay = \"{delay:.0}us\", queue = {{ packets = {queue} }} }}\n"
            );
        }
        _ => return false,
    }
    true
}

/// Disturbances that are harmless. Returns whether the cause belongs to this group.
fn harmless_disturbances(cause: Cause, drawn: &mut Drawn, of: &mut Transfer) -> bool {
    let (rtt, slow) = (drawn.rtt, drawn.slow);
    match cause {
        Cause::Duplication => {
            let chance = drawn.within(2.0, 10.0);
            let duplicates =
                format!("[[stage]]\nkind = \"duplicate\"\ndown = {{ chance = \"{chance:.1}%\" }}");
            of.scenario = path(slow, rtt, product(slow, rtt).max(15_000.0), &duplicates);
        }
        Cause::AckLoss => {
            let per = drawn.within(30.0, 60.0);
            let lost = format!(
                "[[stage]]\nkind = \"loss\"\nup = {{ model = \"uniform\", per = \"{per:.0}%\", affects = \"acks\" }}"
            );
            of.scenario = path(slow, rtt, product(slow, rtt).max(15_000.0), &lost);
        }
        _ => return false,
    }
    true
}

/// Losses and reordering. Returns whether the cause belongs to this group.
fn losses(cause: Cause, drawn: &mut Drawn, of: &mut Transfer) -> bool {
    match cause {
        Cause::RandomLoss => {
            let per = drawn.within(0.3, 4.0);
            of.scenario = drawn.path_with(&format!(
                "kind = \"loss\"\ndown = {{ model = \"uniform\", per = \"{per:.2}%\" }}"
            ));
        }
        Cause::BurstLoss => {
            let (mean, burst) = (drawn.within(0.4, 1.5), drawn.draw.below(6) + 4);
            let model = "model = \"gilbert-elliott\"";
            of.scenario = drawn.path_with(&format!(
                "kind = \"loss\"\ndown = {{ {model}, mean = \"{mean:.2}%\", burst = {burst} }}"
            ));
        }
        Cause::Policer => {
            let (rate, burst) = (drawn.within(1_000.0, 6_000.0), drawn.within(15.0, 150.0));
            of.scenario = drawn.path_with(&format!(
                "kind = \"policer\"\ndown = {{ rate = \"{rate:.0}kbit\", burst = \"{burst:.0}kB\" }}"
            ));
        }
        Cause::Reordering => {
            let (chance, time) = (drawn.within(0.5, 4.0), drawn.within(2.0, 10.0));
            of.scenario = drawn.path_with(&format!(
                "kind = \"reorder\"\ndown = {{ chance = \"{chance:.2}%\", time = \"{time:.1}ms\" }}"
            ));
        }
        _ => return false,
    }
    true
}

/// Outages. Returns whether the cause is one.
fn outages(cause: Cause, drawn: &mut Drawn, of: &mut Transfer) -> bool {
    let (rtt, slow) = (drawn.rtt, drawn.slow);
    match cause {
        Cause::Outage => {
            let lasts = drawn.within(1.0, 2.5);
            let outage = format!(
                "[[stage]]\nkind = \"outage\"\nboth = {{ at = [\"1.5s\"], lasts = \"{lasts:.2}s\", every = \"5s\", packets = \"dropped\" }}"
            );
            of.scenario = path(slow, rtt, 100e3, &outage);
            of.lasts = Duration::from_secs(16);
        }
        Cause::SpuriousTimeouts => {
            let lasts = drawn.within(1.0, 1.8);
            let outage = format!(
                "[[stage]]\nkind = \"outage\"\ndown = {{ at = [\"1.5s\"], lasts = \"{lasts:.2}s\", every = \"3s\", packets = \"requeued\" }}"
            );
            of.scenario = path(slow, rtt, 1e6, &outage);
            // No queue builds, and nothing is lost.
            of.receive_buffer = Some(48_000);
            of.lasts = Duration::from_secs(16);
        }
        _ => return false,
    }
    true
}

/// Connections that fail, and causes of a late start. Returns whether the cause belongs to this group.
fn failures(cause: Cause, drawn: &mut Drawn, of: &mut Transfer) -> bool {
    let outage = |at: f64, lasts: f64| {
        format!(
            "kind = \"outage\"\nboth = {{ at = [\"{at:.1}s\"], lasts = \"{lasts:.1}s\", packets = \"dropped\" }}"
        )
    };
    match cause {
        Cause::PathMtuBlackHole => of.drops_longer_than = Some(drawn.within(700.0, 1400.0) as usize),
        Cause::PathDeath => {
            let at = drawn.within(1.0, 5.0);
            of.scenario = path(drawn.slow, drawn.rtt, 100e3, &format!("[[stage]]\n{}", outage(at, 60.0)));
            of.lasts = Duration::from_secs(20);
            of.client_closes_after = Some(Duration::from_secs(12));
        }
        Cause::HandshakeRefused => of.is_refused = true,
        Cause::HandshakeFailed => of.scenario = drawn.path_with(&outage(0.0, 60.0)),
        Cause::HandshakeDelayed => {
            of.pattern = Pattern::Bulk(drawn.within(5e3, 60e3) as usize);
            of.scenario = drawn.path_with(&outage(0.0, 0.8));
        }
        Cause::IdleRestart => {
            let rtt = drawn.within(150.0, 250.0);
            of.scenario = path(40_000.0, rtt, 4e6, "");
            let bytes = drawn.within(1.0e6, 1.4e6) as usize;
            let pause = Duration::from_secs_f64(rtt / 1e3 * 5.0 + 0.9);
            of.lasts = Duration::from_secs(20);
            of.pattern = Pattern::Chunks { bytes, pause };
        }
        _ => return false,
    }
    true
}
