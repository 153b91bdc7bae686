//! Facts of a connection that its two halves read, but do not own.
//!
//! The halves get them by one reference, because one argument for each fact costs more instructions.

use std::sync::Arc;

use super::fast_open::FastOpen;
use super::lifecycle::Lifecycle;
use super::negotiated::Negotiated;
use super::socket::{SocketOptions, State};
use crate::profile::Profile;

/// Facts of a connection that both halves read.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) profile: Arc<Profile>,
    pub(super) options: SocketOptions,
    pub(super) negotiated: Negotiated,
    pub(super) lifecycle: Lifecycle,
    pub(super) fast_open: FastOpen,
}

impl Context {
    pub(super) fn state(&self) -> State {
        self.lifecycle.state()
    }

    /// Returns true if the data of the peer's SYN was accepted and our SYN,ACK is not acknowledged yet.
    pub(super) fn is_open_early(&self) -> bool {
        self.state() == State::SynReceived && self.fast_open.is_server()
    }
}
