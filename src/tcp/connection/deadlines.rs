//! Deadlines of a connection, and the order in which they are handled.

use airwire::time::{Instant, earlier};

use super::Connection;
use super::Parts;
use crate::tcp::sender::Timeout;

impl Connection {
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let cx = &self.cx;
        let lifecycle = earlier(self.cx.lifecycle.linger_deadline(), self.cx.lifecycle.keepalive_deadline());
        let halves = earlier(self.sender.deadline(cx), self.receiver.deadline());
        earlier(earlier(lifecycle, halves), self.sender.user_deadline(cx))
    }

    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        if self.cx.lifecycle.take_due_linger(now) {
            self.end(None);
            return;
        }
        let Parts { sender, receiver, statistics, cx, .. } = self.parts();
        // RFC 9293 §3.10.8: USER TIMEOUT.
        if sender.user_deadline(cx).is_some_and(|at| at <= now) {
            self.give_up();
            return;
        }
        receiver.handle_deadline(now, sender.rtt().rto().get());
        sender.handle_deadline(cx, statistics, now);
        if sender.take_due_rto(cx, now) {
            self.on_rto(now);
        }
        let Parts { sender, cx, .. } = self.parts();
        if sender.handle_persist(cx, now) {
            self.give_up();
        }
        if self.cx.lifecycle.take_due_keepalive(now) {
            let (is_idle, probes) = (self.sender.flight().is_empty(), self.sender.probes_sent());
            self.cx.lifecycle.on_keepalive(now, &self.cx.options, is_idle, probes);
        }
    }

    fn on_rto(&mut self, now: Instant) {
        self.cx.fast_open.on_timeout(self.sender.timeouts_in_row(self.state()));
        let Parts { sender, cx, .. } = self.parts();
        match sender.on_rto(cx, now) {
            Timeout::Nothing => {}
            Timeout::SendSyn => self.cx.lifecycle.send_syn(),
            Timeout::GiveUp => self.give_up(),
        }
    }

    fn give_up(&mut self) {
        self.cx.fast_open.on_given_up(self.sender.timeouts_in_row(self.state()));
        self.end(Some(self.cx.lifecycle.timed_out()));
    }
}
