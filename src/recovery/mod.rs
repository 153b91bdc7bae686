//! Loss recovery, assembled from named algorithms. A sender's recovery consists of answers to six questions.
//! Each algorithm answers one question.
//!
//! | question | folder | trait | default answer |
//! |---|---|---|---|
//! | Is it lost? | [`detect`] | [`Detect`](detect::Detect) | three duplicate ACKs |
//! | Why was it lost? | [`attribute`] | [`Attribute`](attribute::Attribute) | always congestion |
//! | What to retransmit? | [`repair`] | [`Repair`](repair::Repair) | NewReno |
//! | How much may be in flight? | [`window`] | [`Window`](window::Window) | AIMD |
//! | What does a timeout mean? | [`timeout`] | [`Timeout`](timeout::Timeout) | restart from one segment |
//! | Was that a mistake? | [`undo`] | [`Undo`](undo::Undo) | nothing is undone |
//!
//! An answer decides and does not act: it receives a read-only [`View`] and returns a small value. Only the
//! engine applies decisions to the connection. It records every decision as a [`Decision`]; plots and tests
//! read this trace. The [`catalogue`] lists every algorithm and option by name, and a [`Recipe`] is the
//! selection that one sender uses.
//!
//! A recipe can have several loss detectors: a primary one, and additional ones that count when the primary
//! one reports nothing. It can also have judges, which only record why they think a segment was lost and do
//! not change the sender.
//!
//! # When answers are called
//!
//! For each ACK, in this order:
//!
//! 1. Estimators observe the ACK: [`Attribute::on_ack`](attribute::Attribute::on_ack),
//!    [`Window::observe`](window::Window::observe).
//! 2. After a timeout, [`Timeout::on_ack`](timeout::Timeout::on_ack) decides what the timeout meant. Then
//!    [`Undo::on_ack`](undo::Undo::on_ack) decides whether the last reduction was a mistake. Either can end
//!    the episode.
//! 3. In fast recovery, [`Repair::on_recovery_ack`](repair::Repair::on_recovery_ack) interprets the ACK, and
//!    [`Window::on_exit`](window::Window::on_exit) sets the window when recovery ends. Outside fast recovery,
//!    [`Window::on_ack`](window::Window::on_ack) opens the window.
//! 4. [`Detect::on_ack`](detect::Detect::on_ack) reports new losses. If a loss begins an episode,
//!    [`Attribute::cause`](attribute::Attribute::cause) names its cause and
//!    [`Repair::on_loss`](repair::Repair::on_loss) decides how the repair begins. If the cause is congestion,
//!    [`Window::on_loss`](window::Window::on_loss) reduces the window.
//! 5. In fast recovery, the add-on [`InRecovery::on_progress`](window::InRecovery::on_progress), if the
//!    recipe has one, sets the window from the losses that are now known.
//! 6. If a [model](window::Window::model) of the path controls the window, it runs last, in every state, with
//!    the delivery rate that the ACK shows ([`rate`]).
//!
//! When the retransmission timer fires, [`Timeout::on_timeout`](timeout::Timeout::on_timeout) decides what is
//! sent and [`Window::on_loss`](window::Window::on_loss) sets ssthresh. Whenever the window has room,
//! [`Repair::next`](repair::Repair::next) may name a segment to retransmit before new data is sent. `on_sent`
//! reports every transmission to the answers that keep state about them.
//!
//! # Custom answers
//!
//! Implement the question's trait, describe it in a [`Row`](catalogue::Row), and add the row to a recipe with
//! [`Recipe::with`]. For example, this window gives up less than half after a loss:
//!
//! ```
//! use airtcp::recovery::catalogue::{Build, Question, Row};
//! use airtcp::recovery::window::{Aimd, Loss, Reduction, Window};
//! use airtcp::recovery::{Ack, Recipe, View};
//!
//! #[derive(Debug, Default)]
//! struct Gentle {
//!     growth: Aimd,
//! }
//!
//! impl Window for Gentle {
//!     fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
//!         self.growth.on_ack(view, ack)
//!     }
//!
//!     fn on_loss(&mut self, view: &View<'_>, _loss: &Loss) -> Reduction {
//!         let kept = (0.8 * view.flight_size()).max(2.0);
//!         Reduction { cwnd: kept, ssthresh: kept }
//!     }
//!
//!     fn on_exit(&mut self, view: &View<'_>) -> f64 {
//!         view.cc.ssthresh
//!     }
//! }
//!
//! static GENTLE: Row = Row::answer(
//!     "gentle",
//!     Build::Window(|_| Box::<Gentle>::default()),
//!     "keeps 0.8 of the window after a loss",
//!     "an example",
//! );
//!
//! let recipe = "sack+limited-transmit".parse::<Recipe>()?.with(&GENTLE)?;
//! assert_eq!(recipe.to_string(), "sack+limited-transmit+gentle");
//! assert_eq!(recipe.answer(Question::Window).map(|row| row.name), Some("gentle"));
//! // Another answer to the same question contradicts it.
//! assert!("cubic".parse::<Recipe>()?.with(&GENTLE).is_err());
//! # Ok::<(), airtcp::recovery::RecipeError>(())
//! ```
//!
//! An answer that belongs to the library is a file in its question's folder and a row in the catalogue.

pub mod attribute;
pub mod catalogue;
pub mod confusion;
mod decision;
pub mod detect;
pub(crate) mod engine;
pub mod episode;
pub mod inputs;
pub mod parameter;
pub mod rate;
mod recipe;
pub mod repair;
mod spurious;
#[cfg(test)]
pub(crate) mod testing;
pub mod timeout;
mod transitions;
mod truth;
pub mod undo;
pub mod window;

use airwire::segment::Flags;
use airwire::time::{Duration, Instant};
pub use decision::{Decision, What};
pub(crate) use engine::Path;
pub use engine::{Counters, Recovery};
pub use episode::{Condition, Disorder, Episode, RecoveryState, TRANSITIONS, Transition};
pub use inputs::{Inputs, Lack};
pub use recipe::{Named, Recipe, RecipeError};
pub use truth::Truth;

use crate::flight::{Amount, Delivery, Flight, Originals};
use crate::profile::RecoveryRules;
use crate::profile::recovery::Accounting;
use crate::rtt::RttEstimator;

/// The congestion state of one connection. Windows are in segments. Only the engine modifies it.
#[derive(Clone, Debug)]
pub struct Congestion {
    /// The congestion window, without inflation.
    pub cwnd: f64,
    /// The slow-start threshold; infinite until something sets it.
    pub ssthresh: f64,
    /// State of loss recovery.
    pub episode: Episode,
    /// Duplicate ACKs since the last new ACK.
    pub disorder: Disorder,
    /// Estimated number of segments that the last new ACK covered and whose arrival earlier duplicate ACKs
    /// had already reported. Zero with a scoreboard, which knows the exact number.
    pub announced: u32,
    /// `recover` of RFC 6582 and RecoveryPoint of RFC 6675: one past the highest offset sent when the current
    /// or last episode began. `None` before the first episode.
    pub recover: Option<u64>,
    /// The event that began the last episode. `None` before the first episode.
    pub last_entry: Option<Entered>,
    /// SND.UNA before the last new ACK (RFC 6582 §4.1, `prev_highest_ack`).
    pub previous_una: u64,
    /// TSecr of the last new ACK (RFC 6582 §4.2). `None`: it had no timestamps.
    pub echoed: Option<u32>,
    /// Timestamp of the newest transmission of the last segment that this ACK acknowledged (RFC 6582 §4.2).
    pub acked_tsval: Option<u32>,
    /// Consecutive timeouts without a new ACK.
    pub timeouts_in_row: u32,
    /// Number of them while the peer's window was open (icsk_retransmits).
    pub open_timeouts: u32,
    /// Largest flight since `usage_seq` was set, in segments (for `GrowthLimit::TwiceThePeak`).
    pub peak_flight: f64,
    /// Whether the congestion window limited that flight.
    pub cwnd_limited: bool,
    /// Offset whose acknowledgment restarts the measurement of `peak_flight` and `cwnd_limited`.
    pub usage_seq: u64,
    /// Use of the window while something else limits the sender.
    pub usage: Usage,
}

/// How much of the window a sender uses (for `AfterIdle::Decay`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Usage {
    /// The last time at which the window limited the sender, opened or was reduced (snd_cwnd_stamp).
    pub since: Instant,
    /// Largest flight at the end of a burst after `since`, in segments (snd_cwnd_used).
    pub most: f64,
    /// A segment was sent that has not been considered yet.
    pub is_new: bool,
}

impl Default for Usage {
    fn default() -> Self {
        Self { since: Instant::ZERO, most: 0.0, is_new: false }
    }
}

impl Default for Congestion {
    /// Returns the state before the handshake.
    fn default() -> Self {
        Self {
            cwnd: 1.0,
            ssthresh: f64::INFINITY,
            episode: Episode::default(),
            disorder: Disorder::default(),
            announced: 0,
            recover: None,
            last_entry: None,
            previous_una: 0,
            echoed: None,
            acked_tsval: None,
            timeouts_in_row: 0,
            open_timeouts: 0,
            peak_flight: 0.0,
            cwnd_limited: false,
            usage_seq: 0,
            usage: Usage::default(),
        }
    }
}

impl Congestion {
    /// Returns the name of the sender's state.
    pub const fn state(&self) -> RecoveryState {
        self.episode.state()
    }

    /// Returns cwnd without the fraction of a segment.
    pub(crate) const fn whole_segments(&self) -> f64 {
        // Fewer instructions than `floor`, which is a function of libm on processors without SSE 4.1.
        self.cwnd as u32 as f64
    }

    /// Returns the temporary inflation of the window by duplicate ACKs, in segments (RFC 5681 §3.2 step 4).
    pub const fn inflation(&self) -> f64 {
        self.episode.inflation()
    }

    /// Returns the number of duplicate ACKs since the last new ACK.
    pub const fn dupacks(&self) -> u32 {
        self.disorder.dupacks
    }

    /// During an episode that is attributed to the radio link, returns cwnd at the beginning of the episode.
    /// When the episode ends, the window returns to this value. The value is kept until `recover` is
    /// acknowledged. `None`: the window was reduced, or no episode is in progress.
    pub const fn kept_window(&self) -> Option<f64> {
        self.episode.kept_window()
    }
}

/// The event that began an episode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entered {
    /// A loss detection without a timeout.
    ByLossDetection,
    /// An expiry of the retransmission timer.
    ByTimeout,
}

/// The read-only state that answers see.
pub struct View<'a> {
    /// The current time.
    pub now: Instant,
    /// The outstanding segments, with the scoreboard.
    pub flight: &'a Flight,
    /// Window and state.
    pub cc: &'a Congestion,
    /// Facts from the handshake.
    pub handshake: &'a Handshake,
    /// Round-trip time estimates and the retransmission timeout.
    pub rtt: &'a RttEstimator,
    /// The profile's rules, with the recipe's options.
    pub rules: &'a RecoveryRules,
    /// Sender maximum segment size, in bytes of data.
    pub smss: u64,
    /// The receiver's window, in bytes.
    pub rwnd: u64,
    /// Bytes that the application has written and that have not been sent yet.
    pub unsent: u64,
}

impl View<'_> {
    /// Converts an amount to segments, in the accounting of this host.
    pub fn segments(&self, amount: Amount) -> f64 {
        match self.rules.accounting {
            Accounting::Bytes => amount.bytes as f64 / self.smss as f64,
            Accounting::Segments => amount.segments as f64,
        }
    }

    /// Returns FlightSize of RFC 5681 in segments, without segments that Limited Transmit added (§3.2 step
    /// 2).
    pub fn flight_size(&self) -> f64 {
        let all = self.segments(self.flight.outstanding());
        (all - f64::from(self.cc.disorder.limited)).max(0.0)
    }

    /// Returns the receiver's window, in full-sized segments.
    pub fn rwnd_segments(&self) -> f64 {
        self.rwnd as f64 / self.smss as f64
    }

    /// Returns whether new data could be sent if the congestion window permitted it.
    pub fn has_new_data(&self) -> bool {
        let edge = self.flight.una().saturating_add(self.rwnd);
        let usable = edge.saturating_sub(self.flight.max());
        self.unsent > 0 && usable >= self.unsent.min(self.smss)
    }

    /// Returns whether cwnd is below ssthresh.
    pub fn in_slow_start(&self) -> bool {
        self.cc.cwnd < self.cc.ssthresh
    }
}

/// Facts that are known when the connection is established.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    /// Whether both ends permit SACK.
    pub sack: bool,
    /// Whether the sender keeps a scoreboard of SACKed data, which only some repairs use.
    pub scoreboard: bool,
    /// Whether both ends send timestamps.
    pub timestamps: bool,
    /// Whether both ends support ECN.
    pub ecn: bool,
    /// Header flags of the peer's SYN. Base stations that set transit marks announce themselves in the
    /// reserved bits.
    pub peer_flags: Flags,
    /// Whether our SYN had to be retransmitted.
    pub syn_was_lost: bool,
    /// Whether the loss detector mistakes reordering for loss. The engine sets it.
    pub mistakes_reordering: bool,
}

/// An incoming ACK as the answers see it, after the scoreboard was updated. Offsets count the bytes of the
/// stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Acknowledgment number, as an offset. It is below SND.UNA if an old ACK still brings new information.
    pub number: u64,
    /// Bytes and segments that it newly acknowledges cumulatively.
    pub acked: Amount,
    /// Bytes and segments newly known to be delivered, cumulatively or by SACK.
    pub delivered: Amount,
    /// Bytes and segments newly SACKed.
    pub newly_sacked: Amount,
    /// One past the highest newly SACKed byte. `None`: no byte was newly SACKed.
    pub highest_sacked: Option<u64>,
    /// Whether this is a duplicate ACK as defined by RFC 5681 §2 (or, with SACK, RFC 6675 §2).
    pub duplicate: bool,
    /// Whether the ACK has no data and repeats the previous acknowledgment number and window.
    pub repeats: bool,
    /// First byte of a D-SACK block, and one past its last byte (RFC 2883).
    pub dsack: Option<(u64, u64)>,
    /// Number of retransmitted segments that the D-SACK block reports.
    pub duplicates: u64,
    /// Whether the ACK ends below SACKed data. Linux then waits for another ACK (tcp_check_sack_reneging()).
    pub reneges: bool,
    /// Whether it acknowledges a segment that was sent more than once (Karn's algorithm).
    pub any_resent: bool,
    /// Round-trip time sample. `None`: the ACK yields no sample.
    pub rtt: Option<Duration>,
    /// TSecr, if timestamps are in use.
    pub ecr: Option<u32>,
    /// Timestamp of the newest transmission of the last segment that the ACK acknowledges.
    pub acked_tsval: Option<u32>,
    /// Whether the ACK carries an ECN echo.
    pub ece: bool,
    /// Header flags. Base stations write transit marks into the reserved bits.
    pub flags: Flags,
    /// The most recently sent segment among those newly delivered.
    pub newest: Option<Delivery>,
    /// The newly delivered segments with the highest sequence numbers: the one that is acknowledged
    /// cumulatively, and the one that is SACKed.
    pub last: [Option<Delivery>; 2],
    /// The newly delivered segments that were sent only once.
    pub originals: Originals,
    /// Sum of the loss rates that base stations measured on the radio links (Lai et al. 2013, §III B).
    /// `None`: the ACK carries no report.
    pub loss_report: Option<f64>,
    /// Number of segments that the receiver reports as reordered by more than three segments (Lai et al.
    /// 2013, §III B), modulo 2^16. `None`: the ACK carries no report.
    pub reordered: Option<u16>,
    /// FlightSize before this ACK.
    pub flight_before: Amount,
    /// The beginning of the last episode, if timestamps prove with this ACK that the episode was spurious (RFC
    /// 3522), whether or not it is undone. The engine sets it.
    pub proves_spurious: Option<Entered>,
}

impl Ack {
    /// Returns whether the ACK acknowledges new data.
    pub fn advances(&self) -> bool {
        self.acked.bytes > 0
    }
}

/// A transmitted segment, for answers that keep state about transmissions.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    /// Offset of its first byte in the stream.
    pub start: u64,
    /// Offset one past its last byte.
    pub end: u64,
    /// The reason for the transmission.
    pub kind: TransmissionKind,
    /// The TSval of the segment (RFC 7323), meaningless on a connection without timestamps.
    pub tsval: u32,
    /// Data that a timer sends because a small window has held it back. In Linux, it uses the window without need, and
    /// no tail loss probe follows it (tcp_write_wakeup()).
    pub is_window_probe: bool,
}

/// The reason why a segment is sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TransmissionKind {
    /// First transmission.
    New,
    /// Retransmission that begins an episode without a timeout.
    FastRetransmit,
    /// Retransmission of another hole in the same episode.
    Recovery,
    /// Retransmission after a timeout, or in a pass over the window (go-back-N).
    Timeout,
    /// Tail loss probe, sent to bring back an ACK.
    Probe,
}
