//! Feeds the packets of a direction to its round trips, as the sender saw them.

use std::ops::Range;

use aircaptures::packet::Packet;
use airwire::segment::{Ecn, Flags};

use super::ack_history::AckState;
use super::{
    MIN_GAP, MIN_LAG, MIN_PACKETS, MIN_RESTART_PAUSE, MIN_UNKNOWN_PAUSE, PROMPT, Round, RoundTrips, Sent,
    shortest_queue,
};
use crate::connection::direction::flight::Segment;
use crate::connection::direction::receiver_window::Scale;
use crate::connection::direction::recovery::Recovery;
use crate::connection::direction::{DirectionAnalysis, PacketContext, outages};

impl DirectionAnalysis {
    /// Returns what the sender knew from ACKs when it sent the packet that passes the capture point now.
    fn known_acks(&mut self, context: &PacketContext) -> AckState {
        let lowest = self.flight.lowest();
        let edge = self.window.edge().filter(|_| self.window.scale != Scale::Unknown);
        let current = AckState {
            at: self.ack_times.last.as_time().unwrap_or(0),
            una: self.flight.una().unwrap_or(lowest),
            edge,
            ..AckState::default()
        };
        let Some(round_trips) = self.round_trips.as_mut() else { return current };
        if context.sender_reply_delay < MIN_LAG {
            return current;
        }
        let history = round_trips.history.as_mut();
        let known = history.and_then(|history| history.at(context.at - context.sender_reply_delay));
        known.unwrap_or_else(|| AckState { una: round_trips.first_byte, ..AckState::default() })
    }

    /// Processes a packet with data that was just added to the flight.
    pub(in crate::connection::direction) fn observe_data(
        &mut self,
        context: &PacketContext,
        packet: &Packet,
        sent: &Sent,
    ) {
        if packet.len == 0 || !self.has_round_trips(context, sent) {
            return;
        }
        let known = self.known_acks(context);
        let (share, base_rtt) = (self.sender_share(context), self.rtt.min().unwrap_or(0));
        let (segment, max) = (self.path_segment(), self.flight.max);
        let live_flight = self.flight_bytes();
        let is_short = !self.sizes.last_new.is_multiple_of(segment);
        let in_recovery = self.recovery != Recovery::None;
        let repairs_timeout = self.recovery.is_after_timeout() && !sent.is_new;
        let has_lost_packets = self.ip_ids.shows_lost_packets(packet.ip_id);
        let Some(round_trips) = self.round_trips.as_mut() else { return };
        let at = context.at;
        let silence = at - known.at - context.sender_reply_delay;
        let cut_off = sent.is_new
            && known.una >= sent.sent_before
            && !context.is_answer
            && round_trips.is_cut_off(context, packet, silence, has_lost_packets);
        if cut_off {
            self.anomalies.get_or_default().outages.add(at, silence, packet.number);
        }
        let is_full = known.edge.is_some_and(|edge| edge.saturating_sub(sent.sent_before) < segment.into());
        let may_be_network =
            context.round_trip.is_none() && base_rtt < MIN_LAG && silence < MIN_UNKNOWN_PAUSE;
        let is_explained = cut_off || is_full || may_be_network;
        if sent.is_new && round_trips.is_pause(context, packet, &known, sent, in_recovery, is_explained) {
            // The round ended when everything was acknowledged, and the next one begins now.
            let ended = at.min(known.at + context.sender_reply_delay).max(round_trips.round.began);
            round_trips.end_round(ended, sent.sent_before, base_rtt, share, segment);
            round_trips.round = Round::new(at, sent.sent_before);
            round_trips.round.is_idle = true;
            round_trips.unechoed = None;
            round_trips.refilled_at = None;
            round_trips.windows.limited();
        } else if known.una > round_trips.round.end {
            round_trips.end_round(at, sent.sent_before, base_rtt, share, segment);
        }
        round_trips.last_is_short = is_short;
        let delay = round_trips.observe_packet(context, packet, sent);
        if share > 0.5 {
            let gap = longest_gap(context.round_trip.unwrap_or(0));
            round_trips.trains.arrived(at, packet.len.into(), gap, segment.into());
        }
        if context.sender_reply_delay >= MIN_LAG {
            let flight = u32::try_from(max.saturating_sub(known.una)).unwrap_or(u32::MAX);
            round_trips.round.flight = round_trips.round.flight.max(flight);
        } else {
            round_trips.round.flight = round_trips.round.flight.max(live_flight);
        }
        if repairs_timeout {
            round_trips.windows.timed_out(at, max);
        }
        let view = round_trips.observe_window(context, packet, sent, max, delay, live_flight);
        let waited_for_window = std::mem::take(&mut round_trips.last_fills_window);
        if sent.is_new && !in_recovery && !context.is_answer && !waited_for_window {
            round_trips.observe_refill(context, &view, packet.len, segment);
        }
        if let Some(edge) = known.edge {
            let (room, window) = (edge.saturating_sub(max), edge.saturating_sub(known.una));
            // A sender may wait until several segments fit (TSO), so that the window is never quite full.
            if room < (2 * u64::from(segment)).max(window / 16) {
                round_trips.last_fills_window = true;
                round_trips.observe_full_window(window, packet.number);
            }
        }
    }

    /// Returns whether the direction has evidence per round trip. Begins it with the packet that makes the
    /// direction long enough.
    fn has_round_trips(&mut self, context: &PacketContext, sent: &Sent) -> bool {
        if self.round_trips.is_none() && self.counts.data_packets >= MIN_PACKETS {
            let first_byte = sent.range.start.saturating_sub(self.counts.sent_bytes);
            let began = self.series.began().unwrap_or(context.at);
            let new = RoundTrips::new(context.at, first_byte, sent.sent_before, began);
            self.round_trips = Some(Box::new(new));
        }
        self.round_trips.is_some()
    }

    /// Processes an ACK. `acked` is the number of newly acknowledged bytes.
    pub(in crate::connection::direction) fn observe_ack(
        &mut self,
        context: &PacketContext,
        packet: &Packet,
        acked: u64,
    ) {
        if self.round_trips.is_none() {
            return;
        }
        let (share, base_rtt) = (self.sender_share(context), self.rtt.min().unwrap_or(0));
        let (una, max, segment) = (self.una(), self.flight.max, self.path_segment());
        let sacked = u32::try_from(self.flight.sacked_bytes()).unwrap_or(u32::MAX);
        let edge = self.window.edge().filter(|_| self.window.scale != Scale::Unknown);
        let in_recovery = self.recovery != Recovery::None || self.dupacks > 0;
        let Some(round_trips) = self.round_trips.as_mut() else { return };
        let at = context.at;
        round_trips.starts_request_of_echo(packet, at);
        round_trips.add_one_way(1, packet, at);
        round_trips.ack_ids.add(packet.ip_id.filter(|id| *id != 0));
        round_trips.hides_sacks |= packet.options_cut;
        if packet.flags.contains(Flags::ECE) && !packet.flags.contains(Flags::SYN) {
            round_trips.round.is_marked = true;
            round_trips.frames.marks.add(packet.number);
        }
        if context.sender_reply_delay >= MIN_LAG {
            round_trips.acks += 1;
            let acks = round_trips.acks;
            let tsval = packet.options.timestamps.map_or(0, |timestamps| timestamps.val);
            // The receiver may have delayed the ACK.
            let waited = round_trips.last_delay + (at - round_trips.last_sent);
            if acks == 1 {
                round_trips.assumed_rtt = context.round_trip.unwrap_or(0);
            }
            let rtt = u32::try_from((round_trips.assumed_rtt + waited) / 1000).unwrap_or(u32::MAX);
            let (state, lag) =
                (AckState { at, una, sacked, tsval, acks, rtt, edge }, context.sender_reply_delay);
            round_trips.history.get_or_insert_default().add(state, lag);
            let lag = lag + round_trips.max_delay;
            round_trips.delayed_history.get_or_insert_default().add(state, lag);
        } else {
            round_trips.unanswered_acks += u32::from(acked > 0);
            round_trips.acked_at = at;
            round_trips.windows.acked(acked, 1);
            round_trips.windows.advanced(at, una, max);
            if una > round_trips.round.end {
                round_trips.end_round(at, max, base_rtt, share, segment);
            }
        }
        if share <= 0.5 {
            if in_recovery {
                round_trips.trains.end(segment.into());
            } else if acked > 0 {
                let gap = longest_gap(base_rtt);
                round_trips.trains.arrived(at, acked, gap, segment.into());
            }
        }
    }

    /// Processes the first retransmission of a segment. `first` is its transmission in the capture.
    pub(in crate::connection::direction) fn observe_loss(
        &mut self,
        context: &PacketContext,
        packet: &Packet,
        range: &Range<u64>,
        first: Option<Segment>,
    ) {
        let above = self.flight.first_overlapping(&(range.end..u64::MAX));
        let (share, base_rtt) = (self.sender_share(context), self.rtt.min().unwrap_or(0));
        let (max, una) = (self.flight.max, self.una());
        let Some(round_trips) = self.round_trips.as_mut() else { return };
        if range.end <= una {
            // The segment had arrived.
            return;
        }
        let sent_at = match first {
            Some(first) if first.sacked => return,
            // Segments of a large send are retransmitted one after the other.
            Some(first) if first.times > 1 && !round_trips.losses.continues(range, first.start) => return,
            Some(first) => first.first_at,
            None => above.map_or(context.at, |above| above.first_at),
        };
        round_trips.round.has_loss = true;
        round_trips.refilled_at = None;
        let least = shortest_queue(context.round_trip.unwrap_or(base_rtt));
        let queue = round_trips.queue_at_loss(base_rtt, share, least);
        round_trips.losses.lost(sent_at, range, round_trips.first_byte, max, queue);
        round_trips.windows.lost(context.at, max);
        round_trips.frames.losses.add(packet.number);
    }

    /// Returns the share of the round trip between the capture point and the sender.
    fn sender_share(&self, context: &PacketContext) -> f64 {
        match context.round_trip {
            Some(round_trip) if round_trip >= MIN_LAG => {
                context.sender_reply_delay as f64 / round_trip as f64
            }
            _ => 0.0,
        }
    }
}

/// The knowledge of a sender when it sent a packet.
struct SenderView {
    /// The flight, including this packet.
    flight: u32,
    /// The number of ACKs that have arrived since the packet before.
    acks: u32,
    /// The time when the answer to the last ACK passes the capture point at the earliest.
    acked_at: i64,
}

/// Returns the longest gap in nanoseconds within a train of packets.
fn longest_gap(round_trip: i64) -> i64 {
    (round_trip / 4).max(2 * MIN_GAP)
}

impl RoundTrips {
    /// Records what a packet with data shows by itself. Returns its one-way delay above the minimum.
    fn observe_packet(&mut self, context: &PacketContext, packet: &Packet, sent: &Sent) -> i64 {
        self.last_is_pushed = packet.flags.contains(Flags::PSH);
        let delay = self.add_one_way(0, packet, context.at).unwrap_or(0);
        self.echoed(packet, context.at, delay);
        let before = std::mem::replace(&mut self.last_delay, delay);
        if sent.range.start > sent.sent_before {
            self.gap_delay = before.max(delay);
        }
        if packet.ecn == Ecn::Ce {
            self.round.is_marked = true;
            self.frames.marks.add(packet.number);
        }
        self.last_sent = context.at;
        delay
    }

    /// Records the flight from which the sender's window is estimated. `live_flight` is the flight at the
    /// capture point, and `max` the end of the data sent so far.
    fn observe_window(
        &mut self,
        context: &PacketContext,
        packet: &Packet,
        sent: &Sent,
        max: u64,
        delay: i64,
        live_flight: u32,
    ) -> SenderView {
        let mut window = live_flight;
        let (mut acks, mut acked_at) = (std::mem::take(&mut self.unanswered_acks), self.acked_at);
        if context.sender_reply_delay >= MIN_LAG {
            let known = self.known_behind_queue(context, packet, delay);
            if sent.range.start > sent.sent_before {
                self.windows.missing(sent.sent_before, sent.range.start);
                self.losses.missing(sent.sent_before, sent.range.start);
            }
            (acks, acked_at) =
                (known.acks.saturating_sub(self.known.acks), known.at + context.sender_reply_delay + delay);
            if known.acks > self.known.acks {
                self.windows.acked(known.una.saturating_sub(self.known.una), known.acks - self.known.acks);
                self.windows.add_rtt(i64::from(known.rtt) * 1000);
                self.known = known;
            }
            self.windows.advanced(context.at, known.una, sent.sent_before);
            window =
                u32::try_from(max.saturating_sub(known.una + u64::from(known.sacked))).unwrap_or(u32::MAX);
            // The timestamp proves what the sender knew.
            self.observe_echo(packet, context.at, known);
        }
        self.windows.sent(window);
        SenderView { flight: window, acks, acked_at }
    }

    /// Records data of `len` bytes if it answers an ACK although earlier ACKs were not answered, and little was in
    /// flight.
    fn observe_refill(&mut self, context: &PacketContext, view: &SenderView, len: u32, segment: u32) {
        const MIN_SEGMENTS: u32 = 6;
        const MAX_ROUND_TRIPS: i64 = 8;
        let largest = self.windows.largest_flight();
        let is_answer = context.at - view.acked_at <= PROMPT + context.sender_reply_delay / 16;
        let is_empty = largest >= MIN_SEGMENTS * segment && view.flight.saturating_sub(len) <= largest / 4;
        if !is_answer || !is_empty || view.acks < 2 {
            return;
        }
        let round_trip = context.round_trip.unwrap_or(0).max(MIN_LAG);
        if let Some(last) = self.refilled_at.replace(context.at)
            && context.at - last <= MAX_ROUND_TRIPS * round_trip
        {
            self.refills.add(context.at - last);
        }
    }

    /// Records that the packet in `frame` has filled the receiver's window of this size.
    fn observe_full_window(&mut self, window: u64, frame: u64) {
        let window = u32::try_from(window).unwrap_or(u32::MAX);
        self.round.reached = Some(self.round.reached.map_or(window, |reached| reached.max(window)));
        self.windows.limited();
        self.frames.window_full.add(frame);
    }

    /// Returns what the sender knew from ACKs when it sent this packet, which then waited in a queue before
    /// the capture point.
    fn known_behind_queue(&mut self, context: &PacketContext, packet: &Packet, delay: i64) -> AckState {
        self.max_delay = self.max_delay.max(delay);
        let time = context.at - context.sender_reply_delay - delay;
        let history = self.delayed_history.as_mut();
        let known = history.and_then(|history| match packet.options.timestamps {
            Some(timestamps) => history.echoed(timestamps.ecr, time),
            None => history.at(time),
        });
        known.unwrap_or_else(|| AckState { una: self.first_byte, ..AckState::default() })
    }

    /// Returns whether a sender far away was cut off before this packet. Either its data stopped within a message, and
    /// a pause of the application would have ended with the flag PSH (RFC 9293 §3.9.1.2), or packets were lost, or
    /// this packet was on its way during the silence.
    fn is_cut_off(
        &mut self,
        context: &PacketContext,
        packet: &Packet,
        silence: i64,
        has_lost_packets: bool,
    ) -> bool {
        let may_be = context.sender_reply_delay >= MIN_LAG
            && silence >= outages::MIN_SILENCE.max(4 * context.round_trip.unwrap_or(0));
        may_be
            && (!self.last_is_short && !self.last_is_pushed
                || has_lost_packets
                || self.add_one_way(0, packet, context.at).is_some_and(|delay| delay >= silence / 2))
    }

    /// Accounts for the time before this packet with new data. Returns whether, in this time, all data was
    /// acknowledged and the sender had nothing to send. `is_explained` means that a pause has another reason.
    fn is_pause(
        &mut self,
        context: &PacketContext,
        packet: &Packet,
        known: &AckState,
        sent: &Sent,
        in_recovery: bool,
        is_explained: bool,
    ) -> bool {
        let at = context.at;
        let since_ack = at - known.at - context.sender_reply_delay;
        let prompt = PROMPT + context.sender_reply_delay / 16;
        if let Some((acked_at, delay)) = self.delayed_ack.take()
            && at - acked_at - context.sender_reply_delay <= prompt
        {
            self.stalls.add(delay);
            self.frames.delayed_acks.add(packet.number);
        }
        if context.is_answer {
            // An answer to the other end's data begins a new exchange.
            return known.una >= sent.sent_before;
        }
        let gap = at - self.last_sent;
        if gap < MIN_GAP || in_recovery {
            return false;
        }
        if since_ack <= prompt {
            self.prompted = self.prompted.saturating_add(1);
            return false;
        }
        if known.una >= sent.sent_before {
            if is_explained {
                return true;
            }
            self.idle.add(since_ack);
            if since_ack > self.longest_idle {
                self.longest_idle = since_ack;
                self.frames.longest_pause = Some(packet.number);
            }
            if since_ack >= MIN_RESTART_PAUSE {
                self.before_pause = Some(self.previous_flight.max(self.round.flight));
            }
            return true;
        }
        if self.last_is_short {
            self.starved.add(gap.min(since_ack));
            self.round.is_idle = true;
            self.windows.limited();
        }
        false
    }
}
