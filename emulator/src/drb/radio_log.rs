//! Records of radio PDUs. An RLC PDU is recorded at the time of its first transmission, but whether it arrives is
//! known only when HARQ has finished. Records wait until then, and keep the order of first transmissions, in
//! which Wireshark reassembles SDUs. A transport block is recorded at each of its transmissions, and a PDCP PDU
//! when RLC delivers it.

use std::collections::VecDeque;

use airwire::time::Instant;

use super::Drb;
use super::bearer::{Bearer, sdus};
use super::config::TechnologyKind;
use super::shared_channel::TransportBlock;
use crate::mac::grid::Slot;
use crate::mac::harq::Block;
use crate::mac::pdu::{MacSdu, encode_lte, encode_nr};
use crate::packet::Direction;
use crate::rlc::service::{Pdu, PduKind};
use crate::stage::{BlockContext, Outbox, RadioLayer, RadioPdu, Technology};

/// Logical channel of the default bearer, after the signalling bearers. The dedicated bearer has the next one.
const LTE_LCID: usize = 3;
const NR_LCID: usize = 4;

#[derive(Default)]
pub(super) struct RadioLog {
    /// Number of the first block.
    first: u64,
    blocks: VecDeque<LoggedBlock>,
}

/// The end of a transport block.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    Arrives(Instant),
    Lost,
}

struct LoggedBlock {
    pdus: Vec<RadioPdu>,
    outcome: Option<Outcome>,
}

impl RadioLog {
    /// Records a block at its first transmission.
    pub(super) fn record(
        &mut self,
        block: &TransportBlock,
        at: Instant,
        direction: Direction,
        epoch: u32,
        bearers: &[Bearer],
    ) {
        if self.blocks.is_empty() {
            self.first = block.number;
        }
        let record = |number, bearer: &Bearer, pdu: &Pdu| RadioPdu {
            bearer: number,
            packets: bearer.packets(direction, sdus(pdu)),
            transmission: if let PduKind::Data { transmission, .. } = pdu.kind { transmission } else { 1 },
            epoch,
            ..new_record(at, direction, bearer.settings.format(direction), &pdu.octets)
        };
        // The default bearer, which is the last one, has the number 0.
        let numbered = (0..bearers.len()).rev().zip(bearers).zip(&block.pdus);
        let pdus = numbered
            .flat_map(|((number, bearer), pdus)| pdus.iter().map(move |pdu| record(number, bearer, pdu)));
        self.blocks.push_back(LoggedBlock { pdus: pdus.collect(), outcome: None });
    }

    /// The outcome of a block is known.
    pub(super) fn decide(&mut self, number: u64, outcome: Outcome, out: &mut Outbox) {
        let Some(block) =
            number.checked_sub(self.first).and_then(|index| self.blocks.get_mut(index as usize))
        else {
            return;
        };
        block.outcome = Some(outcome);
        while let Some(LoggedBlock { pdus, outcome }) =
            self.blocks.pop_front_if(|block| block.outcome.is_some())
        {
            self.first += 1;
            let arrival = match outcome {
                Some(Outcome::Arrives(at)) => Some(at),
                _ => None,
            };
            for pdu in pdus {
                out.radio(|_, stage| RadioPdu { stage, lost: arrival.is_none(), arrival, ..pdu });
            }
        }
    }
}

/// A record of a PDU that arrives.
fn new_record(at: Instant, direction: Direction, technology: Technology, octets: &[u8]) -> RadioPdu {
    RadioPdu {
        at,
        stage: 0,
        bearer: 0,
        direction,
        technology,
        bytes: octets.into(),
        epoch: 0,
        lost: false,
        arrival: None,
        transmission: 1,
        packets: Vec::new(),
    }
}

impl Drb {
    /// Records the transmission of a block in this slot. It is not known yet whether the block arrives.
    pub(super) fn record_transmission(
        &self,
        slot: Slot,
        direction: Direction,
        block: &Block<TransportBlock>,
    ) -> RadioPdu {
        let Block { content: TransportBlock { size, pdus, report, .. }, transmissions, process } = block;
        let (frame, number) = self.grid.position(slot);
        let context = BlockContext { is_tdd: self.grid.is_tdd(), frame, slot: number, process: *process };
        let sdus = |first: usize| -> Vec<MacSdu<'_>> {
            let numbered = (first..first + pdus.len()).rev().zip(pdus);
            let sdus = numbered.flat_map(|(lcid, pdus)| {
                pdus.iter().map(move |pdu| MacSdu { lcid: lcid as u8, octets: &pdu.octets })
            });
            sdus.collect()
        };
        let buffered = report.map(|report| report.buffered);
        let (technology, octets) = match self.settings.technology {
            TechnologyKind::Lte => {
                (Technology::LteMac(context), encode_lte(&sdus(LTE_LCID), buffered, *size))
            }
            TechnologyKind::Nr => (Technology::NrMac(context), encode_nr(&sdus(NR_LCID), buffered, *size)),
        };
        RadioPdu {
            epoch: self.epoch(),
            transmission: transmissions + 1,
            ..new_record(slot.start, direction, technology, &octets)
        }
    }
}

impl Bearer {
    /// Records a PDCP PDU that RLC has delivered. The epoch is 0, because COUNT continues after a re-establishment in
    /// acknowledged mode.
    pub(super) fn record_pdcp(&self, at: Instant, direction: Direction, pdu: &[u8], out: &mut Outbox) {
        if out.records_radio(RadioLayer::Pdcp) {
            let sn = self.settings.directions[direction].pdcp.format.sn_bits() as u8;
            let technology = match self.settings.technology {
                TechnologyKind::Lte => Technology::LtePdcp { sn },
                TechnologyKind::Nr => Technology::NrPdcp { sn },
            };
            let record = new_record(at, direction, technology, pdu);
            let bearer = self.settings.filter.is_some().into();
            out.radio(|_, stage| RadioPdu { stage, bearer, ..record });
        }
    }
}
