//! Where a sender stands with its losses: one value, and all that belongs to a state lives and dies with it.
//!
//! ```text
//!                 ECN echo, repaired by a probe
//!          Open ───────────────────────────────▶ Reduced
//!           │ ▲                                     │
//!      loss │ │ recover acknowledged, or a mistake  │ loss
//!           ▼ │                                     ▼
//!        Recovery ─────────────────────────────▶ Restarted
//!               timeout, collapse, restarting repair
//! ```
//!
//! [`MOVES`] is the whole list: the engine makes no other move, `airtcp explain` prints it, and docs/explanation/recovery.md has it
//! as a table, which a test compares.

use airwire::time::Instant;

/// The state of a sender's loss recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Episode {
    /// No loss is being repaired.
    Open(Memory),
    /// The window was reduced although nothing is missing: for an ECN echo (RFC 3168 §6.1.2), or for a loss that a
    /// probe has repaired.
    Reduced,
    /// Fast recovery, until `recover` is acknowledged (Reno: until the first new ACK).
    Recovery(FastRecovery),
    /// Going back over the window, until `recover` is acknowledged.
    Restarted(Restart),
}

/// What is left of the last loss event when no loss is being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Memory {
    /// Nothing.
    #[default]
    Nothing,
    /// Reno has left an event on the radio before its end: this was cwnd when the event began. A further loss before
    /// `recover` belongs to it.
    KeptWindow(f64),
    /// ns-2's NewReno knows by the inflation that it is in fast recovery. If there was none when the event ended, the
    /// duplicate ACKs after the third still inflate the window, by so many segments until now. A new ACK after that ends
    /// it.
    Inflating(f64),
}

/// Fast recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastRecovery {
    /// Temporary inflation by duplicate ACKs, in segments (RFC 5681 §3.2 step 4), apart from cwnd.
    pub inflation: f64,
    /// What the event did to the window.
    pub window: EventWindow,
}

/// What a loss event did to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventWindow {
    /// It was reduced, and stands until the event ends.
    Reduced,
    /// It was reduced, and an answer that stands beside (PRR) decides it until the event ends.
    Regulated,
    /// Every hole that is known was put down to the radio.
    Kept(Kept),
}

/// The window of a loss event on the radio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// cwnd when the event began, and when it ends.
    pub cwnd: f64,
    /// The hole that was put down to the radio last, until it is sent again. Every other one may turn out to be
    /// congestion.
    pub judged: Option<u64>,
}

/// What the sender went back for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Restart {
    /// The retransmission timer.
    Timeout(AfterTimeout),
    /// A fast retransmit of a repair that knows no fast recovery (Tahoe).
    FastRetransmit {
        /// Whether the first segment of the event has still to leave.
        first: bool,
    },
    /// Too much was lost for a repair.
    Collapse {
        /// Nothing leaves before this. `None`: it has passed.
        until: Option<Instant>,
        /// Whether the first segment of the event has still to leave.
        first: bool,
    },
}

/// What a timeout did to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterTimeout {
    /// It was reduced to the loss window.
    Reduced,
    /// A mark puts the timeout down to the radio, and the recipe has `marked-timeout`: the window stays. Nothing says
    /// when to send, so that each ACK lets two segments out at most, as in slow start.
    Kept,
}

/// The name of an [`Episode`], without what it owns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// No loss is being repaired.
    Open,
    /// The window was reduced; nothing is missing.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// Going back after a timeout, a collapse, or a fast retransmit that restarts.
    Restarted,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Open, Self::Reduced, Self::Recovery, Self::Restarted];

    /// The word for it in traces, reports and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Reduced => "reduced",
            Self::Recovery => "recovery",
            Self::Restarted => "restarted",
        }
    }

    /// What it means, in one line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Open => "no loss is being repaired",
            Self::Reduced => "the window was reduced, and no segment is missing",
            Self::Recovery => {
                "fast recovery: lost segments are retransmitted, new ones replace those that arrived"
            }
            Self::Restarted => "restart: everything that the receiver has not reported is retransmitted",
        }
    }
}

/// What moves a sender from one state to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cue {
    /// A loss was found without a timeout, and the repair has fast recovery.
    Loss,
    /// The same, and the repair starts over from one segment (Tahoe).
    RestartingLoss,
    /// Too much is lost for a repair (TCP-PR).
    Collapse,
    /// The retransmission timer fired.
    Timeout,
    /// Duplicate ACKs after a timeout say that the network delivers (Fast Timeout).
    TimeoutWithDuplicates,
    /// An ECN echo.
    EcnEcho,
    /// A probe has repaired a loss (RACK-TLP).
    RepairedByProbe,
    /// The event is over: `recover` is acknowledged or, for Reno, anything new.
    Acknowledged,
    /// The last reduction was a mistake.
    Mistake,
}

impl Cue {
    /// The word for it, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::RestartingLoss => "restarting-loss",
            Self::Collapse => "collapse",
            Self::Timeout => "timeout",
            Self::TimeoutWithDuplicates => "timeout-with-duplicates",
            Self::EcnEcho => "ecn-echo",
            Self::RepairedByProbe => "repaired-by-probe",
            Self::Acknowledged => "acknowledged",
            Self::Mistake => "mistake",
        }
    }

    /// As a person says it, and as the trace of decisions does.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Loss => "a loss detected without a timeout",
            Self::RestartingLoss => "a loss detected without a timeout, with a repair that restarts",
            Self::Collapse => "too many losses for fast recovery",
            Self::Timeout => "a timeout",
            Self::TimeoutWithDuplicates => "duplicate ACKs after a timeout",
            Self::EcnEcho => "an ECN echo",
            Self::RepairedByProbe => "a loss repaired by a probe",
            Self::Acknowledged => "an ACK that ends the episode",
            Self::Mistake => "the last reduction was spurious",
        }
    }
}

/// A move from one state to another, and what causes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Move {
    /// The state before.
    pub from: Phase,
    /// What happens.
    pub cue: Cue,
    /// The state after.
    pub to: Phase,
}

/// Every move that there is.
pub const MOVES: &[Move] = &{
    use Phase::{Open, Recovery, Reduced, Restarted};
    const fn to(from: Phase, cue: Cue, to: Phase) -> Move {
        Move { from, cue, to }
    }
    [
        to(Open, Cue::Loss, Recovery),
        to(Open, Cue::RestartingLoss, Restarted),
        to(Open, Cue::Collapse, Restarted),
        to(Open, Cue::Timeout, Restarted),
        to(Open, Cue::EcnEcho, Reduced),
        to(Open, Cue::RepairedByProbe, Reduced),
        to(Reduced, Cue::Loss, Recovery),
        to(Reduced, Cue::RestartingLoss, Restarted),
        to(Reduced, Cue::Collapse, Restarted),
        to(Reduced, Cue::Timeout, Restarted),
        to(Reduced, Cue::Acknowledged, Open),
        to(Reduced, Cue::Mistake, Open),
        to(Recovery, Cue::Loss, Recovery),
        to(Recovery, Cue::RestartingLoss, Restarted),
        to(Recovery, Cue::Collapse, Restarted),
        to(Recovery, Cue::Timeout, Restarted),
        to(Recovery, Cue::Acknowledged, Open),
        to(Recovery, Cue::Mistake, Open),
        to(Restarted, Cue::Loss, Recovery),
        to(Restarted, Cue::RestartingLoss, Restarted),
        to(Restarted, Cue::Collapse, Restarted),
        to(Restarted, Cue::Timeout, Restarted),
        to(Restarted, Cue::TimeoutWithDuplicates, Recovery),
        to(Restarted, Cue::Acknowledged, Open),
        to(Restarted, Cue::Mistake, Open),
    ]
};

/// The tables of states and moves in docs/explanation/recovery.md: a test holds the document to them.
pub fn markdown() -> String {
    let mut table = String::from("| state | |\n|---|---|\n");
    for phase in Phase::ALL {
        table += &format!("| `{}` | {} |\n", phase.name(), phase.meaning());
    }
    table += "\n| from | to | when |\n|---|---|---|\n";
    for (from, to) in Phase::ALL.into_iter().flat_map(|from| Phase::ALL.map(|to| (from, to))) {
        let moves = MOVES.iter().filter(|it| (it.from, it.to) == (from, to));
        let cues: Vec<_> = moves.map(|it| it.cue.text()).collect();
        if !cues.is_empty() {
            table += &format!("| `{}` | `{}` | {} |\n", from.name(), to.name(), cues.join("; "));
        }
    }
    table
}

impl Default for Episode {
    fn default() -> Self {
        Self::Open(Memory::Nothing)
    }
}

impl Episode {
    /// Its name.
    pub const fn phase(&self) -> Phase {
        match self {
            Self::Open(_) => Phase::Open,
            Self::Reduced => Phase::Reduced,
            Self::Recovery(_) => Phase::Recovery,
            Self::Restarted(_) => Phase::Restarted,
        }
    }

    /// Going back after a timeout that reduced the window: the timeout's answer says what later ACKs mean.
    pub(super) const fn is_after_timeout(&self) -> bool {
        matches!(self, Self::Restarted(Restart::Timeout(AfterTimeout::Reduced)))
    }

    /// The window that the event kept, if it was put down to the radio.
    pub const fn kept_window(&self) -> Option<f64> {
        match self {
            Self::Open(Memory::KeptWindow(cwnd)) => Some(*cwnd),
            Self::Recovery(FastRecovery { window: EventWindow::Kept(kept), .. }) => Some(kept.cwnd),
            _ => None,
        }
    }

    pub(super) const fn kept(&self) -> Option<&Kept> {
        match self {
            Self::Recovery(FastRecovery { window: EventWindow::Kept(kept), .. }) => Some(kept),
            _ => None,
        }
    }

    pub(super) fn kept_mut(&mut self) -> Option<&mut Kept> {
        match self {
            Self::Recovery(FastRecovery { window: EventWindow::Kept(kept), .. }) => Some(kept),
            _ => None,
        }
    }

    pub(super) fn recovery_mut(&mut self) -> Option<&mut FastRecovery> {
        match self {
            Self::Recovery(recovery) => Some(recovery),
            _ => None,
        }
    }

    pub(super) const fn inflation(&self) -> f64 {
        match self {
            Self::Recovery(FastRecovery { inflation, .. }) | Self::Open(Memory::Inflating(inflation)) => {
                *inflation
            }
            Self::Open(_) | Self::Reduced | Self::Restarted(_) => 0.0,
        }
    }

    /// No duplicate ACK has inflated the window.
    pub(super) fn deflate(&mut self) {
        match self {
            Self::Recovery(recovery) => recovery.inflation = 0.0,
            Self::Open(Memory::Inflating(_)) => *self = Self::default(),
            Self::Open(_) | Self::Reduced | Self::Restarted(_) => {}
        }
    }

    pub(super) const fn is_regulated(&self) -> bool {
        matches!(self, Self::Recovery(FastRecovery { window: EventWindow::Regulated, .. }))
    }

    /// Nothing leaves before this.
    pub(super) const fn held_until(&self) -> Option<Instant> {
        match self {
            Self::Restarted(Restart::Collapse { until, .. }) => *until,
            _ => None,
        }
    }

    /// Nothing is held back any longer.
    pub(super) fn let_go(&mut self) {
        if let Self::Restarted(Restart::Collapse { until, .. }) = self {
            *until = None;
        }
    }

    /// The first segment of an event that starts over leaves next.
    pub(super) fn first_mut(&mut self) -> Option<&mut bool> {
        match self {
            Self::Restarted(Restart::FastRetransmit { first } | Restart::Collapse { first, .. }) => {
                Some(first)
            }
            _ => None,
        }
    }
}

/// Duplicate ACKs since the last new one, and what they let out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// How many there were.
    pub dupacks: u32,
    /// Segments beyond the window that they allow under Limited Transmit (RFC 3042): one for each, but none for those
    /// that were counted before a timeout.
    pub room: u32,
    /// Segments that have left on that account.
    pub limited: u32,
}
