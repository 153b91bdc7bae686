//! Unacknowledged mode (§5.2.2): segmentation without retransmission.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use airwire::time::{Duration, Instant};
use smallvec::smallvec;

use super::codec::{Position, UmSnLength, Umd};
use super::segmentation::fit;
use super::subheader;
use crate::rlc::am::ReceiveError;
use crate::rlc::sdu_queue::SduQueue;
use crate::rlc::segments::{Addition, Assembly, Segment};
use crate::rlc::service::{BufferStatus, Event, MacSubheaders, Pdu, PduKind, Sdu};

/// Settings of UM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmConfig {
    /// Length of the sequence numbers.
    pub sn_length: UmSnLength,
    /// t-Reassembly: time for which a missing segment may be late, before its SDU is discarded.
    pub t_reassembly: Duration,
    /// Whether `pull` counts MAC subheaders.
    pub mac_subheaders: MacSubheaders,
}

impl Default for UmConfig {
    fn default() -> Self {
        Self {
            sn_length: UmSnLength::default(),
            t_reassembly: Duration::from_millis(50),
            mac_subheaders: MacSubheaders::default(),
        }
    }
}

/// A transmitting UM entity (§5.2.2.1).
#[derive(Debug)]
pub struct UmSender {
    config: UmConfig,
    queue: SduQueue,
    /// The SDU under segmentation and the number of its transmitted octets.
    unfinished: Option<(Sdu, u32)>,
    /// TX_Next, unwrapped.
    tx_next: u64,
}

impl UmSender {
    /// Creates an entity.
    pub fn new(config: UmConfig) -> Self {
        Self { config, queue: SduQueue::default(), unfinished: None, tx_next: 0 }
    }

    /// Takes an SDU from PDCP.
    ///
    /// # Panics
    ///
    /// If the SDU is empty or exceeds 65 535 octets.
    pub fn submit(&mut self, sdu: Sdu) {
        self.queue.push(sdu);
    }

    /// Discards an SDU (§5.4). Returns `false` if octets of it have been transmitted, or if the entity does not
    /// have it.
    pub fn discard(&mut self, id: u64) -> bool {
        self.queue.discard(id)
    }

    /// Octets that wait for transmission.
    pub fn buffer_status(&self) -> BufferStatus {
        let unfinished = self.unfinished.as_ref();
        let rest =
            unfinished.map_or(0, |(sdu, transmitted)| sdu.octets.len() as u64 - u64::from(*transmitted));
        BufferStatus { new: self.queue.octets() + rest, sdus: self.queue.len(), ..BufferStatus::default() }
    }

    /// Appends PDUs for a transport block of `octets` octets. Returns the octets that are used, including MAC
    /// subheaders.
    pub fn pull(&mut self, octets: usize, pdus: &mut Vec<Pdu>) -> usize {
        let counted = self.config.mac_subheaders;
        let mut left = octets;
        while let Some(room) = subheader::room(counted, left)
            && let Some(pdu) = self.next_pdu(room)
        {
            left -= subheader::cost(counted, pdu.octets.len());
            pdus.push(pdu);
        }
        octets - left
    }

    fn next_pdu(&mut self, room: usize) -> Option<Pdu> {
        let sn_length = self.config.sn_length;
        let (sdu, transmitted) = match &self.unfinished {
            Some((sdu, transmitted)) => (sdu, *transmitted),
            None => (self.queue.front()?, 0),
        };
        let length = sdu.octets.len() as u32;
        let range = fit(transmitted..length, length, room, |position| sn_length.header(position))?;
        let position = Position::of(range.start, range.end, length);
        // §5.2.2.1.1: a segment of an SDU has SN = TX_Next, a whole SDU has no SN.
        let sn = self.tx_next;
        let umd = Umd {
            position,
            sn: (position != Position::Whole).then(|| sn_length.bits().wire(sn)),
            data: &sdu.octets[range.start as usize..range.end as usize],
        };
        let kind = PduKind::Data { sn, transmission: 1, polls: false, sdus: smallvec![sdu.id] };
        let pdu = Pdu { octets: umd.encode(sn_length), kind };
        let sdu = self.unfinished.take().map(|(sdu, _)| sdu).or_else(|| self.queue.pop())?;
        match position {
            Position::Whole => {}
            // §5.2.2.1.1: the segment with the last byte of an SDU increments TX_Next.
            Position::Last { .. } => self.tx_next += 1,
            Position::First | Position::Middle { .. } => self.unfinished = Some((sdu, range.end)),
        }
        Some(pdu)
    }

    /// Re-establishes the entity (§5.1.2).
    pub fn reestablish(&mut self) {
        *self = Self::new(self.config.clone());
    }
}

/// A receiving UM entity (§5.2.2.2).
#[derive(Debug)]
pub struct UmReceiver {
    config: UmConfig,
    /// RX_Next_Reassembly.
    next_reassembly: u64,
    /// RX_Next_Highest.
    next_highest: u64,
    timer: Option<Timer>,
    partial: BTreeMap<u64, Assembly>,
    /// SDUs from RX_Next_Reassembly on that have been delivered.
    delivered: BTreeSet<u64>,
    discarded: u64,
}

/// t-Reassembly while it is running.
#[derive(Clone, Copy, Debug)]
struct Timer {
    expires: Instant,
    /// RX_Timer_Trigger.
    trigger: u64,
}

impl UmReceiver {
    /// Creates an entity.
    pub fn new(config: UmConfig) -> Self {
        // The window lies below RX_Next_Highest. The first number is high enough for the window to begin
        // above 0.
        let start = config.sn_length.bits().modulus();
        Self {
            config,
            next_reassembly: start,
            next_highest: start,
            timer: None,
            partial: BTreeMap::new(),
            delivered: BTreeSet::new(),
            discarded: 0,
        }
    }

    /// Number of SDUs whose received segments were discarded.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// The lower edge of the reassembly window.
    fn window_start(&self) -> u64 {
        self.next_highest - self.config.sn_length.bits().window()
    }

    /// Handles a received PDU. Appends the SDU that it completes to `events`.
    pub fn receive(&mut self, now: Instant, pdu: &[u8], events: &mut Vec<Event>) -> Result<(), ReceiveError> {
        let umd = Umd::decode(pdu, self.config.sn_length)?;
        // §5.2.2.2.2: a PDU without SN contains a whole SDU, which is delivered at once.
        let Some(wire) = umd.sn else {
            events.push(Event::Delivered(umd.data.to_vec()));
            return Ok(());
        };
        let sn = self.config.sn_length.bits().restore(self.window_start(), wire);
        // §5.2.2.2.2: a PDU in the window below RX_Next_Reassembly is discarded.
        if sn < self.next_reassembly || self.delivered.contains(&sn) {
            return Ok(());
        }
        let segment =
            Segment { offset: umd.position.offset(), octets: umd.data, is_last: umd.position.is_last() };
        let assembly = self.partial.entry(sn).or_default();
        match assembly.add(segment) {
            Addition::New => {}
            Addition::Known => return Ok(()),
            Addition::Contradiction => return Err(ReceiveError::Contradiction(wire)),
        }
        // §5.2.2.2.3: a complete SDU is delivered. If SN = RX_Next_Reassembly, it becomes the next SN that has
        // not been delivered.
        if assembly.is_complete() {
            let assembly = self.partial.remove(&sn).unwrap_or_default();
            events.push(Event::Delivered(assembly.into_octets()));
            self.delivered.insert(sn);
            if sn == self.next_reassembly {
                self.advance_to(sn);
            }
        // §5.2.2.2.3: a SN outside the window sets RX_Next_Highest to SN + 1. RX_Next_Reassembly moves into the
        // new window.
        } else if sn >= self.next_highest {
            self.next_highest = sn + 1;
            if self.next_reassembly < self.window_start() {
                self.advance_to(self.window_start());
            }
        }
        self.update_timer(now);
        Ok(())
    }

    /// Sets RX_Next_Reassembly to the first SN from `from` on that has not been delivered, and discards the
    /// segments below it.
    fn advance_to(&mut self, from: u64) {
        self.next_reassembly = from;
        self.delivered = self.delivered.split_off(&from);
        while self.delivered.remove(&self.next_reassembly) {
            self.next_reassembly += 1;
        }
        let kept = self.partial.split_off(&self.next_reassembly);
        self.discarded += self.partial.len() as u64;
        self.partial = kept;
    }

    /// Whether t-Reassembly has to run: RX_Next_Highest > RX_Next_Reassembly + 1, or RX_Next_Highest =
    /// RX_Next_Reassembly + 1 and the SDU RX_Next_Reassembly has a hole before its last received octet.
    fn is_missing(&self) -> bool {
        let next = self.next_reassembly;
        self.next_highest > next + 1 || self.next_highest == next + 1 && self.has_hole(next)
    }

    fn has_hole(&self, sn: u64) -> bool {
        self.partial.get(&sn).is_some_and(Assembly::has_hole)
    }

    /// Stops and starts t-Reassembly (§5.2.2.2.3). It stops if RX_Timer_Trigger <= RX_Next_Reassembly, if
    /// RX_Timer_Trigger is outside the window, or if RX_Next_Highest = RX_Next_Reassembly + 1 and the SDU
    /// RX_Next_Reassembly has no hole.
    fn update_timer(&mut self, now: Instant) {
        self.timer = self.timer.filter(|Timer { trigger, .. }| {
            let next = self.next_reassembly;
            let is_outside = *trigger < self.window_start();
            let has_no_hole = self.next_highest == next + 1 && !self.has_hole(next);
            !(*trigger <= next || is_outside || has_no_hole)
        });
        if self.timer.is_none() {
            self.start_timer(now);
        }
    }

    /// Starts t-Reassembly if something is missing.
    fn start_timer(&mut self, now: Instant) {
        let expires = now + self.config.t_reassembly;
        self.timer = self.is_missing().then_some(Timer { expires, trigger: self.next_highest });
    }

    /// The time at which t-Reassembly expires.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.timer.map(|timer| timer.expires)
    }

    /// Handles the expiry of t-Reassembly (§5.2.2.2.4): RX_Next_Reassembly becomes the first SN >=
    /// RX_Timer_Trigger that has not been delivered, and the segments below it are discarded.
    pub fn on_deadline(&mut self, now: Instant) {
        if let Some(Timer { trigger, .. }) = self.timer.take_if(|timer| timer.expires <= now) {
            self.advance_to(trigger);
            self.start_timer(now);
        }
    }

    /// Re-establishes the entity (§5.1.2): discards all segments.
    pub fn reestablish(&mut self) {
        let discarded = self.discarded + self.partial.len() as u64;
        *self = Self { discarded, ..Self::new(self.config.clone()) };
    }
}
