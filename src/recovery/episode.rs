//! The state of a sender's loss recovery. One value contains all data that belongs to the state, so the data
//! ends with the state. The states have the names that Linux gives them (`TCP_CA_CWR`); traces and reports
//! show the names in parentheses.
//!
//! ```text
//!                 ECN echo, repaired by a probe
//!          Open ───────────────────────────────▶ Cwr (reduced)
//!           │ ▲                                     │
//!      loss │ │ recover acknowledged, or a mistake  │ loss
//!           ▼ │                                     ▼
//!        Recovery ─────────────────────────────▶ Loss (restarted)
//!               timeout, collapse, restarting repair
//! ```
//!
//! [`TRANSITIONS`] lists all transitions. The engine makes no others, `airtcp explain` prints them, and a test
//! compares them with the table in docs/explanation/recovery.md.

use airwire::time::Instant;

/// The state of a sender's loss recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Episode {
    /// No loss is being repaired.
    Open(AfterEpisode),
    /// The window was reduced although no segment is missing: for an ECN echo (RFC 3168 §6.1.2), or for a
    /// loss that a probe repaired.
    Cwr,
    /// Fast recovery, until `recover` is acknowledged (Reno: until the first new ACK).
    Recovery(FastRecovery),
    /// The sender retransmits from SND.UNA on until `recover` is acknowledged.
    Loss(Restart),
}

/// State that outlasts an episode, while no loss is being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum AfterEpisode {
    /// Nothing.
    #[default]
    Nothing,
    /// cwnd at the beginning of an episode on the radio link that Reno left before its end. A further loss
    /// before `recover` belongs to that episode.
    KeptWindow(f64),
    /// Inflation so far, in segments, after an episode that ended without inflation. ns-2's NewReno takes
    /// inflation as the sign of fast recovery, so duplicate ACKs after the third still inflate the window.
    /// The next new ACK stops this.
    Inflating(f64),
}

/// Fast recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastRecovery {
    /// Temporary inflation by duplicate ACKs, in segments (RFC 5681 §3.2 step 4). cwnd does not include it.
    pub inflation: f64,
    /// Effect of the episode on the window.
    pub window: EpisodeWindow,
}

/// Effect of an episode on the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EpisodeWindow {
    /// The window was reduced and stays until the episode ends.
    Reduced,
    /// The window was reduced, and an add-on (PRR) sets it until the episode ends.
    Regulated,
    /// All known holes were attributed to the radio link, or are an MTU probe.
    Kept(KeptWindow),
}

/// The window of an episode that is attributed to the radio link, or began with a lost MTU probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptWindow {
    /// cwnd at the beginning and at the end of the episode.
    pub cwnd: f64,
    /// The last hole that was attributed to the radio link, until it is retransmitted. Congestion may have
    /// caused any other hole.
    pub attributed_hole: Option<u64>,
    /// Whether the episode began with a lost MTU probe.
    pub for_mtu_probe: bool,
}

/// The reason for a restart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Restart {
    /// The retransmission timer fired.
    Timeout(AfterTimeout),
    /// A fast retransmission by a repair without fast recovery (Tahoe).
    FastRetransmit {
        /// Whether the first segment of the episode is still to be sent.
        first: bool,
    },
    /// Too many losses for fast recovery.
    Collapse {
        /// Nothing is sent before this time. `None` if it has passed.
        until: Option<Instant>,
        /// Whether the first segment of the episode is still to be sent.
        first: bool,
    },
}

/// Effect of a timeout on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterTimeout {
    /// The window was reduced to the loss window.
    Reduced,
    /// The window was reduced, and the timeout answer waits for evidence that data was lost (F-RTO).
    Undecided,
    /// The window stays, because the timeout was attributed to the radio link (`marked-timeout`, `oracle`).
    /// There is no ACK clock, so each ACK releases at most two segments, as in slow start.
    Kept,
}

/// The kind of an [`Episode`], without its data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum RecoveryState {
    /// No loss is being repaired. Linux: `TCP_CA_Open`, and `TCP_CA_Disorder` after duplicate ACKs.
    Open,
    /// The window was reduced, and no segment is missing. Linux: `TCP_CA_CWR`.
    #[cfg_attr(feature = "serde", serde(rename = "reduced"))]
    Cwr,
    /// Fast recovery. Linux: `TCP_CA_Recovery`.
    Recovery,
    /// Retransmission from SND.UNA on, after a timeout (Linux: `TCP_CA_Loss`), a collapse, or a fast
    /// retransmission without fast recovery.
    #[cfg_attr(feature = "serde", serde(rename = "restarted"))]
    Loss,
}

impl RecoveryState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Open, Self::Cwr, Self::Recovery, Self::Loss];

    /// Returns the name in traces, reports and tables.
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns the meaning in one line.
    pub const fn meaning(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Open => ("open", "no loss is being repaired"),
            Self::Cwr => ("reduced", "the window was reduced, and no segment is missing"),
            Self::Recovery => (
                "recovery",
                "fast recovery: lost segments are retransmitted, new ones replace those that arrived",
            ),
            Self::Loss => {
                ("restarted", "restart: everything that the receiver has not reported is retransmitted")
            }
        }
    }
}

/// A condition for a transition between states.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Condition {
    /// A loss was detected without a timeout, and the repair has fast recovery.
    Loss,
    /// A loss was detected without a timeout, and the repair restarts from one segment (Tahoe).
    RestartingLoss,
    /// Too many losses for fast recovery (TCP-PR).
    Collapse,
    /// The retransmission timer fired.
    Timeout,
    /// Duplicate ACKs after a timeout show that the network delivers segments (Fast Timeout).
    TimeoutWithDuplicates,
    /// An ECN echo.
    EcnEcho,
    /// A probe repaired a loss (RACK-TLP).
    RepairedByProbe,
    /// The episode is over: `recover` is acknowledged or, for Reno, any new data.
    Acknowledged,
    /// The last reduction was spurious.
    Mistake,
}

impl Condition {
    /// Returns the name for machine-readable output.
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns the text for users, which the decision trace also contains.
    pub const fn text(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Loss => ("loss", "a loss detected without a timeout"),
            Self::RestartingLoss => {
                ("restarting-loss", "a loss detected without a timeout, with a repair that restarts")
            }
            Self::Collapse => ("collapse", "too many losses for fast recovery"),
            Self::Timeout => ("timeout", "a timeout"),
            Self::TimeoutWithDuplicates => ("timeout-with-duplicates", "duplicate ACKs after a timeout"),
            Self::EcnEcho => ("ecn-echo", "an ECN echo"),
            Self::RepairedByProbe => ("repaired-by-probe", "a loss repaired by a probe"),
            Self::Acknowledged => ("acknowledged", "an ACK that ends the episode"),
            Self::Mistake => ("mistake", "the last reduction was spurious"),
        }
    }
}

/// A transition between two states, and its condition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Transition {
    /// The state before.
    pub from: RecoveryState,
    /// The condition.
    pub condition: Condition,
    /// The state after.
    pub to: RecoveryState,
}

/// All transitions.
pub const TRANSITIONS: &[Transition] = &{
    use RecoveryState::{Cwr, Loss, Open, Recovery};
    const fn to(from: RecoveryState, condition: Condition, to: RecoveryState) -> Transition {
        Transition { from, condition, to }
    }
    [
        to(Open, Condition::Loss, Recovery),
        to(Open, Condition::RestartingLoss, Loss),
        to(Open, Condition::Collapse, Loss),
        to(Open, Condition::Timeout, Loss),
        to(Open, Condition::EcnEcho, Cwr),
        to(Open, Condition::RepairedByProbe, Cwr),
        to(Cwr, Condition::Loss, Recovery),
        to(Cwr, Condition::RestartingLoss, Loss),
        to(Cwr, Condition::Collapse, Loss),
        to(Cwr, Condition::Timeout, Loss),
        to(Cwr, Condition::Acknowledged, Open),
        to(Cwr, Condition::Mistake, Open),
        to(Recovery, Condition::Loss, Recovery),
        to(Recovery, Condition::RestartingLoss, Loss),
        to(Recovery, Condition::Collapse, Loss),
        to(Recovery, Condition::Timeout, Loss),
        to(Recovery, Condition::Acknowledged, Open),
        to(Recovery, Condition::Mistake, Open),
        to(Loss, Condition::Loss, Recovery),
        to(Loss, Condition::RestartingLoss, Loss),
        to(Loss, Condition::Collapse, Loss),
        to(Loss, Condition::Timeout, Loss),
        to(Loss, Condition::TimeoutWithDuplicates, Recovery),
        to(Loss, Condition::Acknowledged, Open),
        to(Loss, Condition::Mistake, Open),
    ]
};

/// Returns the tables of states and transitions in docs/explanation/recovery.md. A test compares document and
/// tables.
pub fn markdown() -> String {
    let mut table = String::from("| state | |\n|---|---|\n");
    for state in RecoveryState::ALL {
        table += &format!("| `{}` | {} |\n", state.name(), state.meaning());
    }
    table += "\n| from | to | when |\n|---|---|---|\n";
    for (from, to) in RecoveryState::ALL.into_iter().flat_map(|from| RecoveryState::ALL.map(|to| (from, to)))
    {
        let transitions = TRANSITIONS.iter().filter(|it| (it.from, it.to) == (from, to));
        let conditions: Vec<_> = transitions.map(|it| it.condition.text()).collect();
        if !conditions.is_empty() {
            table += &format!("| `{}` | `{}` | {} |\n", from.name(), to.name(), conditions.join("; "));
        }
    }
    table
}

impl Default for Episode {
    fn default() -> Self {
        Self::Open(AfterEpisode::Nothing)
    }
}

impl Episode {
    /// Returns the kind of the state.
    pub const fn state(&self) -> RecoveryState {
        match self {
            Self::Open(_) => RecoveryState::Open,
            Self::Cwr => RecoveryState::Cwr,
            Self::Recovery(_) => RecoveryState::Recovery,
            Self::Loss(_) => RecoveryState::Loss,
        }
    }

    /// Returns whether the sender is restarting after a timeout that reduced the window. The timeout answer
    /// then decides what later ACKs mean.
    pub(super) const fn is_after_timeout(&self) -> bool {
        matches!(self, Self::Loss(Restart::Timeout(AfterTimeout::Reduced | AfterTimeout::Undecided)))
    }

    pub(super) const fn is_undecided(&self) -> bool {
        matches!(self, Self::Loss(Restart::Timeout(AfterTimeout::Undecided)))
    }

    /// Ends the wait of the timeout answer: data was lost.
    pub(super) fn decide(&mut self) {
        if self.is_undecided() {
            *self = Self::Loss(Restart::Timeout(AfterTimeout::Reduced));
        }
    }

    /// Returns the window that an episode attributed to the radio link has kept.
    pub const fn kept_window(&self) -> Option<f64> {
        match self {
            Self::Open(AfterEpisode::KeptWindow(cwnd)) => Some(*cwnd),
            Self::Recovery(FastRecovery { window: EpisodeWindow::Kept(kept), .. }) => Some(kept.cwnd),
            _ => None,
        }
    }

    pub(super) const fn kept(&self) -> Option<&KeptWindow> {
        match self {
            Self::Recovery(FastRecovery { window: EpisodeWindow::Kept(kept), .. }) => Some(kept),
            _ => None,
        }
    }

    pub(super) fn kept_mut(&mut self) -> Option<&mut KeptWindow> {
        match self {
            Self::Recovery(FastRecovery { window: EpisodeWindow::Kept(kept), .. }) => Some(kept),
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
            Self::Recovery(FastRecovery { inflation, .. })
            | Self::Open(AfterEpisode::Inflating(inflation)) => *inflation,
            Self::Open(_) | Self::Cwr | Self::Loss(_) => 0.0,
        }
    }

    /// Removes the inflation.
    pub(super) fn deflate(&mut self) {
        match self {
            Self::Recovery(recovery) => recovery.inflation = 0.0,
            Self::Open(AfterEpisode::Inflating(_)) => *self = Self::default(),
            Self::Open(_) | Self::Cwr | Self::Loss(_) => {}
        }
    }

    pub(super) const fn is_regulated(&self) -> bool {
        matches!(self, Self::Recovery(FastRecovery { window: EpisodeWindow::Regulated, .. }))
    }

    /// Returns the time before which nothing is sent.
    pub(super) const fn paused_until(&self) -> Option<Instant> {
        match self {
            Self::Loss(Restart::Collapse { until, .. }) => *until,
            _ => None,
        }
    }

    /// Ends the pause.
    pub(super) fn end_pause(&mut self) {
        if let Self::Loss(Restart::Collapse { until, .. }) = self {
            *until = None;
        }
    }

    /// Returns the flag for the first segment of a restart, which is true until that segment is sent.
    pub(super) fn first_mut(&mut self) -> Option<&mut bool> {
        match self {
            Self::Loss(Restart::FastRetransmit { first } | Restart::Collapse { first, .. }) => Some(first),
            _ => None,
        }
    }
}

/// Duplicate ACKs since the last new ACK, and the segments that they released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Number of duplicate ACKs.
    pub dupacks: u32,
    /// Segments beyond the window that Limited Transmit allows (RFC 3042): one per duplicate ACK, except
    /// those counted before a timeout.
    pub room: u32,
    /// Segments sent under this allowance.
    pub limited: u32,
}
