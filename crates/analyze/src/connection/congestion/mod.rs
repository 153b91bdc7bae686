//! Names a sender's congestion control by replaying the known ones on the round trips of a connection.
//!
//! No packet names the congestion control, but a capture shows the window in each round trip ([`Round`]). Each
//! candidate predicts the window after each loss and its growth between losses from the observed RTTs, ACKs and
//! losses (`models`). `replay` measures the errors of these predictions. BBR, DCTCP and Hybla also leave certain
//! signs (`signs`). `decision` chooses the names.

mod decision;
mod models;
mod replay;
mod signs;
#[cfg(test)]
mod tests;

pub(super) use self::decision::identify;

/// How a round trip ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Round,
    /// Something other than the window limited the sender.
    Limited,
    /// A loss was detected without a timeout.
    Loss,
    Timeout,
}

/// The sender's window in a round trip, or until a loss. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) ended: u32,
    pub(super) lasted: u32,
    /// The maximum flight in bytes.
    pub(super) flight: u32,
    pub(super) acked: u32,
    /// 0 if unknown. Before a loss, the minimum and the maximum include the recovery.
    pub(super) min_rtt: u32,
    pub(super) mean_rtt: u32,
    pub(super) max_rtt: u32,
    pub(super) acks: u16,
    pub(super) event: Event,
}

/// The evidence of the congestion control of a sender in a capture.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) rounds: Vec<Round>,
    /// Bytes per segment.
    pub(super) segment: u32,
    pub(super) initial_segments: Option<u64>,
    /// The minimum RTT of the connection in microseconds, which may be shorter than in the rounds.
    pub(super) base_rtt: Option<u32>,
    /// The minimum for packets of any length, such as the handshake. A slow link takes longer for data.
    pub(super) shortest_rtt: Option<u32>,
    pub(super) syn_is_ecn_capable: bool,
}

/// A round in segments and seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    ended: f64,
    lasted: f64,
    window: f64,
    acked: f64,
    acks: f64,
    min_rtt: f64,
    mean_rtt: f64,
    max_rtt: f64,
}

impl Measured {
    fn new(round: &Round, segment: f64) -> Self {
        let seconds = |micros: u32| f64::from(micros) / 1e6;
        Self {
            ended: seconds(round.ended),
            lasted: seconds(round.lasted),
            window: f64::from(round.flight) / segment,
            acked: f64::from(round.acked) / segment,
            acks: round.acks.into(),
            min_rtt: seconds(round.min_rtt),
            mean_rtt: seconds(round.mean_rtt),
            max_rtt: seconds(round.max_rtt),
        }
    }
}
