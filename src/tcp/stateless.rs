//! A handshake of which nothing is kept between its second segment and its third (RFC 4987 §3.6): the host puts what it
//! has to know into the SYN,ACK, and gets it back.

use airwire::segment::Segment;
use airwire::time::Instant;

use super::connection::{Connection, Opening};
use super::output::Out;

/// The low bits of the timestamp in which the host hides something.
const HIDDEN: u32 = 1 << 6;

impl Connection {
    /// The SYN,ACK to this SYN. `hidden` becomes the low bits of its timestamp, which is the last one before now that has
    /// them: those that follow do not go back (RFC 7323 §5.3).
    pub(crate) fn answer_once(
        now: Instant,
        opening: Opening,
        syn: &Segment<'_>,
        hidden: Option<u32>,
    ) -> Vec<u8> {
        let mut connection = Self::accept(now, opening, syn);
        if let Some(hidden) = hidden {
            let back = connection.ts_now(now).wrapping_sub(hidden) % HIDDEN;
            connection.ts_offset = connection.ts_offset.wrapping_sub(back);
        }
        let mut packet = Vec::new();
        connection.poll_packet(now, &mut Out::Packet(&mut packet));
        packet
    }

    /// The connection that it was the answer to, as if it had been kept since, up to the ACK that is to be handled next.
    /// When the answer left is not known, so it gives no sample of the round-trip time.
    pub(crate) fn accept_answered(now: Instant, opening: Opening, syn: &Segment<'_>) -> Self {
        let mut connection = Self::accept(now, opening, syn);
        connection.poll_packet(now, &mut Out::Packet(&mut Vec::new()));
        connection.flight.on_ack(1);
        connection
    }
}
