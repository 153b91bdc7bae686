//! The one table of everything that can be asked for by name.
//!
//! Parsing, `airtcp algorithms`, shell completion, the README's table and the test matrix come from here. A
//! row is data and a constructor: adding an algorithm means one file, one row, its tests.

use airwire::time::Duration;

use super::attribute::{self, AlwaysCongestion, Attribute, Ncpld, Ndg, Ntg, TransitMarks, Vegas};
use super::detect::{
    BlantonAllman, Dcr, Detect, EarlyMarks, LossRetransmission, Pr, Rack, Rr, Sifest, ThreeDupacks,
};
use super::repair::{NewReno, Reno, Repair, Sack, Sack1, Tahoe};
use super::timeout::{FastTimeout, Frto, Restart, Timeout};
use super::undo::{Dsack, Eifel, Never, Undo};
use super::window::{
    Aimd, Cubic, InRecovery, Jtcp, Prr, Rebate, ReceiverWindow, TcpFit, VegasWindow, Veno, Westwood, Window,
};
use crate::profile::knobs::{DupThreshStep, InitialWindow, SackDialect};
use crate::profile::{AckPolicy, Profile, SackOffer, Timer};

/// The six questions, and the plain options.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Question {
    Detect,
    Attribute,
    Repair,
    Window,
    Timeout,
    Undo,
    Option,
}

impl Question {
    pub const ALL: [Self; 7] =
        [Self::Repair, Self::Detect, Self::Attribute, Self::Window, Self::Timeout, Self::Undo, Self::Option];

    pub const fn text(self) -> &'static str {
        match self {
            Self::Detect => "Is it lost?",
            Self::Attribute => "Why was it lost?",
            Self::Repair => "What to send again?",
            Self::Window => "How much may be in flight?",
            Self::Timeout => "What does a timeout mean?",
            Self::Undo => "Was that a mistake?",
            Self::Option => "Plain options",
        }
    }
}

/// What an answer cannot do without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    Sack,
    Timestamps,
}

/// How a row becomes part of a sender. The profile is what the whole recipe makes of it.
#[derive(Clone, Copy)]
pub enum Build {
    Detect(fn(&Profile) -> Box<dyn Detect>),
    Attribute(fn(&Profile) -> Box<dyn Attribute>),
    Repair(fn(&Profile) -> Box<dyn Repair>),
    Window(fn(&Profile) -> Box<dyn Window>),
    Timeout(fn(&Profile) -> Box<dyn Timeout>),
    Undo(fn(&Profile) -> Box<dyn Undo>),
    /// Another witness of a loss, beside the detector.
    Witness(fn(&Profile) -> Box<dyn Detect>),
    /// The window during fast recovery.
    InRecovery(fn(&Profile) -> Box<dyn InRecovery>),
    /// Judges that watch.
    Judges(fn(&Profile) -> Vec<Box<dyn Attribute>>),
    /// A name for several parts.
    Alias(&'static str),
    Option(fn(&mut Profile)),
    /// An option with a number: `iw=4`.
    Number {
        min: f64,
        max: f64,
        unit: &'static str,
        set: fn(&mut Profile, f64),
    },
}

pub struct Row {
    pub name: &'static str,
    pub build: Build,
    /// Two rows with the same subject contradict each other. Answers to one question always do.
    pub subject: &'static str,
    pub summary: &'static str,
    pub citation: &'static str,
    pub needs: &'static [Need],
    /// Why one loss event may reduce the window more than once, where it may.
    pub reduces_again: Option<&'static str>,
    /// The answer to another question that it works with, and that it brings when none is named.
    pub with: Option<&'static str>,
    /// What is used when nothing else answers the question.
    pub ordinary: bool,
}

impl Row {
    pub const fn question(&self) -> Question {
        match self.build {
            Build::Detect(_) | Build::Witness(_) => Question::Detect,
            Build::Attribute(_) | Build::Judges(_) => Question::Attribute,
            Build::Repair(_) | Build::Alias(_) => Question::Repair,
            Build::Window(_) | Build::InRecovery(_) => Question::Window,
            Build::Timeout(_) => Question::Timeout,
            Build::Undo(_) => Question::Undo,
            Build::Option(_) | Build::Number { .. } => Question::Option,
        }
    }

    pub const fn is_alias(&self) -> bool {
        matches!(self.build, Build::Alias(_))
    }

    /// Does it answer its question alone? Others stand beside the answer, and there may be several.
    pub const fn is_the_answer(&self) -> bool {
        !matches!(
            self.build,
            Build::Witness(_)
                | Build::InRecovery(_)
                | Build::Judges(_)
                | Build::Alias(_)
                | Build::Option(_)
                | Build::Number { .. }
        )
    }
}

const fn answer(name: &'static str, build: Build, summary: &'static str, citation: &'static str) -> Row {
    Row {
        name,
        build,
        subject: "",
        summary,
        citation,
        needs: &[],
        reduces_again: None,
        with: None,
        ordinary: false,
    }
}

const fn option(
    name: &'static str,
    subject: &'static str,
    set: fn(&mut Profile),
    summary: &'static str,
    citation: &'static str,
) -> Row {
    Row {
        name,
        build: Build::Option(set),
        subject,
        summary,
        citation,
        needs: &[],
        reduces_again: None,
        with: None,
        ordinary: false,
    }
}

const fn ordinary(row: Row) -> Row {
    Row { ordinary: true, ..row }
}

const fn reduces_again(why: &'static str, row: Row) -> Row {
    Row { reduces_again: Some(why), ..row }
}

/// Works with one answer to another question only, and brings it.
const fn works_with(answer: &'static str, row: Row) -> Row {
    Row { with: Some(answer), ..row }
}

const fn number(
    name: &'static str,
    subject: &'static str,
    (min, max, unit): (f64, f64, &'static str),
    set: fn(&mut Profile, f64),
    summary: &'static str,
    citation: &'static str,
) -> Row {
    let build = Build::Number { min, max, unit, set };
    Row {
        name,
        build,
        subject,
        summary,
        citation,
        needs: &[],
        reduces_again: None,
        with: None,
        ordinary: false,
    }
}

const fn needs(row: Row, needs: &'static [Need]) -> Row {
    Row { needs, ..row }
}

/// In the order in which names appear in a recipe's canonical form.
pub static CATALOGUE: &[Row] = &[
    // What to send again?
    answer(
        "tahoe",
        Build::Repair(|_| Box::new(Tahoe)),
        "a fast retransmit restarts from one segment",
        "Jacobson 1988; P0 §2.2",
    ),
    reduces_again(
        "it leaves recovery at the first new ACK: a second hole is a second event (RFC 5681 §3.2)",
        answer(
            "reno",
            Build::Repair(|_| Box::new(Reno)),
            "fast recovery until the first new ACK",
            "RFC 5681 §3.2",
        ),
    ),
    ordinary(answer(
        "newreno",
        Build::Repair(|_| Box::<NewReno>::default()),
        "a partial ACK names the next hole",
        "RFC 6582",
    )),
    needs(
        answer(
            "sack",
            Build::Repair(|profile| match profile.recovery.sack_dialect {
                SackDialect::Rfc6675 => Box::<Sack>::default(),
                SackDialect::Pipe1996 => Box::<Sack1>::default(),
            }),
            "the scoreboard names the holes, pipe the room",
            "RFC 6675",
        ),
        &[Need::Sack],
    ),
    answer("etcp", Build::Alias("reno+transit-marks"), "E-TCP: reno+transit-marks", "P4 §III"),
    // Is it lost?
    ordinary(answer(
        "three-dupacks",
        Build::Detect(|_| Box::new(ThreeDupacks)),
        "three duplicate ACKs, or as much SACKed above",
        "RFC 5681 §3.2, RFC 6675 §4",
    )),
    reduces_again(
        "the loss of a retransmission is a new sign of congestion (RFC 5681 §4.3)",
        answer(
            "sifest",
            Build::Detect(|_| Box::<Sifest>::default()),
            "one duplicate ACK less than segments in the path is enough",
            "P0 §4.2",
        ),
    ),
    reduces_again(
        "what left after a drop and is lost in its turn is a new drop, in the same recovery too",
        answer(
            "pr",
            Build::Detect(|_| Box::<Pr>::default()),
            "not acknowledged for three times the largest round trip of late",
            "Bohacek et al. 2006 (TCP-PR); P3",
        ),
    ),
    works_with(
        "sack",
        answer(
            "rack",
            Build::Detect(|_| Box::<Rack>::default()),
            "one that left sufficiently later was delivered; a probe for the tail",
            "RFC 8985 (RACK-TLP)",
        ),
    ),
    answer(
        "loss-retransmission",
        Build::Witness(|_| Box::<LossRetransmission>::default()),
        "also DupThresh more duplicate ACKs than were outstanding: the copy is lost",
        "P2 Fig. 8; Lin and Kung 1998",
    ),
    works_with(
        "transit-marks",
        answer(
            "early-marks",
            Build::Witness(|_| Box::<EarlyMarks>::default()),
            "also the first duplicate ACK that the last base station marked",
            "P4 §V",
        ),
    ),
    needs(
        answer(
            "rr",
            Build::Detect(|_| Box::<Rr>::default()),
            "as many duplicate ACKs as 90 % of the reordering so far would have brought",
            "Zhang et al. 2003 (RR-TCP); P3 §II-A",
        ),
        &[Need::Sack],
    ),
    needs(
        answer(
            "blanton-allman",
            Build::Detect(|_| Box::<BlantonAllman>::default()),
            "one duplicate ACK more after each false fast retransmit",
            "Blanton and Allman 2002; P3 §II-A",
        ),
        &[Need::Sack],
    ),
    answer(
        "dcr",
        Build::Detect(|_| Box::<Dcr>::default()),
        "three duplicate ACKs, and a round trip later it is still missing",
        "Bhandarkar and Reddy 2004 (TCP-DCR); P3 §II-A",
    ),
    // Why was it lost?
    ordinary(answer(
        "always-congestion",
        Build::Attribute(|_| Box::new(AlwaysCongestion)),
        "every loss is a sign of congestion",
        "RFC 5681",
    )),
    answer(
        "transit-marks",
        Build::Attribute(|_| Box::<TransitMarks>::default()),
        "base stations say on which side of them it was lost",
        "P4 §III",
    ),
    answer(
        "vegas",
        Build::Attribute(|_| Box::<Vegas>::default()),
        "congestion if the window queues up (Vegas' f against alpha and beta)",
        "P1 §3.2; Brakmo and Peterson 1994",
    ),
    answer(
        "ntg",
        Build::Attribute(|_| Box::<Ntg>::default()),
        "congestion if a larger window brings no more throughput",
        "P1 §3.2; Wang and Crowcroft 1991",
    ),
    answer(
        "ndg",
        Build::Attribute(|_| Box::<Ndg>::default()),
        "congestion if the delay rises and falls with the window",
        "P1 §3.2; Jain 1989",
    ),
    answer(
        "ncpld",
        Build::Attribute(|_| Box::<Ncpld>::default()),
        "congestion if the delay is above that at the knee",
        "P1 §3.2; Samaraweera 1999",
    ),
    answer(
        "judges",
        Build::Judges(|_| attribute::judges()),
        "vegas, ntg, ndg and ncpld watch: they judge every loss and change nothing",
        "P1 §4.2.2",
    ),
    // How much may be in flight?
    ordinary(answer(
        "aimd",
        Build::Window(|_| Box::<Aimd>::default()),
        "slow start, then one segment a round trip; half at a loss",
        "RFC 5681 §3.1",
    )),
    answer(
        "rebate",
        Build::Window(|_| Box::<Rebate>::default()),
        "AIMD that gets back what losses without congestion cost it",
        "P3 §III",
    ),
    answer(
        "westwood",
        Build::Window(|_| Box::<Westwood>::default()),
        "after a loss, what fills the bandwidth that the ACKs show",
        "Casetti et al. 2002; P3 §II",
    ),
    answer(
        "veno",
        Build::Window(|_| Box::<Veno>::default()),
        "a loss with a short queue costs a fifth, not half",
        "Fu, Liew 2003; P3 §II",
    ),
    answer(
        "jtcp",
        Build::Window(|_| Box::<Jtcp>::default()),
        "a loss without jitter costs nothing",
        "Wu, Chen 2004; P3 §II",
    ),
    answer(
        "tcp-fit",
        Build::Window(|_| Box::<TcpFit>::default()),
        "as many connections in one as the queue permits",
        "Wang et al. 2011; P3 §II",
    ),
    answer(
        "vegas-window",
        Build::Window(|_| Box::<VegasWindow>::default()),
        "a short queue of its own, found by its delay",
        "Brakmo, Peterson 1995; P1 §2",
    ),
    answer(
        "cubic",
        Build::Window(|_| Box::<Cubic>::default()),
        "a cubic function of the time since the last loss",
        "RFC 9438",
    ),
    answer(
        "receiver-window",
        Build::Window(|_| Box::new(ReceiverWindow)),
        "no congestion control: only the receiver's window limits",
        "RFC 793",
    ),
    works_with(
        "sack",
        answer(
            "prr",
            Build::InRecovery(|_| Box::<Prr>::default()),
            "in recovery, sends in proportion to what is delivered",
            "RFC 6937",
        ),
    ),
    // What does a timeout mean?
    ordinary(answer(
        "restart",
        Build::Timeout(|_| Box::new(Restart)),
        "everything is lost: restart from one segment, back off",
        "RFC 5681 §3.1, RFC 6298 §5",
    )),
    answer(
        "frto",
        Build::Timeout(|_| Box::<Frto>::default()),
        "look at two ACKs, or SACKs, before believing it",
        "RFC 5682",
    ),
    answer(
        "fast-timeout",
        Build::Timeout(|_| Box::<FastTimeout>::default()),
        "three duplicate ACKs after it: fast recovery with half the window",
        "P2 Fig. 8; Ludwig 2002",
    ),
    // Was that a mistake?
    ordinary(answer("never", Build::Undo(|_| Box::new(Never)), "never asked", "RFC 5681")),
    needs(
        answer(
            "eifel",
            Build::Undo(|_| Box::<Eifel>::default()),
            "the timestamp tells which copy an ACK answers",
            "P2 §3.1, RFC 3522, RFC 4015",
        ),
        &[Need::Timestamps],
    ),
    needs(
        answer(
            "dsack",
            Build::Undo(|_| Box::<Dsack>::default()),
            "the receiver reports every copy as a duplicate",
            "RFC 3708, RFC 4015",
        ),
        &[Need::Sack],
    ),
    // Plain options.
    option(
        "limited-transmit",
        "limited transmit",
        |p| p.recovery.limited_transmit = true,
        "a new segment for each of the first two duplicate ACKs",
        "RFC 3042",
    ),
    option(
        "no-limited-transmit",
        "limited transmit",
        |p| p.recovery.limited_transmit = false,
        "none, where the profile would",
        "RFC 3042",
    ),
    option(
        "liw",
        "initial window",
        |p| {
            p.recovery.initial_window = InitialWindow::Segments(2);
            p.recovery.loss_window = 2.0;
            p.recovery.window_after_lost_syn = None;
        },
        "two segments, initially and after every restart",
        "P0 §4.2, RFC 2414",
    ),
    option(
        "iw3390",
        "initial window",
        |p| p.recovery.initial_window = InitialWindow::Rfc3390,
        "initial window of up to four segments, 4380 octets",
        "RFC 3390",
    ),
    option(
        "iw10",
        "initial window",
        |p| p.recovery.initial_window = InitialWindow::Rfc6928,
        "initial window of ten segments, 14600 octets",
        "RFC 6928",
    ),
    number(
        "iw",
        "initial window",
        (1.0, 1000.0, "segments"),
        |p, n| p.recovery.initial_window = InitialWindow::Segments(n as u32),
        "initial window of N segments",
        "RFC 5681 §3.1",
    ),
    number(
        "beta",
        "decrease",
        (0.1, 0.95, ""),
        |p, n| p.recovery.beta = n,
        "the window is multiplied by this at a loss (0.5)",
        "RFC 5681 §3.1",
    ),
    number(
        "pr-beta",
        "mxrtt",
        (1.5, 20.0, ""),
        |p, n| p.recovery.pr_beta = n,
        "TCP-PR waits so many times the largest round trip of late (3)",
        "Bohacek et al. 2006",
    ),
    number(
        "tax",
        "tax",
        (0.0, 0.99, ""),
        |p, n| p.recovery.tax = Some(n),
        "rebate: the rate of losses without congestion, set by hand",
        "P3 §IV A",
    ),
    number(
        "tax-scale",
        "tax scale",
        (0.0, 10.0, ""),
        |p, n| p.recovery.tax_scale = n,
        "rebate: the tax is multiplied by this (1)",
        "P3 §IV C",
    ),
    option(
        "reordering-alarm",
        "reordering alarm",
        |p| p.reordering_alarm = true,
        "receiver: ACKs tell how many segments came late by more than three",
        "P3 §III B",
    ),
    number(
        "fa-ratio",
        "false retransmits avoided",
        (10.0, 100.0, "%"),
        |p, n| p.recovery.fa_ratio = n,
        "RR-TCP avoids to send again so much of what is reordered (90)",
        "Zhang et al. 2003",
    ),
    option(
        "ba-average",
        "step of the threshold",
        |p| p.recovery.dup_thresh_step = DupThreshStep::Average,
        "blanton-allman goes half the way to the threshold that was needed",
        "Blanton and Allman 2002",
    ),
    option(
        "ba-ewma",
        "step of the threshold",
        |p| p.recovery.dup_thresh_step = DupThreshStep::Ewma,
        "blanton-allman goes a quarter of that way",
        "Blanton and Allman 2002",
    ),
    option(
        "delack",
        "delayed ACK",
        |p| p.ack = AckPolicy::DELAYED,
        "receiver: an ACK per two segments or 40 ms",
        "RFC 5681 §4.2",
    ),
    option(
        "no-delack",
        "delayed ACK",
        |p| p.ack = AckPolicy::EVERY,
        "receiver: an ACK per segment (P0's ND)",
        "P0 §3.2.1",
    ),
    option("no-sack", "SACK", |p| p.sack = SackOffer::Never, "SACK neither offered nor accepted", "RFC 2018"),
    option(
        "offer-sack",
        "SACK",
        |p| p.sack = SackOffer::Always,
        "SACK offered even if the sender does not use it",
        "RFC 2018",
    ),
    option(
        "no-timestamps",
        "timestamps",
        |p| p.timestamps = false,
        "timestamps neither offered nor accepted",
        "RFC 7323",
    ),
    option(
        "timestamps",
        "timestamps",
        |p| p.timestamps = true,
        "timestamps offered, where the profile would not",
        "RFC 7323",
    ),
    option("ecn", "ECN", |p| p.ecn = true, "explicit congestion notification negotiated", "RFC 3168"),
    option(
        "timer-rfc6298",
        "timer",
        |p| p.timer = Timer::RFC6298,
        "SRTT + max(G, 4·RTTVAR), at least 1 s",
        "RFC 6298",
    ),
    option(
        "timer-bsd",
        "timer",
        |p| p.timer = Timer::BSD,
        "500 ms ticks, at least 1 s, one segment timed",
        "P2 Fig. 5",
    ),
    option(
        "timer-linux22",
        "timer",
        |p| p.timer = Timer::LINUX22,
        "at least 200 ms, stretched for small windows",
        "P2 Fig. 5",
    ),
    option(
        "timer-linux24",
        "timer",
        |p| p.timer = Timer::LINUX24,
        "200 ms under the variance term",
        "P2 Fig. 5",
    ),
    option(
        "timer-solaris",
        "timer",
        |p| p.timer = Timer::SOLARIS,
        "1.25·SRTT + 4·RTTVAR, at least 400 ms",
        "P2 Fig. 5",
    ),
    number(
        "min-rto",
        "minimum RTO",
        (1.0, 60_000.0, "ms"),
        |p, n| p.timer.limits.min = Duration::from_secs_f64(n / 1e3),
        "the retransmission timeout is never shorter",
        "RFC 6298 (2.4)",
    ),
    number(
        "max-rto",
        "maximum RTO",
        (1000.0, 3_600_000.0, "ms"),
        |p, n| p.timer.limits.max = Duration::from_secs_f64(n / 1e3),
        "the retransmission timeout is never longer",
        "RFC 6298 (2.5)",
    ),
];

pub fn find(name: &str) -> Option<&'static Row> {
    CATALOGUE.iter().find(|row| row.name == name)
}

/// The row that answers `question` when a recipe does not.
pub fn ordinary_answer(question: Question) -> Option<&'static Row> {
    CATALOGUE.iter().find(|row| row.ordinary && row.question() == question)
}

/// The README's table: a test holds the README to it.
pub fn markdown() -> String {
    let mut table = String::from("| question | answers (the ordinary one first) |\n|---|---|\n");
    let names =
        |rows: &[&Row]| rows.iter().map(|row| format!("`{}`", row.name)).collect::<Vec<_>>().join(" ");
    for question in Question::ALL {
        let rows = CATALOGUE.iter().filter(|row| row.question() == question && !row.is_alias());
        let (mut answers, beside): (Vec<_>, Vec<_>) =
            rows.partition(|row| row.is_the_answer() || question == Question::Option);
        answers.sort_by_key(|row| !row.ordinary);
        let beside = match beside.as_slice() {
            [] => String::new(),
            rows => format!("; beside them {}", names(rows)),
        };
        table += &format!("| {} | {}{beside} |\n", question.text(), names(&answers));
    }
    for row in CATALOGUE {
        if let Build::Alias(meaning) = row.build {
            table += &format!("| *short for several* | `{}` = `{meaning}` |\n", row.name);
        }
    }
    table
}

/// The known name that was probably meant.
pub fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(name, CATALOGUE.iter().map(|row| row.name))
}

/// The word that somebody may have meant.
pub fn nearest_of<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|known| (edit_distance(name, known), known))
        .min()
        .filter(|(distance, known)| *distance <= 1 + known.len() / 3)
        .map(|(_, known)| known)
}

/// Levenshtein.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_question_has_one_ordinary_answer() {
        for (i, row) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE[..i].iter().all(|other| other.name != row.name), "{} twice", row.name);
            assert!(!row.summary.is_empty() && !row.citation.is_empty(), "{} is not explained", row.name);
        }
        for question in Question::ALL {
            let count = CATALOGUE.iter().filter(|row| row.ordinary && row.question() == question).count();
            assert_eq!(count, usize::from(question != Question::Option), "{question:?}");
        }
    }

    #[test]
    fn a_misspelt_name_finds_the_one_that_was_meant() {
        assert_eq!(nearest("newrno"), Some("newreno"));
        assert_eq!(nearest("limited-transmitt"), Some("limited-transmit"));
        assert_eq!(nearest("xyzzy-plugh"), None);
    }
}
