//! What a connection counts.

/// What one connection has counted since it began. Its recovery has counters of its own:
/// [`crate::recovery::Counters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent, with or without data.
    pub segments_out: u64,
    /// Segments received, with or without data, acceptable or not.
    pub segments_in: u64,
    /// Segments sent with data or FIN, retransmissions included, window probes not.
    pub data_segments_out: u64,
    /// Octets of data sent again.
    pub bytes_resent: u64,
    /// Octets of data acknowledged by the peer.
    pub bytes_acked: u64,
    /// Octets of data received in order.
    pub bytes_received: u64,
    /// Segments known to have reached the peer, by ACK or SACK.
    pub segments_delivered: u64,
    /// Segments with octets that were held already, whether or not others came with them.
    pub duplicate_segments_in: u64,
    /// Segments received above RCV.NXT.
    pub out_of_order_segments_in: u64,
    /// Zero-window probes sent (RFC 9293 §3.8.6.1).
    pub window_probes: u64,
    /// Challenge ACKs sent (RFC 5961 §7); those that its limit kept back do not count.
    pub challenge_acks: u64,
    /// Keepalive probes sent (RFC 9293 §3.8.4).
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
