//! Counters of a connection.

/// Counters of one connection since it began. Recovery has its own: [`crate::recovery::Counters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent, with or without data.
    pub segments_out: u64,
    /// Segments received, with or without data, acceptable or not.
    pub segments_in: u64,
    /// Segments sent with data or a FIN, including retransmissions but not window probes.
    pub data_segments_out: u64,
    /// Bytes of data retransmitted.
    pub bytes_resent: u64,
    /// Bytes of data acknowledged by the peer.
    pub bytes_acked: u64,
    /// Bytes of data received in order.
    pub bytes_received: u64,
    /// Segments known to have reached the peer, by ACK or SACK.
    pub segments_delivered: u64,
    /// Segments that the peer reported as duplicates (RFC 2883).
    pub duplicates_reported: u64,
    /// Segments received that contained duplicate data, with or without new data.
    pub duplicate_segments_in: u64,
    /// Segments received above RCV.NXT.
    pub out_of_order_segments_in: u64,
    /// Zero-window probes sent (RFC 9293 §3.8.6.1).
    pub window_probes: u32,
    /// Challenge ACKs sent (RFC 5961 §7), not counting those suppressed by the limit.
    pub challenge_acks: u32,
    /// Keep-alive probes sent (RFC 9293 §3.8.4).
    pub keepalives: u32,
    /// Segments rejected by the sequence or PAWS check.
    pub unacceptable: u32,
    /// ACKs for data never sent (RFC 9293 §3.10.7.4).
    pub acks_of_unsent: u32,
    /// SACK blocks outside the outstanding data.
    pub bad_sack_blocks: u32,
    /// Number of times that the peer reneged on SACKed data (RFC 2018 §8).
    pub reneged: u32,
    /// Number of times that the peer moved its window's right edge to the left (RFC 9293 §3.8.6).
    pub window_shrunk: u32,
    /// MTU probes sent (RFC 4821).
    pub mtu_probes: u32,
    /// MTU probes whose loss showed that the path delivers only shorter packets.
    pub mtu_probes_lost: u32,
}
