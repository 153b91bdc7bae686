//! A row of the catalogue: a name, the question that the algorithm answers, and the function that builds it
//! into a sender.

use crate::profile::{Profile, ProfileName};
use crate::recovery::attribute::Attribute;
use crate::recovery::detect::Detect;
use crate::recovery::episode::{Condition, RecoveryState};
use crate::recovery::parameter::{Arguments, Parameter, Range};
use crate::recovery::repair::{self, Repair};
use crate::recovery::timeout::Timeout;
use crate::recovery::undo::Undo;
use crate::recovery::window::{InRecovery, SlowStart, Window};

/// The six questions, and a variant for options.
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
    /// An option, which does not answer a question.
    Option,
}

impl Question {
    /// All questions, in the order in which tables show them.
    pub const ALL: [Self; 7] =
        [Self::Repair, Self::Detect, Self::Attribute, Self::Window, Self::Timeout, Self::Undo, Self::Option];

    /// Returns the question as text for users.
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

    /// Returns the name used in logs.
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

/// Information from outside the sender that a part of a recipe requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// SACK is negotiated (RFC 2018).
    Sack,
    /// The receiver reports duplicate data (RFC 2883).
    Dsack,
    /// The timestamps option is negotiated (RFC 7323).
    Timestamps,
    /// ECN is negotiated (RFC 3168).
    Ecn,
    /// Queues of the path mark packets, and the receiver echoes the marks (RFC 3168).
    EcnMarks,
    /// Base stations mark ACKs ([`RadioPath`](airwire::marks::RadioPath)).
    TransitMarks,
    /// Base stations add the loss rate of their radio link to ACKs
    /// ([`LossRate`](airwire::experiment::LossRate)).
    LossReports,
    /// Ground truth about the path ([`Truth`](crate::recovery::Truth)), which is available only in virtual
    /// time.
    Truth,
}

impl Need {
    /// All kinds of information.
    pub const ALL: [Self; 8] = [
        Self::Sack,
        Self::Dsack,
        Self::Timestamps,
        Self::Ecn,
        Self::EcnMarks,
        Self::TransitMarks,
        Self::LossReports,
        Self::Truth,
    ];

    /// Returns the name for machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sack => "SACK",
            Self::Dsack => "D-SACK",
            Self::Timestamps => "timestamps",
            Self::Ecn => "ECN",
            Self::EcnMarks => "ECN marks",
            Self::TransitMarks => "transit marks",
            Self::LossReports => "loss-rate reports",
            Self::Truth => "virtual time",
        }
    }
}

/// The way in which a row becomes part of a sender.
#[derive(Clone, Copy)]
pub enum Build {
    /// Answers *Is it lost?*
    Detect(fn(&Arguments<'_>) -> Box<dyn Detect>),
    /// Answers *Why was it lost?*
    Attribute(fn(&Arguments<'_>) -> Box<dyn Attribute>),
    /// Answers *What to retransmit?*
    Repair(fn(&Arguments<'_>) -> Box<dyn Repair>),
    /// Answers *How much may be in flight?*
    Window(fn(&Arguments<'_>) -> Box<dyn Window>),
    /// Answers *What does a timeout mean?*
    Timeout(fn(&Arguments<'_>) -> Box<dyn Timeout>),
    /// Answers *Was that a mistake?*
    Undo(fn(&Arguments<'_>) -> Box<dyn Undo>),
    /// An additional loss detector, consulted after the detector.
    AdditionalDetector(fn(&Arguments<'_>) -> Box<dyn Detect>),
    /// Sets the window during fast recovery.
    InRecovery(fn(&Arguments<'_>) -> Box<dyn InRecovery>),
    /// Decides when slow start ends.
    SlowStart(fn(&Arguments<'_>) -> Box<dyn SlowStart>),
    /// The names of attribution algorithms that record the cause of each loss and do not change the sender.
    Judges(&'static [&'static str]),
    /// An alias for a whole recipe.
    Alias(&'static str),
    /// A parameter of an algorithm that answers this question. The algorithm's constructor reads it from
    /// [`Arguments`].
    Parameter(Question, Option<Range>),
    /// Sets a field of the profile.
    Option(fn(&mut Profile)),
    /// Sets a field of the profile to a number: `iw=4`.
    Number(Range, fn(&mut Profile, f64)),
}

/// Returns whether a profile means the algorithm of another row by a name.
type IsMeant = fn(&Profile) -> bool;

/// A name that a recipe can contain.
#[derive(Clone, Copy)]
pub struct Row {
    /// The name in a recipe.
    pub name: &'static str,
    /// The way in which the row becomes part of a sender.
    pub build: Build,
    /// The subject that the row decides. Two rows with the same subject contradict each other, as two answers
    /// to one question always do. If empty, the row contradicts nothing.
    pub subject: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Source of the algorithm or option.
    pub citation: &'static str,
    /// Information that the row requires.
    pub needs: &'static [Need],
    /// Information that other parts of a recipe no longer require because of this row.
    pub replaces: &'static [Need],
    /// Reason why one episode may reduce the window more than once. `None`: at most one reduction.
    pub reduces_again: Option<&'static str>,
    /// Conditions for a change of state that the row adds to a sender ([`TRANSITIONS`](crate::recovery::TRANSITIONS)).
    pub conditions: &'static [Condition],
    /// States in which these conditions apply. For repairs and loss detectors: states in which a detected
    /// loss starts an episode. It is enough if one part of the recipe lists the state.
    pub active_states: &'static [RecoveryState],
    /// The answer to another question that the row requires. If a recipe does not name it, the recipe gets it
    /// implicitly. `None` if the row works with any answer.
    pub with: Option<&'static str>,
    /// A different algorithm that the name means in some profiles, and the condition that selects it.
    pub dialect: Option<(IsMeant, &'static Self)>,
    /// Whether this is the default answer to its question.
    pub is_default: bool,
    /// Whether the detector judges each segment separately, and marks it as lost on the scoreboard of RFC 6675.
    /// Only segments declared lost are retransmitted, even without new data to send (NextSeg rules 3
    /// and 4 do not apply). The 1996 dialect of `sack` ignores these marks, so the recipe then uses the
    /// RFC 6675 dialect in every profile.
    pub marks_segments: bool,
    /// Properties of a repair.
    pub repair: repair::Traits,
    /// Rows of the algorithm's parameters.
    pub parameters: &'static [Self],
    /// The profile that an alias of a kernel sender implies if the user names no other. A recipe with all
    /// parts of such an alias is displayed under the alias.
    pub names_a_sender: Option<ProfileName>,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Row({})", self.name)
    }
}

impl Row {
    /// Creates a row for an answer or an add-on. By default it requires nothing and has no parameters, a
    /// repair has fast recovery, and neither a repair nor a detector starts an episode before `recover` is
    /// acknowledged (RFC 6582 §3.2 step 2). The methods below change these defaults.
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
            replaces: &[],
            reduces_again: None,
            conditions: match build {
                // After a loss on the radio link, even Tahoe uses fast recovery.
                Build::Repair(_) | Build::Attribute(_) => &[Condition::Loss],
                Build::Undo(_) => &[Condition::Mistake],
                _ => &[],
            },
            active_states: match build {
                Build::Repair(_) | Build::Detect(_) | Build::AdditionalDetector(_) => &[RecoveryState::Open],
                _ => &RecoveryState::ALL,
            },
            with: None,
            dialect: None,
            is_default: false,
            marks_segments: false,
            repair: repair::Traits::DEFAULT,
            parameters: &[],
            names_a_sender: None,
        }
    }

    /// Creates an option that sets a field of the profile. Options with the same `subject` contradict each
    /// other.
    pub const fn option(
        name: &'static str,
        subject: &'static str,
        set: fn(&mut Profile),
        summary: &'static str,
        citation: &'static str,
    ) -> Self {
        Self { subject, ..Self::answer(name, Build::Option(set), summary, citation) }
    }

    /// Creates an option that sets a field of the profile to a number from `min` to `max`.
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

    /// Creates a parameter of an algorithm that answers the question `of`.
    pub const fn parameter(of: Question, parameter: Parameter) -> Self {
        let Parameter { name, subject, range, summary, citation } = parameter;
        Self { subject, ..Self::answer(name, Build::Parameter(of, range), summary, citation) }
    }

    /// Sets the information that the row requires.
    #[must_use]
    pub const fn needs(self, needs: &'static [Need]) -> Self {
        Self { needs, ..self }
    }

    /// Sets the information that other parts of a recipe no longer require because of this row.
    #[must_use]
    pub const fn replaces(self, needs: &'static [Need]) -> Self {
        Self { replaces: needs, ..self }
    }

    /// Sets the answer to another question that the row requires. A recipe that does not name it gets it
    /// implicitly.
    #[must_use]
    pub const fn works_with(self, answer: &'static str) -> Self {
        Self { with: Some(answer), ..self }
    }

    /// Sets the subject that the row decides. All rows with the same subject contradict each other.
    #[must_use]
    pub const fn decides(self, subject: &'static str) -> Self {
        Self { subject, ..self }
    }

    /// Sets the reason why one episode may reduce the window more than once.
    #[must_use]
    pub const fn reduces_again(self, why: &'static str) -> Self {
        Self { reduces_again: Some(why), ..self }
    }

    /// Replaces the default conditions for a change of state that a row of this kind adds to a sender.
    #[must_use]
    pub const fn conditions(self, conditions: &'static [Condition]) -> Self {
        Self { conditions, ..self }
    }

    /// Sets the states in which the row's conditions apply, or in which a detected loss starts an episode.
    #[must_use]
    pub const fn active_states(self, active_states: &'static [RecoveryState]) -> Self {
        Self { active_states, ..self }
    }

    /// Sets the algorithm that the name means in some profiles.
    #[must_use]
    pub const fn dialect(self, is_meant: IsMeant, row: &'static Self) -> Self {
        Self { dialect: Some((is_meant, row)), ..self }
    }

    /// Makes the row the default answer to its question.
    #[must_use]
    pub const fn default_answer(self) -> Self {
        Self { is_default: true, ..self }
    }

    /// Declares that the detector judges each segment separately, and marks it as lost on the scoreboard of
    /// RFC 6675.
    #[must_use]
    pub const fn marks_segments(self) -> Self {
        Self { marks_segments: true, ..self }
    }

    /// Sets the properties of a repair.
    #[must_use]
    pub const fn repair_traits(self, repair: repair::Traits) -> Self {
        Self { repair, ..self }
    }

    /// Declares that every recipe with all parts of this alias is displayed under the alias, and that the
    /// alias implies this profile.
    #[must_use]
    pub const fn names_a_sender(self, with: ProfileName) -> Self {
        Self { names_a_sender: Some(with), ..self }
    }

    /// Sets the rows of the algorithm's parameters.
    #[must_use]
    pub const fn parameters(self, parameters: &'static [Self]) -> Self {
        Self { parameters, ..self }
    }

    /// Returns the row of the algorithm that the name means in this profile.
    pub(crate) fn in_profile(&'static self, profile: &Profile) -> &'static Self {
        match self.dialect {
            Some((is_meant, row)) if is_meant(profile) => row,
            _ => self,
        }
    }

    /// Returns whether the algorithm depends on this information: it needs the information itself, or it
    /// [works with](Self::works_with) an answer that needs it.
    #[inline]
    pub(crate) fn requires(&self, need: Need) -> bool {
        let with = || self.with.and_then(super::find);
        self.needs.contains(&need) || with().is_some_and(|row| row.needs.contains(&need))
    }

    /// Returns the question that the row answers or belongs to.
    pub const fn question(&self) -> Question {
        match self.build {
            Build::Detect(_) | Build::AdditionalDetector(_) => Question::Detect,
            Build::Attribute(_) | Build::Judges(_) => Question::Attribute,
            Build::Repair(_) | Build::Alias(_) => Question::Repair,
            Build::Window(_) | Build::InRecovery(_) | Build::SlowStart(_) => Question::Window,
            Build::Timeout(_) => Question::Timeout,
            Build::Undo(_) => Question::Undo,
            Build::Parameter(of, _) => of,
            Build::Option(_) | Build::Number(..) => Question::Option,
        }
    }

    /// Returns whether the row is an alias.
    pub const fn is_alias(&self) -> bool {
        matches!(self.build, Build::Alias(_))
    }

    /// Returns whether the row is a parameter of an algorithm.
    pub const fn is_parameter(&self) -> bool {
        matches!(self.build, Build::Parameter(..))
    }

    /// Returns the range of the row's number. A name with a range requires a number, and a name without one
    /// (`None`) takes none.
    pub const fn range(&self) -> Option<Range> {
        match self.build {
            Build::Number(range, _) => Some(range),
            Build::Parameter(_, range) => range,
            _ => None,
        }
    }

    /// Returns whether the row answers a question. A recipe has one answer per question. Add-ons and options
    /// are not answers.
    pub const fn is_answer(&self) -> bool {
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
