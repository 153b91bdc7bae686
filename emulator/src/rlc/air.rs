//! One direction of the air: when TTIs begin, how many blocks each takes, and the blocks that are under way.

use std::collections::VecDeque;
use std::sync::Arc;

use airwire::time::{Duration, Instant};

use super::channel::Channel;
use super::config::{ChannelConfig, Counts};
use super::umts::dch::Dch;

pub(super) struct Air {
    config: ChannelConfig,
    /// In force now: not those of `config` once the rate has changed.
    formats: Formats,
    /// When the last TTI that began is over.
    free: Instant,
    channel: Channel,
    /// The first TTI that has not begun.
    next_tti: u64,
    flights: VecDeque<Flight>,
    /// The end of the last outage that a TTI has met.
    met: Option<Instant>,
    pub(super) counters: Counters,
}

/// What a rate is.
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

/// Whether the transport format set also has a format with one block less than the chosen one (TS 25.321 §11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneLess {
    /// It has.
    Fits,
    /// It has not: a block less would have to be padding.
    HasNoFormat,
}

/// What one TTI carries.
pub(super) struct Flight {
    pub(super) lands: Instant,
    /// What arrives undamaged, in order.
    pub(super) blocks: Vec<Arc<[u8]>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) ttis: u64,
    pub(super) blocks: u64,
    pub(super) lost: u64,
    /// Of those lost, what an outage took.
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
            met: None,
            counters: Counters::default(),
        }
    }

    /// A rate that is not that of the settings any more stays, unless these now say another one.
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
            // TTIs are counted on the new grid. The one under way ends as it began.
            self.next_tti = 0;
            self.advance(now.max(self.free));
        }
    }

    /// Its rate now, if that has a name.
    pub(super) fn rate(&self) -> Option<Dch> {
        self.formats.rate
    }

    /// The TTI now.
    pub(super) fn tti(&self) -> Duration {
        self.formats.tti
    }

    /// Time has come to `now`: no TTI begins before it any more. One that begins just now still takes what there is.
    pub(super) fn advance(&mut self, now: Instant) {
        let since = (now - (Instant::ZERO + self.config.phase)).as_nanos();
        self.next_tti = self.next_tti.max(since.div_ceil(self.formats.tti.as_nanos()));
    }

    /// When the next TTI begins.
    pub(super) fn next_begin(&self) -> Instant {
        Instant::ZERO + self.config.phase + self.formats.tti * self.next_tti
    }

    /// When the first TTI begins that does not begin before `from`.
    pub(super) fn next_begin_from(&self, from: Instant) -> Instant {
        let next = self.next_begin();
        let missing = (from - next).as_nanos().div_ceil(self.formats.tti.as_nanos());
        next + self.formats.tti * missing
    }

    /// When the TTI that began last is over.
    pub(super) fn free(&self) -> Instant {
        self.free
    }

    /// The most blocks that a TTI takes.
    pub(super) fn largest(&self) -> usize {
        self.formats.blocks.last().copied().unwrap_or(1).into()
    }

    /// How many blocks the next TTI takes if there are so many to send, at least 1: the largest transport format
    /// that they fill. Fewer than the smallest format go with padding, which nobody sees.
    pub(super) fn format_for(&self, wanted: usize) -> usize {
        match self.config.counts {
            Counts::Any => wanted.min(self.largest()),
            Counts::Listed => {
                let fits = self.formats.blocks.iter().rev().find(|count| usize::from(**count) <= wanted);
                fits.map_or(wanted, |count| usize::from(*count))
            }
        }
    }

    /// Whether `blocks` less one is a format, too.
    pub(super) fn one_less(&self, blocks: usize) -> OneLess {
        match blocks.checked_sub(1) {
            Some(less) if self.format_for(less) != less => OneLess::HasNoFormat,
            _ => OneLess::Fits,
        }
    }

    /// The next TTI begins, with these blocks. Tells of each whether it will be damaged. Some time: the end of an outage
    /// that no TTI has met before this one.
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
        // A delay that was made shorter under way lets nothing overtake.
        let lands = self.free + self.config.delay;
        let lands = self.flights.back().map_or(lands, |last| lands.max(last.lands));
        self.flights.push_back(Flight { lands, blocks: arriving });
        let new = outage.filter(|_| outage != self.met);
        self.met = outage.or(self.met);
        new
    }

    /// What is under way does not arrive.
    pub(super) fn clear(&mut self) {
        self.flights.clear();
    }

    pub(super) fn next_landing(&self) -> Option<Instant> {
        self.flights.front().map(|flight| flight.lands)
    }

    pub(super) fn land(&mut self, now: Instant) -> Option<Flight> {
        self.flights.pop_front_if(|flight| flight.lands <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn air(config: ChannelConfig) -> Air {
        Air::new(&config, 1, "radio/down")
    }

    #[test]
    fn a_tti_takes_the_largest_transport_format_that_is_filled() {
        let strict = air(ChannelConfig::downlink_384());
        let taken: Vec<_> = (1..=14).map(|wanted| strict.format_for(wanted)).collect();
        assert_eq!(taken, [1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12]);
        let any = air(ChannelConfig { counts: Counts::Any, ..ChannelConfig::downlink_384() });
        assert_eq!([1, 3, 11, 12, 13].map(|wanted| any.format_for(wanted)), [1, 3, 11, 12, 12]);
        let coarse = air(ChannelConfig { blocks: vec![4, 8], ..ChannelConfig::downlink_384() });
        assert_eq!([1, 3, 4, 9].map(|wanted| coarse.format_for(wanted)), [1, 3, 4, 8]);
    }

    #[test]
    fn ttis_begin_on_their_grid_and_each_only_once() {
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
    fn a_shorter_delay_lets_nothing_overtake() {
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
