//! A dedicated transport channel, with its TTI grid, its transport formats and the blocks in flight.

use airwire::time::{Duration, Instant};

use super::block_errors::{BlockCounters, BlockErrorProcess};
use super::config::{ChannelConfig, Counts};
use super::umts::capacity::{OneBlockFewer, block_memory};
use super::umts::dch::Dch;
use super::umts::entity::Outgoing;
use crate::mac::in_flight::InFlight;

pub(super) struct DedicatedChannel {
    config: ChannelConfig,
    /// The current formats. They differ from `config` after a change of the rate.
    formats: Formats,
    /// End of the TTI that began last.
    tti_end: Instant,
    errors: BlockErrorProcess,
    /// Number of the first TTI that has not begun.
    next_tti: u64,
    /// The undamaged blocks of each TTI.
    in_flight: InFlight<Vec<Outgoing>>,
    /// End of the last outage that affected a TTI.
    last_outage: Option<Instant>,
    pub(super) counters: BlockCounters,
}

/// The TTI and the transport formats that make up a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Formats {
    rate: Option<Dch>,
    tti: Duration,
    blocks: Vec<u16>,
}

impl Formats {
    fn at_start(config: &ChannelConfig) -> Self {
        Self { rate: config.dch, tti: config.tti(), blocks: config.blocks().to_vec() }
    }

    fn of(rate: Dch) -> Self {
        Self { rate: Some(rate), tti: rate.tti(), blocks: rate.blocks().to_vec() }
    }
}

impl DedicatedChannel {
    pub(super) fn new(config: &ChannelConfig, seed: u64, name: &str) -> Self {
        Self {
            config: config.clone(),
            formats: Formats::at_start(config),
            tti_end: Instant::ZERO,
            errors: BlockErrorProcess::new(config.errors.clone(), seed, name),
            next_tti: 0,
            in_flight: InFlight::default(),
            last_outage: None,
            counters: BlockCounters::default(),
        }
    }

    /// Applies new settings. A rate that [`change_rate`](Self::change_rate) has set remains, unless the
    /// configured rate changes.
    pub(super) fn reconfigure(&mut self, now: Instant, config: &ChannelConfig) {
        if config.errors != self.config.errors {
            self.errors.set_model(config.errors.clone());
        }
        let (old, new) = (Formats::at_start(&self.config), Formats::at_start(config));
        self.config = config.clone();
        if old != new {
            self.set_formats(now, new);
        }
    }

    /// Changes the rate, from the next TTI on.
    pub(super) fn change_rate(&mut self, now: Instant, rate: Dch) {
        self.set_formats(now, Formats::of(rate));
    }

    fn set_formats(&mut self, now: Instant, formats: Formats) {
        let old = std::mem::replace(&mut self.formats, formats);
        if old.tti != self.formats.tti {
            self.errors.change_tti(old.tti, self.formats.tti);
            // TTI numbers restart on the new grid. A TTI in progress keeps its length.
            self.next_tti = 0;
            self.skip_ttis_before(now.max(self.tti_end));
        }
    }

    pub(super) fn rate(&self) -> Option<Dch> {
        self.formats.rate
    }

    pub(super) fn tti(&self) -> Duration {
        self.formats.tti
    }

    /// Skips the TTIs that begin before `now`. A TTI that begins exactly at `now` can still be used.
    pub(super) fn skip_ttis_before(&mut self, now: Instant) {
        if self.next_tti_start() >= now {
            return;
        }
        let since = (now - (Instant::ZERO + self.config.phase)).as_nanos();
        self.next_tti = self.next_tti.max(since.div_ceil(self.formats.tti.as_nanos()));
    }

    pub(super) fn next_tti_start(&self) -> Instant {
        Instant::ZERO + self.config.phase + self.formats.tti * self.next_tti
    }

    /// Start of the first unused TTI at or after `from`.
    pub(super) fn next_tti_start_from(&self, from: Instant) -> Instant {
        let next = self.next_tti_start();
        if next >= from {
            return next;
        }
        let skipped = (from - next).as_nanos().div_ceil(self.formats.tti.as_nanos());
        next + self.formats.tti * skipped
    }

    pub(super) fn tti_end(&self) -> Instant {
        self.tti_end
    }

    pub(super) fn max_blocks(&self) -> usize {
        self.formats.blocks.last().copied().unwrap_or(1).into()
    }

    /// Number of blocks in the next TTI if `waiting` blocks (at least 1) are waiting: the largest transport
    /// format that they fill. If the smallest format is larger, all waiting blocks are sent, and the padding
    /// blocks are not modelled.
    pub(super) fn format_for(&self, waiting: usize) -> usize {
        match self.config.counts {
            Counts::Any => waiting.min(self.max_blocks()),
            Counts::Listed => {
                let filled = self.formats.blocks.iter().rev().find(|count| usize::from(**count) <= waiting);
                filled.map_or(waiting, |count| usize::from(*count))
            }
        }
    }

    /// Whether a transport format with one block fewer than `blocks` exists.
    pub(super) fn one_block_fewer(&self, blocks: usize) -> OneBlockFewer {
        match blocks.checked_sub(1) {
            Some(fewer) if self.format_for(fewer) != fewer => OneBlockFewer::NoFormat,
            _ => OneBlockFewer::HasFormat,
        }
    }

    /// Transmits these blocks in the next TTI. Calls `on_each` with each block and whether it will be damaged.
    /// Returns the end of an outage if this TTI is the first one that the outage affects.
    pub(super) fn transmit(
        &mut self,
        mut blocks: Vec<Outgoing>,
        mut on_each: impl FnMut(&Outgoing, bool),
    ) -> Option<Instant> {
        let start = self.next_tti_start();
        let tti = self.next_tti;
        self.next_tti += 1;
        self.tti_end = start + self.formats.tti;
        if blocks.is_empty() {
            return None;
        }
        let outage = self.config.outage.as_ref().and_then(|outage| outage.end(start));
        let count = blocks.len();
        let mut errors = self.errors.begin_tti(tti, start);
        blocks.retain(|block| {
            let damaged = errors.damages_next() || outage.is_some();
            on_each(block, damaged);
            !damaged
        });
        self.counters.ttis += 1;
        self.counters.blocks += count as u64;
        self.counters.lost += (count - blocks.len()) as u64;
        self.counters.lost_in_outage += if outage.is_some() { count as u64 } else { 0 };
        let memory = blocks.iter().map(|block| block_memory(block.octets.len())).sum();
        self.in_flight.launch_in_order(self.tti_end + self.config.delay, memory, blocks);
        let new = outage.filter(|_| outage != self.last_outage);
        self.last_outage = outage.or(self.last_outage);
        new
    }

    pub(super) fn clear(&mut self) {
        self.in_flight = InFlight::default();
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.memory()
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.in_flight.next_arrival()
    }

    pub(super) fn take_arrival(&mut self, now: Instant) -> Option<Vec<Outgoing>> {
        self.in_flight.take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rlc::umts::entity::PduKind;

    fn channel(config: ChannelConfig) -> DedicatedChannel {
        DedicatedChannel::new(&config, 1, "radio/down")
    }

    fn block(octets: &[u8]) -> Outgoing {
        Outgoing { octets: octets.into(), kind: PduKind::Status, epoch: 0 }
    }

    #[test]
    fn tti_uses_largest_filled_transport_format() {
        let listed = channel(ChannelConfig::downlink_384());
        let formats: Vec<_> = (1..=14).map(|waiting| listed.format_for(waiting)).collect();
        assert_eq!(formats, [1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12]);
        let any = channel(ChannelConfig { counts: Counts::Any, ..ChannelConfig::downlink_384() });
        assert_eq!([1, 3, 11, 12, 13].map(|waiting| any.format_for(waiting)), [1, 3, 11, 12, 12]);
        let coarse = channel(ChannelConfig { blocks: vec![4, 8], ..ChannelConfig::downlink_384() });
        assert_eq!([1, 3, 4, 9].map(|waiting| coarse.format_for(waiting)), [1, 3, 4, 8]);
    }

    #[test]
    fn ttis_begin_on_grid_and_only_once() {
        let mut channel =
            channel(ChannelConfig { phase: Duration::from_millis(3), ..ChannelConfig::downlink_384() });
        let at = Instant::from_millis;
        assert_eq!(channel.next_tti_start(), at(3));
        for (now, begins) in [(0, 3), (3, 3), (4, 13), (13, 13), (22, 23)] {
            channel.skip_ttis_before(at(now));
            assert_eq!(channel.next_tti_start(), at(begins), "at {now} ms");
        }
        channel.transmit(Vec::new(), |_, _| {});
        channel.skip_ttis_before(at(23));
        assert_eq!(channel.next_tti_start(), at(33), "the TTI at 23 ms has begun");
    }

    #[test]
    fn shorter_delay_does_not_reorder_blocks() {
        let mut channel = channel(ChannelConfig::downlink_384());
        channel.transmit(vec![block(&[1])], |_, _| {});
        channel.reconfigure(
            Instant::ZERO,
            &ChannelConfig { delay: Duration::ZERO, ..ChannelConfig::downlink_384() },
        );
        channel.transmit(vec![block(&[2])], |_, _| {});
        let at = Instant::from_millis(50);
        let arrival = || channel.next_arrival().zip(channel.take_arrival(at));
        let arrivals: Vec<_> = std::iter::from_fn(arrival).collect();
        assert_eq!(arrivals, [(at, vec![block(&[1])]), (at, vec![block(&[2])])]);
    }
}
