//! One sender's run as in the paper's Figs. 7 to 9: packets, ACKs, losses and timeouts over time.

use std::collections::BTreeMap;

use airtcp::recovery::What;
use airtcp_sim::world::{PacketKind, World};
use serde::Serialize;

/// A packet that was sent or lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Packet {
    /// The time in seconds.
    pub(super) at: f64,
    /// The packet's number, from 1 as in the paper.
    pub(super) number: u64,
    /// The number of the transmission. 1 is the original.
    pub(super) copy: u32,
}

/// Events of one sender, in chronological order.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    pub(super) sent: Vec<Packet>,
    pub(super) lost: Vec<Packet>,
    /// The time of each ACK, and the last packet that it acknowledges.
    pub(super) acks: Vec<(f64, u64)>,
    /// The time of each timeout, and the packet that it retransmits.
    pub(super) timeouts: Vec<(f64, u64)>,
    /// Packets that were declared lost: time, and the packet.
    pub(super) declared: Vec<(f64, u64)>,
    /// The time of each window change, and the new cwnd.
    pub(super) windows: Vec<(f64, f64)>,
}

/// Loss of two consecutive packets of one window, the first of which duplicate ACKs detect (Fig. 7).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Pair {
    #[serde(rename = "first packet")]
    pub(super) first: u64,
    /// Time of the loss of the first packet.
    #[serde(rename = "loss of the first packet, s")]
    pub(super) at: f64,
    /// Time from `at` to the ACK that covers both packets.
    #[serde(rename = "time until both are acknowledged, s")]
    pub(super) seconds: f64,
    /// Whether the second packet had to wait for a timeout.
    #[serde(rename = "timeout")]
    pub(super) by_timeout: bool,
}

/// A packet that at least three consecutive timeouts retransmit (Fig. 9).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct RepeatedTimeouts {
    #[serde(rename = "packet")]
    pub(super) number: u64,
    /// Time of the first timeout.
    #[serde(rename = "first timeout, s")]
    pub(super) at: f64,
    /// Time from the previous copy to each of the first three timeouts.
    #[serde(rename = "time before each timeout, s")]
    pub(super) waits: [f64; 3],
}

impl Trace {
    /// Reads a flow that ran with `Watch::Packets`.
    pub(super) fn of(world: &mut World, flow: usize, mss: u16) -> Self {
        let mss = u64::from(mss);
        let number = |offset: u64| offset.saturating_sub(1) / mss + 1;
        let mut trace = Self::default();
        for decision in world.decisions(flow) {
            let at = decision.at.as_secs_f64();
            match decision.what {
                What::Timeout { offset } if offset > 0 => trace.timeouts.push((at, number(offset))),
                What::Lost { offset, .. } => trace.declared.push((at, number(offset))),
                What::Window { cwnd, .. } => trace.windows.push((at, cwnd)),
                _ => {}
            }
        }
        for packet in world.device_packets(flow) {
            let at = packet.at.as_secs_f64();
            match &packet.kind {
                PacketKind::Sent { offset, copy, .. } if *offset > 0 => {
                    trace.sent.push(Packet { at, number: number(*offset), copy: *copy });
                }
                PacketKind::Ack { ack, .. } if *ack > 0 => trace.acks.push((at, (*ack - 1) / mss)),
                _ => {}
            }
        }
        for lost in world.losses(flow).as_slice().iter().filter(|lost| lost.offset > 0) {
            let at = lost.at.as_secs_f64();
            trace.lost.push(Packet { at, number: number(lost.offset), copy: lost.copy });
        }
        trace.lost.sort_by(|a, b| a.at.total_cmp(&b.at));
        trace
    }

    /// Seconds in which the sender only waited for a timeout: from the last packet or ACK to each timeout.
    pub(super) fn idle(&self) -> f64 {
        let last_sent = |at: f64| Some(self.sent[..self.sent.partition_point(|p| p.at < at)].last()?.at);
        let last_ack = |at: f64| Some(self.acks[..self.acks.partition_point(|ack| ack.0 < at)].last()?.0);
        let last = |at: f64| last_sent(at).unwrap_or(0.0).max(last_ack(at).unwrap_or(0.0));
        self.timeouts.iter().map(|(at, _)| at - last(*at)).sum()
    }

    /// Time from each loss to the retransmission, for losses that were followed by one.
    pub(super) fn waits(&self) -> Vec<f64> {
        let sent = self.sent_times();
        let wait = |lost: &Packet| Some(sent.get(&(lost.number, lost.copy + 1))? - lost.at);
        self.lost.iter().filter_map(wait).collect()
    }

    /// Packets that were declared lost without a timeout although their last copy was not lost, per packet sent.
    pub(super) fn mistaken(&self) -> f64 {
        let is_mistake = |(at, number): &&(f64, u64)| {
            let copies = self.sent.iter().filter(|packet| packet.number == *number && packet.at < *at);
            let last = copies.map(|packet| packet.copy).max();
            !self.timeouts.contains(&(*at, *number))
                && last.is_some_and(|copy| {
                    !self.lost.iter().any(|lost| (lost.number, lost.copy) == (*number, copy))
                })
        };
        self.declared.iter().filter(is_mistake).count() as f64 / self.sent.len().max(1) as f64
    }

    /// Mean cwnd in the first `seconds`.
    pub(super) fn mean_window(&self, seconds: f64) -> f64 {
        let ends = self.windows.iter().skip(1).map(|window| window.0).chain([seconds]);
        self.windows.iter().zip(ends).map(|((from, cwnd), to)| cwnd * (to - from)).sum::<f64>() / seconds
    }

    /// Number of periods of at least `least` seconds in the first `seconds` without an ACK of new data.
    pub(super) fn flat_periods(&self, least: f64, seconds: f64) -> usize {
        let new = self.acks.chunk_by(|one, next| one.1 >= next.1).filter_map(|same| same.first());
        let times: Vec<f64> = std::iter::once(0.0).chain(new.map(|ack| ack.0)).chain([seconds]).collect();
        times.windows(2).filter(|pair| pair[1] - pair[0] >= least).count()
    }

    /// Share of the lost retransmissions that were retransmitted again without a timeout. `None` if no lost
    /// retransmission was retransmitted again.
    pub(super) fn share_found_without_timeout(&self) -> Option<f64> {
        let sent = self.sent_times();
        let found: Vec<bool> = self
            .lost
            .iter()
            .filter(|lost| lost.copy > 1)
            .filter_map(|lost| {
                let next = *sent.get(&(lost.number, lost.copy + 1))?;
                Some(!self.timeouts.iter().any(|(at, _)| *at > lost.at && *at <= next))
            })
            .collect();
        (!found.is_empty()).then(|| found.iter().filter(|found| **found).count() as f64 / found.len() as f64)
    }

    /// Packets acknowledged up to this time.
    pub(super) fn acked(&self, at: f64) -> f64 {
        let before = &self.acks[..self.acks.partition_point(|ack| ack.0 <= at)];
        before.last().map_or(0.0, |ack| ack.1 as f64)
    }

    /// The share of the first `seconds` in which cwnd was below `least`.
    pub(super) fn share_below(&self, least: f64, seconds: f64) -> f64 {
        let ends = self.windows.iter().skip(1).map(|window| window.0).chain([seconds]);
        let share_below = self.windows.iter().zip(ends).filter(|((_, cwnd), _)| *cwnd < least);
        share_below.map(|((from, _), to)| to - from).sum::<f64>() / seconds
    }

    /// cwnd just before this time.
    pub(super) fn window(&self, at: f64) -> Option<f64> {
        Some(self.windows[..self.windows.partition_point(|window| window.0 < at)].last()?.1)
    }

    /// The events of Fig. 7: losses of two consecutive packets.
    pub(super) fn pairs(&self) -> Vec<Pair> {
        let sent = self.sent_times();
        let originals: BTreeMap<u64, f64> =
            self.lost.iter().filter(|lost| lost.copy == 1).map(|lost| (lost.number, lost.at)).collect();
        let timeout_in = |from: f64, to: f64| self.timeouts.iter().any(|(at, _)| *at > from && *at <= to);
        let pair = |(first, at): (&u64, &f64)| {
            let (first, at) = (*first, *at);
            if originals.contains_key(&(first - 1)) || !originals.contains_key(&(first + 1)) {
                return None;
            }
            let [first_again, second_again] = [*sent.get(&(first, 2))?, *sent.get(&(first + 1, 2))?];
            let both_acked = self.acks.iter().find(|(at, number)| *at > first_again && *number > first)?.0;
            let in_one_window = *sent.get(&(first + 1, 1))? < first_again;
            (in_one_window && !timeout_in(at, first_again)).then(|| Pair {
                first,
                at,
                seconds: both_acked - at,
                by_timeout: timeout_in(first_again, second_again),
            })
        };
        originals.iter().filter_map(pair).collect()
    }

    /// The events of Fig. 9: packets that at least three consecutive timeouts retransmit.
    pub(super) fn repeated_timeouts(&self) -> Vec<RepeatedTimeouts> {
        let mut found = Vec::new();
        let mut rest = &self.timeouts[..];
        while let [(at, number), ..] = *rest {
            let repeats = rest.iter().take_while(|timeout| timeout.1 == number).count();
            let before = self.sent.iter().rfind(|packet| packet.number == number && packet.at < at);
            if let ([first, second, third, ..], Some(before)) = (&rest[..repeats], before) {
                let waits = [first.0 - before.at, second.0 - first.0, third.0 - second.0];
                found.push(RepeatedTimeouts { number, at, waits });
            }
            rest = &rest[repeats..];
        }
        found
    }

    /// The event of Fig. 8: a timeout while two packets are in flight, after one duplicate ACK. Its time and packet.
    pub(super) fn tiny_window_timeout(&self) -> Option<(f64, u64)> {
        self.timeouts.iter().copied().find(|(at, number)| {
            let before = &self.acks[..self.acks.partition_point(|ack| ack.0 < *at)];
            let repeats = before.iter().rev().take_while(|ack| ack.1 + 1 == *number).count();
            let first_copy = self.sent.iter().any(|p| p.number == *number && p.copy == 2 && p.at == *at);
            repeats == 2 && first_copy && self.window(*at).is_some_and(|cwnd| cwnd < 3.0)
        })
    }

    /// The time of each transmission, by packet number and copy.
    fn sent_times(&self) -> BTreeMap<(u64, u32), f64> {
        self.sent.iter().map(|packet| ((packet.number, packet.copy), packet.at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(all: &[(f64, u64, u32)]) -> Vec<Packet> {
        all.iter().map(|&(at, number, copy)| Packet { at, number, copy }).collect()
    }

    /// Packets 3 and 4 are lost. Duplicate ACKs retransmit 3. A second later a timeout retransmits 4.
    fn two_losses() -> Trace {
        Trace {
            sent: packets(&[(1.0, 3, 1), (1.1, 4, 1), (1.2, 5, 1), (1.5, 3, 2), (2.7, 4, 2)]),
            lost: packets(&[(1.05, 3, 1), (1.15, 4, 1)]),
            acks: vec![(0.9, 2), (1.3, 2), (1.5, 2), (1.7, 3), (2.9, 5)],
            timeouts: vec![(2.7, 4)],
            declared: vec![(1.5, 3)],
            windows: vec![(0.0, 1.0), (1.0, 5.0), (1.5, 2.0), (3.0, 5.0)],
        }
    }

    #[test]
    fn idle_time_is_wait_for_timeout() {
        assert!((two_losses().idle() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn declared_loss_of_delivered_packet_is_mistake() {
        assert_eq!(two_losses().mistaken(), 0.0);
        // Packet 5 was not lost, and a timeout declared packet 4 lost.
        let declared = vec![(1.5, 3), (1.6, 5), (2.7, 4)];
        assert_eq!(Trace { declared, ..two_losses() }.mistaken(), 0.2);
    }

    #[test]
    fn curve_of_acks_is_flat_without_new_ack() {
        let trace = two_losses();
        // The ACKs of 0.9, 1.7 and 2.9 s are new.
        assert_eq!([0.7, 1.0, 1.3, 8.0].map(|least| trace.flat_periods(least, 10.0)), [4, 2, 1, 0]);
        assert!((trace.mean_window(10.0) - (1.0 + 2.5 + 3.0 + 35.0) / 10.0).abs() < 1e-9);
    }

    #[test]
    fn loss_waits_for_its_retransmission() {
        let waits = two_losses().waits();
        assert!((waits[0] - 0.45).abs() < 1e-9 && (waits[1] - 1.55).abs() < 1e-9, "{waits:?}");
    }

    #[test]
    fn consecutive_losses_form_pair() {
        let pairs = two_losses().pairs();
        let [Pair { first: 3, seconds, by_timeout: true, .. }] = pairs[..] else { panic!("{pairs:?}") };
        assert!((seconds - 1.85).abs() < 1e-9);
        // In the figure, duplicate ACKs detect the first loss, not a timeout.
        let timeouts = vec![(1.5, 3)];
        assert_eq!(Trace { timeouts, ..two_losses() }.pairs(), []);
    }

    #[test]
    fn timeout_does_not_find_copy_without_timeout() {
        let trace = Trace {
            sent: packets(&[(1.0, 7, 2), (2.0, 7, 3), (3.0, 9, 2), (3.2, 9, 3)]),
            lost: packets(&[(1.1, 7, 2), (3.1, 9, 2)]),
            timeouts: vec![(2.0, 7)],
            ..Trace::default()
        };
        assert_eq!(trace.share_found_without_timeout(), Some(0.5));
        assert_eq!(two_losses().share_found_without_timeout(), None);
    }

    #[test]
    fn three_consecutive_timeouts_match_figure_9() {
        let trace = Trace {
            sent: packets(&[(1.0, 7, 1), (1.7, 7, 2), (3.1, 7, 3), (5.9, 7, 4)]),
            timeouts: vec![(0.2, 6), (0.5, 6), (1.7, 7), (3.1, 7), (5.9, 7)],
            ..Trace::default()
        };
        let found = trace.repeated_timeouts();
        assert_eq!((found.len(), found[0].number), (1, 7));
        let differences =
            found[0].waits.iter().zip([0.7, 1.4, 2.8]).map(|(wait, paper)| (wait - paper).abs());
        assert!(differences.sum::<f64>() < 1e-9, "{found:?}");
    }

    #[test]
    fn trace_yields_cwnd_and_acks_at_time() {
        let trace = two_losses();
        assert!((trace.share_below(4.0, 10.0) - 0.25).abs() < 1e-9);
        assert_eq!((trace.acked(0.5), trace.acked(1.7), trace.acked(9.0)), (0.0, 3.0, 5.0));
        assert_eq!((trace.window(0.0), trace.window(2.0)), (None, Some(2.0)));
    }
}
