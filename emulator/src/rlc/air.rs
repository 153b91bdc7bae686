//! One direction of a radio channel: its TTI grid, its transport formats, and the blocks in flight.

use std::collections::VecDeque;
use std::sync::Arc;

use airwire::time::{Duration, Instant};

use super::channel::Channel;
use super::config::{ChannelConfig, Counts};
use super::umts::dch::Dch;
use super::umts::room::{OneLess, block_memory};

pub(super) struct Air {
    config: ChannelConfig,
    /// The formats in force. They differ from `config` after a change of the rate.
    formats: Formats,
    /// End of the TTI that began last.
    free: Instant,
    channel: Channel,
    /// Number of the first TTI that has not begun.
    next_tti: u64,
    flights: VecDeque<Flight>,
    /// Memory of the blocks in flight, in bytes.
    in_flight: u64,
    /// End of the last outage that affected a TTI.
    met: Option<Instant>,
    pub(super) counters: Counters,
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

/// The blocks of one TTI that are in flight.
pub(super) struct Flight {
    pub(super) lands: Instant,
    /// Undamaged blocks, in the order of transmission.
    pub(super) blocks: Vec<Arc<[u8]>>,
}

impl Flight {
    fn memory(&self) -> u64 {
        self.blocks.iter().map(|block| block_memory(block.len())).sum()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) ttis: u64,
    pub(super) blocks: u64,
    pub(super) lost: u64,
    /// Blocks lost in an outage. `lost` includes them.
    pub(super) lost_in_outage: u64,
}

impl Air {
    pub(super) fn new(config: &ChannelConfig, seed: u64, name: &str) -> Self {
        Self {
            config: config.clone(),
            formats: Formats::at_start(config),
            free: Instant::ZERO,
            channel: Channel::new(config.errors.clone(), seed, name),
            next_tti: 0,
            flights: VecDeque::new(),
            in_flight: 0,
            met: None,
            counters: Counters::default(),
        }
    }

    /// Applies new settings. A rate that [`change_rate`](Self::change_rate) has set stays in force, unless
    /// the configured rate changes.
    pub(super) fn reconfigure(&mut self, now: Instant, config: &ChannelConfig) {
        if config.errors != self.config.errors {
            self.channel.set_model(config.errors.clone());
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
            self.channel.change_tti(old.tti, self.formats.tti);
            // TTI numbers restart on the new grid. A TTI in progress keeps its length.
            self.next_tti = 0;
            self.advance(now.max(self.free));
        }
    }

    /// Current rate, if it is one of the named rates.
    pub(super) fn rate(&self) -> Option<Dch> {
        self.formats.rate
    }

    /// Current TTI.
    pub(super) fn tti(&self) -> Duration {
        self.formats.tti
    }

    /// Skips the TTIs that begin before `now`. A TTI that begins exactly at `now` can still be used.
    pub(super) fn advance(&mut self, now: Instant) {
        let since = (now - (Instant::ZERO + self.config.phase)).as_nanos();
        self.next_tti = self.next_tti.max(since.div_ceil(self.formats.tti.as_nanos()));
    }

    /// Start of the next TTI.
    pub(super) fn next_begin(&self) -> Instant {
        Instant::ZERO + self.config.phase + self.formats.tti * self.next_tti
    }

    /// Start of the first unused TTI at or after `from`.
    pub(super) fn next_begin_from(&self, from: Instant) -> Instant {
        let next = self.next_begin();
        let missing = (from - next).as_nanos().div_ceil(self.formats.tti.as_nanos());
        next + self.formats.tti * missing
    }

    /// End of the TTI that began last.
    pub(super) fn free(&self) -> Instant {
        self.free
    }

    /// Largest number of blocks in a TTI.
    pub(super) fn largest(&self) -> usize {
        self.formats.blocks.last().copied().unwrap_or(1).into()
    }

    /// Number of blocks in the next TTI if `wanted` blocks (at least 1) are waiting: the largest transport
    /// format that they fill. If they do not fill the smallest format, all of them are sent, and the padding
    /// blocks are not modelled.
    pub(super) fn format_for(&self, wanted: usize) -> usize {
        match self.config.counts {
            Counts::Any => wanted.min(self.largest()),
            Counts::Listed => {
                let fits = self.formats.blocks.iter().rev().find(|count| usize::from(**count) <= wanted);
                fits.map_or(wanted, |count| usize::from(*count))
            }
        }
    }

    /// Whether a transport format with one block fewer than `blocks` exists.
    pub(super) fn one_less(&self, blocks: usize) -> OneLess {
        match blocks.checked_sub(1) {
            Some(less) if self.format_for(less) != less => OneLess::HasNoFormat,
            _ => OneLess::Fits,
        }
    }

    /// Starts the next TTI with these blocks. Calls `on_each` with each block and whether it will be damaged.
    /// Returns the end of an outage if this TTI is the first one that the outage affects.
    pub(super) fn launch<T>(
        &mut self,
        blocks: Vec<T>,
        mut on_each: impl FnMut(&T, bool),
        bytes: impl Fn(T) -> Arc<[u8]>,
    ) -> Option<Instant> {
        let begins = self.next_begin();
        let tti = self.next_tti;
        self.next_tti += 1;
        self.free = begins + self.formats.tti;
        if blocks.is_empty() {
            return None;
        }
        let outage = self.config.outage.as_ref().and_then(|outage| outage.end(begins));
        let count = blocks.len();
        let mut arriving = Vec::with_capacity(count);
        let mut blocks = blocks.into_iter();
        self.channel.transmit(tti, begins, count, |damaged| {
            let block = blocks.next().expect("the channel is asked about as many");
            let damaged = damaged || outage.is_some();
            on_each(&block, damaged);
            if !damaged {
                arriving.push(bytes(block));
            }
        });
        self.counters.ttis += 1;
        self.counters.blocks += count as u64;
        self.counters.lost += (count - arriving.len()) as u64;
        self.counters.lost_in_outage += if outage.is_some() { count as u64 } else { 0 };
        // TTIs arrive in order, even if the delay was shortened while blocks were in flight.
        let lands = self.free + self.config.delay;
        let lands = self.flights.back().map_or(lands, |last| lands.max(last.lands));
        let flight = Flight { lands, blocks: arriving };
        self.in_flight += flight.memory();
        self.flights.push_back(flight);
        let new = outage.filter(|_| outage != self.met);
        self.met = outage.or(self.met);
        new
    }

    /// Drops the blocks in flight.
    pub(super) fn clear(&mut self) {
        self.flights.clear();
        self.in_flight = 0;
    }

    /// Memory of the blocks in flight, in bytes.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn next_landing(&self) -> Option<Instant> {
        self.flights.front().map(|flight| flight.lands)
    }

    pub(super) fn land(&mut self, now: Instant) -> Option<Flight> {
        let flight = self.flights.pop_front_if(|flight| flight.lands <= now)?;
        self.in_flight -= flight.memory();
        Some(flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn air(config: ChannelConfig) -> Air {
        Air::new(&config, 1, "radio/down")
    }

    #[test]
    fn tti_uses_largest_filled_transport_format() {
        let strict = air(ChannelConfig::downlink_384());
        let taken: Vec<_> = (1..=14).map(|wanted| strict.format_for(wanted)).collect();
        assert_eq!(taken, [1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12]);
        let any = air(ChannelConfig { counts: Counts::Any, ..ChannelConfig::downlink_384() });
        assert_eq!([1, 3, 11, 12, 13].map(|wanted| any.format_for(wanted)), [1, 3, 11, 12, 12]);
        let coarse = air(ChannelConfig { blocks: vec![4, 8], ..ChannelConfig::downlink_384() });
        assert_eq!([1, 3, 4, 9].map(|wanted| coarse.format_for(wanted)), [1, 3, 4, 8]);
    }

    #[test]
    fn ttis_begin_on_grid_and_only_once() {
        let mut air = air(ChannelConfig { phase: Duration::from_millis(3), ..ChannelConfig::downlink_384() });
        let at = Instant::from_millis;
        assert_eq!(air.next_begin(), at(3));
        for (now, begins) in [(0, 3), (3, 3), (4, 13), (13, 13), (22, 23)] {
            air.advance(at(now));
            assert_eq!(air.next_begin(), at(begins), "at {now} ms");
        }
        air.launch(Vec::<Arc<[u8]>>::new(), |_, _| {}, |bytes| bytes);
        air.advance(at(23));
        assert_eq!(air.next_begin(), at(33), "the TTI at 23 ms has begun");
    }

    #[test]
    fn shorter_delay_does_not_reorder_blocks() {
        let mut air = air(ChannelConfig::downlink_384());
        air.launch(vec![[1]], |_, _| {}, |bytes| bytes.into());
        air.reconfigure(
            Instant::ZERO,
            &ChannelConfig { delay: Duration::ZERO, ..ChannelConfig::downlink_384() },
        );
        air.launch(vec![[2]], |_, _| {}, |bytes| bytes.into());
        let landed: Vec<_> = std::iter::from_fn(|| air.land(Instant::from_millis(50)))
            .map(|flight| (flight.lands, flight.blocks))
            .collect();
        let at = Instant::from_millis(50);
        assert_eq!(landed, [(at, vec![Arc::from([1])]), (at, vec![Arc::from([2])])]);
    }
}
