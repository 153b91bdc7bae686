//! The transmission window that an entity advertises to its peer (WINDOW, §9.2.2.11.3).

use std::collections::VecDeque;

use airwire::time::Instant;

use crate::rlc::umts::config::{ReceiverConfig, WindowAt};
use crate::rlc::umts::pdu::Sufi;

pub(super) struct WindowAdvertisement {
    /// The advertised WSN. A STATUS PDU can be lost, so every report repeats it. `None` if no window has been
    /// advertised.
    wsn: Option<u16>,
    /// Whether the WINDOW waits to be sent.
    queued: bool,
    /// Windows to advertise later, in order.
    schedule: VecDeque<WindowAt>,
}

impl WindowAdvertisement {
    pub(super) fn new(config: &ReceiverConfig) -> Self {
        Self {
            wsn: config.advertise_window,
            queued: config.advertise_window.is_some(),
            schedule: config.windows.iter().copied().collect(),
        }
    }

    /// Replaces the settings `old` with `new`. Scheduled windows whose time has passed are skipped.
    pub(super) fn reconfigure(&mut self, now: Instant, old: &ReceiverConfig, new: &ReceiverConfig) {
        if new.advertise_window != old.advertise_window {
            // A peer that has received a window must learn that it is no longer valid.
            self.advertise(new.advertise_window.unwrap_or(old.window));
        }
        self.schedule =
            new.windows.iter().filter(|window| Instant::ZERO + window.at > now).copied().collect();
    }

    pub(super) fn advertise(&mut self, wsn: u16) {
        self.wsn = Some(wsn);
        self.queued = true;
    }

    /// §11.4.3 resets VT(WS) of the peer to the configured value. Choice: the window is advertised again.
    pub(super) fn reset(&mut self) {
        self.queued = self.wsn.is_some();
    }

    pub(super) fn is_queued(&self) -> bool {
        self.queued
    }

    /// Returns the WINDOW super-field if it waits to be sent.
    pub(super) fn take(&mut self) -> Option<Sufi> {
        if std::mem::take(&mut self.queued) { self.sufi() } else { None }
    }

    /// Returns the WINDOW super-field, which every report repeats.
    pub(super) fn sufi(&self) -> Option<Sufi> {
        self.wsn.map(|wsn| Sufi::Window { wsn })
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.schedule.front().map(|window| Instant::ZERO + window.at)
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        while self.next_deadline().is_some_and(|at| at <= now) {
            if let Some(window) = self.schedule.pop_front() {
                self.advertise(window.window);
            }
        }
    }
}
