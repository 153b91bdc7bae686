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

struct LoggedBlock {
    pdus: Vec<RadioPdu>,
    /// Whether the block is lost, once it is known.
    lost: Option<bool>,
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
            transmission: if let PduKind::Data { transmission, .. } = pdu.kind { transmission } else { 1 },
            packets: sdus(pdu).iter().filter_map(|count| Some(ledger.packet(*count)?.id)).collect(),
        });
        self.blocks.push_back(LoggedBlock { pdus: pdus.collect(), lost: None });
    }

    /// The outcome of a block is known.
    pub(super) fn decide(&mut self, number: u64, lost: bool, out: &mut Outbox) {
        let Some(block) =
            number.checked_sub(self.first).and_then(|index| self.blocks.get_mut(index as usize))
        else {
            return;
        };
        block.lost = Some(lost);
        while let Some(LoggedBlock { pdus, lost }) = self.blocks.pop_front_if(|block| block.lost.is_some()) {
            self.first += 1;
            for pdu in pdus {
                out.radio(|_, stage| RadioPdu { stage, lost: lost == Some(true), ..pdu });
            }
        }
    }
}
