//! A transmitter whose rate follows a schedule.

use airwire::time::{Duration, Instant};
use airwire::units::Rate;

use super::schedule::Schedule;
use super::wire::Wire;
use crate::packet::Packet;
use crate::stage::{Event, Outbox};
use crate::stages::pace::Pace;
use crate::stages::queue::Queue;

/// A transmitter that follows a schedule. When the rate changes, the part of a packet that was already sent
/// stays sent.
#[derive(Debug)]
pub(super) struct Following {
    schedule: Schedule,
    /// The pace at the last rate above 0.
    pace: Pace,
    /// The current rate. `None`: the transmitter is stopped.
    rate: Option<Rate>,
    /// The time for which `rate` was looked up. An idle transmitter looks it up when the next packet comes.
    as_of: Instant,
    sending: Option<(Progress, Packet)>,
    /// End of the previous transmission. If the next one begins at this time, fractions of nanoseconds carry
    /// over.
    free_since: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Progress {
    /// The transmission ends at this time if the rate does not change.
    Until(Instant),
    /// The transmitter is stopped. The rest of the packet would take this long at the previous rate.
    Standing(Duration),
}

impl Following {
    /// `schedule` must contain rates.
    pub(super) fn new(schedule: Schedule) -> Self {
        let rate = schedule.rate_at(Instant::ZERO);
        // The placeholder rate has no effect: the first transmission sets the pace.
        let pace = Pace::new(rate.unwrap_or(Rate::bits_per_second(1)));
        Self { schedule, pace, rate, as_of: Instant::ZERO, sending: None, free_since: Instant::ZERO }
    }

    pub(super) fn busy(&self) -> bool {
        self.sending.is_some()
    }

    fn end(&self) -> Option<Instant> {
        match self.sending {
            Some((Progress::Until(end), _)) => Some(end),
            Some((Progress::Standing(_), _)) | None => None,
        }
    }

    fn next_change(&self, queue: &Queue) -> Option<Instant> {
        (self.busy() || !queue.is_empty()).then(|| self.schedule.next_after(self.as_of)).flatten()
    }

    pub(super) fn next_deadline(&self, queue: &Queue) -> Option<Instant> {
        match (self.end(), self.next_change(queue)) {
            (Some(end), Some(change)) => Some(end.min(change)),
            (one, other) => one.or(other),
        }
    }

    /// Accepts a packet. All events before `now` must have been handled.
    pub(super) fn take(&mut self, now: Instant, packet: Packet, queue: &mut Queue, out: &mut Outbox) {
        if !self.busy() && queue.is_empty() {
            self.as_of = now;
            self.rate = self.schedule.rate_at(now);
        }
        match self.rate {
            Some(rate) if !self.busy() => self.begin(now, rate, Duration::ZERO, packet, out),
            _ => queue.push(now, packet, out),
        }
    }

    fn begin(&mut self, at: Instant, rate: Rate, waited: Duration, packet: Packet, out: &mut Outbox) {
        if self.free_since != at || self.pace.rate() != rate {
            self.pace = Pace::new(rate);
        }
        out.note(&packet, Event::Sent { waited });
        self.sending = Some((Progress::Until(at + self.pace.next(packet.len())), packet));
    }

    /// Handles all events up to `now`, each at its own time.
    pub(super) fn transmit(&mut self, now: Instant, queue: &mut Queue, wire: &mut Wire, out: &mut Outbox) {
        loop {
            let (end, change) = (self.end(), self.next_change(queue));
            let Some(at) = end.into_iter().chain(change).min().filter(|at| *at <= now) else { return };
            if end == Some(at) {
                if let Some((_, packet)) = self.sending.take() {
                    wire.launch(at, packet, out);
                }
                self.free_since = at;
            }
            if change == Some(at) {
                self.change(at);
            }
            if let Some(rate) = self.rate.filter(|_| !self.busy())
                && let Some((waited, packet)) = queue.pop(at, out)
            {
                self.begin(at, rate, waited, packet, out);
            }
        }
    }

    fn change(&mut self, at: Instant) {
        self.as_of = at;
        let rate = self.schedule.rate_at(at);
        if rate == self.rate {
            return;
        }
        self.rate = rate;
        let Some((progress, _)) = &mut self.sending else { return };
        *progress = match (*progress, rate) {
            (Progress::Until(end), Some(rate)) => Progress::Until(at + self.pace.change(rate, end - at)),
            (Progress::Standing(rest), Some(rate)) => Progress::Until(at + self.pace.change(rate, rest)),
            (Progress::Until(end), None) => Progress::Standing(end - at),
            (Progress::Standing(rest), None) => Progress::Standing(rest),
        };
    }
}
