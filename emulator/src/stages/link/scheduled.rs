//! A transmitter whose rate follows a schedule.

use airwire::time::{Duration, Instant};
use airwire::units::Rate;

use super::schedule::Schedule;
use super::wire::Wire;
use crate::packet::Packet;
use crate::stage::{Event, Outbox};
use crate::stages::pace::Pace;
use crate::stages::queue::Queue;

/// A transmitter that follows a schedule. A change of the rate applies to the rest of the packet in
/// transmission.
#[derive(Debug)]
pub(super) struct ScheduledTransmitter {
    schedule: Schedule,
    /// The pace at the last rate above 0.
    pace: Pace,
    /// The current rate. `None`: the transmitter is stopped.
    rate: Option<Rate>,
    /// The time for which `rate` was looked up. An idle transmitter looks it up when the next packet arrives.
    rate_time: Instant,
    sending: Option<(Progress, Packet)>,
    /// End of the previous transmission. If the next one begins at this time, fractions of nanoseconds carry
    /// over.
    free_since: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Progress {
    /// The transmission ends at this time if the rate does not change.
    Until(Instant),
    /// The transmitter is stopped. The rest of the packet takes this long at the previous rate.
    Stopped(Duration),
}

impl ScheduledTransmitter {
    /// `schedule` must contain rates.
    pub(super) fn new(schedule: Schedule) -> Self {
        let rate = schedule.rate_at(Instant::ZERO);
        // The placeholder rate has no effect: the first transmission sets the pace.
        let pace = Pace::new(rate.unwrap_or(Rate::bits_per_second(1)));
        Self { schedule, pace, rate, rate_time: Instant::ZERO, sending: None, free_since: Instant::ZERO }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.sending.is_some()
    }

    fn end(&self) -> Option<Instant> {
        if let Some((Progress::Until(end), _)) = self.sending { Some(end) } else { None }
    }

    fn next_rate_change(&self, queue: &Queue) -> Option<Instant> {
        (self.is_busy() || !queue.is_empty()).then(|| self.schedule.next_after(self.rate_time)).flatten()
    }

    pub(super) fn next_deadline(&self, queue: &Queue) -> Option<Instant> {
        self.end().into_iter().chain(self.next_rate_change(queue)).min()
    }

    /// Accepts a packet. All events before `now` must have been handled.
    pub(super) fn take(&mut self, now: Instant, packet: Packet, queue: &mut Queue, out: &mut Outbox) {
        if !self.is_busy() && queue.is_empty() {
            self.rate_time = now;
            self.rate = self.schedule.rate_at(now);
        }
        match self.rate {
            Some(rate) if !self.is_busy() => self.begin(now, rate, Duration::ZERO, packet, out),
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
            let (end, change) = (self.end(), self.next_rate_change(queue));
            let Some(at) = end.into_iter().chain(change).min().filter(|at| *at <= now) else { return };
            if end == Some(at) {
                if let Some((_, packet)) = self.sending.take() {
                    wire.send(at, packet, out);
                }
                self.free_since = at;
            }
            if change == Some(at) {
                self.change(at);
            }
            if let Some(rate) = self.rate.filter(|_| !self.is_busy())
                && let Some((waited, packet)) = queue.pop(at, out)
            {
                self.begin(at, rate, waited, packet, out);
            }
        }
    }

    fn change(&mut self, at: Instant) {
        self.rate_time = at;
        let rate = self.schedule.rate_at(at);
        if rate == self.rate {
            return;
        }
        self.rate = rate;
        let Some((progress, _)) = &mut self.sending else { return };
        let rest = match *progress {
            Progress::Until(end) => end - at,
            Progress::Stopped(rest) => rest,
        };
        *progress = match rate {
            Some(rate) => Progress::Until(at + self.pace.change(rate, rest)),
            None => Progress::Stopped(rest),
        };
    }
}
