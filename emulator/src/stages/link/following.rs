//! A transmitter whose rate follows a schedule.

use airwire::time::{Duration, Instant};
use airwire::units::Rate;

use super::super::pace::Pace;
use super::super::queue::Queue;
use super::schedule::Schedule;
use super::wire::Wire;
use crate::packet::Packet;
use crate::stage::{Event, Outbox};

/// At each change the packet under transmission keeps what it has already sent.
#[derive(Debug)]
pub(super) struct Following {
    schedule: Schedule,
    /// Of the last line that had one.
    pace: Pace,
    /// `None`: nothing is sent.
    rate: Option<Rate>,
    /// The rate is that of this time; while nothing is to be sent it is looked up with the next packet.
    as_of: Instant,
    sending: Option<(Progress, Packet)>,
    /// When the one before ended: if the next one begins just then, fractions of nanoseconds carry over.
    free_since: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Progress {
    /// It is sent, and wholly on the wire at this time if the rate stays.
    Until(Instant),
    /// It stands still, with so long to go at the rate before.
    Standing(Duration),
}

impl Following {
    /// `schedule` has a rate.
    pub(super) fn new(schedule: Schedule) -> Self {
        let rate = schedule.rate_at(Instant::ZERO);
        // Where nothing has been sent, no time is left to be reckoned at this rate.
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

    /// A packet comes; everything before `now` has been done.
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

    /// Does what is due up to `now`, each step at its own time.
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
