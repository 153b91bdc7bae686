//! Facts of a connection that its two halves read, but do not own.

use super::fast_open::FastOpen;
use super::lifecycle::Lifecycle;
use super::negotiated::Negotiated;
use super::socket::{SocketOptions, State};
use crate::profile::Profile;

/// Facts that both halves read.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) profile: &'a Profile,
    pub(super) options: &'a SocketOptions,
    pub(super) negotiated: &'a Negotiated,
    pub(super) lifecycle: &'a Lifecycle,
    pub(super) fast_open: &'a FastOpen,
}

impl Context<'_> {
    pub(super) fn state(&self) -> State {
        self.lifecycle.state()
    }

    /// Returns true if the data of the peer's SYN was accepted and our SYN,ACK is not acknowledged yet.
    pub(super) fn is_open_early(&self) -> bool {
        self.state() == State::SynReceived && self.fast_open.is_server()
    }
}
