//! Which transmission window the peer is told to use (WINDOW, §9.2.2.11.3).

use std::collections::VecDeque;

use airwire::time::Instant;

use crate::rlc::umts::config::{ReceiverConfig, WindowAt};
use crate::rlc::umts::pdu::Sufi;

pub(super) struct Advertising {
    /// WSN that the peer was told. A STATUS PDU can be lost, so every report repeats it. `None`: it was told nothing.
    wsn: Option<u16>,
    /// It waits to be sent.
    queued: bool,
    /// What it will be told, the next one first.
    schedule: VecDeque<WindowAt>,
}

impl Advertising {
    pub(super) fn new(config: &ReceiverConfig) -> Self {
        Self {
            wsn: config.advertise_window,
            queued: config.advertise_window.is_some(),
            schedule: config.windows.iter().copied().collect(),
        }
    }

    /// `old` are the settings until now. What is scheduled and over stays as it is.
    pub(super) fn reconfigure(&mut self, now: Instant, old: &ReceiverConfig, new: &ReceiverConfig) {
        if new.advertise_window != old.advertise_window {
            // Whoever was told a window is told when it no longer holds.
            self.advertise(new.advertise_window.unwrap_or(old.window));
        }
        self.schedule = new.windows.iter().filter(|told| Instant::ZERO + told.at > now).copied().collect();
    }

    pub(super) fn advertise(&mut self, wsn: u16) {
        self.wsn = Some(wsn);
        self.queued = true;
    }

    /// §11.4.3 sets VT(WS) of the peer back to what is configured. Choice: it is told again.
    pub(super) fn reset(&mut self) {
        self.queued = self.wsn.is_some();
    }

    pub(super) fn is_queued(&self) -> bool {
        self.queued
    }

    /// The WINDOW, if it waits to be sent.
    pub(super) fn take(&mut self) -> Option<Sufi> {
        if std::mem::take(&mut self.queued) { self.sufi() } else { None }
    }

    /// The WINDOW that every report repeats.
    pub(super) fn sufi(&self) -> Option<Sufi> {
        self.wsn.map(|wsn| Sufi::Window { wsn })
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.schedule.front().map(|told| Instant::ZERO + told.at)
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        while self.next_deadline().is_some_and(|at| at <= now) {
            if let Some(told) = self.schedule.pop_front() {
                self.advertise(told.window);
            }
        }
    }
}
