//! The variables of a connection, as plain data: the steps read and write them.

use airwire::segment::Segment;
use airwire::seq::Seq;
use airwire::time::Instant;

use super::alarm::ReorderingAlarm;
use super::buffer::RecvBuffer;
use super::defer::Piece;
use super::pacer::Pacer;
use super::receive::linux::LinuxReceiver;
use super::send_buffer::SendBuffer;

/// The sending half: the Send Sequence Variables (RFC 9293 §3.3.1), and what else it remembers.
#[derive(Debug)]
pub(super) struct SendVariables {
    pub(super) iss: Seq,
    pub(super) buffer: SendBuffer,
    /// SND.WND in octets.
    pub(super) wnd: u64,
    /// SND.WL1 and SND.WL2 as offsets: the segment that last updated the window.
    pub(super) wl1: u64,
    pub(super) wl2: u64,
    pub(super) max_wnd: u64,
    /// No ACK of this connection is below.
    pub(super) least_ack: u64,
    pub(super) scale: u8,
    /// Octets of data a full-sized segment carries, options already taken off.
    pub(super) smss: u64,
    pub(super) peer_mss: u16,
    /// Offset of our FIN, once the application has closed.
    pub(super) fin: Option<u64>,
    /// End of the last segment sent that was not full-sized, for Minshall's variant of Nagle.
    pub(super) small_end: u64,
    pub(super) last_sent: Instant,
    /// The cork was in, or the window too small, for long enough: one partial segment may leave.
    pub(super) small_once: bool,
    /// What is unsent waits for neither Nagle nor a cork.
    pub(super) pushed: bool,
    pub(super) tail: Tail,
    /// `None`: everything leaves as soon as the windows permit it. In a box, because few senders have it.
    pub(super) spacing: Option<Box<Spacing>>,
}

/// Text waits though the windows permit it: for its turn, or for company.
#[derive(Debug, Default)]
pub(super) struct Spacing {
    /// `None`: the sender gives no rate.
    pub(super) pacer: Option<Pacer>,
    /// `None`: it does not [`defer`](crate::profile::Profile::defers), or has never had more than a segment to send.
    pub(super) piece: Option<Piece>,
}

/// The end of what was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tail {
    /// It is the end of something: PSH says so.
    End,
    /// More follows at once, and a partial segment waits for it.
    Waits,
    /// It was to follow, but an ACK came first.
    Overdue,
}

/// The receiving half: the Receive Sequence Variables (RFC 9293 §3.3.1), and what else it remembers.
#[derive(Debug)]
pub(super) struct ReceiveVariables {
    pub(super) irs: Seq,
    pub(super) buffer: RecvBuffer,
    /// Right edge of the window last advertised, as the peer reads it: all that lies below is accepted.
    pub(super) adv: u64,
    /// The same edge before it was rounded up to the unit of the window scale (RFC 7323 §2.4).
    pub(super) promised: u64,
    pub(super) scale: u8,
    /// Offset of the peer's FIN, once it has been seen, in order or not.
    pub(super) fin: Option<u64>,
    /// TS.Recent (RFC 7323 §4.3) and when it was taken.
    pub(super) ts_recent: u32,
    pub(super) ts_recent_at: Instant,
    /// TSval of a copy that the next segment answers, and echoes.
    pub(super) copy_tsval: Option<u32>,
    /// Last.ACK.sent.
    pub(super) last_ack_sent: u64,
    pub(super) ack: AckDue,
    /// What Linux' receiver remembers, in a box because only its profile has it.
    pub(super) linux: Option<Box<LinuxReceiver>>,
    /// Largest segment seen, an estimate of the peer's SMSS.
    pub(super) mss_seen: u32,
    /// First offsets of the out-of-order ranges that grew most recently, newest first (RFC 2018 §4).
    pub(super) recent: Option<Box<[Option<u64>; 4]>>,
    /// A duplicate to be reported in the next ACK (RFC 2883).
    pub(super) dsack: Option<Box<(u64, u64)>>,
    /// `None` unless the profile asks for it.
    pub(super) alarm: Option<Box<ReorderingAlarm>>,
    /// A segment marked CE was received and no CWR since (RFC 3168 §6.1.3).
    pub(super) echo_ce: bool,
    /// Boxed, because it is rare and a connection shall be small.
    pub(super) queued: Option<Box<Queued>>,
    /// The peer's data has been ECN-capable.
    pub(super) ect_seen: bool,
}

/// A SYN that came with text or FIN, which wait until the connection is established: one segment at most.
#[derive(Debug)]
pub(super) struct Queued {
    /// All but its text.
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

/// What must leave beside data and ACKs, one segment each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    pub(super) syn: bool,
    pub(super) reset: bool,
    pub(super) keepalive: bool,
    pub(super) window_probe: bool,
    /// The ACK of the peer's SYN, which leaves before any data.
    pub(super) handshake_ack: bool,
    pub(super) asked: Asked,
}

/// An ACK that may answer a forger. It leaves if the host, which counts those of all connections, says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Asked {
    #[default]
    Nothing,
    /// To data that the peer can hardly have sent.
    Stray,
    /// A challenge ACK (RFC 5961).
    Challenge,
}

/// The challenge ACKs that have left (RFC 5961 §7).
#[derive(Clone, Copy, Debug)]
pub(super) struct Challenges {
    pub(super) last: Instant,
    /// The second that `sent` counts in.
    pub(super) second: u64,
    pub(super) sent: u32,
}

/// All deadlines of a connection but those of recovery. The earliest one is the connection's own.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// Retransmission (RFC 6298 §5).
    pub(super) rto: Option<Instant>,
    /// Zero-window probing (RFC 9293 §3.8.6.1).
    pub(super) persist: Option<Instant>,
    pub(super) delayed_ack: Option<Instant>,
    pub(super) keepalive: Option<Instant>,
    /// The end of TIME-WAIT, or of FIN-WAIT-2 once nobody reads the connection any more.
    pub(super) linger: Option<Instant>,
    /// When a corked partial segment leaves at the latest.
    pub(super) cork: Option<Instant>,
    pub(super) persist_backoff: u32,
    /// Probes, of either kind, since the peer was last heard.
    pub(super) probes_sent: u32,
    /// Timeouts while the peer's window was closed, since data was last acknowledged.
    pub(super) refused: u32,
    /// In a box, because it is rare.
    pub(super) in_vain: Option<Box<InVain>>,
}

/// Something stays without an answer. It says nothing any more once `una` has moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct InVain {
    /// SND.UNA at the first timeout.
    pub(super) una: u64,
    pub(super) since: Instant,
    pub(super) r1_reached: bool,
}

/// The first of two, if one is set.
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
