//! HSDPA: a downlink that the mobiles of a cell share, a TTI at a time (TS 25.321 §11.6, MAC-hs).
//!
//! - [`scheduler`] says who has the next TTI;
//! - `channel` is how well a mobile receives, [`cqi`] what it reports of it, and how likely a block is lost;
//! - [`framing`] is what a block takes, and `segmenting` fills blocks with PDUs and takes them out again;
//! - `harq` repeats blocks, and combines what has arrived of them;
//! - `reordering` puts them into their order again;
//! - `Link` is all of that for one mobile, [`config`] what can be set.
//!
//! Choices: a TTI has one mobile (no code multiplexing). A mobile has one queue. MAC-hs asks RLC for PDUs when it builds a
//! block, as if flow control between RNC and Node B were perfect. A block is no larger than what it carries needs. With MAC-ehs,
//! blocks have the sizes that they have with MAC-hs.

mod channel;
pub mod config;
pub mod cqi;
pub mod framing;
mod harq;
mod reordering;
pub mod scheduler;
mod segmenting;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

use channel::{RadioChannel, decibels, ratio};
use config::HsdpaConfig;
use cqi::Cqi;
use framing::Framing;
use harq::{Block, Harq, Outcome, Rules, Turn};
use reordering::{Reordering, Tsn};
use segmenting::{Content, Reassembler, Segmenter};

use super::entity::{Outgoing, Room};
use crate::rlc::air::Flight;

/// The TTI of an HS-DSCH.
pub(in crate::rlc) const TTI: Duration = Duration::from_millis(2);

/// What carries PDUs to one mobile.
pub(in crate::rlc) struct Link {
    config: HsdpaConfig,
    /// From the end of a TTI until its block is with the mobile's re-ordering.
    delay: Duration,
    channel: RadioChannel,
    draws: Stream,
    segmenter: Segmenter,
    harq: Harq<Content>,
    /// Of the next new block.
    next_number: u64,
    /// Blocks that arrive undamaged, in the order in which they do.
    arriving: VecDeque<Arrival>,
    reordering: Reordering<(u64, Content)>,
    reassembler: Reassembler,
    /// The last TTI that it had.
    last: Option<Instant>,
    pub(in crate::rlc) counters: Counters,
}

struct Arrival {
    at: Instant,
    number: u64,
    content: Content,
}

/// A block about to be transmitted.
pub(in crate::rlc) struct Transmission {
    process: usize,
    block: Block<Content>,
    /// Octets of PDUs that were not sent before.
    pub(in crate::rlc) new_octets: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::rlc) struct Counters {
    /// Transmissions, each of one block.
    pub(in crate::rlc) ttis: u64,
    /// Blocks that were transmitted for the first time.
    pub(in crate::rlc) blocks: u64,
    /// PDUs in them.
    pub(in crate::rlc) pdus: u64,
    /// Of these blocks, those of which the first transmission was damaged.
    pub(in crate::rlc) first_damaged: u64,
    /// Blocks that were given up.
    pub(in crate::rlc) lost: u64,
}

impl Link {
    /// `snr`: the mean, in dB. `name` is the direction's of the mobile, such as `radio/down`.
    pub(in crate::rlc) fn new(
        config: &HsdpaConfig,
        snr: f64,
        framing: Framing,
        delay: Duration,
        seed: u64,
        name: &str,
    ) -> Self {
        let channel = Stream::new(seed, &format!("{name}/snr"));
        Self {
            config: config.clone(),
            delay,
            channel: RadioChannel::new(snr, config.fading.as_ref(), channel),
            draws: Stream::new(seed, &format!("{name}/blocks")),
            segmenter: Segmenter::new(framing),
            harq: Harq::new(config.processes),
            next_number: 0,
            arriving: VecDeque::new(),
            reordering: Reordering::new(config.window, config.t1),
            reassembler: Reassembler::default(),
            last: None,
            counters: Counters::default(),
        }
    }

    /// The number of processes and the window stay.
    pub(in crate::rlc) fn reconfigure(&mut self, config: &HsdpaConfig, snr: f64, delay: Duration) {
        self.config = config.clone();
        self.delay = delay;
        self.channel.set(snr, config.fading.as_ref());
        self.reordering.set_t1(config.t1);
    }

    /// The most PDUs that a block takes. Where PDUs have a flexible size it is how many of the largest.
    pub(in crate::rlc) fn largest(&self) -> usize {
        self.segmenter.framing().pdus(self.config.mobiles_category().largest).max(1)
    }

    /// The most octets of PDUs that a block takes.
    pub(in crate::rlc) fn largest_octets(&self) -> usize {
        self.segmenter.framing().octets(self.config.mobiles_category().largest)
    }

    /// By the last report that has come: how good a block may be now.
    pub(in crate::rlc) fn cqi(&self, now: Instant) -> Cqi {
        let period = self.config.cqi_period.as_nanos();
        // Before the first report has come, the first one counts all the same.
        let about = (now - Instant::ZERO).saturating_sub(self.config.cqi_delay).as_nanos() / period * period;
        let cqi = Cqi::of(self.channel.snr(Instant::ZERO + Duration::from_nanos(about)));
        cqi.min(self.config.mobiles_category().largest)
    }

    /// The transmitter's window: no new block, and no number, is so far ahead of one that may still come that the mobile
    /// would not wait for it (§11.6.1.1). Choice: it waits, and gives nothing up for that.
    fn window_is_open(&self) -> bool {
        let oldest = self.harq.oldest().unwrap_or(self.next_number);
        self.next_number - oldest < u64::from(self.config.window)
    }

    /// From when on it could use a TTI. `new`: RLC has something for a new block. `None`: it cannot.
    pub(in crate::rlc) fn ready(&self, new: bool) -> Option<Instant> {
        let new = new || self.segmenter.has_waiting();
        let ready = self.harq.ready(new && self.window_is_open())?;
        let spaced = self.last.map(|last| last + TTI * self.config.mobiles_category().spacing);
        Some(spaced.map_or(ready, |spaced| ready.max(spaced)))
    }

    /// How many octets of PDUs a block of its could have now. `None`: it has nothing to send, or receives too badly.
    pub(in crate::rlc) fn bid(&self, now: Instant, new: bool) -> Option<usize> {
        let new = new || self.segmenter.has_waiting();
        self.ready(new).filter(|ready| *ready <= now)?;
        self.harq.turn(now, new && self.window_is_open())?;
        Some(self.segmenter.framing().octets(self.cqi(now))).filter(|octets| *octets > 0)
    }

    /// The block for the TTI that begins now, for which it has bid. `pdus` gives RLC's PDUs for a new one.
    pub(in crate::rlc) fn block(
        &mut self,
        now: Instant,
        pdus: impl FnOnce(Room) -> Vec<Outgoing>,
    ) -> Option<Transmission> {
        let cqi = self.cqi(now);
        match self.harq.turn(now, self.window_is_open())? {
            Turn::Again { process } => {
                Some(Transmission { process, block: self.harq.take(process)?, new_octets: 0 })
            }
            Turn::New { process } => {
                let pdus = pdus(self.segmenter.room(cqi));
                let block = self.new_block(cqi, pdus)?;
                let new_octets = block.content.parts.iter().map(Vec::len).sum();
                Some(Transmission { process, block, new_octets })
            }
        }
    }

    /// The block is transmitted in the TTI that begins now. `decided` is told of each of its PDUs if this decides what becomes
    /// of it: it arrives, or is lost (true). Of a PDU with parts in several blocks the last block decides.
    pub(in crate::rlc) fn transmit(
        &mut self,
        now: Instant,
        Transmission { process, block, new_octets }: Transmission,
        decided: impl FnMut(&Outgoing, bool),
    ) {
        self.last = Some(now);
        self.counters.ttis += 1;
        let snr = ratio(self.channel.snr(now));
        let draw = self.draws.unit();
        let rules = Rules { round_trip: self.config.round_trip, transmissions: self.config.transmissions };
        let is_lost = |cqi: Cqi, energy| draw < cqi.bler(decibels(energy));
        let outcome = self.harq.transmit(now, process, block, snr, rules, is_lost);
        self.counters.first_damaged += u64::from(new_octets > 0 && !matches!(outcome, Outcome::Arrives(_)));
        match outcome {
            Outcome::Arrives(block) => {
                self.segmenter.decide(&block.content, false, decided);
                // A delay that was made shorter under way lets nothing overtake.
                let at = now + TTI + self.delay;
                let at = self.arriving.back().map_or(at, |last| at.max(last.at));
                self.arriving.push_back(Arrival { at, number: block.number, content: block.content });
            }
            Outcome::Lost(block) => {
                self.counters.lost += 1;
                self.segmenter.decide(&block.content, true, decided);
            }
            Outcome::Waits => {}
        }
    }

    fn new_block(&mut self, most: Cqi, pdus: Vec<Outgoing>) -> Option<Block<Content>> {
        self.counters.pdus += pdus.len() as u64;
        let content = self.segmenter.fill(most, pdus)?;
        self.counters.blocks += 1;
        let cqi = self.segmenter.framing().smallest(&content.parts, most);
        let number = self.next_number;
        self.next_number += 1;
        Some(Block { number, cqi, content, transmissions: 0, energy: 0.0 })
    }

    /// What is under way does not arrive: both ends of MAC-hs are reset (§11.6.2.5).
    pub(in crate::rlc) fn clear(&mut self) {
        self.arriving.clear();
        self.segmenter.reset();
        self.reassembler.reset();
        self.harq.reset();
        self.next_number = 0;
        self.reordering.reset();
    }

    /// When something may go on from re-ordering.
    pub(in crate::rlc) fn next_landing(&self) -> Option<Instant> {
        let arrives = self.arriving.front().map(|arrival| arrival.at);
        [arrives, self.reordering.next_deadline()].into_iter().flatten().min()
    }

    /// What has gone on from re-ordering at `now`. `None`: no more. What arrives just when T1 expires is still in time.
    pub(in crate::rlc) fn land(&mut self, now: Instant) -> Option<Flight> {
        let lands = self.next_landing().filter(|at| *at <= now)?;
        let mut blocks = Vec::new();
        match self.arriving.pop_front_if(|arrival| arrival.at == lands) {
            Some(Arrival { at, number, content }) => {
                self.reordering.receive(at, Tsn::of(number), (number, content), &mut blocks);
            }
            None => self.reordering.handle_deadline(lands, &mut blocks),
        }
        let mut pdus = Vec::new();
        for (number, content) in blocks {
            self.reassembler.receive(number, content, &mut pdus);
        }
        Some(Flight { lands, blocks: pdus })
    }

    /// For people and programs.
    pub(in crate::rlc) fn stats(&self) -> serde_json::Value {
        let Counters { ttis, blocks, pdus, first_damaged, lost } = self.counters;
        let reordering = self.reordering.counters;
        serde_json::json!({
            "cqi": self.last.map(|last| self.cqi(last).get()),
            "transmissions": ttis,
            "blocks": blocks,
            "pdus": pdus,
            "segments": self.segmenter.segments,
            "incomplete": self.reassembler.incomplete,
            "first_damaged": first_damaged,
            "lost": lost,
            "late": reordering.late,
            "t1_expiries": reordering.t1_expiries,
            "window_moves": reordering.window_moves,
        })
    }
}
