//! The sender's loss recovery, as the capture shows it.

/// The loss recovery that is in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Recovery {
    #[default]
    None,
    /// Fast recovery, until `recover` is acknowledged.
    Fast {
        recover: u64,
        /// Whether a partial ACK has arrived and has not triggered a retransmission yet.
        partial: bool,
        /// Whether fast recovery began during the recovery after a timeout. The recovery after the timeout
        /// then continues in parallel.
        after_timeout: bool,
    },
    AfterTimeout {
        recover: u64,
    },
}

/// The recovery that a retransmission starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecoveryStart {
    FastRetransmit,
    Timeout,
}

impl Recovery {
    /// Returns the state after everything below `ack` was acknowledged.
    pub(super) fn acknowledged(self, ack: u64) -> Self {
        match self {
            Self::Fast { recover, after_timeout, .. } if ack < recover => {
                Self::Fast { recover, partial: true, after_timeout }
            }
            Self::AfterTimeout { recover } if ack < recover => self,
            _ => Self::None,
        }
    }

    pub(super) fn is_after_timeout(self) -> bool {
        self.after_timeout().is_some()
    }

    /// Returns the end of the recovery if it began with a timeout.
    pub(super) fn after_timeout(self) -> Option<u64> {
        match self {
            Self::AfterTimeout { recover } | Self::Fast { recover, after_timeout: true, .. } => Some(recover),
            _ => None,
        }
    }
}
