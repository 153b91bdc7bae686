//! Records of radio PDUs. A PDU is recorded at the time of its first transmission, but whether it arrives is
//! known only when HARQ has finished. Records wait until then, and keep the order of first transmissions, in
//! which Wireshark reassembles SDUs.

use std::collections::VecDeque;

use airwire::time::Instant;

use super::bearer::{Bearer, sdus};
use super::shared_channel::TransportBlock;
use crate::packet::Direction;
use crate::rlc::service::{Pdu, PduKind};
use crate::stage::{Outbox, RadioPdu};

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
            at,
            stage: 0,
            bearer: number,
            direction,
            technology: bearer.settings.format(direction),
            bytes: pdu.octets.as_slice().into(),
            epoch,
            lost: false,
            arrival: None,
            transmission: if let PduKind::Data { transmission, .. } = pdu.kind { transmission } else { 1 },
            packets: bearer.packets(direction, sdus(pdu)),
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
