//! FQ-CoDel: Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet, RFC 8290. Flows are hashed into queues that take
//! turns, those that have just begun before the others; CoDel looks after each of them.
//!
//! Choice: where the RFC leaves it open, it is done as in Linux. CoDel's MAXPACKET is compared with what waits in all
//! queues together; what overflow takes from the head of the longest queue counts in that queue's CoDel as dropped.

use std::collections::VecDeque;

use super::codel::Codel;
use super::config::{Bounds, FqCodelConfig};
use super::flow::FlowHash;
use super::{Desk, Waiting};
use crate::stage::Why;

/// §4.1: at most so many packets are dropped at once when there is no room.
const BATCH: u32 = 64;

#[derive(Debug)]
pub(super) struct FqCodel {
    flows: Vec<Flow>,
    /// §4.2: indices of `flows`, in their order.
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    hash: FlowHash,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    line: VecDeque<Waiting>,
    bytes: u64,
    /// Its credits.
    deficit: i64,
    codel: Codel,
    /// It is in one of the two lists.
    listed: bool,
}

impl FqCodel {
    pub(super) fn new(config: &FqCodelConfig, hash: FlowHash) -> Self {
        Self {
            flows: vec![Flow::default(); config.flows as usize],
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            hash,
        }
    }

    /// §4.1. The packet counts in `desk` already.
    pub(super) fn enqueue(
        &mut self,
        config: &FqCodelConfig,
        bounds: &Bounds,
        waiting: Waiting,
        desk: &mut Desk<'_>,
    ) {
        let index = self.hash.of(&waiting.packet.bytes, self.flows.len());
        let flow = &mut self.flows[index];
        flow.bytes += waiting.packet.len() as u64;
        flow.line.push_back(waiting);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = config.quantum.as_bytes() as i64;
            self.new_flows.push_back(index);
        }
        while bounds.are_exceeded(desk.tally) {
            self.drop_from_the_longest(desk);
        }
    }

    /// Half of the octets of the queue that has most, but no more than 64 packets.
    fn drop_from_the_longest(&mut self, desk: &mut Desk<'_>) {
        // The first of several.
        let longest =
            self.flows.iter_mut().reduce(|most, flow| if flow.bytes > most.bytes { flow } else { most });
        let Some(flow) = longest else { return };
        let half = flow.bytes / 2;
        let (mut packets, mut octets) = (0, 0);
        while packets < BATCH && (packets == 0 || octets < half) {
            let Some(waiting) = desk.take(&mut flow.line) else { break };
            octets += waiting.packet.len() as u64;
            packets += 1;
            desk.drop(waiting.packet, Why::QueueFull);
        }
        flow.bytes -= octets;
        flow.codel.dropped_otherwise(packets);
    }

    /// §4.2.
    pub(super) fn dequeue(&mut self, config: &FqCodelConfig, desk: &mut Desk<'_>) -> Option<Waiting> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += config.quantum.as_bytes() as i64;
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let before = desk.tally.bytes;
            let head = flow.codel.dequeue(&config.codel, &mut flow.line, desk);
            flow.bytes -= before - desk.tally.bytes;
            match head {
                Some(head) => {
                    flow.deficit -= head.packet.len() as i64;
                    return Some(head);
                }
                None => {
                    list.pop_front();
                    // Otherwise a flow that sends a packet now and then would be new each time, and starve the others.
                    if is_new {
                        self.old_flows.push_back(index);
                    } else {
                        flow.listed = false;
                    }
                }
            }
        }
    }

    /// Everything that waits, in the order of the flows.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Waiting> {
        self.flows.iter_mut().flat_map(|flow| flow.line.drain(..))
    }
}
