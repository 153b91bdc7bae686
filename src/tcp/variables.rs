//! The variables of a connection, as plain data.

use airwire::segment::Segment;
use airwire::seq::Seq;
use airwire::time::Instant;

use super::alarm::ReorderingAlarm;
use super::buffer::RecvBuffer;
use super::defer::Piece;
use super::pacer::Pacer;
use super::receive::linux::LinuxReceiver;
use super::send_buffer::SendBuffer;

/// The sending side: the Send Sequence Variables (RFC 9293 §3.3.1) and other state.
#[derive(Debug)]
pub(super) struct SendVariables {
    pub(super) iss: Seq,
    pub(super) buffer: SendBuffer,
    /// SND.WND in bytes.
    pub(super) wnd: u64,
    /// SND.WL1 and SND.WL2 as offsets: the segment that last updated the window.
    pub(super) wl1: u64,
    pub(super) wl2: u64,
    pub(super) max_wnd: u64,
    /// Lowest valid ACK of this connection.
    pub(super) least_ack: u64,
    /// Bytes of data in a full-sized segment, after deducting options.
    pub(super) smss: u64,
    /// Offset of our FIN, once the application has closed.
    pub(super) fin: Option<u64>,
    /// End of the last segment sent that was not full-sized, for Minshall's variant of Nagle.
    pub(super) small_end: u64,
    pub(super) last_sent: Instant,
    /// The cork or override timeout has expired: one partial segment may be sent.
    pub(super) small_once: bool,
    /// Unsent data waits for neither Nagle nor a cork.
    pub(super) pushed: bool,
    pub(super) tail: Tail,
    /// `None`: data is sent as soon as the windows allow. Boxed because few senders need it.
    pub(super) spacing: Option<Box<Spacing>>,
}

/// Reasons for delaying data that the windows allow: pacing and deferral.
#[derive(Debug, Default)]
pub(super) struct Spacing {
    /// `None`: the sender is not paced.
    pub(super) pacer: Option<Pacer>,
    /// `None`: the sender does not [`defer`](crate::profile::Profile::defers), or never had more than one
    /// segment to send.
    pub(super) piece: Option<Piece>,
}

/// Whether more data is expected after the end of the written data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tail {
    /// No more data is expected; the last segment carries PSH.
    End,
    /// More data follows immediately, and a partial segment waits for it.
    Waits,
    /// More data was to follow, but an ACK arrived first.
    Overdue,
}

/// The receiving side: the Receive Sequence Variables (RFC 9293 §3.3.1) and other state.
#[derive(Debug)]
pub(super) struct ReceiveVariables {
    pub(super) irs: Seq,
    pub(super) buffer: RecvBuffer,
    /// Right edge of the last advertised window as the peer computes it. Everything below it is accepted.
    pub(super) adv: u64,
    /// The same edge before rounding up to the unit of the window scale (RFC 7323 §2.4).
    pub(super) promised: u64,
    /// Offset of the peer's FIN, once it has arrived in or out of order.
    pub(super) fin: Option<u64>,
    /// TS.Recent (RFC 7323 §4.3) and the time of its last update.
    pub(super) ts_recent: u32,
    pub(super) ts_recent_at: Instant,
    /// TSval of a duplicate segment, which the next segment echoes.
    pub(super) copy_tsval: Option<u32>,
    /// Last.ACK.sent.
    pub(super) last_ack_sent: u64,
    pub(super) ack: AckDue,
    /// Number of unacceptable data segments near RCV.NXT that are acknowledged at once. Each accepted segment
    /// adds one, because the network may duplicate it and the peer may retransmit it.
    pub(super) data_credit: u16,
    /// State of Linux's receiver. Boxed because only its profile has it.
    pub(super) linux: Option<Box<LinuxReceiver>>,
    /// Largest segment seen, an estimate of the peer's SMSS.
    pub(super) mss_seen: u32,
    /// Start offsets of the out-of-order ranges that grew most recently, newest first (RFC 2018 §4).
    pub(super) recent: Option<Box<[Option<u64>; 4]>>,
    /// A duplicate to report in the next ACK (RFC 2883).
    pub(super) dsack: Option<Box<(u64, u64)>>,
    /// `None` unless the profile enables it.
    pub(super) alarm: Option<Box<ReorderingAlarm>>,
    /// A segment marked CE was received and no CWR since (RFC 3168 §6.1.3).
    pub(super) echo_ce: bool,
    /// Boxed because it is rare and connections should be small.
    pub(super) queued: Option<Box<Queued>>,
    /// True once an ECN-capable data segment has arrived.
    pub(super) ect_seen: bool,
}

/// A SYN with data or a FIN, which is queued until the connection is established. At most one segment is
/// queued.
#[derive(Debug)]
pub(super) struct Queued {
    /// The segment without its data.
    bare: Segment<'static>,
    text: Vec<u8>,
}

impl Queued {
    pub(super) fn of(syn: &Segment<'_>) -> Self {
        Self { bare: Segment { payload: &[], ..syn.clone() }, text: syn.payload.to_vec() }
    }

    pub(super) fn segment(&self) -> Segment<'_> {
        Segment { payload: &self.text, ..self.bare.clone() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckDue {
    No,
    /// The delayed-ACK timer is running.
    Delayed,
    Now,
}

/// Segments to send besides data and ordinary ACKs, one for each flag.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    pub(super) syn: bool,
    pub(super) reset: bool,
    pub(super) keepalive: bool,
    pub(super) window_probe: bool,
    /// The ACK of the peer's SYN, which is sent before any data.
    pub(super) handshake_ack: bool,
}

/// Replies that forged segments may have provoked (RFC 5961 §7). They are counted per connection. If
/// connections shared a count, an attacker could read it from the replies on a connection of its own
/// (CVE-2016-5696).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Challenges {
    /// Time of the last challenge ACK, or of the last answer to a repeated SYN.
    pub(super) last: Option<Instant>,
    /// The second in which `sent` counts.
    pub(super) second: u64,
    pub(super) sent: u32,
    /// Time of the last ACK of unacceptable data that [`ReceiveVariables::data_credit`] did not cover.
    pub(super) last_for_data: Option<Instant>,
}

/// The deadlines of a connection, except for the deadlines of recovery. The earliest one is the connection's
/// deadline.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// Retransmission (RFC 6298 §5).
    pub(super) rto: Option<Instant>,
    /// Zero-window probing (RFC 9293 §3.8.6.1).
    pub(super) persist: Option<Instant>,
    pub(super) delayed_ack: Option<Instant>,
    pub(super) keepalive: Option<Instant>,
    /// The end of TIME-WAIT, or of FIN-WAIT-2 after the application has closed.
    pub(super) linger: Option<Instant>,
    /// Latest time at which a corked partial segment is sent.
    pub(super) cork: Option<Instant>,
    pub(super) persist_backoff: u32,
    /// Window probes and keep-alives since the last segment from the peer.
    pub(super) probes_sent: u32,
    /// Timeouts while the peer's window was closed, since data was last acknowledged.
    pub(super) refused: u32,
    /// Boxed because it is rare.
    pub(super) unanswered_period: Option<Box<UnansweredPeriod>>,
}

/// A period in which nothing was answered. It ends when SND.UNA moves past `una`.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnansweredPeriod {
    /// SND.UNA at the first timeout.
    pub(super) una: u64,
    pub(super) since: Instant,
    pub(super) r1_reached: bool,
}

/// Returns the earlier of two times, if any is set.
pub(super) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Timers {
    pub(super) fn next(&self) -> Option<Instant> {
        let Self { rto, persist, delayed_ack, keepalive, linger, cork, .. } = *self;
        let first = earlier(earlier(rto, persist), earlier(delayed_ack, keepalive));
        earlier(first, earlier(linger, cork))
    }

    pub(super) fn start_orphan(&mut self, at: Instant) {
        self.linger = Some(at);
    }
}
