//! The table of everything that a recipe can name.
//!
//! The recipe parser, `airtcp algorithms`, shell completion, the table in `docs/reference/recipes.md` and the
//! test matrix use it. An algorithm consists of a row here and its own file, which also defines its
//! parameters.

mod answer;
mod row;

use airwire::time::Duration;

pub use answer::Answer;
pub(super) use answer::Author;
pub use row::{Build, Need, Question, Row};

use super::attribute::{
    AlwaysCongestion, Ncpld, Ndg, Ntg, Oracle, TransitMarks, Vegas, ncpld, transit_marks,
};
use super::detect::{
    BlantonAllman, Dcr, EarlyMarks, EarlyRetransmit, EmulatedSacks, LossRetransmission, Pr, Rack, Rr, Sifest,
    SifestLiteral, ThreeDupacks, blanton_allman, pr, rr, sifest,
};
use super::episode::{Condition, RecoveryState};
use super::repair::{self, NewReno, Reno, Sack, Sack1, Tahoe, sack};
use super::timeout::{FastTimeout, Frto, Restart, frto};
use super::undo::{Dsack, Eifel, EifelLinux, Never, UndoLinux};
use super::window::{
    Aimd, Bbr, Bbr3, Cubic, CubicLinux, HyStart, HyStartPp, Jtcp, Prr, Rebate, ReceiverWindow, TcpFit,
    VegasWindow, Veno, Westwood, rebate, westwood,
};
use crate::profile::recovery::{CubicDialect, InitialWindow, Pacing, RackDialect, SackDialect};
use crate::profile::{AckPolicy, Profile, ProfileName, SackOffer, Timer};

/// All rows except parameters, which are in the row of their algorithm. A recipe's canonical form has this
/// order.
pub static CATALOGUE: &[Row] = &[
    // What to retransmit?
    Row::answer(
        "tahoe",
        Build::Repair(|_| Box::new(Tahoe)),
        "a fast retransmission restarts from one segment",
        "Jacobson 1988; Pan et al. 2004, §2.2",
    )
    .conditions(&[Condition::RestartingLoss])
    .repair_traits(repair::Traits { keeps_dupacks_at_timeout: true, ..repair::Traits::DEFAULT }),
    Row::answer(
        "reno",
        Build::Repair(|_| Box::new(Reno)),
        "fast recovery until the first new ACK",
        "RFC 5681 §3.2",
    )
    .active_states(&[RecoveryState::Open, RecoveryState::Cwr])
    .reduces_again(
        "it leaves recovery at the first new ACK, so a second hole starts a second episode (RFC 5681 §3.2)",
    ),
    Row::answer(
        "newreno",
        Build::Repair(|_| Box::<NewReno>::default()),
        "a partial ACK shows the next lost segment",
        "RFC 6582",
    )
    .default_answer(),
    Row::answer(
        "sack",
        Build::Repair(|arguments| Box::new(Sack::new(arguments))),
        "the scoreboard shows the lost segments, pipe limits the data in flight",
        "RFC 6675",
    )
    .parameters(&[Row::parameter(Question::Repair, sack::NO_RESCUE).works_with("sack")])
    .needs(&[Need::Sack])
    .repair_traits(repair::Traits { limited_transmit_by_sack: true, ..repair::Traits::DEFAULT })
    .dialect(|profile| profile.recovery.dialects.sack == SackDialect::Pipe1996, &SACK1),
    Row::answer(
        "linux",
        Build::Alias("sack+rack+cubic+prr+hystart+frto+undo-linux+tso-defer"),
        "the default sender of a Linux kernel (implies the profile linux)",
        "Linux 6.18",
    )
    .names_a_sender(ProfileName::Linux),
    Row::answer(
        "reno-linux",
        Build::Alias("sack+rack+prr+frto+undo-linux+beta=0.5+tso-defer"),
        "the sender of a Linux kernel with congestion control reno (implies the profile linux)",
        "Linux 6.18",
    )
    .names_a_sender(ProfileName::Linux),
    Row::answer(
        "bbr-linux",
        Build::Alias("sack+rack+bbr+frto+undo-linux+tso-defer"),
        "the sender of a Linux kernel with congestion control bbr (implies the profile linux)",
        "Linux 6.18",
    )
    .names_a_sender(ProfileName::Linux),
    Row::answer(
        "etcp",
        Build::Alias("reno+transit-marks"),
        "E-TCP: reno+transit-marks",
        "Chandra et al. 2003, §III",
    ),
    // Is it lost?
    Row::answer(
        "three-dupacks",
        Build::Detect(|_| Box::new(ThreeDupacks)),
        "three duplicate ACKs, or the equivalent amount of SACKed data above it",
        "RFC 5681 §3.2, RFC 6675 §4",
    )
    .default_answer(),
    Row::answer(
        "sifest",
        Build::Detect(|arguments| Box::new(Sifest::new(arguments))),
        "fewer duplicate ACKs suffice while few segments are in the path",
        "Pan et al. 2004, §4.2",
    )
    .parameters(&[
        Row::parameter(Question::Detect, sifest::ANY_ACK).works_with("sifest"),
        Row::parameter(Question::Detect, sifest::IDLE_BY_CLOCK).works_with("sifest"),
        Row::parameter(Question::Detect, sifest::BY_CLOCK).works_with("sifest"),
        Row::parameter(Question::Detect, sifest::COUNTS_ALL_COPIES).works_with("sifest"),
        Row::parameter(Question::Detect, sifest::COUNTS_NEW_DATA).works_with("sifest"),
        Row::parameter(Question::Detect, sifest::PATH_IS_EMPTY).works_with("sifest"),
        Row::parameter(Question::Detect, sifest::IN_VAIN_AT_THREE).works_with("sifest"),
        Row::parameter(Question::Detect, sifest::IN_VAIN).works_with("sifest"),
        Row::parameter(Question::Detect, sifest::BEFORE_RECOVER).works_with("sifest"),
    ])
    .active_states(&RecoveryState::ALL)
    .reduces_again("the loss of a retransmission is a new sign of congestion (RFC 5681 §4.3)"),
    Row::answer(
        "sifest-literal",
        Build::Detect(|_| Box::<SifestLiteral>::default()),
        "sifest exactly as written in the paper, by the clock only; shows the effect of the choices of sifest",
        "Pan et al. 2004, §4.2",
    )
    .active_states(&RecoveryState::ALL)
    .reduces_again("the loss of a retransmission is a new sign of congestion (RFC 5681 §4.3)"),
    Row::answer(
        "pr",
        Build::Detect(|arguments| Box::new(Pr::new(arguments))),
        "lost if not acknowledged within three times the largest recent round-trip time",
        "Bohacek et al. 2006 (TCP-PR); Lai et al. 2013",
    )
    .parameters(&[Row::parameter(Question::Detect, pr::BETA)])
    .marks_segments()
    .conditions(&[Condition::Collapse])
    .active_states(&RecoveryState::ALL)
    .reduces_again("a segment that was sent after a drop and is lost counts as a new drop, even in the same recovery"),
    Row::answer(
        "rack",
        Build::Detect(|arguments| Box::new(Rack::new(arguments.profile().recovery.dialects.rack))),
        "lost if a segment sent sufficiently later was delivered; with tail loss probes",
        "RFC 8985 (RACK-TLP)",
    )
    .works_with("sack")
    .marks_segments()
    .conditions(&[Condition::RepairedByProbe]),
    Row::answer(
        "loss-retransmission",
        Build::AdditionalDetector(|_| Box::<LossRetransmission>::default()),
        "detects lost retransmissions: DupThresh more duplicate ACKs than segments outstanding",
        "Inamura et al. 2009, Fig. 8; Lin and Kung 1998",
    ),
    Row::answer(
        "early-marks",
        Build::AdditionalDetector(|_| Box::new(EarlyMarks)),
        "the first duplicate ACK suffices if the last base station marked it",
        "Chandra et al. 2003, §V",
    )
    .works_with("transit-marks"),
    Row::answer(
        "early-retransmit",
        Build::AdditionalDetector(|_| Box::new(EarlyRetransmit)),
        "fewer duplicate ACKs suffice if two or three segments are outstanding and no new data can be sent",
        "RFC 5827",
    ),
    Row::answer(
        "rr",
        Build::Detect(|arguments| Box::new(Rr::new(arguments))),
        "more duplicate ACKs than 90 % of the reordered segments so far have caused",
        "Zhang et al. 2003 (RR-TCP); Lai et al. 2013, §II-A",
    )
    .parameters(&[Row::parameter(Question::Detect, rr::FA_RATIO)])
    .needs(&[Need::Sack, Need::Dsack]),
    Row::answer(
        "blanton-allman",
        Build::Detect(|arguments| Box::new(BlantonAllman::new(arguments))),
        "DupThresh rises by one after each spurious fast retransmission",
        "Blanton and Allman 2002; Lai et al. 2013, §II-A",
    )
    .parameters(&[
        Row::parameter(Question::Detect, blanton_allman::AVERAGE),
        Row::parameter(Question::Detect, blanton_allman::EWMA),
    ])
    .needs(&[Need::Sack, Need::Dsack]),
    Row::answer(
        "dcr",
        Build::Detect(|_| Box::<Dcr>::default()),
        "three duplicate ACKs, and still missing one round trip later",
        "Bhandarkar and Reddy 2004 (TCP-DCR); Lai et al. 2013, §II-A",
    ),
    // Why was it lost?
    Row::answer(
        "always-congestion",
        Build::Attribute(|_| Box::new(AlwaysCongestion)),
        "every loss is a sign of congestion",
        "RFC 5681",
    )
    .conditions(&[])
    .default_answer(),
    Row::answer(
        "transit-marks",
        Build::Attribute(|arguments| Box::new(TransitMarks::new(arguments))),
        "marks of base stations show on which side of them it was lost",
        "Chandra et al. 2003, §III",
    )
    .parameters(&[
        Row::parameter(Question::Attribute, transit_marks::MARKED_TIMEOUT).works_with("transit-marks")
    ])
    .needs(&[Need::TransitMarks]),
    Row::answer(
        "vegas",
        Build::Attribute(|_| Box::<Vegas>::default()),
        "congestion if the window builds a queue (Vegas' f compared with alpha and beta)",
        "Ni et al. 2002, §3.2; Brakmo and Peterson 1994",
    ),
    Row::answer(
        "ntg",
        Build::Attribute(|_| Box::<Ntg>::default()),
        "congestion if a larger window does not increase the throughput",
        "Ni et al. 2002, §3.2; Wang and Crowcroft 1991",
    ),
    Row::answer(
        "ndg",
        Build::Attribute(|_| Box::<Ndg>::default()),
        "congestion if the delay rises and falls with the window",
        "Ni et al. 2002, §3.2; Jain 1989",
    ),
    Row::answer(
        "ncpld",
        Build::Attribute(|arguments| Box::new(Ncpld::new(arguments))),
        "congestion if the delay is above the delay at the knee",
        "Ni et al. 2002, §3.2; Samaraweera 1999",
    )
    .parameters(&[Row::parameter(Question::Attribute, ncpld::TOLERANCE)]),
    Row::answer(
        "oracle",
        Build::Attribute(|_| Box::<Oracle>::default()),
        "the true cause from the path: the upper bound for all attributions, in virtual time only",
        "Lai et al. 2013, §II-B (the ideal differentiator)",
    )
    .needs(&[Need::Truth]),
    Row::answer(
        "judges",
        Build::Judges(&["vegas", "ntg", "ndg", "ncpld"]),
        "vegas, ntg, ndg and ncpld record a verdict on every loss without changing the sender",
        "Ni et al. 2002, §4.2.2",
    ),
    // How much may be in flight?
    Row::answer(
        "aimd",
        Build::Window(|_| Box::<Aimd>::default()),
        "slow start, then one segment per round trip; half the window after a loss",
        "RFC 5681 §3.1",
    )
    .default_answer(),
    Row::answer(
        "rebate",
        Build::Window(|arguments| Box::new(Rebate::new(arguments))),
        "AIMD that compensates for the cost of losses without congestion",
        "Lai et al. 2013, §III",
    )
    .parameters(&[
        Row::parameter(Question::Window, rebate::TAX).replaces(&[Need::LossReports]),
        Row::parameter(Question::Window, rebate::TAX_SCALE),
        Row::parameter(Question::Window, rebate::ALPHA),
        Row::parameter(Question::Window, rebate::UNCLAMPED),
        Row::parameter(Question::Window, rebate::AT_TIMEOUTS),
        Row::parameter(Question::Window, rebate::IDEAL).works_with("rebate").needs(&[Need::Truth]),
    ])
    .needs(&[Need::LossReports]),
    Row::answer(
        "westwood",
        Build::Window(|arguments| Box::new(Westwood::new(arguments))),
        "after a loss, a window that fills the bandwidth measured from the ACKs",
        "Casetti et al. 2002; Lai et al. 2013, §II",
    )
    .parameters(&[Row::parameter(Question::Window, westwood::TAU).works_with("westwood")]),
    Row::answer(
        "veno",
        Build::Window(|_| Box::<Veno>::default()),
        "a loss while the queue is short costs a fifth of the window instead of half",
        "Fu, Liew 2003; Lai et al. 2013, §II",
    ),
    Row::answer(
        "jtcp",
        Build::Window(|_| Box::<Jtcp>::default()),
        "a loss without jitter does not reduce the window",
        "Wu, Chen 2004; Lai et al. 2013, §II",
    ),
    Row::answer(
        "tcp-fit",
        Build::Window(|_| Box::<TcpFit>::default()),
        "behaves like several connections, as many as the queue permits",
        "Wang et al. 2011; Lai et al. 2013, §II",
    ),
    Row::answer(
        "vegas-window",
        Build::Window(|_| Box::<VegasWindow>::default()),
        "keeps its own queue short, as measured by the delay",
        "Brakmo, Peterson 1995; Ni et al. 2002, §2",
    ),
    Row::answer(
        "cubic",
        Build::Window(|arguments| match arguments.profile().recovery.dialects.cubic {
            CubicDialect::Rfc9438 => Box::<Cubic>::default(),
            CubicDialect::Linux => Box::<CubicLinux>::default(),
        }),
        "a cubic function of the time since the last loss",
        "RFC 9438",
    ),
    Row::answer(
        "bbr",
        Build::Window(|_| Box::<Bbr>::default()),
        "a model of the path: the maximum delivery rate and the minimum round-trip time",
        "Linux 6.18, tcp_bbr.c; Cardwell et al. 2016 (BBRv1)",
    )
    .decides("the window in fast recovery")
    .works_with("sack"),
    Row::answer(
        "bbr3",
        Build::Window(|_| Box::<Bbr3>::default()),
        "the model of bbr, with upper bounds learned from losses",
        "draft-ietf-ccwg-bbr-06 (BBRv3)",
    )
    .decides("the window in fast recovery")
    .works_with("sack"),
    Row::answer(
        "receiver-window",
        Build::Window(|_| Box::new(ReceiverWindow)),
        "no congestion control: only the receiver window limits the sender",
        "RFC 793",
    ),
    Row::answer(
        "prr",
        Build::InRecovery(|_| Box::<Prr>::default()),
        "in recovery, sends in proportion to the delivered data",
        "RFC 9937",
    )
    .decides("the window in fast recovery")
    .works_with("sack"),
    Row::answer(
        "hystart",
        Build::SlowStart(|_| Box::<HyStart>::default()),
        "ends slow start when the delay grows, or when ACKs follow closely for half a round trip",
        "Ha and Rhee 2011; Linux, tcp_cubic.c",
    )
    .decides("the end of slow start"),
    Row::answer(
        "hystartpp",
        Build::SlowStart(|_| Box::<HyStartPp>::default()),
        "HyStart++: slow start continues more slowly when the delay grows, and ends if the delay stays high",
        "RFC 9406",
    )
    .decides("the end of slow start"),
    // What does a timeout mean?
    Row::answer(
        "restart",
        Build::Timeout(|_| Box::new(Restart)),
        "everything is lost: restart from one segment and back off",
        "RFC 5681 §3.1, RFC 6298 §5",
    )
    .default_answer(),
    Row::answer(
        "frto",
        Build::Timeout(|arguments| Box::new(Frto::new(arguments))),
        "checks the next two ACKs before it considers anything lost",
        "RFC 5682",
    )
    .parameters(&[Row::parameter(Question::Timeout, frto::WINDOW)])
    .conditions(&[Condition::Mistake])
    .active_states(&[RecoveryState::Loss]),
    Row::answer(
        "fast-timeout",
        Build::Timeout(|_| Box::<FastTimeout>::default()),
        "three duplicate ACKs after a timeout start fast recovery with half the window",
        "Inamura et al. 2009, Fig. 8; Ludwig 2002",
    )
    .conditions(&[Condition::TimeoutWithDuplicates]),
    // Was that a mistake?
    Row::answer("never", Build::Undo(|_| Box::new(Never)), "no reduction is ever undone", "RFC 5681")
        .conditions(&[])
        .default_answer(),
    Row::answer(
        "eifel",
        Build::Undo(|_| Box::<Eifel>::default()),
        "the echoed timestamp shows which copy an ACK answers",
        "Inamura et al. 2009, §3.1, RFC 3522, RFC 4015",
    )
    .active_states(&[RecoveryState::Recovery, RecoveryState::Loss])
    .needs(&[Need::Timestamps]),
    Row::answer(
        "eifel-linux",
        Build::Undo(|_| Box::<EifelLinux>::default()),
        "eifel as in Linux 2.4: an ACK of all outstanding data counts too",
        "Inamura et al. 2009, §5.2; Linux 2.4, tcp_may_undo()",
    )
    .active_states(&[RecoveryState::Recovery, RecoveryState::Loss])
    .needs(&[Need::Timestamps]),
    Row::answer(
        "dsack",
        Build::Undo(|_| Box::<Dsack>::default()),
        "the receiver has reported every retransmission as a duplicate",
        "RFC 3708, RFC 4015",
    )
    .needs(&[Need::Sack, Need::Dsack]),
    Row::answer(
        "undo-linux",
        Build::Undo(|_| Box::<UndoLinux>::default()),
        "an old timestamp echo, or duplicate reports of all retransmissions, restores the window",
        "Linux, tcp_may_undo()",
    )
    .works_with("rack"),
    // Options.
    Row::option(
        "limited-transmit",
        "limited transmit",
        |p| p.recovery.detection.limited_transmit = true,
        "a new segment for each of the first two duplicate ACKs",
        "RFC 3042",
    ),
    Row::option(
        "no-limited-transmit",
        "limited transmit",
        |p| p.recovery.detection.limited_transmit = false,
        "no limited transmit, even if the profile has it",
        "RFC 3042",
    ),
    Row::option(
        "liw",
        "initial window",
        |p| {
            p.recovery.initial.window = InitialWindow::Segments(2);
            p.recovery.timeout.loss_window = 2.0;
            p.recovery.initial.window_after_lost_syn = None;
        },
        "initial window of two segments, also after every restart",
        "Pan et al. 2004, §4.2, RFC 2414",
    ),
    Row::option(
        "iw3390",
        "initial window",
        |p| p.recovery.initial.window = InitialWindow::Rfc3390,
        "initial window of up to four segments, 4380 bytes",
        "RFC 3390",
    ),
    Row::option(
        "pacing",
        "pacing",
        |p| p.recovery.transmission.pacing = Some(Pacing::LINUX),
        "paced segments: two windows per round trip in slow start, 1.2 later, unless the window algorithm sets a rate",
        "Linux, tcp_update_pacing_rate()",
    ),
    Row::number(
        "max-rate",
        "maximum rate",
        (1.0, 100e6, "kbit/s"),
        |p, n| p.recovery.transmission.max_rate = Some(n * 1e3 / 8.0),
        "paced segments, never faster than this rate (payload without headers)",
        "Linux, SO_MAX_PACING_RATE",
    ),
    Row::option(
        "tso-defer",
        "pieces",
        |p| p.sending.defers = true,
        "data waits for an ACK instead of leaving in a burst of less than two segments",
        "Linux, tcp_tso_should_defer()",
    ),
    Row::option(
        "iw10",
        "initial window",
        |p| p.recovery.initial.window = InitialWindow::Rfc6928,
        "initial window of ten segments, 14600 bytes",
        "RFC 6928",
    ),
    Row::number(
        "iw",
        "initial window",
        (1.0, 1000.0, "segments"),
        |p, n| p.recovery.initial.window = InitialWindow::Segments(n as u32),
        "initial window of N segments",
        "RFC 5681 §3.1",
    ),
    Row::number(
        "beta",
        "decrease",
        (0.1, 0.95, ""),
        |p, n| p.recovery.decrease.beta = n,
        "factor by which a loss multiplies the window (0.5)",
        "RFC 5681 §3.1",
    ),
    Row::number(
        "min-ssthresh",
        "minimum ssthresh",
        (1.0, 100.0, "segments"),
        |p, n| {
            p.recovery.decrease.min_ssthresh = n;
            // Fast recovery starts and ends with a window of ssthresh, so the window's lower bound must not
            // be higher.
            p.recovery.decrease.min_window = p.recovery.decrease.min_window.min(n);
        },
        "lower bound of ssthresh after a loss (2); a value below two also bounds the window",
        "Chandra et al. 2003, Table 2, RFC 5681 equation 4",
    ),
    Row::number(
        "mss",
        "segment size",
        (64.0, 65_000.0, "bytes"),
        |p, n| p.handshake.mss = Some(n as u16),
        "advertised maximum segment size, which limits the segments of the other host (less if a packet is smaller)",
        "RFC 9293 §3.7.1",
    ),
    Row::option(
        "reordering-alarm",
        "reordering alarm",
        |p| p.acks.reordering_alarm = true,
        "receiver: ACKs report how many segments were reordered by more than three",
        "Lai et al. 2013, §III B",
    ),
    Row::option(
        "delack",
        "delayed ACK",
        |p| p.acks.policy = AckPolicy::DELAYED,
        "receiver: one ACK per two segments, or after 40 ms",
        "RFC 5681 §4.2",
    ),
    Row::number(
        "delack-time",
        "delayed ACK",
        (1.0, 500.0, "ms"),
        |p, n| p.acks.policy = AckPolicy { delay: Duration::from_secs_f64(n / 1e3), ..AckPolicy::DELAYED },
        "receiver: one ACK per two segments, or after this time",
        "RFC 5681 §4.2; Pan et al. 2004, §3.1",
    ),
    Row::option(
        "no-delack",
        "delayed ACK",
        |p| p.acks.policy = AckPolicy::EVERY,
        "receiver: one ACK per segment (ND in Pan et al.)",
        "Pan et al. 2004, §3.2.1",
    ),
    Row::option(
        "no-sack",
        "SACK",
        |p| p.handshake.sack = SackOffer::Never,
        "SACK neither offered nor accepted",
        "RFC 2018",
    ),
    Row::option(
        "offer-sack",
        "SACK",
        |p| p.handshake.sack = SackOffer::Always,
        "SACK offered even if the sender does not use it",
        "RFC 2018",
    ),
    Row::option(
        "no-timestamps",
        "timestamps",
        |p| p.handshake.timestamps = false,
        "timestamps neither offered nor accepted",
        "RFC 7323",
    ),
    Row::option(
        "timestamps",
        "timestamps",
        |p| p.handshake.timestamps = true,
        "timestamps offered, even if the profile does not offer them",
        "RFC 7323",
    ),
    Row::option("ecn", "ECN", |p| p.handshake.ecn = true, "explicit congestion notification negotiated", "RFC 3168")
        .needs(&[Need::Ecn, Need::EcnMarks]),
    Row::option(
        "timer-rfc6298",
        "timer",
        |p| p.timers.rto = Timer::RFC6298,
        "SRTT + max(G, 4·RTTVAR), at least 1 s",
        "RFC 6298",
    ),
    Row::option(
        "timer-bsd",
        "timer",
        |p| p.timers.rto = Timer::BSD,
        "500 ms ticks, at least 1 s, one segment timed",
        "Inamura et al. 2009, §2.2; 4.4BSD",
    ),
    Row::option(
        "timer-freebsd22",
        "timer",
        |p| p.timers.rto = Timer::FREEBSD22,
        "500 ms ticks, at least 1 s, timestamp of each ACK",
        "Inamura et al. 2009, Fig. 5; FreeBSD 2.2, tcp_timer.h",
    ),
    Row::option(
        "timer-freebsd45",
        "timer",
        |p| p.timers.rto = Timer::FREEBSD45,
        "10 ms ticks, at least 1 s, timestamp of each ACK",
        "Inamura et al. 2009, Fig. 5; FreeBSD 4.5, tcp_timer.h",
    ),
    Row::option(
        "timer-linux22",
        "timer",
        |p| p.timers.rto = Timer::LINUX22,
        "at least 200 ms, stretched for small windows",
        "Inamura et al. 2009, Fig. 5",
    ),
    Row::option(
        "timer-linux24",
        "timer",
        |p| p.timers.rto = Timer::LINUX24,
        "variance term of at least 200 ms",
        "Inamura et al. 2009, Fig. 5",
    ),
    Row::option(
        "timer-solaris",
        "timer",
        |p| p.timers.rto = Timer::SOLARIS,
        "1.25·SRTT + 4·RTTVAR, at least 400 ms",
        "Inamura et al. 2009, Fig. 5",
    ),
    Row::number(
        "timer-ns2",
        "timer",
        (1.0, 1000.0, "ms"),
        |p, n| p.timers.rto = Timer::ns2(Duration::from_secs_f64(n / 1e3)),
        "timer of ns-2: ticks of this length, at least two of them, one segment timed",
        "Pan et al. 2004, §3.1",
    ),
    Row::number(
        "min-rto",
        "minimum RTO",
        (1.0, 60_000.0, "ms"),
        |p, n| p.timers.rto.limits.min = Duration::from_secs_f64(n / 1e3),
        "lower bound of the retransmission timeout",
        "RFC 6298 (2.4)",
    ),
    Row::number(
        "max-rto",
        "maximum RTO",
        (1000.0, 3_600_000.0, "ms"),
        |p, n| p.timers.rto.limits.max = Duration::from_secs_f64(n / 1e3),
        "upper bound of the retransmission timeout",
        "RFC 6298 (2.5)",
    ),
];

/// `sack` in the dialect [`SackDialect::Pipe1996`].
static SACK1: Row = Row::answer(
    "sack1",
    Build::Repair(|_| Box::<Sack1>::default()),
    "the scoreboard shows the holes, pipe estimates the data in flight",
    "Fall and Floyd 1996",
)
.needs(&[Need::Sack])
.repair_traits(repair::Traits { scoreboard_in_recovery_only: true, ..repair::Traits::DEFAULT });

/// `three-dupacks` on a connection without SACK, as in Linux.
static EMULATED_SACKS: Row = Row::answer(
    "three-dupacks",
    Build::Detect(|_| Box::<EmulatedSacks>::default()),
    "three duplicate ACKs, or more after reordering",
    "Linux 6.18",
);

/// Returns all rows, each followed by its parameters. This is the order of names in a recipe's canonical
/// form.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    CATALOGUE.iter().flat_map(|row| std::iter::once(row).chain(row.parameters))
}

/// Returns the row with this name, including rows of parameters.
pub fn find(name: &str) -> Option<&'static Row> {
    rows().find(|row| row.name == name)
}

/// Returns the row that answers `question` if a recipe names no answer, or `None` for [`Question::Option`].
pub(crate) fn default_answer(question: Question) -> Option<&'static Row> {
    CATALOGUE.iter().find(|row| row.is_default && row.question() == question)
}

/// Returns the row that replaces an answer of a sender without `need`.
pub(crate) fn fallback(need: Need, question: Question, profile: &Profile) -> &'static Row {
    match (need, question, profile.recovery.dialects.rack) {
        (Need::Sack, Question::Detect, RackDialect::Linux) => &EMULATED_SACKS,
        _ => default_answer(question).expect("a test of the catalogue checks that there is one"),
    }
}

/// Returns the table of answers and options in `docs/reference/recipes.md`. A test compares the page with it.
pub fn markdown() -> String {
    let mut table = String::from("| question | answers (the default first) |\n|---|---|\n");
    let code = |row: &Row| format!("`{}`", row.name);
    let name = |row: &Row| match row.parameters {
        [] => code(row),
        parameters => {
            let parameters: Vec<_> = parameters.iter().map(code).collect();
            format!("{} ({})", code(row), parameters.join(" "))
        }
    };
    let names = |rows: &[&Row]| rows.iter().map(|row| name(row)).collect::<Vec<_>>().join(" ");
    for question in Question::ALL {
        let rows = CATALOGUE.iter().filter(|row| row.question() == question && !row.is_alias());
        let (mut answers, add_ons): (Vec<_>, Vec<_>) =
            rows.partition(|row| row.is_answer() || question == Question::Option);
        answers.sort_by_key(|row: &&Row| !row.is_default);
        let add_ons = match add_ons.as_slice() {
            [] => String::new(),
            rows => format!("; add-ons: {}", names(rows)),
        };
        table += &format!("| {} | {}{add_ons} |\n", question.text(), names(&answers));
    }
    for row in CATALOGUE {
        if let Build::Alias(meaning) = row.build {
            table += &format!("| *alias* | `{}` = `{meaning}` |\n", row.name);
        }
    }
    table
}

/// Returns the name in the catalogue that is most similar to `name`, or `None` if none is similar.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(name, rows().map(|row| row.name))
}

/// Returns the word in `known` that is most similar to `name`, or `None` if none is similar.
pub fn nearest_of<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|known| (strsim::levenshtein(name, known), known))
        .min()
        .filter(|(distance, known)| *distance <= 1 + known.len() / 3)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_each_question_has_default() {
        for (i, row) in rows().enumerate() {
            assert!(rows().take(i).all(|other| other.name != row.name), "duplicate name {}", row.name);
            assert!(
                !row.summary.is_empty() && !row.citation.is_empty(),
                "{} has no summary or citation",
                row.name
            );
        }
        for question in Question::ALL {
            let count = CATALOGUE.iter().filter(|row| row.is_default && row.question() == question).count();
            assert_eq!(count, usize::from(question != Question::Option), "{question:?}");
        }
    }

    #[test]
    fn misspelt_name_suggests_nearest_name() {
        assert_eq!(nearest("newrno"), Some("newreno"));
        assert_eq!(nearest("limited-transmitt"), Some("limited-transmit"));
        assert_eq!(nearest("xyzzy-plugh"), None);
    }
}
