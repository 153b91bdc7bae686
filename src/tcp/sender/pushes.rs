//! Which segments carry PSH in a profile that [keeps pushes](crate::profile::Profile::keeps_pushes).
//!
//! Linux sets PSH on the buffer (`struct sk_buff`) in which a write ends. A later write clears it if it adds
//! to this buffer, which is possible until the buffer is sent or full. A retransmission has the PSH of its
//! buffer. A burst of several segments always ends with PSH (__tcp_transmit_skb()). A burst is part of one
//! buffer, and data of the next buffer is moved to this buffer before (tcp_grow_skb()). The retransmission of
//! several segments of one buffer is a burst too.

use std::collections::VecDeque;
use std::ops::Range;

use airwire::time::Instant;

use super::{MoreData, Sender};
use crate::flight::SegmentState;
use crate::tcp::context::Context;

/// `sk_gso_max_size`: 64 KB less the longest headers (MAX_TCP_HEADER).
const GSO_MAX_SIZE: u64 = 65_536 - 321;
/// TCP_MSS_DEFAULT.
const DEFAULT_MSS: u64 = 536;

#[derive(Debug, Default)]
pub(super) struct Pushes {
    /// Offsets after the last byte of each pushed buffer, ascending.
    ends: VecDeque<u64>,
    /// Start of each buffer, ascending. The unsent rest of a buffer is another buffer.
    starts: VecDeque<u64>,
    /// End of the data that was pushed last (`pushed_seq`).
    pushed: Option<u64>,
    /// End of the data that is sent during the last write, in bursts that are whole buffers.
    planned: u64,
    /// Number of pushes of the last write. Each extends a buffer that the window delays.
    attempts: usize,
    /// The last burst of retransmissions.
    resent: Range<u64>,
}

/// The limits of a write.
#[derive(Clone, Copy)]
struct Limits {
    /// SND.NXT.
    sent: u64,
    /// Bytes of data in a full-sized segment.
    smss: u64,
    /// Longest burst.
    burst: u64,
    /// Offset up to which the windows permit data.
    edge: u64,
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
        let mut pushed = self.pushed.unwrap_or(start);
        let before = self.ends.len();
        let mut first = self.starts.back().map_or(start, |last| start.min(limits.sent.max(*last)));
        if start - first >= limits.buffer {
            first = start;
        }
        if first < start {
            self.starts.pop_back();
            self.ends.pop_back_if(|last| *last == start);
        }
        self.starts.push_back(first);
        let (mut sent, mut has_push) = (limits.sent, false);
        loop {
            let at = end.min(first + limits.buffer);
            if has_push {
                // More data is added to a buffer that is pushed and was sent in part.
                self.ends.pop_back();
                self.ends.push_back(at);
            }
            if at == end {
                break;
            }
            let forced = at - pushed > limits.push;
            if forced {
                self.push_at(at);
                (pushed, has_push) = (at, true);
            }
            // A full buffer is sent before the next one is filled: the whole buffer if it is pushed,
            // otherwise one burst if it is the first unsent buffer (tcp_push_one()).
            while sent >= first && sent < at && (sent + limits.smss).min(at) <= limits.edge {
                sent = at.min(sent + limits.burst.min(limits.edge - sent).max(limits.smss));
                if sent < at {
                    self.starts.push_back(sent);
                    first = sent;
                }
                if !forced {
                    break;
                }
            }
            if sent >= at || at - first >= limits.buffer {
                (first, has_push) = (at, false);
                self.starts.push_back(first);
            }
        }
        self.planned = sent;
        if limits.pushes_end || end - pushed > limits.push {
            self.push_at(end);
            pushed = end;
        }
        self.pushed = Some(pushed);
        self.attempts = self.ends.len().saturating_sub(before);
    }

    /// Pushes the last buffer, which ends at `end`.
    fn push_at(&mut self, end: u64) {
        if self.ends.back() != Some(&end) {
            self.ends.push_back(end);
        }
    }

    /// Extends the buffer that contains `start` by data of the next one, until it ends at `limit`. The last
    /// buffer ends at `written`.
    fn grow(&mut self, start: u64, limit: u64, written: u64) {
        let index = self.starts.partition_point(|at| *at <= start);
        let Some(end) = self.starts.get(index).copied().filter(|end| *end < limit) else { return };
        let next_end = self.starts.get(index + 1).copied().unwrap_or(written);
        let grown = next_end.min(limit);
        match grown == next_end {
            true => _ = self.starts.remove(index),
            false => self.starts[index] = grown,
        }
        // The push of the buffer moves with its end.
        if let Ok(at) = self.ends.binary_search(&end) {
            self.ends.remove(at);
            if let Err(at) = self.ends.binary_search(&grown) {
                self.ends.insert(at, grown);
            }
        }
    }

    /// Merges the buffer that ends at `middle` with the next one, which ends at `end`.
    fn merge(&mut self, middle: u64, end: u64) {
        if let Ok(at) = self.starts.binary_search(&middle) {
            self.starts.remove(at);
        }
        if let Ok(at) = self.ends.binary_search(&middle) {
            self.ends.remove(at);
            if let Err(at) = self.ends.binary_search(&end) {
                self.ends.insert(at, end);
            }
        }
    }

    /// Ends a buffer at `end`.
    fn split(&mut self, end: u64) {
        if let Err(at) = self.starts.binary_search(&end) {
            self.starts.insert(at, end);
        }
    }
}

impl Sender {
    /// Records the pushes of data written from offset `start` on (tcp_sendmsg_locked(), tcp_push()).
    pub(super) fn mark_pushes(&mut self, cx: &Context, now: Instant, start: u64) {
        let end = self.buffer.end();
        if !cx.profile.sending.keeps_pushes || start == end {
            return;
        }
        let sent = self.flight.max();
        let window = self.flight.una() + self.wnd;
        let (burst, room) = self.longest_burst(now, sent, window);
        let smss = self.current_smss();
        let limits = Limits {
            sent,
            smss,
            burst,
            edge: if cx.state().may_send_data() { window.min(sent + room / smss * smss) } else { sent },
            buffer: self.buffer_size(),
            push: self.max_wnd / 2,
            pushes_end: self.more_data == MoreData::None,
        };
        self.pushes.get_or_insert_default().on_write(start..end, limits);
    }

    /// Returns the bytes of data in a full buffer (tcp_xmit_size_goal()).
    fn buffer_size(&self) -> u64 {
        let (smss, window) = (self.current_smss(), self.max_wnd);
        let cutoff = if window > DEFAULT_MSS { window / 2 } else { window };
        let limit = if cutoff > 0 { GSO_MAX_SIZE.min(cutoff) } else { GSO_MAX_SIZE };
        (limit / smss).max(1) * smss
    }

    /// Returns true if a pushed buffer ends at `end`.
    pub(super) fn is_pushed(&self, end: u64) -> bool {
        self.pushes.as_ref().is_some_and(|pushes| pushes.ends.binary_search(&end).is_ok())
    }

    /// Returns the end of the buffer of unsent data that contains `offset`. A burst does not go beyond it.
    pub(super) fn buffer_end(&self, offset: u64) -> u64 {
        let starts = self.pushes.as_ref().map(|pushes| &pushes.starts);
        let next = starts.and_then(|starts| starts.get(starts.partition_point(|start| *start <= offset)));
        next.copied().unwrap_or(u64::MAX)
    }

    /// Extends the first unsent buffer, which begins at `start`, before its first `len` bytes (or fewer) are
    /// sent.
    pub(super) fn grow_buffer(&mut self, start: u64, len: u64) {
        let written = self.buffer.end();
        if let Some(pushes) = self.pushes.as_mut().filter(|pushes| start >= pushes.planned) {
            pushes.grow(start, start + len, written);
        }
    }

    /// Returns the end of the buffer from which the next segment is sent. At the beginning of a burst, it is
    /// extended first.
    pub(super) fn end_of_buffer_to_send(&mut self, cx: &Context, now: Instant, start: u64, edge: u64) -> u64 {
        if self.pushes.is_none() || !cx.profile.sending.keeps_pushes {
            return u64::MAX;
        }
        if !self.is_within_burst() {
            let length = self.growth_limit(now, start, edge);
            self.grow_buffer(start, length);
        }
        self.buffer_end(start)
    }

    /// Extends the first unsent buffer, which begins at `start` and which the window delays, once for each
    /// push of the last write.
    pub(super) fn grow_waiting_buffer(&mut self, start: u64, len: u64) {
        for _ in 0..self.pushes.as_mut().map_or(0, |pushes| std::mem::take(&mut pushes.attempts).max(1)) {
            self.grow_buffer(start, len);
        }
    }

    /// Ends a buffer of data at `end`, and pushes it (tcp_write_wakeup()).
    pub(super) fn push_buffer(&mut self, end: u64) {
        self.split_buffer(end);
        if let Some(pushes) = &mut self.pushes
            && let Err(at) = pushes.ends.binary_search(&end)
        {
            pushes.ends.insert(at, end);
        }
    }

    /// Ends a buffer of data at `end`, because a burst ends there.
    pub(super) fn split_buffer(&mut self, end: u64) {
        let written = self.buffer.end();
        if let Some(pushes) = self.pushes.as_mut().filter(|_| end < written) {
            pushes.split(end);
        }
    }

    /// Returns the number of buffers with data at or above `una`, and the start of the first one.
    pub(super) fn queued_buffers(&self, una: u64) -> (u64, u64) {
        let starts = self.pushes.as_ref().map(|pushes| &pushes.starts);
        let Some((starts, first)) = starts.and_then(|starts| Some((starts, *starts.front()?))) else {
            return (0, u64::MAX);
        };
        (starts.len() as u64 + u64::from(una < first), first.min(una))
    }

    /// Returns true if a buffer starts at `offset`.
    pub(super) fn starts_buffer(&self, offset: u64) -> bool {
        self.pushes.as_ref().is_some_and(|pushes| pushes.starts.binary_search(&offset).is_ok())
    }

    /// Merges the buffer that ends at `middle` with the next one, which ends at `end`. It keeps both pushes.
    pub(super) fn merge_buffers(&mut self, middle: u64, end: u64) {
        if let Some(pushes) = &mut self.pushes {
            pushes.merge(middle, end);
        }
    }

    /// Returns true if the retransmission of `start..end`, which is about to be sent, ends a burst of several.
    pub(super) fn ends_resent_burst(&mut self, now: Instant, start: u64, end: u64) -> bool {
        let Some(Range { start: first, end: last }) =
            self.pushes.as_ref().map(|pushes| pushes.resent.clone())
        else {
            return false;
        };
        if first < start && start < last {
            return end == last;
        }
        let last = self.resent_burst_end(now, start, end);
        if let Some(pushes) = &mut self.pushes {
            pushes.resent = start..last;
        }
        self.split_buffer(last);
        false
    }

    /// Returns the end of a burst of retransmissions that begins with `start..end`: the lost segments of the
    /// buffer that the window and the length of bursts permit (tcp_xmit_retransmit_queue()).
    fn resent_burst_end(&mut self, now: Instant, start: u64, end: u64) -> u64 {
        let smss = self.current_smss();
        let limit = self.autosized(now);
        let (recovery, path) = self.recovery_and_path(now);
        let segments = recovery.room_for_new(&path).min(limit) / smss;
        let limit = self.buffer_end(start).min(start + segments * smss);
        let rewound = self.flight.has_rewound();
        let mut last = end;
        while last < limit
            && let Some(next) = self.flight.segment_at(last)
            && next.end <= limit
            && (next.state == SegmentState::Lost || (rewound && next.state != SegmentState::Sacked))
        {
            last = next.end;
        }
        last
    }

    /// Removes the pushes of acknowledged data.
    pub(super) fn release_pushes(&mut self) {
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
            let limits = Limits {
                sent,
                smss: 500,
                burst: 1000,
                edge: sent,
                buffer: 1000,
                push: 1500,
                pushes_end: true,
            };
            pushes.on_write(start..start + len, limits);
            start += len;
        }
        pushes.ends.into_iter().collect()
    }

    #[test]
    fn next_write_takes_over_unsent_push() {
        assert_eq!(ends(&[(100, 1), (100, 1)]), [201]);
        assert_eq!(ends(&[(100, 1), (100, 101)]), [101, 201], "the first buffer was sent");
        assert_eq!(ends(&[(1000, 1), (100, 1)]), [1001, 1101], "the first buffer is full");
    }

    #[test]
    fn long_write_is_pushed_every_half_window() {
        assert_eq!(ends(&[(4500, 1)]), [2001, 4001, 4501]);
    }
}
