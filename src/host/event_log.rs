//! Log events of a host ([`crate::events`]): events of its connections, and of packets without a connection.

use std::net::SocketAddr;

use airwire::segment::{self, BadPacket, Segment};
use airwire::seq::Seq;
use airwire::time::Instant;
use smoltcp::wire::IpProtocol;

use super::Host;
use crate::events::{Event, EventKind, Refusal, Refused};

impl Host {
    /// Collects the events of a connection after a step. It runs for every packet, and is a single comparison
    /// while events are disabled.
    #[inline]
    pub(super) fn collect_events(&mut self, at: Instant, index: u32) {
        if self.events.is_some() {
            self.drain_events(at, index);
        }
    }

    #[cold]
    fn drain_events(&mut self, at: Instant, index: u32) {
        let Some(events) = &mut self.events else { return };
        let Some(connection) = self.slots.at_mut(index) else { return };
        let ends = Some((connection.local(), connection.remote()));
        connection.take_events(|kind| events.push_back(Event { at, ends, kind }));
    }

    /// Records that a segment without a connection was refused.
    #[cold]
    pub(super) fn log_refused(&mut self, at: Instant, segment: &Segment<'_>, why: Refusal) {
        let Some(events) = &mut self.events else { return };
        // Without a connection, sequence numbers cannot be converted to offsets in a stream.
        let refused = Refused::of(segment, (Seq(0), 0), (Seq(0), 0));
        let refused = Refused { seq: None, ack: None, ..refused };
        let kind = EventKind::Refused { why, segment: refused };
        events.push_back(Event { at, ends: Some((segment.dst, segment.src)), kind });
    }

    /// Records a malformed packet. Its ports are reported unverified, because they may identify the
    /// connection.
    #[cold]
    pub(super) fn log_bad(&mut self, at: Instant, packet: &[u8], bad: BadPacket) {
        let Some(events) = &mut self.events else { return };
        let ends = segment::parse_ip(packet).ok().map(|ip| {
            let port = |at: usize| match ip.payload.get(at..at + 2) {
                Some(bytes) if ip.protocol == IpProtocol::Tcp => u16::from_be_bytes([bytes[0], bytes[1]]),
                _ => 0,
            };
            (SocketAddr::new(ip.dst, port(2)), SocketAddr::new(ip.src, port(0)))
        });
        events.push_back(Event { at, ends, kind: EventKind::Bad(bad) });
    }
}
