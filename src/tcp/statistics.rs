//! What a connection counts.

/// What a run adds up to, beside [`crate::recovery::Counters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub segments_out: u64,
    pub segments_in: u64,
    pub data_segments_out: u64,
    pub bytes_resent: u64,
    /// Octets of data acknowledged by the peer.
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segments_delivered: u64,
    pub duplicate_segments_in: u64,
    pub out_of_order_segments_in: u64,
    pub window_probes: u64,
    pub challenge_acks: u64,
    pub keepalives: u64,
    /// Segments refused by the sequence or PAWS check.
    pub unacceptable: u64,
    /// ACKs for data never sent (RFC 9293 §3.10.7.4).
    pub acks_of_unsent: u64,
    /// SACK blocks outside what is outstanding.
    pub bad_sack_blocks: u64,
    /// The peer took back what it had SACKed (RFC 2018 §8).
    pub reneged: u64,
    /// The peer moved its window's right edge to the left (RFC 9293 §3.8.6).
    pub window_shrunk: u64,
}
