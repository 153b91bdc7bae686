//! Ground truth about packet losses, from the path's records. A sender cannot know it.

use airlink::stage::DropReason;
use airwire::Cause;
use airwire::time::Instant;

/// A sender's packet that occupied sequence space (data, SYN or FIN) and was dropped on the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dropped {
    /// Time of the drop.
    pub at: Instant,
    /// Time at which the packet left the sender.
    pub sent: Instant,
    /// Offset as in the decision trace: the SYN is at 0, the first byte of data at 1.
    pub offset: u64,
    /// Length in sequence space: the data, plus one for a SYN or FIN.
    pub len: u64,
    /// Number of the transmission; 1 is the first one of the data at `offset`.
    pub copy: u32,
    /// Reason given by the stage that dropped the packet.
    pub why: DropReason,
    /// Index of the stage in the path. `None`: the packet arrived damaged, and the receiver
    /// discarded it.
    pub stage: Option<usize>,
}

impl Dropped {
    /// Returns the cause. `None` if a stage refused the packet, so that neither a queue nor the
    /// radio link lost it.
    pub fn cause(&self) -> Option<Cause> {
        self.why.cause()
    }

    fn covers(&self, offset: u64) -> bool {
        (self.offset..self.offset + self.len).contains(&offset)
    }
}

/// The losses of one flow, in chronological order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Losses(Vec<Dropped>);

impl Losses {
    pub(super) const NONE: Self = Self(Vec::new());

    pub(super) fn push(&mut self, dropped: Dropped) {
        self.0.push(dropped);
    }

    /// Returns all losses, the earliest first.
    pub fn as_slice(&self) -> &[Dropped] {
        &self.0
    }

    /// Returns the number of losses with this cause.
    pub fn count(&self, cause: Cause) -> usize {
        self.0.iter().filter(|dropped| dropped.cause() == Some(cause)).count()
    }

    /// Returns the latest drop, up to and including `until`, of a packet that contains `offset`.
    pub fn why(&self, offset: u64, until: Instant) -> Option<&Dropped> {
        self.between(offset, None, until)
    }

    /// Like [`why`](Self::why), but considers only drops after `since`.
    pub fn between(&self, offset: u64, since: Option<Instant>, until: Instant) -> Option<&Dropped> {
        let before = self.0.partition_point(|dropped| dropped.at <= until);
        let after = since.map_or(0, |since| self.0.partition_point(|dropped| dropped.at <= since));
        self.0.get(after..before)?.iter().rfind(|dropped| dropped.covers(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(at: u64, offset: u64, copy: u32, why: DropReason) -> Dropped {
        let sent = Instant::from_millis(at - 1);
        Dropped { at: Instant::from_millis(at), sent, offset, len: 1000, copy, why, stage: Some(0) }
    }

    #[test]
    fn lookup_returns_latest_copy_dropped_before_time() {
        let losses = Losses(vec![
            dropped(10, 1, 1, DropReason::QueueFull),
            dropped(20, 1001, 1, DropReason::Outage),
            dropped(30, 1, 2, DropReason::Loss),
        ]);
        let why = |offset, at| losses.why(offset, Instant::from_millis(at)).map(|dropped| dropped.why);
        assert_eq!(why(1, 9), None, "not dropped yet");
        assert_eq!(why(1, 10), Some(DropReason::QueueFull));
        assert_eq!(why(1000, 29), Some(DropReason::QueueFull), "its last byte");
        assert_eq!(why(1, 30), Some(DropReason::Loss), "the retransmission");
        assert_eq!((why(1001, 99), why(2001, 99)), (Some(DropReason::Outage), None));
        let since = Some(Instant::from_millis(10));
        assert_eq!(
            losses.between(1, since, Instant::from_millis(29)),
            None,
            "that copy was dropped before the interval"
        );
    }

    #[test]
    fn refused_packet_has_no_loss_cause() {
        assert_eq!(dropped(1, 1, 1, DropReason::TooLong).cause(), None);
        assert_eq!(dropped(1, 1, 1, DropReason::RlcReset).cause(), Some(Cause::Radio));
        assert_eq!(dropped(1, 1, 1, DropReason::QueueFull).cause(), Some(Cause::Congestion));
    }
}
