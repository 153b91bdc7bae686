//! Passive opens with SYN cookies (RFC 4987 §3.6): no state is kept between the SYN,ACK and the ACK that
//! answers it. The host encodes the options of the SYN in the SYN,ACK, and decodes them from the ACK.

use airwire::segment::Segment;
use airwire::time::Instant;

use super::output::Out;
use super::{Connection, Opening};

/// Number of values that the host can encode in the low bits of the timestamp.
const TS_VALUES: u32 = 1 << 6;

impl Connection {
    /// Returns the SYN,ACK that answers this SYN. Its timestamp is the latest value up to now whose low bits
    /// are `ts_bits`, so that later timestamps do not go backwards (RFC 7323 §5.3).
    pub(crate) fn syn_cookie(
        now: Instant,
        opening: Opening,
        syn: &Segment<'_>,
        ts_bits: Option<u32>,
    ) -> Vec<u8> {
        let mut connection = Self::accept(now, opening, syn);
        if let Some(bits) = ts_bits {
            let cx = &mut connection.cx;
            let ahead = cx.negotiated.ts_now(&cx.profile, now).wrapping_sub(bits) % TS_VALUES;
            cx.negotiated.set_back_clock(ahead);
        }
        let mut packet = Vec::new();
        connection.poll_packets(now, &mut Out::Packet(&mut packet));
        packet
    }

    /// Creates the connection after a cookie has come back, in the state in which it processes the ACK. The
    /// sending time of the SYN,ACK is unknown, so the handshake provides no RTT sample.
    pub(crate) fn accept_cookie(now: Instant, opening: Opening, syn: &Segment<'_>) -> Self {
        let mut connection = Self::accept(now, opening, syn);
        connection.poll_packets(now, &mut Out::Packet(&mut Vec::new()));
        connection.sender.ack_untimed_syn();
        connection
    }
}
