//! Open-loop test of path and receiver: replays ns-2's recorded transmissions.

use crate::sink::Ack;
use crate::vector::{Flow, Vector};
use crate::world::{FlowSender, Segment, run};

/// Recorded times are rounded to microseconds. Times that result from recorded times are rounded too.
const TOLERANCE: f64 = 2.5e-6;

/// Slightly more than the rounding error. The ACK that caused a transmission triggers it if both times differ
/// by at most this margin. The order of the two events can decide whether a packet fits into a queue.
const SLACK: f64 = 0.6e-6;

struct Replay<'a> {
    flow: &'a Flow,
    sent: usize,
}

impl FlowSender for Replay<'_> {
    fn start(&mut self, now: f64) -> Vec<Segment> {
        self.due(now)
    }

    fn ack(&mut self, now: f64, _: &Ack) -> Vec<Segment> {
        self.due(now)
    }

    fn next_deadline(&self) -> Option<f64> {
        self.flow.tx.0.get(self.sent).map(|&(micros, _)| micros as f64 / 1e6 + SLACK)
    }

    fn deadline(&mut self, now: f64) -> Vec<Segment> {
        self.due(now)
    }
}

impl Replay<'_> {
    fn due(&mut self, now: f64) -> Vec<Segment> {
        let due = |&&(micros, _): &&(u64, u32)| micros as f64 / 1e6 <= now + SLACK;
        let numbers: Vec<u32> =
            self.flow.tx.0[self.sent..].iter().take_while(due).map(|&(_, number)| number).collect();
        self.sent += numbers.len();
        numbers.into_iter().map(|number| Segment { number, tsval: None, note: String::new() }).collect()
    }
}

/// Checks that the receivers send the ACKs that ns-2's receivers sent, at the same times.
pub(crate) fn check(vector: &Vector) -> Result<(), String> {
    let senders =
        vector.flows.iter().map(|flow| Box::new(Replay { flow, sent: 0 }) as Box<dyn FlowSender + '_>);
    let logs = run(vector, senders.collect());
    for (flow, log) in vector.flows.iter().zip(&logs) {
        let Some(recorded) = &flow.acks else { continue };
        for (index, (expected, (at, ack))) in recorded.0.iter().zip(&log.acks).enumerate() {
            let sack: Vec<_> =
                ack.sack.iter().map(|&(left, right)| (left as u32, right as u32 - 1)).collect();
            let late = at - expected.micros as f64 / 1e6;
            if (expected.ack, &expected.sack) != (ack.ack, &sack) || late.abs() > TOLERANCE {
                return Err(format!(
                    "flow {}, ACK {index}: ns-2 has {} {:?} at {:.6}, the model {} {sack:?} at {at:.6}",
                    flow.flow,
                    expected.ack,
                    expected.sack,
                    expected.micros as f64 / 1e6,
                    ack.ack,
                ));
            }
        }
        if recorded.0.len() != log.acks.len() {
            return Err(format!(
                "flow {}: {} ACKs instead of {}",
                flow.flow,
                log.acks.len(),
                recorded.0.len()
            ));
        }
    }
    Ok(())
}
