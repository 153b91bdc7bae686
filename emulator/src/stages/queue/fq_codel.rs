//! FQ-CoDel (Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet; RFC 8290). Flows are hashed into queues,
//! which are served in turn, new queues before old ones. CoDel manages each queue.
//!
//! Choice: where the RFC leaves a choice, this implementation follows Linux. CoDel's MAXPACKET is compared
//! with the length of all queues together. If the discipline overflows, packets are dropped from the head of
//! the longest queue. They count as drops in that queue's CoDel.

use std::collections::{BTreeMap, VecDeque};

use super::codel::Codel;
use super::config::{Bounds, FqCodelConfig};
use super::flow::FlowHash;
use super::{CallContext, QueuedPacket};
use crate::stage::DropReason;

/// §4.1: maximum number of packets dropped at once for lack of room.
const BATCH: u32 = 64;

#[derive(Debug)]
pub(super) struct FqCodel {
    /// Number of queues.
    count: usize,
    /// The queues that have been used, by index. Unused queues take no memory, because a path may have
    /// thousands of these disciplines.
    flows: BTreeMap<usize, Flow>,
    /// §4.2: indices into `flows`, in order of service.
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    hash: FlowHash,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    packets: VecDeque<QueuedPacket>,
    bytes: u64,
    /// Credits in bytes. The queue is served while they are positive.
    deficit: i64,
    codel: Codel,
    /// Whether the queue is in one of the two lists.
    listed: bool,
}

impl FqCodel {
    pub(super) fn new(config: &FqCodelConfig, hash: FlowHash) -> Self {
        Self {
            count: config.flows as usize,
            flows: BTreeMap::new(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            hash,
        }
    }

    /// Queues a packet (§4.1), which `context` must have counted already.
    pub(super) fn enqueue(
        &mut self,
        config: &FqCodelConfig,
        bounds: &Bounds,
        waiting: QueuedPacket,
        context: &mut CallContext<'_>,
    ) {
        let index = self.hash.of(&waiting.packet.bytes, self.count);
        let flow = self.flows.entry(index).or_default();
        flow.bytes += waiting.packet.len() as u64;
        flow.packets.push_back(waiting);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = config.quantum.as_bytes() as i64;
            self.new_flows.push_back(index);
        }
        while bounds.are_exceeded(context.counters) {
            self.drop_from_longest(context);
        }
    }

    /// Drops half of the bytes of the longest queue, but at most 64 packets.
    fn drop_from_longest(&mut self, context: &mut CallContext<'_>) {
        // Takes the first one if several are equally long.
        let busy = self.flows.values_mut().filter(|flow| !flow.packets.is_empty());
        let Some(flow) = busy.reduce(|longest, flow| if flow.bytes > longest.bytes { flow } else { longest })
        else {
            return;
        };
        let half = flow.bytes / 2;
        let (mut packets, mut bytes) = (0, 0);
        while packets < BATCH && (packets == 0 || bytes < half) {
            let Some(waiting) = context.take(&mut flow.packets) else { break };
            bytes += waiting.packet.len() as u64;
            packets += 1;
            context.drop(waiting.packet, DropReason::QueueFull);
        }
        flow.bytes -= bytes;
        flow.codel.count_overflow_drops(packets);
    }

    /// Removes the next packet to send (§4.2).
    pub(super) fn dequeue(
        &mut self,
        config: &FqCodelConfig,
        context: &mut CallContext<'_>,
    ) -> Option<QueuedPacket> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = self.flows.entry(index).or_default();
            if flow.deficit <= 0 {
                flow.deficit += config.quantum.as_bytes() as i64;
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let before = context.counters.bytes;
            let head = flow.codel.dequeue(&config.codel, &mut flow.packets, context);
            flow.bytes -= before - context.counters.bytes;
            match head {
                Some(head) => {
                    flow.deficit -= head.packet.len() as i64;
                    return Some(head);
                }
                None => {
                    list.pop_front();
                    // An empty new queue becomes an old one. Otherwise a flow with occasional packets would
                    // be new each time and starve all other flows.
                    if is_new {
                        self.old_flows.push_back(index);
                    } else {
                        flow.listed = false;
                    }
                }
            }
        }
    }

    /// Removes all waiting packets, queue by queue.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = QueuedPacket> {
        self.flows.values_mut().flat_map(|flow| flow.packets.drain(..))
    }
}
