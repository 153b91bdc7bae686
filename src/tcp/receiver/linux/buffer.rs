//! Buffers of received segments (`struct sk_buff`), and their memory cost.

/// One or several segments in one buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HeldSegment {
    pub(super) start: u64,
    /// The end, which includes a FIN.
    pub(super) end: u64,
    /// Offset of a FIN in this buffer. Data may follow it.
    pub(super) fin: Option<u64>,
    pub(super) truesize: u32,
    /// Free space after the segment in its buffer.
    tailroom: u32,
}

impl HeldSegment {
    pub(super) fn new(start: u64, end: u64, fin: Option<u64>, buffer: Buffer) -> Self {
        let Buffer { truesize, tailroom } = buffer;
        Self { start, end, fin, truesize, tailroom }
    }

    /// Returns the number of data bytes.
    fn len(&self) -> u64 {
        self.end - self.start - u64::from(self.fin.is_some())
    }

    /// Moves a segment that follows into the free space after this one (tcp_try_coalesce()). With `must_fit`, the
    /// buffer grows if the space is too small. Returns false if the segment does not follow or does not fit.
    pub(super) fn coalesce(&mut self, next: &Self, must_fit: bool) -> bool {
        let fits = next.start == self.end && (must_fit || next.len() <= self.tailroom.into());
        if fits {
            self.tailroom = self.tailroom.saturating_sub(next.len() as u32);
            self.end = next.end;
            self.fin = self.fin.or(next.fin);
        }
        fits
    }
}

/// Sizes of struct sk_buff, and of struct skb_shared_info after the data.
const SK_BUFF: u32 = 256;
const SHARED_INFO: u32 = 320;
/// Space that a driver leaves before a packet (NET_SKB_PAD).
const PAD: u32 = 64;
/// Buffer size of the cache for small packets (skbuff_small_head).
const SMALL_HEAD: u32 = 576;

/// The memory of a packet: its cost, and the free space after the data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) truesize: u32,
    pub(super) tailroom: u32,
}

impl Buffer {
    /// Returns the memory of a packet from a TUN device, in one piece (tun_alloc_skb(), kmalloc_reserve()).
    ///
    /// Other drivers allocate differently, but the receivers that this one is compared with are behind TUN
    /// devices.
    pub(super) fn of_packet(packet: u32) -> Self {
        let head = (PAD + packet).next_multiple_of(64) + SHARED_INFO;
        let allocated = if head <= SMALL_HEAD { SMALL_HEAD } else { head.next_power_of_two() };
        Self { truesize: allocated + SK_BUFF, tailroom: allocated - SHARED_INFO - PAD - packet }
    }
}
