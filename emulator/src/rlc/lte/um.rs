//! Unacknowledged mode (§5.1.2): concatenation, reordering and reassembly without retransmission.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use airwire::time::{Duration, Instant};

use super::codec::{LiLength, UmSnLength, Umd};
use super::concatenation::{FieldBounds, SduStream};
use super::reassembly::{Boundaries, Piece, Reassembler};
use super::subheader;
use crate::rlc::am::ReceiveError;
use crate::rlc::service::{BufferStatus, Event, MacSubheaders, Pdu, PduKind, Sdu};

/// Settings of UM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmConfig {
    /// Length of the sequence numbers.
    pub sn_length: UmSnLength,
    /// t-Reordering: time for which a missing PDU may be late.
    pub t_reordering: Duration,
    /// Whether `pull` counts the MAC subheader.
    pub mac_subheaders: MacSubheaders,
}

impl Default for UmConfig {
    fn default() -> Self {
        Self {
            sn_length: UmSnLength::default(),
            t_reordering: Duration::from_millis(45),
            mac_subheaders: MacSubheaders::default(),
        }
    }
}

/// A transmitting UM entity (§5.1.2.1).
#[derive(Debug)]
pub struct UmSender {
    config: UmConfig,
    stream: SduStream,
    /// VT(US), unwrapped.
    vt_us: u64,
}

impl UmSender {
    /// Creates an entity.
    pub fn new(config: UmConfig) -> Self {
        Self { config, stream: SduStream::default(), vt_us: 0 }
    }

    /// Takes an SDU from PDCP.
    ///
    /// # Panics
    ///
    /// If the SDU is empty or exceeds 65 535 octets.
    pub fn submit(&mut self, sdu: Sdu) {
        self.stream.push(sdu);
    }

    /// Discards an SDU (§5.3). Returns `false` if octets of it have been mapped to a PDU, or if the entity does
    /// not have it.
    pub fn discard(&mut self, id: u64) -> bool {
        self.stream.discard(id)
    }

    /// Octets that wait for transmission.
    pub fn buffer_status(&self) -> BufferStatus {
        BufferStatus {
            new: self.stream.octets(),
            sdus: self.stream.waiting_sdus(),
            ..BufferStatus::default()
        }
    }

    /// Appends a PDU for a transport block of `octets` octets. Returns the octets that are used, including the
    /// MAC subheader.
    pub fn pull(&mut self, octets: usize, pdus: &mut Vec<Pdu>) -> usize {
        let last_subheader = subheader::last(self.config.mac_subheaders);
        match octets.checked_sub(last_subheader).and_then(|room| self.next_pdu(room)) {
            Some(pdu) => {
                let used = pdu.octets.len() + last_subheader;
                pdus.push(pdu);
                used
            }
            None => 0,
        }
    }

    fn next_pdu(&mut self, room: usize) -> Option<Pdu> {
        let sn_length = self.config.sn_length;
        let room = room.checked_sub(sn_length.fixed_header())?;
        let elements = self.stream.take(FieldBounds { room, max_data: usize::MAX, li: LiLength::Bits11 })?;
        // §5.1.2.1.1: "set the SN of the UMD PDU to VT(US), and then increment VT(US) by one".
        let sn = self.vt_us;
        self.vt_us += 1;
        let data = elements.to_vec();
        let umd = Umd { sn: sn_length.bits().wire(sn), data: elements.field(&data) };
        let sdus = elements.pieces.iter().map(|(sdu, _)| sdu.id).collect();
        let kind = PduKind::Data { sn, transmission: 1, polls: false, sdus };
        Some(Pdu { octets: umd.encode(sn_length), kind })
    }

    /// Re-establishes the entity (§5.4).
    pub fn reestablish(&mut self) {
        *self = Self::new(self.config.clone());
    }
}

/// A receiving UM entity (§5.1.2.2).
#[derive(Debug)]
pub struct UmReceiver {
    config: UmConfig,
    /// VR(UR): the first PDU that may still arrive.
    vr_ur: u64,
    /// VR(UH): the number after the highest one received.
    vr_uh: u64,
    timer: Option<Timer>,
    /// PDUs above VR(UR).
    stored: BTreeMap<u64, (Vec<u8>, Boundaries)>,
    reassembler: Reassembler,
    /// The number after the last PDU that was reassembled.
    next: u64,
}

/// t-Reordering while it is running.
#[derive(Clone, Copy, Debug)]
struct Timer {
    expires: Instant,
    /// VR(UX).
    vr_ux: u64,
}

impl UmReceiver {
    /// Creates an entity.
    pub fn new(config: UmConfig) -> Self {
        // The window lies below VR(UH). The first number is high enough for the window to begin above 0.
        let start = config.sn_length.bits().modulus();
        Self {
            config,
            vr_ur: start,
            vr_uh: start,
            timer: None,
            stored: BTreeMap::new(),
            reassembler: Reassembler::default(),
            next: start,
        }
    }

    /// The lower edge of the reordering window.
    fn window_start(&self) -> u64 {
        self.vr_uh - self.config.sn_length.bits().window()
    }

    /// Handles a received PDU. Appends the SDUs that can be delivered to `events`.
    pub fn receive(&mut self, now: Instant, pdu: &[u8], events: &mut Vec<Event>) -> Result<(), ReceiveError> {
        let umd = Umd::decode(pdu, self.config.sn_length)?;
        let sn = self.config.sn_length.bits().restore(self.window_start(), umd.sn);
        // §5.1.2.2.2: a PDU below VR(UR), or a PDU that has been received before, is discarded.
        if sn < self.vr_ur || self.stored.contains_key(&sn) {
            return Ok(());
        }
        let mut boundaries = Boundaries::default();
        boundaries.add(0, &umd.data);
        self.stored.insert(sn, (umd.data.octets.to_vec(), boundaries));
        // §5.1.2.2.3: a SN outside the reordering window sets VR(UH) to SN + 1. VR(UR) moves into the new window.
        if sn >= self.vr_uh {
            self.vr_uh = sn + 1;
            if self.vr_ur < self.window_start() {
                self.advance_to(self.window_start(), events);
            }
        }
        // §5.1.2.2.3: after the PDU with SN = VR(UR), VR(UR) becomes the next SN that has not been received.
        if sn == self.vr_ur {
            self.advance_to(sn, events);
        }
        self.update_timer(now);
        Ok(())
    }

    /// Sets VR(UR) to the first PDU from `from` on that has not been received, and reassembles those below it.
    fn advance_to(&mut self, from: u64, events: &mut Vec<Event>) {
        self.vr_ur = from;
        while self.stored.first_key_value().is_some_and(|(sn, _)| *sn <= self.vr_ur) {
            let Some((sn, (octets, boundaries))) = self.stored.pop_first() else { break };
            let piece = Piece { offset: 0, octets: &octets, is_contiguous: sn == self.next };
            self.reassembler.append(piece, &boundaries, events);
            self.next = sn + 1;
            self.vr_ur = self.vr_ur.max(self.next);
        }
    }

    /// Stops and starts t-Reordering (§5.1.2.2.3). It stops if VR(UX) <= VR(UR), or if VR(UX) is outside the
    /// window.
    fn update_timer(&mut self, now: Instant) {
        let window_start = self.window_start();
        self.timer = self.timer.filter(|timer| timer.vr_ux > self.vr_ur && timer.vr_ux >= window_start);
        if self.timer.is_none() {
            self.start_timer(now);
        }
    }

    /// Starts t-Reordering if VR(UH) > VR(UR).
    fn start_timer(&mut self, now: Instant) {
        let expires = now + self.config.t_reordering;
        self.timer = (self.vr_uh > self.vr_ur).then_some(Timer { expires, vr_ux: self.vr_uh });
    }

    /// The time at which t-Reordering expires.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.timer.map(|timer| timer.expires)
    }

    /// Handles the expiry of t-Reordering (§5.1.2.2.4): VR(UR) becomes the first SN >= VR(UX) that has not been
    /// received. Appends the SDUs that can be delivered to `events`.
    pub fn on_deadline(&mut self, now: Instant, events: &mut Vec<Event>) {
        if let Some(Timer { vr_ux, .. }) = self.timer.take_if(|timer| timer.expires <= now) {
            self.advance_to(vr_ux, events);
            self.start_timer(now);
        }
    }

    /// Re-establishes the entity (§5.4): delivers the SDUs that can be reassembled in ascending order, and
    /// discards everything else.
    pub fn reestablish(&mut self, events: &mut Vec<Event>) {
        self.advance_to(self.vr_uh, events);
        *self = Self::new(self.config.clone());
    }
}
