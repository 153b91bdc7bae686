//! Which segments carry PSH in a profile that [keeps pushes](crate::profile::Profile::keeps_pushes).
//!
//! Linux sets PSH on the buffer (`struct sk_buff`) in which a write ends. A later write clears it if it adds to
//! this buffer, which is possible until the buffer is sent or full. A retransmission has the PSH of its buffer.
//! New data that leaves in a burst of several segments always ends with PSH (__tcp_transmit_skb()).

use std::collections::VecDeque;
use std::ops::Range;

use super::{Sender, Tail};
use crate::tcp::context::Context;

/// `sk_gso_max_size`: 64 KB less the longest headers (MAX_TCP_HEADER).
const GSO_MAX_SIZE: u64 = 65_536 - 321;
/// TCP_MSS_DEFAULT
const DEFAULT_MSS: u64 = 536;

#[derive(Debug, Default)]
pub(super) struct Pushes {
    /// Offsets after the last byte of each pushed buffer, ascending. The last one is `pushed_seq`.
    ends: VecDeque<u64>,
    /// Start of each buffer, ascending. The unsent rest of a buffer is a buffer of its own.
    starts: VecDeque<u64>,
}

/// The limits of a write.
#[derive(Clone, Copy)]
struct Limits {
    /// SND.NXT.
    sent: u64,
    /// Bytes of data in a full buffer.
    buffer: u64,
    /// Largest amount of data without a push.
    push: u64,
    /// Whether the write ends with a push.
    pushes_end: bool,
}

impl Pushes {
    fn on_write(&mut self, written: Range<u64>, limits: Limits) {
        let Range { start, end } = written;
        let mut pushed = self.ends.back().copied().unwrap_or(start);
        let mut first = self.starts.back().map_or(start, |last| start.min(limits.sent.max(*last)));
        if start - first >= limits.buffer {
            first = start;
        }
        if first < start {
            self.starts.pop_back();
            if pushed == start {
                self.ends.pop_back();
            }
        }
        self.starts.push_back(first);
        loop {
            let at = end.min(first + limits.buffer);
            if at == end {
                break;
            }
            if at - pushed > limits.push {
                self.ends.push_back(at);
                pushed = at;
            }
            first = at;
            self.starts.push_back(first);
        }
        if limits.pushes_end || end - pushed > limits.push {
            self.ends.push_back(end);
        }
    }
}

impl Sender {
    /// Records the pushes of data written from offset `start` on (tcp_sendmsg_locked(), tcp_push()).
    pub(super) fn mark_pushes(&mut self, cx: Context<'_>, start: u64) {
        let end = self.buffer.end();
        if !cx.profile.sending.keeps_pushes || start == end {
            return;
        }
        let limits = Limits {
            sent: self.flight.max(),
            buffer: self.buffer_size(),
            push: self.max_wnd / 2,
            pushes_end: self.tail == Tail::End,
        };
        self.pushes.get_or_insert_default().on_write(start..end, limits);
    }

    /// tcp_xmit_size_goal()
    fn buffer_size(&self) -> u64 {
        let (smss, window) = (self.current_smss(), self.max_wnd);
        let cutoff = if window > DEFAULT_MSS { window / 2 } else { window };
        let most = if cutoff > 0 { GSO_MAX_SIZE.min(cutoff) } else { GSO_MAX_SIZE };
        (most / smss).max(1) * smss
    }

    pub(super) fn is_pushed(&self, end: u64) -> bool {
        self.pushes.as_ref().is_some_and(|pushes| pushes.ends.binary_search(&end).is_ok())
    }

    /// Returns the end of the buffer of unsent data that contains `offset`. A burst does not go beyond it.
    pub(super) fn buffer_end(&self, offset: u64) -> u64 {
        let starts = self.pushes.as_ref().map(|pushes| &pushes.starts);
        let next = starts.and_then(|starts| starts.get(starts.partition_point(|start| *start <= offset)));
        next.copied().unwrap_or(u64::MAX)
    }

    /// Forgets the pushes of acknowledged data.
    pub(super) fn forget_pushes(&mut self) {
        let una = self.flight.una();
        let Some(pushes) = &mut self.pushes else { return };
        let acked = pushes.ends.partition_point(|end| *end <= una);
        pushes.ends.drain(..acked);
        let acked = pushes.starts.partition_point(|start| *start < una);
        pushes.starts.drain(..acked.min(pushes.starts.len().saturating_sub(1)));
        if pushes.ends.is_empty() {
            self.pushes = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(writes: &[(u64, u64)]) -> Vec<u64> {
        let mut pushes = Pushes::default();
        let mut start = 1;
        for &(len, sent) in writes {
            let limits = Limits { sent, buffer: 1000, push: 1500, pushes_end: true };
            pushes.on_write(start..start + len, limits);
            start += len;
        }
        pushes.ends.into_iter().collect()
    }

    #[test]
    fn unsent_write_loses_its_push_to_the_next_one() {
        assert_eq!(ends(&[(100, 1), (100, 1)]), [201]);
        assert_eq!(ends(&[(100, 1), (100, 101)]), [101, 201], "the first buffer was sent");
        assert_eq!(ends(&[(1000, 1), (100, 1)]), [1001, 1101], "the first buffer is full");
    }

    #[test]
    fn long_write_is_pushed_again_after_half_a_window() {
        assert_eq!(ends(&[(4500, 1)]), [2001, 4001, 4501]);
    }
}
