//! Runs the same transfer in virtual time: same path, seed, sender and data, with a model of the receiver.

use std::sync::{Arc, Mutex, PoisonError};

use aircaptures::ip::{self, Context, Found};
use aircaptures::packet::{Packet, Timestamp};
use airlink::capture::Tap;
use airlink::packet::Direction;
use airlink::path::{FIXED, MOBILE};
use airlink::scenario::Scenario;
use airtcp::profile::{AckPolicy, AckRules, LinuxAcks, Profile, SackOffer};
use airtcp_analyze::decisions::Line;
use airtcp_sim::run::{Run, Until, run_prepared};
use airtcp_sim::world::{self, Flow, HostSpec, Length, Watch, World};
use airwire::time::{Duration, Instant};

use super::trace::{Captured, Decided, Fate, Machine, Trace};
use crate::LabError;
use crate::experiment::Experiment;
use crate::receiver::Receiver;
use crate::workload::Amount;

/// The model of a receiver in virtual time.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) host: HostSpec,
    pub(crate) buffer: Option<usize>,
}

/// The model of this receiver. `None` if it has none; `linux` replaces it then.
pub(crate) fn model(receiver: &Receiver) -> Option<Model> {
    let Receiver::Kernel(kernel) = receiver else { return None };
    let Model { host: HostSpec { mut profile, recipe }, mut buffer } = linux();
    let without_sack = |profile: &mut Profile| {
        profile.handshake.sack = SackOffer::Never;
        profile.acks.dsack = false;
    };
    match kernel.name {
        "linux" => {}
        "linux-no-sack" => without_sack(&mut profile),
        "linux-no-timestamps" => profile.handshake.timestamps = false,
        "linux-bare" => {
            without_sack(&mut profile);
            (profile.handshake.timestamps, profile.handshake.window_scale) = (false, None);
        }
        "linux-8k" => buffer = Some(8 << 10),
        "linux-1m" => buffer = Some(1 << 20),
        "linux-quickack" => profile.acks.policy = AckPolicy::EVERY,
        "linux-delayed-ack" => {
            profile.acks.policy.rules = AckRules::Linux(LinuxAcks { quick: 0, ..LinuxAcks::DEFAULT })
        }
        "linux-no-compression" => {
            profile.acks.policy.rules =
                AckRules::Linux(LinuxAcks { compression: None, ..LinuxAcks::DEFAULT });
        }
        _ => return None,
    }
    Some(Model { host: HostSpec { profile, recipe }, buffer })
}

/// The model of this kernel with default settings.
pub(crate) fn linux() -> Model {
    Model { host: HostSpec::kernel(), buffer: None }
}

/// A transfer in virtual time.
pub(crate) struct Ran {
    pub(crate) trace: Trace,
    /// Goodput measured as in a capture: from the first SYN to the ACK for the last byte.
    pub(crate) kbit_per_s: f64,
}

/// Runs the transfer. `start` is the time at which the SYN leaves, in nanoseconds of the path's clock:
/// outages, traffic and TTIs have fixed times.
pub(crate) fn run(
    experiment: &Experiment,
    receiver: Model,
    fixed: HostSpec,
    seed: u64,
    start: i64,
) -> Result<Ran, LabError> {
    let Amount::Octets(octets) = experiment.workload.amount else {
        return Err(LabError::Transfer("virtual time does not support transfers limited by time".to_owned()));
    };
    let begin = Instant::from_nanos(start.max(0) as u64);
    let transfer = OneTransfer {
        scenario: &experiment.scenario,
        octets,
        limit: experiment.limit,
        receiver,
        fixed,
        seed,
        begin,
        watch: Watch::Packets,
    };
    let (at_fixed, at_mobile) = (Kept::default(), Kept::default());
    let (mut world, kbit_per_s) = transfer.run(|world| {
        world.tap(FIXED, at_fixed.clone());
        world.tap(MOBILE, at_mobile.clone());
    })?;
    let fates = [Direction::Down, Direction::Up]
        .map(|direction| world.fates(direction).iter().map(fate).collect::<Vec<_>>());
    let decisions = world.decisions(0).iter().filter_map(|decision| {
        let at = decision.at.as_nanos() as i64 - start;
        Some(Decided { at, line: Line::of(decision)? })
    });
    let decisions = decisions.collect();
    let (fixed, mobile) = (at_fixed.packets(), at_mobile.packets());
    let port = fixed.first().map_or(0, |syn| syn.dst.port());
    let captured = Captured::new(&fixed, &mobile, port)
        .ok_or_else(|| LabError::Transfer("in virtual time: no SYN was sent".to_owned()))?;
    let trace = Trace {
        start: captured.start.0,
        decisions,
        passed: captured.passed,
        fates,
        machine: Machine::default(),
    };
    Ok(Ran { trace, kbit_per_s })
}

/// A transfer as in the lab: down, to a model of the receiver.
pub(crate) struct OneTransfer<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) octets: u64,
    pub(crate) limit: std::time::Duration,
    pub(crate) receiver: Model,
    pub(crate) fixed: HostSpec,
    pub(crate) seed: u64,
    /// The time at which the SYN leaves, on the path's clock.
    pub(crate) begin: Instant,
    pub(crate) watch: Watch,
}

impl OneTransfer<'_> {
    /// Runs the transfer. Returns the world at its end, and the goodput in kbit/s from the first SYN to the
    /// ACK for the last byte.
    pub(crate) fn run(self, prepare: impl FnOnce(&mut World)) -> Result<(World, f64), LabError> {
        let Self { scenario, octets, limit, receiver, fixed, seed, begin, watch } = self;
        let last = begin + Duration::from_nanos(limit.as_nanos() as u64);
        let flow = Flow {
            start: begin,
            receive_buffer: receiver.buffer,
            watch,
            ..Flow::down(Length::Octets(octets))
        };
        let plan = Run {
            scenario: scenario.clone(),
            seed,
            fixed,
            mobile: receiver.host,
            flows: vec![flow],
            until: Until::Complete(last.saturating_since(Instant::ZERO)),
            from: Instant::ZERO,
            score: false,
        };
        let mut acknowledged = None;
        let ran = run_prepared(&plan, prepare, |world| {
            let done = || world.sender(0).is_some_and(|sender| sender.statistics().bytes_acked >= octets);
            if acknowledged.is_none() && done() {
                acknowledged = Some(world.now());
            }
        });
        let (_, world) = ran.map_err(|error| LabError::Transfer(format!("in virtual time: {error}")))?;
        let Some(acknowledged) = acknowledged else {
            let limit = limit.as_secs();
            return Err(LabError::Transfer(format!("in virtual time: not complete after {limit} s")));
        };
        let seconds = acknowledged.saturating_since(begin).as_secs_f64();
        if seconds == 0.0 {
            let why = "in virtual time the transfer takes no time; give a link of the scenario a `rate` or a `delay`";
            return Err(LabError::Transfer(why.to_owned()));
        }
        Ok((world, octets as f64 * 8.0 / seconds / 1e3))
    }
}

fn fate(fate: &world::Fate) -> Fate {
    match fate {
        world::Fate::Inside | world::Fate::Left => Fate::Passed,
        world::Fate::Dropped(why) => Fate::Dropped(*why),
    }
}

/// The headers of the packets that pass a device.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Packet>>>);

impl Kept {
    fn packets(&self) -> Vec<Packet> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tap for Kept {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        let mut packets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let context = Context {
            number: packets.len() as u64 + 1,
            at: Timestamp(at.as_nanos() as i64),
            on_wire: packet.len(),
        };
        if let Found::Tcp(packet) | Found::Flawed(packet, _) = ip::parse(context, packet) {
            packets.push(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::KERNEL_PROFILES;

    #[test]
    fn only_shrinking_kernel_and_stacks_lack_receiver_model() {
        let ordinary = linux();
        for kernel in KERNEL_PROFILES {
            match model(&Receiver::Kernel(kernel)) {
                Some(model) => {
                    let as_ordinary = model.host.profile == ordinary.host.profile && model.buffer.is_none();
                    assert_eq!(as_ordinary, kernel.name == "linux", "{}", kernel.name);
                }
                None => assert_eq!(kernel.name, "linux-shrinking"),
            }
        }
        let stack = Receiver::Stack { name: "gvisor".to_owned(), directory: "/".into() };
        assert!(model(&stack).is_none());
    }
}
