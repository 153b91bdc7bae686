//! The size of the window: the memory cost of segments, slow start of the window, and a buffer that grows
//! with the amount that the application reads per round trip (dynamic right-sizing; `tcp_input.c`, "Buffer
//! size and advertised window tuning" and "Receiver autotuning").

use airwire::time::Instant;

use super::Text;
use super::acks::BurstEnd;
use crate::profile::ReceiveMemory;

/// Denominator of the ratio of window to memory (TCP_RMEM_TO_WIN_SCALE).
const WHOLE: u64 = 256;
/// Ratio before a segment has shown its memory cost: one half (TCP_DEFAULT_SCALING_RATIO).
const DEFAULT_RATIO: u8 = 128;
/// TCP_MSS_DEFAULT, TCP_MIN_MSS.
const MSS_DEFAULT: u32 = 536;
const MIN_MSS: u32 = 88;
const TCP_HEADER: u32 = 20;
/// Minimum of the window clamp: half of SOCK_MIN_RCVBUF.
const MIN_CLAMP: u64 = 1152;
/// Segments in an initial window (TCP_INIT_CWND).
const INIT_CWND: u64 = 10;

/// A window, and whether less than half of the buffer is free.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp::receiver) struct Selected {
    pub(in crate::tcp::receiver) window: u64,
    pub(in crate::tcp::receiver) scarce: bool,
}

/// Whether the buffer may grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Buffer {
    /// Yes, up to `rmem_max`.
    Tuned,
    /// No, the application has set its size (SOCK_RCVBUF_LOCK).
    Locked,
    /// No, the profile computes its window by another rule.
    Plain,
}

/// The receive window of one connection. It is small because every connection has one: sizes, sequence
/// numbers and times (in microseconds) take 32 bits. Numbers and times are only compared with nearby ones.
#[derive(Debug)]
pub(in crate::tcp::receiver) struct Window {
    rcvbuf: u32,
    /// `tcp_rmem[2]`.
    rmem_max: u32,
    window_clamp: u32,
    rcv_ssthresh: u32,
    /// The window last advertised.
    rcv_wnd: u32,
    space: Space,
    rtt: ReceiveRtt,
    /// Arrival time of the last segment (tcp_mstamp). A read by the application uses this time as the current
    /// time.
    mstamp: u32,
    rcv_mss: u16,
    last_seg_size: u16,
    scaling_ratio: u8,
    scale: u8,
    buffer: Buffer,
}

/// The round-trip time measured by the receiver (rcv_rtt_est), in eighths of a microsecond.
#[derive(Debug, Default)]
struct ReceiveRtt {
    eighths: u32,
    /// The sequence number that completes one window of data, and the time at which that window began. Both
    /// are 0 before data arrives.
    window_end: u32,
    window_since: u32,
    last_tsecr: u32,
}

/// The amount that the application read in a round trip (rcvq_space).
#[derive(Debug, Default)]
struct Space {
    bytes: u32,
    seq: u32,
    since: u32,
}

fn micros(now: Instant) -> u32 {
    (now.as_nanos() / 1000) as u32
}

/// Converts to 32 bits, saturating.
fn size(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Returns the buffer size for a value of SO_RCVBUF (sock_setsockopt()).
fn doubled(bytes: usize) -> u64 {
    2 * (bytes as u64).max(MIN_CLAMP)
}

impl Window {
    /// Creates a window. `memory` is `None` if the profile computes its window by another rule. `locked` is
    /// the value of SO_RCVBUF, if it was set.
    pub(super) fn new(memory: Option<ReceiveMemory>, locked: Option<usize>, advmss: u32) -> Self {
        let rmem = memory.unwrap_or(ReceiveMemory::LINUX);
        let (rcvbuf, buffer) = match (memory, locked) {
            (None, _) => (rmem.most as u64, Buffer::Plain),
            (Some(_), Some(bytes)) => (doubled(bytes), Buffer::Locked),
            (Some(_), None) => (rmem.initial as u64, Buffer::Tuned),
        };
        let mut window = Self {
            rcvbuf: size(rcvbuf),
            rmem_max: size(rmem.most as u64),
            window_clamp: u32::MAX,
            rcv_ssthresh: 0,
            rcv_wnd: 0,
            space: Space::default(),
            rtt: ReceiveRtt::default(),
            mstamp: 0,
            rcv_mss: advmss.min(MSS_DEFAULT) as u16,
            last_seg_size: 0,
            scaling_ratio: DEFAULT_RATIO,
            scale: 0,
            buffer,
        };
        window.choose_first(advmss);
        window
    }

    /// Chooses the window of a SYN or SYN,ACK, in whole segments (tcp_select_initial_window()).
    pub(in crate::tcp::receiver) fn choose_first(&mut self, mss: u32) -> u64 {
        let (space, mss) = (self.full_space(), u64::from(mss));
        self.rcv_wnd = size(if space > mss { space - space % mss } else { space });
        self.rcv_wnd()
    }

    /// Returns the shift count for the largest window that the buffer may reach, by tuning or by setting
    /// SO_RCVBUF. `settable` is the largest size that SO_RCVBUF can set (tcp_select_initial_window()).
    pub(in crate::tcp::receiver) fn scale_to_offer(&self, settable: usize) -> u8 {
        let space = match self.buffer {
            Buffer::Tuned => u64::from(self.rmem_max).max(settable as u64).max(self.full_space()),
            Buffer::Locked | Buffer::Plain => self.full_space(),
        };
        (space.max(1).ilog2() as u8).saturating_sub(15).min(14)
    }

    /// Initialises the window when the connection opens (tcp_init_buffer_space(), tcp_initialize_rcv_mss()).
    /// `smss` is the number of data bytes in our largest segment, and `advmss` that in the largest segment
    /// that may arrive.
    pub(in crate::tcp::receiver) fn establish(
        &mut self,
        now: Instant,
        scale: u8,
        advmss: u32,
        smss: u64,
        copied_seq: u64,
    ) {
        (self.scale, self.mstamp) = (scale, micros(now));
        let (mss, whole) = (u64::from(advmss), self.full_space());
        let mut clamp = whole.min(65_535 << scale);
        // Reserve one segment.
        if clamp > 2 * mss && clamp + mss > whole {
            clamp = (2 * mss).max(whole - mss);
        }
        self.window_clamp = size(clamp);
        self.rcv_ssthresh = self.rcv_wnd.min(self.window_clamp);
        let bytes = self.rcv_ssthresh.min(size(INIT_CWND * mss));
        self.space = Space { bytes, seq: copied_seq as u32, since: self.mstamp };
        let hint = u64::from(advmss.min(MSS_DEFAULT)).min(smss).min(self.rcv_wnd() / 2);
        self.rcv_mss = (hint as u16).max(MIN_MSS as u16);
    }

    /// Applies SO_RCVBUF.
    pub(in crate::tcp::receiver) fn lock(&mut self, bytes: usize) {
        if self.is_tuned() {
            (self.rcvbuf, self.buffer) = (size(doubled(bytes)), Buffer::Locked);
        }
    }

    pub(super) fn receive_memory(&self) -> usize {
        self.rcvbuf as usize
    }

    pub(super) fn rcv_mss(&self) -> u32 {
        self.rcv_mss.into()
    }

    pub(super) fn rcv_wnd(&self) -> u64 {
        self.rcv_wnd.into()
    }

    /// Returns true if these rules compute the window.
    pub(in crate::tcp::receiver) fn is_tuned(&self) -> bool {
        self.buffer != Buffer::Plain
    }

    pub(super) fn clamp(&self) -> u64 {
        self.window_clamp.into()
    }

    fn win_from_space(&self, space: u64) -> u64 {
        space * u64::from(self.scaling_ratio) / WHOLE
    }

    fn full_space(&self) -> u64 {
        self.win_from_space(self.rcvbuf.into())
    }

    /// Returns the free space. `used` is the memory cost of held segments.
    fn free_space(&self, used: u64) -> u64 {
        self.win_from_space(u64::from(self.rcvbuf).saturating_sub(used))
    }

    pub(super) fn round_up(&self, window: u64) -> u64 {
        window.next_multiple_of(1 << self.scale)
    }

    /// Returns the number of quick ACKs: one per two segments that fit the window, and two for a tiny window
    /// (tcp_incr_quickack()).
    pub(in crate::tcp::receiver) fn quick_acks(&self, limit: u32) -> u32 {
        let pairs = self.rcv_wnd() / (2 * u64::from(self.rcv_mss));
        let quick = if pairs == 0 { 2 } else { pairs };
        quick.min(u64::from(limit)) as u32
    }

    /// Updates the estimates of the data in a full-sized segment and of its memory cost
    /// (tcp_measure_rcv_mss()). Returns whether this segment ends a burst of data.
    pub(super) fn measure_rcv_mss(&mut self, text: &Text) -> BurstEnd {
        let last = u32::from(std::mem::take(&mut self.last_seg_size));
        if text.len >= self.rcv_mss() {
            if text.len != self.rcv_mss() {
                let ratio = u64::from(text.len) * WHOLE / u64::from(text.truesize());
                self.set_ratio(ratio.clamp(1, WHOLE - 1) as u8);
            }
            self.rcv_mss = text.len.min(text.advmss) as u16;
            return if text.psh { BurstEnd::Full } else { BurstEnd::None };
        }
        // SACK blocks make a full-sized segment smaller.
        let whole = text.len + text.tcp_header;
        if whole >= MSS_DEFAULT + TCP_HEADER || (whole >= MIN_MSS + TCP_HEADER && !text.remnant) {
            let len = whole - text.min_tcp_header;
            self.last_seg_size = len as u16;
            if len == last {
                self.rcv_mss = len as u16;
                return BurstEnd::None;
            }
        }
        BurstEnd::Small
    }

    fn set_ratio(&mut self, ratio: u8) {
        if ratio == self.scaling_ratio {
            return;
        }
        self.scaling_ratio = ratio;
        // tcp_set_window_clamp()
        let clamp = size(self.full_space().max(MIN_CLAMP));
        if clamp < self.window_clamp {
            self.rcv_ssthresh = self.rcv_ssthresh.min(clamp);
        } else if clamp > self.window_clamp {
            self.rcv_ssthresh = self.rcv_ssthresh.max(self.rcv_wnd.min(clamp));
        }
        self.window_clamp = clamp;
        self.space.bytes = self.space.bytes.min(clamp);
    }

    /// Slow start of the window: grows it by two segments for each segment with a low memory cost
    /// (tcp_grow_window()). Returns true if it has grown.
    pub(super) fn grow(&mut self, text: &Text, used: u64) -> bool {
        let room = self.clamp().min(self.free_space(used)).saturating_sub(self.rcv_ssthresh.into());
        if room == 0 || !self.is_tuned() {
            return false;
        }
        let cost = self.win_from_space(text.truesize().into());
        let len = u64::from(text.len);
        let by = if cost <= len { 2 * u64::from(text.advmss) } else { self.growth_by_cost(cost, len) };
        if by == 0 {
            return false;
        }
        self.rcv_ssthresh += size(room.min(by.max(2 * len)));
        true
    }

    /// While the window is small, a segment may cost more (__tcp_grow_window()).
    fn growth_by_cost(&self, cost: u64, len: u64) -> u64 {
        let (mut cost, mut window) = (cost / 2, self.win_from_space(self.rmem_max.into()) / 2);
        while u64::from(self.rcv_ssthresh) <= window {
            if cost <= len {
                return 2 * u64::from(self.rcv_mss);
            }
            (cost, window) = (cost / 2, window / 2);
        }
        0
    }

    /// Measures the round-trip time from the timestamps of a full-sized segment, in milliseconds
    /// (tcp_rcv_rtt_measure_ts()). `idle` is true if no unread data was buffered.
    pub(in crate::tcp::receiver) fn measure_rtt_by_echo(
        &mut self,
        now: Instant,
        ecr: u32,
        ts_now: u32,
        len: u64,
        idle: bool,
    ) {
        self.mstamp = micros(now);
        if ecr == 0
            || std::mem::replace(&mut self.rtt.last_tsecr, ecr) == ecr
            || len < u64::from(self.rcv_mss)
        {
            return;
        }
        let elapsed = ts_now.wrapping_sub(ecr);
        if (1..u32::MAX / 2).contains(&elapsed) {
            self.add_rtt_sample(u64::from(elapsed) * 1000, idle);
        }
    }

    /// Measures the time that a whole window takes, which is an upper bound on the round-trip time
    /// (tcp_rcv_rtt_measure()).
    pub(super) fn measure_rtt_by_window(&mut self, now: Instant, rcv_nxt: u64) {
        let (now, next) = (micros(now), rcv_nxt as u32);
        if (self.rtt.window_end, self.rtt.window_since) != (0, 0) {
            if (next.wrapping_sub(self.rtt.window_end) as i32) < 0 {
                return;
            }
            self.add_rtt_sample(u64::from(now.wrapping_sub(self.rtt.window_since)).max(1), false);
        }
        (self.rtt.window_end, self.rtt.window_since) = (next.wrapping_add(self.rcv_wnd), now);
    }

    /// Adds an RTT sample (tcp_rcv_rtt_update()). If `smooths` is false, a sample can only lower the
    /// estimate.
    fn add_rtt_sample(&mut self, micros: u64, smooths: bool) {
        let (old, new) = (u64::from(self.rtt.eighths), 8 * micros);
        self.rtt.eighths = size(match () {
            () if old == 0 || new < old => new,
            () if smooths => old - old / 8 + micros,
            () => old,
        });
    }

    /// Returns the minimum of this estimate and the sender's, in eighths of a microsecond.
    pub(super) fn round_trip(&self, srtt: Option<u64>) -> u64 {
        let own = u64::from(self.rtt.eighths);
        srtt.map_or(own, |nanos| own.min(nanos / 125))
    }

    /// Adjusts the buffer to the amount read in a round trip. The window is twice that amount, because the
    /// measurement is a round trip old (tcp_rcv_space_adjust()).
    pub(super) fn adjust_space(&mut self, copied_seq: u64, rcv_nxt: u64, span: u64) {
        let elapsed = self.mstamp.wrapping_sub(self.space.since);
        if self.rtt.eighths == 0 || elapsed < self.rtt.eighths / 8 {
            return;
        }
        let unread = size(rcv_nxt.saturating_sub(copied_seq));
        let bytes = (copied_seq as u32).wrapping_sub(self.space.seq).saturating_sub(unread);
        if bytes > self.space.bytes {
            self.grow_buffer(bytes, span);
        }
        (self.space.seq, self.space.since) = (copied_seq as u32, self.mstamp);
    }

    /// Grows the buffer for out-of-order data (tcp_data_queue_ofo()).
    pub(super) fn make_room_for(&mut self, span: u64) {
        self.grow_buffer(self.space.bytes, span);
    }

    /// tcp_rcvbuf_grow(): the buffer holds more than the measured amount, because slow start may double the
    /// rate.
    fn grow_buffer(&mut self, bytes: u32, out_of_order: u64) {
        let old = std::mem::replace(&mut self.space.bytes, bytes);
        if self.buffer != Buffer::Tuned {
            return;
        }
        let twice = 2 * u64::from(bytes);
        let grow = twice.saturating_mul((bytes - old).into()) / u64::from(old.max(1));
        let window = size(twice.saturating_add(grow.saturating_mul(2)).saturating_add(out_of_order));
        let rcvbuf = size(u64::from(window) * WHOLE / u64::from(self.scaling_ratio)).min(self.rmem_max);
        if rcvbuf > self.rcvbuf {
            self.rcvbuf = rcvbuf;
            self.window_clamp = size(self.full_space());
        }
    }

    /// __tcp_select_window()
    pub(super) fn select(&self, used: u64) -> Selected {
        let whole = self.full_space();
        let full = self.clamp().min(whole);
        let mss = u64::from(self.rcv_mss).min(full);
        let mut free = self.free_space(used);
        let scarce = free < full / 2;
        if scarce {
            free -= free % (1 << self.scale);
            if free < whole / 16 || free < mss {
                return Selected { window: 0, scarce };
            }
        }
        free = free.min(self.rcv_ssthresh.into());
        let offered = self.rcv_wnd();
        let window = match self.scale {
            // Whole segments, if the window has changed by at least one.
            0 if offered + mss <= free || offered > free => free - free % mss.max(1),
            0 if mss == full && free > offered + full / 2 => free,
            0 => offered,
            _ => self.round_up(free),
        };
        Selected { window, scarce }
    }

    /// Records the window of an ACK that was sent.
    pub(in crate::tcp::receiver) fn set_rcv_wnd(&mut self, window: u64) {
        self.rcv_wnd = size(window);
    }
}
