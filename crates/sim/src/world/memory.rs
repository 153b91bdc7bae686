//! Upper bounds on the memory of a world.

use airlink::packet::Direction;
use airlink::path::DEFAULT_MEMORY;
use airlink::scenario::Scenario;
use airtcp::profile::WindowUpdate;
use airtcp::recovery::Decision;
use airwire::units::Size;

use super::watch::Watcher;
use super::{Flow, HostSpec, World, WorldError};

/// Memory of a packet in addition to its payload, in bytes: headers, bookkeeping and unused capacity.
const OVERHEAD: u64 = 500;

/// Memory of a flow's packets if its whole window is in the path once, in bytes.
pub(super) fn of_window(flow: &Flow, scenario: &Scenario, fixed: &HostSpec, mobile: &HostSpec) -> u64 {
    let (sender, receiver) = match flow.direction {
        Direction::Down => (fixed, mobile),
        Direction::Up => (mobile, fixed),
    };
    let acks = &receiver.profile.acks;
    let window = match (flow.receive_buffer, acks.window_update) {
        (Some(buffer), _) => 2 * buffer,
        (None, WindowUpdate::Tuned(memory)) => memory.most,
        (None, WindowUpdate::Doubled | WindowUpdate::QuarterBuffer) => acks.recv_buffer,
    };
    let profile = flow.profile.as_ref().unwrap_or(&sender.profile);
    let segment = u64::from(profile.handshake.mss.unwrap_or(scenario.mtu));
    (window as u64 / segment.max(1) + 1) * (segment + OVERHEAD)
}

/// Minimum number of steps between two measurements of the recorded data.
const STEPS_BETWEEN_CHECKS: usize = 10_000;

/// The memory limit of recorded data.
pub(super) struct Records {
    limit: u64,
    /// Steps until the next measurement.
    steps: usize,
}

impl Default for Records {
    fn default() -> Self {
        Self { limit: DEFAULT_MEMORY, steps: STEPS_BETWEEN_CHECKS }
    }
}

impl World {
    /// Limits the memory of the packets inside the path, and of the recorded decisions, losses and
    /// packets of watched flows, in bytes. Each limit is [`DEFAULT_MEMORY`] by default. A run that exceeds a
    /// limit ends with an error.
    pub fn limit_memory(&mut self, packets: u64, records: u64) {
        self.path.limit_memory(packets);
        self.records.limit = records;
    }

    pub(super) fn check_memory(&mut self) -> Result<(), WorldError> {
        self.path.check_memory()?;
        if self.watcher.is_none() {
            return Ok(());
        }
        if self.records.steps > 0 {
            self.records.steps -= 1;
            return Ok(());
        }
        // The measurement looks at every flow.
        self.records.steps = STEPS_BETWEEN_CHECKS.max(self.flows.len());
        let limit = self.records.limit;
        match self.recorded() > limit {
            true => Err(WorldError::Records { at: self.now, limit: Size::bytes(limit) }),
            false => Ok(()),
        }
    }

    /// Approximate memory of everything recorded, in bytes.
    fn recorded(&mut self) -> u64 {
        let decisions: usize = (0..self.flows.len()).map(|flow| self.decisions(flow).len()).sum();
        let watched = self.watcher.as_ref().map_or(0, Watcher::memory);
        (decisions * size_of::<Decision>() + watched) as u64
    }
}

#[cfg(test)]
mod tests {
    use airwire::time::Duration;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn unlimited_queue_ends_run_with_error() {
        let flood = "schema = 1\n[[stage]]\nkind = \"traffic\"\nname = \"voice\"\n\
                     down = { source = \"cbr\", rate = \"1Gbit\", packet = \"512B\", leaves_after = \"wire\" }\n\
                     [[stage]]\nkind = \"link\"\nname = \"wire\"\nboth.rate = \"1Mbit\"\n";
        let mut world = World::one_flow(flood, "newreno", 1, 1).unwrap();
        world.limit_memory(1_000_000, DEFAULT_MEMORY);
        let error = world.run_to_end(MINUTE).unwrap_err();
        let WorldError::Memory(full) = &error else { panic!("{error}") };
        assert_eq!((full.stage.as_str(), full.direction), ("wire", Direction::Down));
        assert!(world.path().memory() <= 1_000_000);
        assert!(world.now() < airwire::time::Instant::from_secs(1));
    }

    #[test]
    fn recorded_data_is_limited() {
        let link = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"100Mbit\", delay = \"5ms\" }\n";
        let run = |records| {
            let mut world = World::one_flow(link, "newreno", 50_000_000, 1).unwrap();
            world.limit_memory(DEFAULT_MEMORY, records);
            world.run_to_end(MINUTE)
        };
        assert!(run(DEFAULT_MEMORY).unwrap());
        let error = run(100_000).unwrap_err();
        assert!(error.to_string().contains("decisions and losses take more than 100kB"), "{error}");
    }
}
