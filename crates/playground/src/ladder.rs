//! The data of the ladder diagram: the packets between the two hosts of a flow.

use airlink::packet::Direction;
use airtcp_report::html::columns::column;
use airtcp_sim::world::{Content, Passage};
use airwire::Cause;
use airwire::time::Instant;
use serde_json::{Value, json};

/// The path of the packets of one flow.
#[derive(Clone, Copy)]
pub(crate) struct Ladder {
    /// Direction of the data. ACKs have the other direction.
    pub(crate) direction: Direction,
    /// Number of stages.
    pub(crate) stages: usize,
    /// Time at which the first packet left, in nanoseconds. The columns count from this time.
    pub(crate) origin: i64,
}

impl Ladder {
    /// Returns the packets as columns for the page's script. They must be in the order in which they left
    /// their hosts.
    pub(crate) fn columns(&self, passages: &[Passage]) -> Value {
        let of = |value: &dyn Fn(&Passage) -> i64| column(passages.iter().map(value));
        json!({
            "sent": of(&|passage| self.micros(passage.sent)),
            "ended": of(&|passage| self.micros(passage.ended)),
            "ack": of(&|passage| i64::from(matches!(passage.content, Content::Ack { .. }))),
            "start": of(&|passage| match passage.content {
                Content::Data { offset, .. } => offset as i64,
                Content::Ack { ack } => ack as i64,
            }),
            "outcome": of(&outcome),
            "depth": of(&|passage| self.depth(passage)),
        })
    }

    fn micros(&self, at: Instant) -> i64 {
        (at.as_nanos() as i64 - self.origin).div_euclid(1000)
    }

    /// Returns the part of the path that a packet passed, in percent. A stage drops packets in its middle.
    fn depth(&self, passage: &Passage) -> i64 {
        let Some(stage) = passage.stage else { return 100 };
        let is_data = matches!(passage.content, Content::Data { .. });
        let is_down = is_data == (self.direction == Direction::Down);
        let passed = if is_down { stage } else { self.stages.saturating_sub(stage + 1) };
        ((2 * passed + 1) * 50 / self.stages.max(1)) as i64
    }
}

/// Returns the code of an outcome. The page's script has the same list.
fn outcome(passage: &Passage) -> i64 {
    match passage.why.map(|why| why.cause()) {
        None => 0,
        Some(Some(Cause::Congestion)) => 1,
        Some(Some(Cause::Radio)) => 2,
        Some(None) => 3,
    }
}

#[cfg(test)]
mod tests {
    use airlink::stage::DropReason;

    use super::*;

    fn passage(content: Content, why: Option<DropReason>, stage: Option<usize>) -> Passage {
        let (sent, ended) = (Instant::from_millis(10), Instant::from_millis(30));
        Passage { flow: 0, content, sent, ended, why, stage }
    }

    #[test]
    fn drop_position_depends_on_packet_direction() {
        let data = Content::Data { offset: 1, len: 1448, copy: 1 };
        let ladder = |direction| Ladder { direction, stages: 2, origin: 0 };
        let depth = |direction, content, stage| {
            ladder(direction).depth(&passage(content, Some(DropReason::Loss), Some(stage)))
        };
        let ack = Content::Ack { ack: 1 };
        assert_eq!([0, 1].map(|stage| depth(Direction::Down, data, stage)), [25, 75]);
        assert_eq!([0, 1].map(|stage| depth(Direction::Down, ack, stage)), [75, 25]);
        assert_eq!([0, 1].map(|stage| depth(Direction::Up, data, stage)), [75, 25]);
        assert_eq!(ladder(Direction::Down).depth(&passage(data, None, None)), 100);
    }

    #[test]
    fn outcome_distinguishes_causes() {
        let ack = Content::Ack { ack: 1 };
        let codes = [None, Some(DropReason::QueueFull), Some(DropReason::Loss), Some(DropReason::TooLong)]
            .map(|why| outcome(&passage(ack, why, None)));
        assert_eq!(codes, [0, 1, 2, 3]);
    }
}
