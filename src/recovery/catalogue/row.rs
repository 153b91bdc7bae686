//! A row of the catalogue: what it is called, which question it answers, and how it becomes part of a sender.

use crate::profile::{Profile, ProfileName};
use crate::recovery::attribute::Attribute;
use crate::recovery::detect::Detect;
use crate::recovery::episode::{Cue, Phase};
use crate::recovery::parameter::{Given, Parameter, Range};
use crate::recovery::repair::Repair;
use crate::recovery::timeout::Timeout;
use crate::recovery::undo::Undo;
use crate::recovery::window::{InRecovery, SlowStart, Window};

/// The six questions, and the plain options.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Question {
    /// Is it lost?
    Detect,
    /// Why was it lost?
    Attribute,
    /// What to retransmit?
    Repair,
    /// How much may be in flight?
    Window,
    /// What does a timeout mean?
    Timeout,
    /// Was that a mistake?
    Undo,
    /// No question: an option of the host or of its peer's handshake.
    Option,
}

impl Question {
    /// In the order in which tables show them.
    pub const ALL: [Self; 7] =
        [Self::Repair, Self::Detect, Self::Attribute, Self::Window, Self::Timeout, Self::Undo, Self::Option];

    /// As a person asks it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Detect => "Is it lost?",
            Self::Attribute => "Why was it lost?",
            Self::Repair => "What to retransmit?",
            Self::Window => "How much may be in flight?",
            Self::Timeout => "What does a timeout mean?",
            Self::Undo => "Was that a mistake?",
            Self::Option => "Options",
        }
    }

    /// As logs write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Detect => "detect",
            Self::Attribute => "attribute",
            Self::Repair => "repair",
            Self::Window => "window",
            Self::Timeout => "timeout",
            Self::Undo => "undo",
            Self::Option => "option",
        }
    }
}

/// What an answer cannot do without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// SACK, and so D-SACK.
    Sack,
    /// The timestamps option (RFC 7323).
    Timestamps,
    /// To be told what only the path knows ([`Truth`](crate::recovery::Truth)): virtual time.
    Truth,
}

impl Need {
    /// For programs and people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sack => "SACK",
            Self::Timestamps => "timestamps",
            Self::Truth => "virtual time",
        }
    }
}

/// How a row becomes part of a sender.
#[derive(Clone, Copy)]
pub enum Build {
    /// Answers "Is it lost?".
    Detect(fn(&Given<'_>) -> Box<dyn Detect>),
    /// Answers "Why was it lost?".
    Attribute(fn(&Given<'_>) -> Box<dyn Attribute>),
    /// Answers "What to retransmit?".
    Repair(fn(&Given<'_>) -> Box<dyn Repair>),
    /// Answers "How much may be in flight?".
    Window(fn(&Given<'_>) -> Box<dyn Window>),
    /// Answers "What does a timeout mean?".
    Timeout(fn(&Given<'_>) -> Box<dyn Timeout>),
    /// Answers "Was that a mistake?".
    Undo(fn(&Given<'_>) -> Box<dyn Undo>),
    /// Another witness of a loss, beside the detector.
    Witness(fn(&Given<'_>) -> Box<dyn Detect>),
    /// The window during fast recovery.
    InRecovery(fn(&Given<'_>) -> Box<dyn InRecovery>),
    /// Looks for the end of slow start.
    SlowStart(fn(&Given<'_>) -> Box<dyn SlowStart>),
    /// Judges that watch: they are asked why a segment was lost, and change nothing.
    Judges(fn(&Given<'_>) -> Vec<Box<dyn Attribute>>),
    /// A name for several parts.
    Alias(&'static str),
    /// A parameter of an algorithm that answers this question; its constructor asks [`Given`] for it.
    Parameter(Question, Option<Range>),
    /// Sets a field of the profile.
    Option(fn(&mut Profile)),
    /// Sets a field of the profile to a number: `iw=4`.
    Number(Range, fn(&mut Profile, f64)),
}

/// Something that a recipe can name.
#[derive(Clone, Copy)]
pub struct Row {
    /// The word in a recipe.
    pub name: &'static str,
    /// How it becomes part of a sender.
    pub build: Build,
    /// What it sets: two rows with the same subject contradict each other, as two answers to one question always do.
    /// Empty: it contradicts nothing.
    pub subject: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// What it cannot do without.
    pub needs: &'static [Need],
    /// Why one loss event may reduce the window more than once. `None`: it may not.
    pub reduces_again: Option<&'static str>,
    /// What moves a sender from one state to another because it has this part ([`MOVES`](crate::recovery::MOVES)).
    pub cues: &'static [Cue],
    /// The states in which its cue moves the sender. Of repairs, detectors and witnesses: the states in which a loss
    /// that is found begins a loss event; it is enough if one of them says so.
    pub heard_in: &'static [Phase],
    /// The answer to another question without which it does not work; it is brought when none is named. `None`: it
    /// works with any.
    pub with: Option<&'static str>,
    /// It answers its question when a recipe names no other answer.
    pub ordinary: bool,
    /// It marks single segments as lost on the scoreboard of RFC 6675, which the 1996 dialect of `sack` does not read:
    /// the recipe has the other dialect, whatever the profile says.
    pub marks_segments: bool,
    /// Words that set the algorithm's own parameters.
    pub parameters: &'static [Self],
    /// Of a name for several parts: a recipe that has all of them is called so, and whoever types it means this profile
    /// if no other is named.
    pub names_a_sender: Option<ProfileName>,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Row({})", self.name)
    }
}

impl Row {
    /// An answer to a question, or something that stands beside one. It needs nothing and has no parameters until the
    /// methods below say otherwise. A repair has fast recovery; it begins no loss event before `recover` is
    /// acknowledged (RFC 6582 §3.2 step 1), and no detector has it do so.
    pub const fn answer(
        name: &'static str,
        build: Build,
        summary: &'static str,
        citation: &'static str,
    ) -> Self {
        Self {
            name,
            build,
            subject: "",
            summary,
            citation,
            needs: &[],
            reduces_again: None,
            cues: match build {
                // Where the radio has lost something even Tahoe does not start over.
                Build::Repair(_) | Build::Attribute(_) => &[Cue::Loss],
                Build::Undo(_) => &[Cue::Mistake],
                _ => &[],
            },
            heard_in: match build {
                Build::Repair(_) | Build::Detect(_) | Build::Witness(_) => &[Phase::Open],
                _ => &Phase::ALL,
            },
            with: None,
            ordinary: false,
            marks_segments: false,
            parameters: &[],
            names_a_sender: None,
        }
    }

    /// An option that sets a field of the profile. Options with the same `subject` contradict each other.
    pub const fn option(
        name: &'static str,
        subject: &'static str,
        set: fn(&mut Profile),
        summary: &'static str,
        citation: &'static str,
    ) -> Self {
        Self { subject, ..Self::answer(name, Build::Option(set), summary, citation) }
    }

    /// An option that sets a field of the profile to a number from `min` to `max`.
    pub const fn number(
        name: &'static str,
        subject: &'static str,
        (min, max, unit): (f64, f64, &'static str),
        set: fn(&mut Profile, f64),
        summary: &'static str,
        citation: &'static str,
    ) -> Self {
        let build = Build::Number(Range { min, max, unit }, set);
        Self { subject, ..Self::answer(name, build, summary, citation) }
    }

    /// A parameter of an algorithm that answers the question `of`.
    pub const fn parameter(of: Question, parameter: Parameter) -> Self {
        let Parameter { name, subject, range, summary, citation } = parameter;
        Self { subject, ..Self::answer(name, Build::Parameter(of, range), summary, citation) }
    }

    /// It cannot do without these.
    #[must_use]
    pub const fn needs(self, needs: &'static [Need]) -> Self {
        Self { needs, ..self }
    }

    /// It works with this answer to another question only, and brings it.
    #[must_use]
    pub const fn works_with(self, answer: &'static str) -> Self {
        Self { with: Some(answer), ..self }
    }

    /// It decides this, and whatever else does contradicts it.
    #[must_use]
    pub const fn decides(self, subject: &'static str) -> Self {
        Self { subject, ..self }
    }

    /// One loss event may reduce the window more than once, for this reason.
    #[must_use]
    pub const fn reduces_again(self, why: &'static str) -> Self {
        Self { reduces_again: Some(why), ..self }
    }

    /// These move a sender from one state to another, in place of what moves one that has any other such part.
    #[must_use]
    pub const fn cues(self, cues: &'static [Cue]) -> Self {
        Self { cues, ..self }
    }

    /// Its cue moves the sender in these states, or a loss that is found begins a loss event in them.
    #[must_use]
    pub const fn heard_in(self, heard_in: &'static [Phase]) -> Self {
        Self { heard_in, ..self }
    }

    /// It answers its question when a recipe names no other answer.
    #[must_use]
    pub const fn ordinary(self) -> Self {
        Self { ordinary: true, ..self }
    }

    /// It marks single segments as lost, on the scoreboard of RFC 6675.
    #[must_use]
    pub const fn marks_segments(self) -> Self {
        Self { marks_segments: true, ..self }
    }

    /// A recipe that has all of its parts is called so; it is meant with this profile.
    #[must_use]
    pub const fn names_a_sender(self, with: ProfileName) -> Self {
        Self { names_a_sender: Some(with), ..self }
    }

    /// These words set its parameters.
    #[must_use]
    pub const fn parameters(self, parameters: &'static [Self]) -> Self {
        Self { parameters, ..self }
    }

    /// The question that it answers or belongs to.
    pub const fn question(&self) -> Question {
        match self.build {
            Build::Detect(_) | Build::Witness(_) => Question::Detect,
            Build::Attribute(_) | Build::Judges(_) => Question::Attribute,
            Build::Repair(_) | Build::Alias(_) => Question::Repair,
            Build::Window(_) | Build::InRecovery(_) | Build::SlowStart(_) => Question::Window,
            Build::Timeout(_) => Question::Timeout,
            Build::Undo(_) => Question::Undo,
            Build::Parameter(of, _) => of,
            Build::Option(_) | Build::Number(..) => Question::Option,
        }
    }

    /// Whether it is a name for several parts.
    pub const fn is_alias(&self) -> bool {
        matches!(self.build, Build::Alias(_))
    }

    /// Whether it is a parameter of an algorithm.
    pub const fn is_parameter(&self) -> bool {
        matches!(self.build, Build::Parameter(..))
    }

    /// The numbers that may stand behind it. If it has a range it needs a number; `None`: it takes none.
    pub const fn range(&self) -> Option<Range> {
        match self.build {
            Build::Number(range, _) => Some(range),
            Build::Parameter(_, range) => range,
            _ => None,
        }
    }

    /// Whether it is an answer, of which a recipe has one per question, and not something that stands beside one.
    pub const fn is_the_answer(&self) -> bool {
        matches!(
            self.build,
            Build::Detect(_)
                | Build::Attribute(_)
                | Build::Repair(_)
                | Build::Window(_)
                | Build::Timeout(_)
                | Build::Undo(_)
        )
    }
}
