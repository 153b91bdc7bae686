//! The rows of all answers, add-ons and aliases.

use super::{Build, Need, Question, Row};
use crate::profile::ProfileName;
use crate::profile::recovery::{CubicDialect, SackDialect};
use crate::recovery::attribute::{
    AlwaysCongestion, Ncpld, Ndg, Ntg, Oracle, TransitMarks, Vegas, ncpld, transit_marks,
};
use crate::recovery::detect::{
    BlantonAllman, Dcr, EarlyMarks, EarlyRetransmit, EmulatedSacks, LossRetransmission, Pr, Rack, Rr, Sifest,
    SifestLiteral, ThreeDupacks, blanton_allman, pr, rr, sifest,
};
use crate::recovery::episode::{Condition, RecoveryState};
use crate::recovery::repair::{self, NewReno, Reno, Sack, Sack1, Tahoe, sack};
use crate::recovery::timeout::{FastTimeout, Frto, Restart, frto};
use crate::recovery::undo::{Dsack, Eifel, EifelLinux, Never, UndoLinux};
use crate::recovery::window::{
    Aimd, Bbr, Bbr3, Cubic, CubicLinux, HyStart, HyStartPp, Jtcp, Prr, Rebate, ReceiverWindow, TcpFit,
    VegasWindow, Veno, Westwood, rebate, westwood,
};

pub(super) const ANSWERS: &[Row] = &[
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
    .parameters(&[
        Row::parameter(Question::Window, westwood::TAU).works_with("westwood"),
        Row::parameter(Question::Window, westwood::CONSTANT).works_with("westwood"),
    ]),
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
pub(super) static EMULATED_SACKS: Row = Row::answer(
    "three-dupacks",
    Build::Detect(|_| Box::<EmulatedSacks>::default()),
    "three duplicate ACKs, or more after reordering",
    "Linux 6.18",
);
