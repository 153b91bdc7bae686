//! Loss recovery, put together from named parts: a TCP sender asks six questions, and an algorithm is a file that
//! answers one of them.
//!
//! | question | folder | trait | ordinary answer |
//! |---|---|---|---|
//! | Is it lost? | [`detect`] | [`Detect`](detect::Detect) | three duplicate ACKs |
//! | Why was it lost? | [`attribute`] | [`Attribute`](attribute::Attribute) | always congestion |
//! | What to retransmit? | [`repair`] | [`Repair`](repair::Repair) | NewReno |
//! | How much may be in flight? | [`window`] | [`Window`](window::Window) | AIMD |
//! | What does a timeout mean? | [`timeout`] | [`Timeout`](timeout::Timeout) | restart from one segment, back off |
//! | Was that a mistake? | [`undo`] | [`Undo`](undo::Undo) | never asked |
//!
//! An answer decides, it does not act: it gets a read-only [`View`] and returns a small value. One place, the engine,
//! applies decisions to the connection, and the stream of them ([`Decision`]) is the trace that plots and tests read.
//! The [`catalogue`] is the one table of everything that can be asked for by name; a [`Recipe`] is what one sender has
//! of it.
//!
//! "Is it lost?" may have several witnesses: the detector, and others beside it that are heard when it is silent.
//! Judges may watch: they are asked why a segment was lost, their judgement is written down, and nothing changes.
//!
//! # When an answer is asked
//!
//! With each ACK, in this order:
//!
//! 1. Estimators see it: [`Attribute::on_ack`](attribute::Attribute::on_ack),
//!    [`Window::observe`](window::Window::observe).
//! 2. After a timeout, [`Timeout::on_ack`](timeout::Timeout::on_ack) says what the timeout meant; then
//!    [`Undo::on_ack`](undo::Undo::on_ack), whether the last reduction was a mistake. Either may end a loss event.
//! 3. In fast recovery [`Repair::on_recovery_ack`](repair::Repair::on_recovery_ack) says what the ACK means, and
//!    [`Window::on_exit`](window::Window::on_exit) what the window is at the end of it. Outside,
//!    [`Window::on_ack`](window::Window::on_ack) opens the window.
//! 4. [`Detect::on_ack`](detect::Detect::on_ack): is something (else) lost? If that begins a loss event,
//!    [`Attribute::cause`](attribute::Attribute::cause) says why, [`Repair::on_loss`](repair::Repair::on_loss) how the
//!    repair begins, and if it was congestion [`Window::on_loss`](window::Window::on_loss) reduces the window.
//! 5. In fast recovery, [`InRecovery::on_progress`](window::InRecovery::on_progress), where the recipe has one, says
//!    what the window is now that what is lost is known.
//! 6. A window that a [model](window::Window::model) of the path decides is asked last, in every state, with the delivery
//!    rate that the ACK shows ([`rate`]).
//!
//! When the retransmission timer fires, [`Timeout::on_timeout`](timeout::Timeout::on_timeout) decides what leaves and
//! [`Window::on_loss`](window::Window::on_loss) what ssthresh becomes. Whenever the window has room,
//! [`Repair::next`](repair::Repair::next) may name a segment to send again before anything new leaves. All answers that
//! keep count are told of each departure (`on_sent`).
//!
//! # An answer of your own
//!
//! Implement the question's trait, describe it in a [`Row`](catalogue::Row), and put that into a recipe with
//! [`Recipe::with`]. A window that gives up less than half after a loss:
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
//!     fn name(&self) -> &'static str {
//!         "gentle"
//!     }
//!
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
//! An answer that ships is a file in its question's folder and a row in the catalogue.

pub mod attribute;
pub mod catalogue;
pub mod confusion;
mod decision;
pub mod detect;
pub(crate) mod engine;
pub mod episode;
mod moves;
pub mod parameter;
pub mod rate;
mod recipe;
pub mod repair;
mod spurious;
#[cfg(test)]
pub(crate) mod testing;
pub mod timeout;
mod truth;
pub mod undo;
pub mod window;

use airwire::segment::Flags;
use airwire::time::{Duration, Instant};
pub use decision::{Decision, What};
pub(crate) use engine::Path;
pub use engine::{Counters, Recovery};
pub use episode::{Cue, Disorder, Episode, MOVES, Move, Phase};
pub use recipe::{Recipe, RecipeError};
pub use truth::Truth;

use crate::flight::{Amount, Delivery, Flight, Originals};
use crate::profile::Knobs;
use crate::profile::knobs::Accounting;
use crate::rtt::RttEstimator;

/// The congestion state of one connection. Windows are in segments. Plain data; only the engine writes it.
#[derive(Clone, Debug)]
pub struct Congestion {
    /// The congestion window, without inflation.
    pub cwnd: f64,
    /// The slow-start threshold; infinite until something sets it.
    pub ssthresh: f64,
    /// What the sender is doing about losses.
    pub episode: Episode,
    /// Duplicate ACKs since the last new one.
    pub disorder: Disorder,
    /// Of the segments that the last new ACK covered, so many had been announced by duplicate ACKs, as far as anybody
    /// knows. Zero where there is a scoreboard: it knows.
    pub announced: u32,
    /// RFC 6582's `recover`, RFC 6675's RecoveryPoint: one past the highest offset sent when the present
    /// (or the last) loss event began. `None`: there was none.
    pub recover: Option<u64>,
    /// What began the last loss event. `None`: there was none.
    pub last_entry: Option<Entered>,
    /// SND.UNA before the last new ACK (RFC 6582 §4.1, `prev_highest_ack`).
    pub previous_una: u64,
    /// TSecr of the last new ACK (RFC 6582 §4.2). `None`: it had no timestamps.
    pub echoed: Option<u32>,
    /// Timestamp of the newest copy of the last segment that this ACK acknowledged (RFC 6582 §4.2).
    pub acked_tsval: Option<u32>,
    /// Consecutive timeouts without progress.
    pub timeouts_in_row: u32,
    /// The largest flight since `usage_seq` was set, in segments (for `GrowthLimit::TwiceThePeak`).
    pub peak_flight: f64,
    /// Whether the window was what limited that flight.
    pub cwnd_limited: bool,
    /// When this offset is acknowledged, both are taken anew.
    pub usage_seq: u64,
}

impl Congestion {
    /// The name of the state that the sender is in.
    pub const fn phase(&self) -> Phase {
        self.episode.phase()
    }

    /// Temporary inflation of the window by duplicate ACKs, in segments (RFC 5681 §3.2 step 4).
    pub const fn inflation(&self) -> f64 {
        self.episode.inflation()
    }

    /// Duplicate ACKs since the last new one.
    pub const fn dupacks(&self) -> u32 {
        self.disorder.dupacks
    }

    /// The present loss event was put down to the radio: this was cwnd when it began, and will be when it ends. It
    /// stays known until `recover` is acknowledged. `None`: the window was reduced, or there is no event.
    pub const fn kept_window(&self) -> Option<f64> {
        self.episode.kept_window()
    }
}

/// What began a loss event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entered {
    /// A detector, without a timeout.
    ByDuplicates,
    /// The retransmission timer.
    ByTimeout,
}

/// What an answer may look at.
pub struct View<'a> {
    /// The time.
    pub now: Instant,
    /// What is outstanding, with the scoreboard.
    pub flight: &'a Flight,
    /// Window and phase.
    pub cc: &'a Congestion,
    /// Round-trip times and the retransmission timeout.
    pub rtt: &'a RttEstimator,
    /// The profile's knobs, with the recipe's options.
    pub knobs: &'a Knobs,
    /// Sender maximum segment size, in octets of data.
    pub smss: u64,
    /// The receiver's window, in octets.
    pub rwnd: u64,
    /// Octets that the application has written and that have not left yet.
    pub unsent: u64,
}

impl View<'_> {
    /// An amount in segments, as this host counts them.
    pub fn segments(&self, amount: Amount) -> f64 {
        match self.knobs.accounting {
            Accounting::Bytes => amount.bytes as f64 / self.smss as f64,
            Accounting::Segments => amount.segments as f64,
        }
    }

    /// FlightSize of RFC 5681 in segments, without what Limited Transmit added (its §3.2 step 2).
    pub fn flight_size(&self) -> f64 {
        let all = self.segments(self.flight.outstanding());
        (all - f64::from(self.cc.disorder.limited)).max(0.0)
    }

    /// The receiver's window, in full-sized segments.
    pub fn rwnd_segments(&self) -> f64 {
        self.rwnd as f64 / self.smss as f64
    }

    /// Something new could be sent if the congestion window permitted it.
    pub fn has_new_data(&self) -> bool {
        let edge = self.flight.una().saturating_add(self.rwnd);
        let usable = edge.saturating_sub(self.flight.max());
        self.unsent > 0 && usable >= self.unsent.min(self.smss)
    }

    /// cwnd is below ssthresh.
    pub fn in_slow_start(&self) -> bool {
        self.cc.cwnd < self.cc.ssthresh
    }
}

/// What is known of the peer when the connection is established.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    /// Both ends permit SACK.
    pub sack: bool,
    /// A scoreboard is kept of what is SACKed: the repair has use for it.
    pub scoreboard: bool,
    /// Both ends send timestamps.
    pub timestamps: bool,
    /// Both ends understand ECN.
    pub ecn: bool,
    /// Header flags of the peer's SYN: a transit agent announces itself in the reserved ones.
    pub peer_flags: Flags,
    /// Our SYN had to be sent again.
    pub syn_was_lost: bool,
}

/// An incoming ACK as the answers see it, after the scoreboard has taken it in. Offsets are octets of the stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Its acknowledgment number, as an offset. Below SND.UNA in an old ACK that brings news all the same.
    pub number: u64,
    /// Octets and segments cumulatively acknowledged by it.
    pub acked: Amount,
    /// Octets and segments newly known to be delivered, in sequence or by SACK.
    pub delivered: Amount,
    /// Octets and segments newly SACKed.
    pub newly_sacked: Amount,
    /// One past the highest octet newly SACKed. `None`: nothing was.
    pub highest_sacked: Option<u64>,
    /// A duplicate ACK in the sense of RFC 5681 §2 (or, with SACK, RFC 6675 §2).
    pub duplicate: bool,
    /// First octet and one past the last of a D-SACK block (RFC 2883).
    pub dsack: Option<(u64, u64)>,
    /// Some segment that it acknowledges was sent more than once (Karn).
    pub any_resent: bool,
    /// The round-trip time that it measures. `None`: it measures none.
    pub rtt: Option<Duration>,
    /// TSecr, when timestamps are in use.
    pub ecr: Option<u32>,
    /// Timestamp of the newest copy of the last segment that it acknowledges.
    pub acked_tsval: Option<u32>,
    /// It carries an ECN echo.
    pub ece: bool,
    /// Flags of its header: a transit agent writes into the reserved ones.
    pub flags: Flags,
    /// Of the segments newly delivered, the one that left last.
    pub newest: Option<Delivery>,
    /// The segments newly delivered that were sent only once.
    pub originals: Originals,
    /// Sum of the loss rates that base stations measured on the radio links (P3 §III B). `None`: it reports none.
    pub loss_report: Option<f64>,
    /// How many segments the receiver has seen reordered by more than three (P3 §III B), modulo 2^16. `None`: it
    /// reports none.
    pub reordered: Option<u16>,
    /// FlightSize before the ACK.
    pub flight_before: Amount,
}

impl Ack {
    /// It acknowledges something new.
    pub fn advances(&self) -> bool {
        self.acked.bytes > 0
    }
}

/// A segment that leaves, for answers that keep count.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Its first octet, as an offset of the stream.
    pub start: u64,
    /// One past its last octet.
    pub end: u64,
    /// Why it leaves.
    pub kind: Transmission,
    /// Its timestamp (RFC 7323 TSval); it means nothing on a connection without timestamps.
    pub tsval: u32,
}

/// Why a segment leaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transmission {
    /// For the first time.
    New,
    /// The first segment of a loss event found without a timeout.
    FastRetransmit,
    /// Further holes of the same event.
    Recovery,
    /// After a timeout, or going back over the window.
    Timeout,
    /// To provoke an ACK (tail probe).
    Probe,
}
