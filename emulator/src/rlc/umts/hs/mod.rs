//! HSDPA: a downlink that the mobiles of a cell share TTI by TTI (TS 25.321 §11.6, MAC-hs).
//!
//! - [`scheduler`](crate::mac::scheduler) assigns the TTIs to mobiles;
//! - `channel` models the reception of a mobile, and [`cqi`] its reports and the probability of block errors;
//! - [`framing`] defines the capacity of a block, and `segmenting` puts PDUs into blocks and restores them;
//! - `harq` retransmits blocks, and combines the transmissions of a block;
//! - `reordering` restores the order of the blocks;
//! - `Link` combines all of this for one mobile, and [`config`] defines the settings.
//!
//! Choices: a TTI serves one mobile (no code multiplexing). A mobile has one queue. MAC-hs requests PDUs from
//! RLC when it builds a block, as if the flow control between RNC and Node B were perfect. A block is not
//! larger than its content requires. With MAC-ehs, blocks have the same sizes as with MAC-hs.

mod channel;
pub mod config;
pub mod cqi;
pub mod framing;
mod harq;
mod reordering;
mod segmentation;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant, earlier};

use channel::{RadioChannel, decibels};
use config::HsdpaConfig;
use cqi::Cqi;
use framing::Framing;
use harq::{Block, Harq, HarqSettings, NextTransmission, TransmissionResult};
use reordering::{Reordering, Tsn};
use segmentation::{Content, Reassembler, Segmenter};

use super::capacity::Room;
use super::entity::Outgoing;
use crate::fading::ratio;
use crate::mac::in_flight::InFlight;

/// TTI of an HS-DSCH.
pub(in crate::rlc) const TTI: Duration = Duration::from_millis(2);

/// The shared channel from the base station to one mobile.
pub(in crate::rlc) struct Link {
    config: HsdpaConfig,
    /// Time from the end of a TTI to the arrival of its block at the mobile's reordering queue.
    delay: Duration,
    channel: RadioChannel,
    draws: Stream,
    segmenter: Segmenter,
    harq: Harq<Content>,
    /// Number of the next new block.
    next_number: u64,
    /// Undamaged blocks in flight, with their numbers.
    in_flight: InFlight<(u64, Content)>,
    reordering: Reordering<(u64, Content)>,
    reassembler: Reassembler,
    /// The last TTI that this link has used.
    last: Option<Instant>,
    pub(in crate::rlc) counters: Counters,
}

/// A block that is about to be transmitted.
pub(in crate::rlc) struct Transmission {
    process: usize,
    block: Block<Content>,
    /// Bytes of PDUs that are transmitted for the first time.
    pub(in crate::rlc) new_octets: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::rlc) struct Counters {
    /// TTIs used, which is the number of transmissions.
    pub(in crate::rlc) ttis: u64,
    /// Blocks transmitted for the first time.
    pub(in crate::rlc) blocks: u64,
    /// PDUs in these blocks.
    pub(in crate::rlc) pdus: u64,
    /// Blocks whose first transmission was damaged.
    pub(in crate::rlc) first_damaged: u64,
    /// Blocks that were given up after the last transmission.
    pub(in crate::rlc) lost: u64,
}

impl Link {
    /// Creates the link. `snr` is the mean signal-to-noise ratio in dB. `name` identifies the direction and
    /// the mobile, such as `radio/down`.
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
            in_flight: InFlight::default(),
            reordering: Reordering::new(config.window, config.t1),
            reassembler: Reassembler::default(),
            last: None,
            counters: Counters::default(),
        }
    }

    /// Applies new settings. The number of processes and the window do not change.
    pub(in crate::rlc) fn reconfigure(&mut self, config: &HsdpaConfig, snr: f64, delay: Duration) {
        self.config = config.clone();
        self.delay = delay;
        self.channel.set(snr, config.fading.as_ref());
        self.reordering.set_t1(config.t1);
    }

    /// Maximum number of PDUs in a block. If the PDU size is flexible, this is the number of PDUs of the
    /// maximum size.
    pub(in crate::rlc) fn max_pdus(&self) -> usize {
        self.segmenter.framing().pdus(self.config.category().largest).max(1)
    }

    /// Maximum number of PDU bytes in a block.
    pub(in crate::rlc) fn max_octets(&self) -> usize {
        self.segmenter.framing().octets(self.config.category().largest)
    }

    /// CQI that limits the size of a block: the last one reported, but at most the largest one of the
    /// category.
    pub(in crate::rlc) fn cqi(&self, now: Instant) -> Cqi {
        let period = self.config.cqi_period.as_nanos();
        // The value of the first report is already used before the report arrives.
        let about = (now - Instant::ZERO).saturating_sub(self.config.cqi_delay).as_nanos() / period * period;
        let cqi = Cqi::of(self.channel.snr(Instant::ZERO + Duration::from_nanos(about)));
        cqi.min(self.config.category().largest)
    }

    /// Whether the transmitter's window allows a new block (§11.6.1.1). A block must not be so far ahead of
    /// an older one that the mobile would stop waiting for the older one. Choice: the transmitter then waits,
    /// and does not give up any block.
    fn window_is_open(&self) -> bool {
        let oldest = self.harq.oldest().unwrap_or(self.next_number);
        self.next_number - oldest < u64::from(self.config.window)
    }

    /// Earliest time at which the link can use a TTI. `new` is true if RLC has data for a new block. `None`
    /// if there is nothing to send.
    pub(in crate::rlc) fn ready_at(&self, new: bool) -> Option<Instant> {
        let new = new || self.segmenter.has_waiting();
        let ready_at = self.harq.ready_at(new && self.window_is_open())?;
        let spaced = self.last.map(|last| last + TTI * self.config.category().spacing);
        Some(spaced.map_or(ready_at, |spaced| ready_at.max(spaced)))
    }

    /// Bytes of PDUs that a block could carry now. `None` if there is nothing to send or the reception is too
    /// poor.
    pub(in crate::rlc) fn sendable_octets(&self, now: Instant, new: bool) -> Option<usize> {
        let new = new || self.segmenter.has_waiting();
        self.ready_at(new).filter(|ready_at| *ready_at <= now)?;
        self.harq.next_transmission(now, new && self.window_is_open())?;
        Some(self.segmenter.framing().octets(self.cqi(now))).filter(|octets| *octets > 0)
    }

    /// Returns the block for the TTI that begins now. `pdus` returns RLC's PDUs for a new block.
    pub(in crate::rlc) fn next_block(
        &mut self,
        now: Instant,
        pdus: impl FnOnce(Room) -> Vec<Outgoing>,
    ) -> Option<Transmission> {
        let cqi = self.cqi(now);
        match self.harq.next_transmission(now, self.window_is_open())? {
            NextTransmission::Retransmission { process } => {
                Some(Transmission { process, block: self.harq.take(process)?, new_octets: 0 })
            }
            NextTransmission::New { process } => {
                let pdus = pdus(self.segmenter.room(cqi));
                let block = self.new_block(cqi, pdus)?;
                let new_octets = block.content.parts.iter().map(Vec::len).sum();
                Some(Transmission { process, block, new_octets })
            }
        }
    }

    /// Transmits the block in the TTI that begins now. Calls `decided` with each PDU whose outcome this
    /// transmission decides, and with `true` if the PDU is lost. If several blocks contain parts of a PDU, the
    /// last block decides.
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
        let settings =
            HarqSettings { round_trip: self.config.round_trip, transmissions: self.config.transmissions };
        let is_lost = |cqi: Cqi, energy| draw < cqi.bler(decibels(energy));
        let outcome = self.harq.transmit(now, process, block, snr, settings, is_lost);
        self.counters.first_damaged +=
            u64::from(new_octets > 0 && !matches!(outcome, TransmissionResult::Arrives(_)));
        match outcome {
            TransmissionResult::Arrives(block) => {
                self.segmenter.decide(&block.content, false, decided);
                let memory = block.content.memory();
                let at = now + TTI + self.delay;
                self.in_flight.launch_in_order(at, memory, (block.number, block.content));
            }
            TransmissionResult::Lost(block) => {
                self.counters.lost += 1;
                self.segmenter.decide(&block.content, true, decided);
            }
            TransmissionResult::Retransmits => {}
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

    /// Drops the blocks in flight. Both ends of MAC-hs are reset (§11.6.2.5).
    pub(in crate::rlc) fn clear(&mut self) {
        self.in_flight = InFlight::default();
        self.segmenter.reset();
        self.reassembler.reset();
        self.harq.reset();
        self.next_number = 0;
        self.reordering.reset();
    }

    /// Memory of the undamaged blocks in flight, in bytes. The windows of HARQ and of the reordering queue
    /// bound all other blocks.
    pub(in crate::rlc) fn in_flight(&self) -> u64 {
        self.in_flight.memory()
    }

    /// Next time at which blocks may leave the reordering queue.
    pub(in crate::rlc) fn next_arrival(&self) -> Option<Instant> {
        earlier(self.in_flight.next_arrival(), self.reordering.next_deadline())
    }

    /// Returns the PDUs that leave the reordering queue at `now`, or `None` if there are no more. A block
    /// that arrives when T1 expires is still in time.
    pub(in crate::rlc) fn take_arrival(&mut self, now: Instant) -> Option<Vec<Arc<[u8]>>> {
        let at = self.next_arrival().filter(|at| *at <= now)?;
        let mut blocks = Vec::new();
        match self.in_flight.take(at) {
            Some(block) => self.reordering.receive(at, Tsn::of(block.0), block, &mut blocks),
            None => self.reordering.handle_deadline(at, &mut blocks),
        }
        let mut pdus = Vec::new();
        for (number, content) in blocks {
            self.reassembler.receive(number, content, &mut pdus);
        }
        Some(pdus)
    }

    /// Statistics of the link.
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
