//! The algorithms of one sender.

use crate::profile::Profile;
use crate::recovery::attribute::Attribute;
use crate::recovery::catalogue::{self, Answer, Author, Build, Need, Question, Row};
use crate::recovery::detect::Detect;
use crate::recovery::parameter::Arguments;
use crate::recovery::repair::Repair;
use crate::recovery::timeout::Timeout;
use crate::recovery::undo::Undo;
use crate::recovery::window::{InRecovery, SlowStart, Window};
use crate::recovery::{Ack, Transmission, View};

/// The six answers of a recipe, and its add-ons.
#[derive(Debug)]
pub(in crate::recovery) struct Answers {
    pub(super) detect: Answer<dyn Detect>,
    pub(super) attribute: Answer<dyn Attribute>,
    pub(super) repair: Answer<dyn Repair>,
    pub(super) window: Answer<dyn Window>,
    pub(super) timeout: Answer<dyn Timeout>,
    pub(super) undo: Answer<dyn Undo>,
    /// Boxed to keep connections small, because few recipes have add-ons.
    pub(super) add_ons: Option<Box<AddOns>>,
}

/// The add-ons of a recipe.
#[derive(Debug, Default)]
pub(super) struct AddOns {
    /// Additional loss detectors, consulted after the primary one.
    pub(super) detectors: Vec<Answer<dyn Detect>>,
    /// Attribution algorithms that record their verdicts and do not change the sender.
    pub(super) judges: Vec<Answer<dyn Attribute>>,
    /// Sets the window during fast recovery.
    pub(super) in_recovery: Option<Answer<dyn InRecovery>>,
    /// Decides when slow start ends.
    pub(super) slow_start: Option<Answer<dyn SlowStart>>,
}

/// Builds the algorithm of a row that answers `$question`.
macro_rules! build {
    ($question:ident, $row:expr, $arguments:expr) => {{
        let row: &'static Row = $row.in_profile($arguments.profile());
        match row.build {
            Build::$question(make) => Answer::new(row, make($arguments)),
            _ => unreachable!("{row:?} answers another question"),
        }
    }};
}

fn default_answer(question: Question) -> &'static Row {
    catalogue::default_answer(question).expect("a test of the catalogue checks that there is one")
}

impl Answers {
    /// Builds the algorithms of a recipe. `answer` returns the row of each answer, and `parts` are the rows
    /// that the recipe names.
    pub(in crate::recovery) fn new(
        answer: impl Fn(Question) -> Option<&'static Row>,
        parts: impl Iterator<Item = &'static Row>,
        arguments: &Arguments<'_>,
    ) -> Self {
        let row = |question| answer(question).unwrap_or_else(|| default_answer(question));
        let mut answers = Self {
            detect: build!(Detect, row(Question::Detect), arguments),
            attribute: build!(Attribute, row(Question::Attribute), arguments),
            repair: build!(Repair, row(Question::Repair), arguments),
            window: build!(Window, row(Question::Window), arguments),
            timeout: build!(Timeout, row(Question::Timeout), arguments),
            undo: build!(Undo, row(Question::Undo), arguments),
            add_ons: None,
        };
        for row in parts {
            let add_ons = &mut answers.add_ons;
            match row.build {
                Build::AdditionalDetector(make) => {
                    add_ons.get_or_insert_default().detectors.push(Answer::new(row, make(arguments)));
                }
                Build::InRecovery(make) => {
                    add_ons.get_or_insert_default().in_recovery = Some(Answer::new(row, make(arguments)));
                }
                Build::SlowStart(make) => {
                    add_ons.get_or_insert_default().slow_start = Some(Answer::new(row, make(arguments)));
                }
                Build::Judges(names) => {
                    let rows = names.iter().filter_map(|name| catalogue::find(name));
                    let judges = rows.map(|row| build!(Attribute, row, arguments));
                    add_ons.get_or_insert_default().judges.extend(judges);
                }
                _ => {}
            }
        }
        answers
    }

    pub(in crate::recovery) fn into_judges(self) -> Vec<Answer<dyn Attribute>> {
        self.add_ons.map(|add_ons| add_ons.judges).unwrap_or_default()
    }

    /// Replaces an answer that depends on `need` by the default one. Returns the replaced answer
    /// and the name of the default one.
    pub(super) fn fall_back(
        &mut self,
        need: Need,
        question: Question,
        profile: &Profile,
    ) -> Option<(Author, &'static str)> {
        macro_rules! replace {
            ($answer:ident, $question:ident) => {{
                let (by, row) = (self.$answer.author(), catalogue::fallback(need, question, profile));
                self.$answer.row().requires(need).then(|| {
                    self.$answer = build!($question, row, &Arguments::new(profile, &[]));
                    (by, row.name)
                })
            }};
        }
        match question {
            Question::Detect => replace!(detect, Detect),
            Question::Repair => replace!(repair, Repair),
            Question::Undo => replace!(undo, Undo),
            _ => None,
        }
    }

    pub(super) fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        self.each_detector(|detect| detect.on_sent(view, transmission));
        self.each_attribute(|attribute| attribute.on_sent(view));
        self.repair.on_sent(view, transmission);
        self.window.on_sent(view, transmission);
        if view.cc.episode.is_regulated()
            && let Some(in_recovery) = self.in_recovery()
        {
            in_recovery.on_sent(view, transmission);
        }
        self.undo.on_sent(transmission);
    }

    /// Passes an ACK to all estimators.
    pub(super) fn observe(&mut self, view: &View<'_>, ack: &Ack) {
        self.each_attribute(|attribute| attribute.on_ack(view, ack));
        self.window.observe(view, ack);
        if let Some(slow_start) = self.slow_start() {
            slow_start.observe(view, ack);
        }
    }

    pub(super) fn on_timeout(&mut self, view: &View<'_>) {
        self.each_detector(|detect| detect.on_timeout(view));
        if let Some(slow_start) = self.slow_start() {
            slow_start.on_timeout();
        }
        self.repair.on_timeout(view);
        self.window.after_timeout();
    }

    /// Returns whether the repair finds holes with the SACK scoreboard.
    pub(super) fn has_scoreboard(&self) -> bool {
        self.repair.row().requires(Need::Sack)
    }

    pub(super) fn each_detector(&mut self, mut each: impl FnMut(&mut dyn Detect)) {
        each(&mut *self.detect);
        if let Some(add_ons) = &mut self.add_ons {
            add_ons.detectors.iter_mut().for_each(|detector| each(&mut **detector));
        }
    }

    pub(super) fn each_attribute(&mut self, mut each: impl FnMut(&mut dyn Attribute)) {
        each(&mut *self.attribute);
        if let Some(add_ons) = &mut self.add_ons {
            add_ons.judges.iter_mut().for_each(|judge| each(&mut **judge));
        }
    }

    pub(super) fn additional_detector(&mut self, index: usize) -> Option<&mut Answer<dyn Detect>> {
        self.add_ons.as_mut()?.detectors.get_mut(index)
    }

    pub(super) fn judge(&mut self, index: usize) -> Option<&mut Answer<dyn Attribute>> {
        self.add_ons.as_mut()?.judges.get_mut(index)
    }

    pub(super) fn in_recovery(&mut self) -> Option<&mut Answer<dyn InRecovery>> {
        self.add_ons.as_mut()?.in_recovery.as_mut()
    }

    pub(super) fn slow_start(&mut self) -> Option<&mut Answer<dyn SlowStart>> {
        self.add_ons.as_mut()?.slow_start.as_mut()
    }
}
