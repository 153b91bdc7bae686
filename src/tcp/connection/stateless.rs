//! Handshakes without state between the second and the third segment (RFC 4987 §3.6): the host encodes what
//! it needs in the SYN,ACK, and gets it back in the ACK.

use airwire::segment::Segment;
use airwire::time::Instant;

use super::output::Out;
use super::{Connection, Opening};

/// Range of the low timestamp bits in which the host encodes information.
const HIDDEN: u32 = 1 << 6;

impl Connection {
    /// Returns the SYN,ACK that answers this SYN. `hidden` becomes the low bits of its timestamp: the latest
    /// value up to now with these bits, so that later timestamps do not go backwards (RFC 7323 §5.3).
    pub(crate) fn answer_once(
        now: Instant,
        opening: Opening,
        syn: &Segment<'_>,
        hidden: Option<u32>,
    ) -> Vec<u8> {
        let mut connection = Self::accept(now, opening, syn);
        if let Some(hidden) = hidden {
            let back =
                connection.cx.negotiated.ts_now(&connection.cx.profile, now).wrapping_sub(hidden) % HIDDEN;
            connection.cx.negotiated.set_back_clock(back);
        }
        let mut packet = Vec::new();
        connection.poll_packet(now, &mut Out::Packet(&mut packet));
        packet
    }

    /// Recreates the connection that the SYN,ACK belonged to, ready to process the ACK. The sending time of
    /// the SYN,ACK is unknown, so the handshake provides no RTT sample.
    pub(crate) fn accept_answered(now: Instant, opening: Opening, syn: &Segment<'_>) -> Self {
        let mut connection = Self::accept(now, opening, syn);
        connection.poll_packet(now, &mut Out::Packet(&mut Vec::new()));
        connection.sender.forget_syn();
        connection
    }
}
