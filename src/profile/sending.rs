//! The rules for new data: send buffer, segment sizes, and the delay of small segments.

/// The division of data into segments, and the segments that wait.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Sending {
    /// Send buffer size in bytes: data that the application wrote and the peer has not acknowledged. A socket
    /// option overrides it.
    pub send_buffer: usize,
    /// The small segments that wait.
    pub nagle: Nagle,
    /// Limit segments to half of the largest window that the peer has offered, or to that window if it is
    /// tiny (Linux). Two segments then fit, and the first one's ACK arrives while the second is on its way.
    pub half_window: bool,
    /// After a full segment, a short one fills the rest of the peer's window, if Nagle's rule allows this and
    /// both segments fit into one buffer. A buffer has at most half of the largest window (Linux,
    /// tcp_mss_split_point()).
    pub fills_window: bool,
    /// PSH stays at the end of each write, also in a retransmission and after later writes. A long write has
    /// several (Linux, tcp_mark_push() and forced_push()).
    pub keeps_pushes: bool,
    /// A small segment that is retransmitted absorbs the following ones, as far as they fit (Linux,
    /// tcp_retrans_try_collapse()). A retransmission is not longer than the peer's window
    /// (__tcp_retransmit_skb()).
    pub merges_retransmissions: bool,
    /// The sequence number of an ACK or RST without data is at most one unit of our window beyond the peer's
    /// window (Linux, tcp_acceptable_seq()).
    pub bounds_bare_seq: bool,
    /// Segments with data or a FIN report SACK blocks too, and are shorter by that option (Linux,
    /// tcp_current_mss()).
    pub sack_on_data: bool,
    /// Data waits for an ACK instead of leaving in a burst of less than two segments (Linux,
    /// tcp_tso_should_defer()).
    pub defers: bool,
    /// The segments that update the send window.
    pub send_window_update: SendWindowUpdate,
}

/// The small segments that wait for an ACK (RFC 9293 §3.7.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Nagle {
    /// None: a small segment is sent at once (TCP_NODELAY).
    Off,
    /// A small segment waits while any data is unacknowledged.
    Classic,
    /// A small segment waits while another small segment is unacknowledged (Minshall; Linux).
    Minshall,
}

impl Nagle {
    /// Returns true if small segments ever wait.
    pub(crate) const fn holds_back(self) -> bool {
        !matches!(self, Self::Off)
    }
}

/// The segments that update the send window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum SendWindowUpdate {
    /// Segments with a sequence number or ACK that is not older than the last one used (RFC 9293 §3.10.7.4).
    Rfc9293,
    /// With the same numbers, only a larger window or a zero window counts (Linux, tcp_may_update_window()),
    /// so a reordered segment without data cannot shrink the window. Data that a closed window refused waits for
    /// the retransmission timer, and probing ends when the next buffer fits (tcp_ack_probe()).
    Linux,
}
