//! Why packets were lost, from the path's own records: no sender can know it.

use airlink::stage::Why;
use airwire::Cause;
use airwire::time::Instant;

/// A sender's packet that occupied sequence space (data, SYN or FIN) and was dropped on the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dropped {
    /// When it was dropped.
    pub at: Instant,
    /// When it left the sender.
    pub sent: Instant,
    /// Counted as in the decision trace: the SYN is at 0, the first octet of data at 1.
    pub offset: u64,
    /// In sequence space: the octets of data, and one for a SYN or FIN.
    pub len: u64,
    /// 1 is the first transmission of what is at `offset`.
    pub copy: u32,
    /// What the stage that dropped it says.
    pub why: Why,
    /// The stage's index in the path. `None`: it arrived damaged, and the receiver threw it away.
    pub stage: Option<usize>,
}

impl Dropped {
    /// `None`: a stage refused the packet as it was; neither a queue nor the radio lost it.
    pub fn cause(&self) -> Option<Cause> {
        self.why.cause()
    }

    fn covers(&self, offset: u64) -> bool {
        (self.offset..self.offset + self.len).contains(&offset)
    }
}

/// The losses of one flow, in the order in which they happened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Losses(Vec<Dropped>);

impl Losses {
    pub(super) const NONE: Self = Self(Vec::new());

    pub(super) fn push(&mut self, dropped: Dropped) {
        self.0.push(dropped);
    }

    /// All of them, the earliest first.
    pub fn as_slice(&self) -> &[Dropped] {
        &self.0
    }

    /// How many had this cause.
    pub fn count(&self, cause: Cause) -> usize {
        self.0.iter().filter(|dropped| dropped.cause() == Some(cause)).count()
    }

    /// The latest drop of a packet with `offset` in it, up to and including `until`.
    pub fn why(&self, offset: u64, until: Instant) -> Option<&Dropped> {
        self.between(offset, None, until)
    }

    /// The same among the drops after `since`.
    pub fn between(&self, offset: u64, since: Option<Instant>, until: Instant) -> Option<&Dropped> {
        let before = self.0.partition_point(|dropped| dropped.at <= until);
        let after = since.map_or(0, |since| self.0.partition_point(|dropped| dropped.at <= since));
        self.0.get(after..before)?.iter().rfind(|dropped| dropped.covers(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(at: u64, offset: u64, copy: u32, why: Why) -> Dropped {
        let sent = Instant::from_millis(at - 1);
        Dropped { at: Instant::from_millis(at), sent, offset, len: 1000, copy, why, stage: Some(0) }
    }

    #[test]
    fn the_latest_copy_dropped_before_a_time_answers() {
        let losses = Losses(vec![
            dropped(10, 1, 1, Why::QueueFull),
            dropped(20, 1001, 1, Why::Outage),
            dropped(30, 1, 2, Why::Loss),
        ]);
        let why = |offset, at| losses.why(offset, Instant::from_millis(at)).map(|dropped| dropped.why);
        assert_eq!(why(1, 9), None, "not yet");
        assert_eq!(why(1, 10), Some(Why::QueueFull));
        assert_eq!(why(1000, 29), Some(Why::QueueFull), "its last octet");
        assert_eq!(why(1, 30), Some(Why::Loss), "the retransmission");
        assert_eq!((why(1001, 99), why(2001, 99)), (Some(Why::Outage), None));
        let since = Some(Instant::from_millis(10));
        assert_eq!(losses.between(1, since, Instant::from_millis(29)), None, "that one was before");
    }

    #[test]
    fn a_refused_packet_is_neither() {
        assert_eq!(dropped(1, 1, 1, Why::TooLong).cause(), None);
        assert_eq!(dropped(1, 1, 1, Why::RlcReset).cause(), Some(Cause::Radio));
        assert_eq!(dropped(1, 1, 1, Why::QueueFull).cause(), Some(Cause::Congestion));
    }
}
