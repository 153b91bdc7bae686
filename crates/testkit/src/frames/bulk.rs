//! Generates captures of bulk transfers with losses, made at the senders. Each round sends a window. Lost
//! segments are retransmitted in the next round. Lost retransmissions are repeated after a timeout. Equal
//! settings give identical files.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::io::{self, Write};
use std::net::SocketAddr;

use airwire::rng::Stream;
use airwire::seq::Seq;

use super::{ACK, ETHERNET, FIN_ACK, Pcap, SYN, SYN_ACK, Tcp};

/// Parameters of the transfers.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// Number of parallel connections. When one ends, the next one begins.
    pub parallel: u64,
    /// Total number of connections.
    pub connections: u64,
    /// Number of data segments per connection.
    pub segments: u64,
    /// One in this number of segments is lost on average.
    pub loss: u64,
}

const MSS: u64 = 1448;
const WINDOW: u64 = 64;
const ROUND: u64 = 50_000_000;
const GAP: u64 = 100_000;
const TIMEOUT: u64 = 300_000_000;
const BEGIN: u64 = 1_000_000_000_000_000_000;

struct Flow {
    index: u64,
    /// Number of the next segment to send, from 0.
    next: u64,
    expected: u64,
    /// Segments received after a hole.
    out_of_order: BTreeSet<u64>,
    lost: Vec<u64>,
    lost_again: Vec<u64>,
    sent: u64,
}

/// Capture time of a frame, a number that orders frames with the same time, and the frame.
type PendingFrame = Reverse<(u64, u64, Vec<u8>)>;

impl Bulk {
    /// Writes the capture as a pcap file.
    pub fn write(self, output: &mut impl Write) -> io::Result<()> {
        output.write_all(&Pcap::new(ETHERNET).file)?;
        let mut rng = Stream::new(1, "bulk");
        let mut pending: BinaryHeap<PendingFrame> = BinaryHeap::new();
        let mut rounds: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
        let mut flows: Vec<Flow> = (0..self.parallel).map(Flow::new).collect();
        let mut started = self.parallel;
        let mut order = 0;
        for at in 0..self.parallel {
            rounds.push(Reverse((BEGIN + at * 37_000, at)));
        }
        let mut record = Pcap::new(ETHERNET);
        while let Some(Reverse((now, at))) = rounds.pop() {
            while pending.peek().is_some_and(|Reverse((time, ..))| *time < now) {
                let Some(Reverse((time, _, frame))) = pending.pop() else { break };
                record.file.clear();
                record.header(time, frame.len() as u32, frame.len() as u32);
                output.write_all(&record.file)?;
                output.write_all(&frame)?;
            }
            let flow = &mut flows[at as usize];
            let mut push = |time: u64, packet: Tcp| {
                order += 1;
                pending.push(Reverse((time, order, packet.ethernet())));
            };
            match flow.round(now, self, &mut rng, &mut push) {
                Some(next) => rounds.push(Reverse((next, at))),
                None if started < self.connections => {
                    *flow = Flow::new(started);
                    started += 1;
                    rounds.push(Reverse((now + 2 * ROUND, at)));
                }
                // An additional round sends nothing, but writes the remaining frames.
                None if rounds.is_empty() && now != u64::MAX => rounds.push(Reverse((u64::MAX, at))),
                None => {}
            }
        }
        Ok(())
    }
}

impl Flow {
    fn new(index: u64) -> Self {
        Self {
            index,
            next: 0,
            expected: 0,
            out_of_order: BTreeSet::new(),
            lost: Vec::new(),
            lost_again: Vec::new(),
            sent: 0,
        }
    }

    /// Sends one round. Returns the time of the next one, or `None` if the connection is over.
    fn round(
        &mut self,
        now: u64,
        bulk: Bulk,
        rng: &mut Stream,
        push: &mut impl FnMut(u64, Tcp),
    ) -> Option<u64> {
        if now == u64::MAX {
            return None;
        }
        let stamp = (now / 1_000_000) as u32;
        if self.sent == 0 {
            self.push_handshake(now, stamp, push);
            self.sent = 1;
            return Some(now + ROUND + 2000);
        }
        let end = self.push_data(now, stamp, bulk, rng, push);
        if self.expected == bulk.segments {
            self.push_close(end + ROUND, stamp + 50, push);
            return None;
        }
        let wait = if self.lost_again.is_empty() { ROUND } else { TIMEOUT + end - now };
        Some((now + wait).max(end))
    }

    fn push_handshake(&self, now: u64, stamp: u32, push: &mut impl FnMut(u64, Tcp)) {
        let (sender, receiver) = self.ends();
        let mut syn = Tcp::new(sender, receiver, SYN, self.iss(), 0, 0).stamped(stamp, 0);
        syn.options.mss = Some(1460);
        syn.options.sack_permitted = true;
        syn.options.window_scale = Some(7);
        let syn_ack =
            Tcp { flags: SYN_ACK, src: receiver, dst: sender, seq: 0, ack: self.iss() + 1, ..syn.clone() };
        let ack = Tcp::new(sender, receiver, ACK, self.iss() + 1, 1, 0).stamped(stamp + 50, 7);
        push(now, syn);
        push(now + ROUND, syn_ack.stamped(7, stamp));
        push(now + ROUND + 1000, ack);
    }

    /// Sends a window of retransmissions and new segments, and the ACKs of the segments that arrive. Returns
    /// the time after the last segment.
    fn push_data(
        &mut self,
        now: u64,
        stamp: u32,
        bulk: Bulk,
        rng: &mut Stream,
        push: &mut impl FnMut(u64, Tcp),
    ) -> u64 {
        let (sender, receiver) = self.ends();
        let timed_out = std::mem::take(&mut self.lost_again);
        let lost = std::mem::take(&mut self.lost);
        let retransmissions: Vec<_> = timed_out.into_iter().chain(lost).collect();
        let room = WINDOW.saturating_sub(retransmissions.len() as u64).min(bulk.segments - self.next);
        let new = self.next..self.next + room;
        self.next += room;
        let mut at = now;
        for (segment, is_repeated) in
            retransmissions.iter().map(|segment| (*segment, true)).chain(new.map(|n| (n, false)))
        {
            let seq = self.number(segment);
            let mut data = Tcp::new(sender, receiver, ACK, seq, 1, MSS as usize).stamped(stamp, 7);
            data.ident = self.sent as u16;
            self.sent += 1;
            push(at, data);
            if rng.bits().is_multiple_of(bulk.loss) {
                if is_repeated { self.lost_again.push(segment) } else { self.lost.push(segment) }
            } else {
                self.out_of_order.insert(segment);
                while self.out_of_order.remove(&self.expected) {
                    self.expected += 1;
                }
                push(at + ROUND, self.ack(stamp));
            }
            at += GAP;
        }
        at
    }

    fn push_close(&self, begin: u64, stamp: u32, push: &mut impl FnMut(u64, Tcp)) {
        let (sender, receiver) = self.ends();
        let end = self.number(self.expected);
        push(begin, Tcp::new(sender, receiver, FIN_ACK, end, 1, 0).stamped(stamp, 7));
        push(begin + ROUND, Tcp::new(receiver, sender, FIN_ACK, 1, end + 1, 0).stamped(7, stamp));
        push(begin + ROUND + 1000, Tcp::new(sender, receiver, ACK, end + 1, 2, 0).stamped(stamp, 7));
    }

    fn ack(&self, stamp: u32) -> Tcp {
        let (sender, receiver) = self.ends();
        let mut ack = Tcp::new(receiver, sender, ACK, 1, self.number(self.expected), 0).stamped(7, stamp);
        let mut out_of_order = self.out_of_order.iter().copied().peekable();
        let mut blocks = 0;
        while let Some(left) = out_of_order.next().filter(|_| blocks < 3) {
            let mut right = left + 1;
            while out_of_order.next_if_eq(&right).is_some() {
                right += 1;
            }
            ack.options.sack.push(Seq(self.number(left)), Seq(self.number(right)));
            blocks += 1;
        }
        ack
    }

    fn number(&self, segment: u64) -> u32 {
        self.iss().wrapping_add(1).wrapping_add((segment * MSS) as u32)
    }

    fn ends(&self) -> (SocketAddr, SocketAddr) {
        let [.., high, middle, low] = self.index.to_be_bytes();
        let port = 10_000 + (self.index % 50_000) as u16;
        (([10, high, middle, low], port).into(), ([192, 0, 2, 1], 80).into())
    }

    fn iss(&self) -> u32 {
        (self.index as u32).wrapping_mul(0x9e37_79b1) & 0x3fff_ffff
    }
}
