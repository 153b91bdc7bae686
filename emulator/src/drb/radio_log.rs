//! Records of radio PDUs. A PDU is recorded at the time of its first transmission, but whether it arrives is
//! known only when HARQ has finished. Records wait until then, and keep the order of first transmissions, in
//! which Wireshark reassembles SDUs.

use std::collections::VecDeque;

use airwire::time::Instant;

use super::shared_channel::TransportBlock;
use super::transmission::sdus;
use crate::packet::Direction;
use crate::rlc::ledger::Ledger;
use crate::rlc::service::PduKind;
use crate::stage::{Outbox, RadioPdu, Technology};

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
        technology: Technology,
        epoch: u32,
        ledger: &Ledger,
    ) {
        if self.blocks.is_empty() {
            self.first = block.number;
        }
        let pdus = block.pdus.iter().map(|pdu| RadioPdu {
            at,
            stage: 0,
            direction,
            technology,
            bytes: pdu.octets.as_slice().into(),
            epoch,
            lost: false,
            arrival: None,
            transmission: if let PduKind::Data { transmission, .. } = pdu.kind { transmission } else { 1 },
            packets: sdus(pdu).iter().filter_map(|count| Some(ledger.packet(*count)?.id)).collect(),
        });
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
