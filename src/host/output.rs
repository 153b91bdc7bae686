//! Output of a host: replies that belong to no connection come first, then the connections in turn.

use airwire::piece::Piece;
use airwire::time::Instant;

use super::Host;
use crate::tcp::connection::output::Out;

impl Host {
    /// Overwrites `packet` with the next IP packet to send. Returns false if there is none.
    pub fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        self.poll(now, Out::Packet(packet))
    }

    /// Like [`Host::poll_packet`], for a host in the same process: the TCP checksum may be missing, and the packet
    /// may be [abbreviated](airwire::segment::abbreviate). [`Host::handle_abbreviated_packet`] accepts it.
    pub fn poll_abbreviated_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        self.poll(now, Out::Abbreviated(packet))
    }

    fn poll(&mut self, now: Instant, mut out: Out<'_>) -> bool {
        let (Out::Packet(packet) | Out::Abbreviated(packet)) = &mut out else { return false };
        if !self.next_piece.is_empty()
            && let Some(next) = std::mem::take(&mut self.next_piece).into_packet()
        {
            **packet = next;
            return true;
        }
        if self.poll_reply(packet) {
            return true;
        }
        while !self.ready.is_empty() {
            if self.poll_first(now, &mut out) > 0 {
                self.end_turn(now);
                return true;
            }
        }
        false
    }

    /// Like [`Host::poll_packet`], for a device with segmentation offload: overwrites `piece` with a packet,
    /// or with consecutive segments of one connection, as many as there are and fit. They are the segments
    /// that [`Host::poll_packet`] would return, but the device has to compute their checksums.
    pub fn poll_piece(&mut self, now: Instant, piece: &mut Piece) -> bool {
        piece.clear();
        let mut next = std::mem::take(&mut self.next_piece);
        if !next.is_empty() {
            std::mem::swap(piece, &mut next);
        }
        let replies = piece.is_empty() && piece.fill(|packet| self.poll_reply(packet));
        if !replies {
            self.poll_segments(now, piece, &mut next);
        }
        self.next_piece = next;
        !piece.is_empty()
    }

    fn poll_segments(&mut self, now: Instant, piece: &mut Piece, next: &mut Piece) {
        while next.is_empty() && !piece.is_complete() && !self.ready.is_empty() {
            let sent = self.poll_first(now, &mut Out::Piece { piece, next });
            self.in_turn += sent;
            if sent == 0 && !piece.is_empty() {
                // The next connection's segments could not continue this piece.
                return;
            }
        }
        // A segment in `next`, which does not continue this piece, does not end the turn.
        if self.in_turn >= Piece::MAX_SEGMENTS || (piece.is_complete() && next.is_empty()) {
            self.end_turn(now);
        }
    }

    fn poll_reply(&mut self, packet: &mut Vec<u8>) -> bool {
        let Some(reply) = self.replies.pop_front() else { return false };
        self.counters.packets_out += 1;
        *packet = reply;
        true
    }

    /// Polls the first connection in the ready queue, or removes it from the queue. Returns the number of segments.
    fn poll_first(&mut self, now: Instant, out: &mut Out<'_>) -> usize {
        let Some(&index) = self.ready.front() else { return 0 };
        let sent = self.slots.at_mut(index).map_or(0, |connection| connection.poll_packets(now, out));
        if sent > 0 {
            self.counters.packets_out += sent as u64;
            self.collect_events(now, index);
        } else {
            self.in_turn = 0;
            self.ready.pop_front();
            self.collect_events(now, index);
            self.unready(now, index);
        }
        sent
    }

    /// Moves the first connection to the end of the ready queue, or removes it if it has nothing more to send.
    fn end_turn(&mut self, now: Instant) {
        self.in_turn = 0;
        let Some(&index) = self.ready.front() else { return };
        if self.slots.at_mut(index).is_some_and(|connection| connection.is_quiet()) {
            self.ready.pop_front();
            self.unready(now, index);
        } else if self.ready.len() > 1 {
            self.ready.rotate_left(1);
        }
    }
}
