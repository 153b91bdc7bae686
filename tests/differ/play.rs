//! One exchange, played step by step against a TCP stack.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use airwire::segment;
use airwire::time::Duration;

use crate::observed::Observed;
use crate::peer::{Peer, View, stream_byte};
use crate::plan::{Action, Call, Opening, Plan};

/// Our side's address, for the kernel and for airtcp.
pub(crate) const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Size of the send buffer in bytes. Linux counts the memory of segments, airtcp their data, so the buffer must
/// never be full.
pub(crate) const SEND_BUFFER: usize = 8 << 20;

/// The result of a call, from the worst to the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Outcome {
    /// The data read differs from the data that the peer sent.
    Wrong,
    /// The error itself is not compared, because POSIX and airtcp have different errors.
    Failed,
    WouldBlock,
    Count(usize),
}

/// A TCP stack with an application that makes the calls of the plan.
pub(crate) trait Stack {
    /// Delivers a segment.
    fn deliver(&mut self, packet: &[u8]);
    /// Makes a call. Data that was read is stored in `read`.
    fn call(&mut self, call: Call, read: &mut Vec<u8>) -> Outcome;
    /// The word for the state of the connection, if it is known.
    fn state(&self) -> Option<&'static str>;
}

/// An event, and the segments that our side sent before the next event.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Time since the exchange began.
    pub at: Duration,
    pub text: String,
    pub words: Vec<String>,
    pub outcome: Option<Outcome>,
    pub state: Option<&'static str>,
    pub segments: Vec<Observed>,
    /// The peer's view at the end of the step.
    pub view: View,
}

impl Step {
    /// Returns this step as if its event had been played at `at`.
    pub(crate) fn played_at(&self, at: Duration) -> Self {
        let mut step = Self { at, ..self.clone() };
        for segment in &mut step.segments {
            segment.at = at + (segment.at - self.at);
        }
        step
    }

    /// Returns this step with the echoed timestamps of `other`.
    pub(crate) fn with_echoes_of(mut self, other: &Self) -> Self {
        for (segment, other) in self.segments.iter_mut().zip(&other.segments) {
            segment.ecr = other.ecr;
        }
        self
    }
}

/// The record of an exchange.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub steps: Vec<Step>,
    /// Time at which the recording ended.
    pub end: Duration,
    /// Whether our side has retransmitted data.
    pub retransmitted: bool,
}

/// A running exchange.
pub(crate) struct Play {
    pub plan: Arc<Plan>,
    pub peer: Peer,
    pub local: SocketAddr,
    pub record: Record,
    /// Offset of the next byte that the application reads.
    read: u64,
}

impl Play {
    pub(crate) fn new(plan: Arc<Plan>, peer: SocketAddr, local: SocketAddr) -> Self {
        let opening = match plan.opening {
            Opening::Passive => "listen",
            Opening::Active => "connect",
        };
        let peer = Peer::new(peer, &plan);
        let first = Step {
            at: Duration::ZERO,
            text: format!("{opening}()"),
            words: vec![format!("call:{opening}")],
            outcome: None,
            state: None,
            segments: Vec::new(),
            view: peer.view(),
        };
        let record = Record { steps: vec![first], end: Duration::ZERO, retransmitted: false };
        Self { plan, peer, local, record, read: 1 }
    }

    /// The time between the last event and the next one, or the end.
    pub(crate) fn gap(&self) -> Duration {
        self.plan.events.get(self.record.steps.len() - 1).map_or(self.plan.silence, |event| event.gap)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.record.steps.len() > self.plan.events.len()
    }

    /// Plays the next event.
    pub(crate) fn step(&mut self, now: Duration, stack: &mut impl Stack) {
        let event = self.plan.events[self.record.steps.len() - 1].clone();
        let mut step = Step {
            at: now,
            text: String::new(),
            words: Vec::new(),
            outcome: None,
            state: stack.state(),
            segments: Vec::new(),
            view: self.peer.view(),
        };
        let mut packet = None;
        match event.action {
            Action::Peer(segment) => match self.peer.build(&segment, now, self.local) {
                Some(built) => {
                    step.text = format!("< {}", built.text);
                    step.words = built.words;
                    step.words.push(format!("event:{}", crate::words::segment(&segment)));
                    packet = Some(built.packet);
                }
                None => step.text = "(nothing to send)".to_owned(),
            },
            Action::Call(call) => {
                let mut data = Vec::new();
                let mut outcome = stack.call(call, &mut data);
                if data.iter().zip(self.read..).any(|(byte, at)| *byte != stream_byte(at)) {
                    outcome = Outcome::Wrong;
                }
                self.read += data.len() as u64;
                step.text = format!("{} = {outcome:?}", crate::words::call(&call));
                step.words.push(crate::words::call_word(&call).to_owned());
                step.outcome = Some(outcome);
            }
        }
        step.view = self.peer.view();
        self.record.steps.push(step);
        if let Some(packet) = packet {
            stack.deliver(&packet);
        }
    }

    /// Records a segment that our side has sent.
    pub(crate) fn observe(&mut self, now: Duration, prompt: bool, packet: &[u8]) {
        let Ok(segment) = segment::parse(packet) else { return };
        let segment = self.peer.observe(now, prompt, &segment, packet);
        self.record.retransmitted = self.peer.retransmitted;
        // `new` adds the first step, so there always is one.
        if let Some(step) = self.record.steps.last_mut() {
            step.segments.push(segment);
            step.view = self.peer.view();
        }
    }
}
