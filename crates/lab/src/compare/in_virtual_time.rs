//! Runs the same transfer in virtual time: same path, seed, sender and data, with a model of the receiver.

use std::sync::{Arc, Mutex, PoisonError};

use aircaptures::ip::{self, Context, Found};
use aircaptures::packet::{Packet, Timestamp};
use airlink::capture::Tap;
use airlink::packet::PerDirection;
use airlink::path::{FIXED, MOBILE};
use airlink::scenario::Scenario;
use airtcp::profile::{AckPolicy, AckRules, LinuxAcks, Profile, SackOffer};
use airtcp_analyze::decisions::Line;
use airtcp_sim::run::{Run, Until, run_prepared};
use airtcp_sim::world::{self, Flow, HostSpec, Length, Watch, World};
use airwire::time::{Duration, Instant};

use super::trace::{CapturedTransfer, Disturbances, PathFate, TimedDecision, Trace};
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

/// Runs the transfer and returns its trace and its goodput in kbit/s. `start` is the time at which the SYN
/// leaves, in nanoseconds of the path's clock: outages, traffic and TTIs have fixed times.
pub(crate) fn run(
    experiment: &Experiment,
    receiver: Model,
    fixed: HostSpec,
    seed: u64,
    start: i64,
) -> Result<(Trace, f64), LabError> {
    let Amount::Bytes(bytes) = experiment.workload.amount else {
        return Err(LabError::Transfer("virtual time does not support transfers limited by time".to_owned()));
    };
    let begin = Instant::from_nanos(start.max(0) as u64);
    let transfer = VirtualTransfer {
        scenario: &experiment.scenario,
        bytes,
        limit: experiment.limit,
        receiver,
        fixed,
        seed,
        begin,
        watch: Watch::Packets,
    };
    let (at_fixed, at_mobile) = (RecordingTap::default(), RecordingTap::default());
    let (mut world, kbit_per_s) = transfer.run(|world| {
        world.tap(FIXED, at_fixed.clone());
        world.tap(MOBILE, at_mobile.clone());
    })?;
    let decisions = world.decisions(0).iter().filter_map(|decision| {
        let at = decision.at.as_nanos() as i64 - start;
        Some(TimedDecision { at, line: Line::of(decision)? })
    });
    let decisions = decisions.collect();
    let (fixed, mobile) = (at_fixed.packets(), at_mobile.packets());
    let port = fixed.first().map_or(0, |syn| syn.dst.port());
    let captured = CapturedTransfer::new(&fixed, &mobile, port)
        .ok_or_else(|| LabError::Transfer("in virtual time: no SYN was sent".to_owned()))?;
    let trace = Trace {
        start: captured.start.0,
        decisions,
        observed: captured.observed,
        fates: PerDirection::from_fn(|direction| world.outcomes(direction).iter().map(fate).collect()),
        disturbances: Disturbances::default(),
    };
    Ok((trace, kbit_per_s))
}

/// A transfer as in the lab: down, to a model of the receiver.
pub(crate) struct VirtualTransfer<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) bytes: u64,
    pub(crate) limit: std::time::Duration,
    pub(crate) receiver: Model,
    pub(crate) fixed: HostSpec,
    pub(crate) seed: u64,
    /// The time at which the SYN leaves, on the path's clock.
    pub(crate) begin: Instant,
    pub(crate) watch: Watch,
}

impl VirtualTransfer<'_> {
    /// Runs the transfer. Returns the world at its end, and the goodput in kbit/s from the first SYN to the
    /// ACK for the last byte.
    pub(crate) fn run(self, prepare: impl FnOnce(&mut World)) -> Result<(World, f64), LabError> {
        let Self { scenario, bytes, limit, receiver, fixed, seed, begin, watch } = self;
        let last = begin + Duration::from_nanos(limit.as_nanos() as u64);
        let flow = Flow {
            start: begin,
            receive_buffer: receiver.buffer,
            watch,
            ..Flow::down(Length::Octets(bytes))
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
        let mut acknowledged_at = None;
        let result = run_prepared(&plan, prepare, |world| {
            let is_done = || world.sender(0).is_some_and(|sender| sender.statistics().bytes_acked >= bytes);
            if acknowledged_at.is_none() && is_done() {
                acknowledged_at = Some(world.now());
            }
        });
        let (_, world) = result.map_err(|error| LabError::Transfer(format!("in virtual time: {error}")))?;
        let Some(acknowledged_at) = acknowledged_at else {
            let limit = limit.as_secs();
            return Err(LabError::Transfer(format!("in virtual time: not complete after {limit} s")));
        };
        let seconds = acknowledged_at.saturating_since(begin).as_secs_f64();
        if seconds == 0.0 {
            let why = "in virtual time the transfer takes no time; give a link of the scenario a `rate` or a `delay`";
            return Err(LabError::Transfer(why.to_owned()));
        }
        Ok((world, bytes as f64 * 8.0 / seconds / 1e3))
    }
}

fn fate(outcome: &world::PathOutcome) -> PathFate {
    match outcome {
        world::PathOutcome::InPath | world::PathOutcome::Arrived => PathFate::Passed,
        world::PathOutcome::Dropped(why) => PathFate::Dropped(*why),
    }
}

/// The headers of the packets that pass a device.
#[derive(Clone, Default)]
struct RecordingTap(Arc<Mutex<Vec<Packet>>>);

impl RecordingTap {
    fn packets(&self) -> Vec<Packet> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tap for RecordingTap {
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
        let default = linux();
        for kernel in KERNEL_PROFILES {
            match model(&Receiver::Kernel(kernel)) {
                Some(model) => {
                    let is_default = model.host.profile == default.host.profile && model.buffer.is_none();
                    assert_eq!(is_default, kernel.name == "linux", "{}", kernel.name);
                }
                None => assert_eq!(kernel.name, "linux-shrinking"),
            }
        }
        let stack = Receiver::Stack { name: "gvisor".to_owned(), directory: "/".into() };
        assert!(model(&stack).is_none());
    }
}
