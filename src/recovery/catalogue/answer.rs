//! Answers in use.

use std::ops::{Deref, DerefMut};

use super::{Question, Row};

/// The author of a decision: an algorithm, and the question that it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::recovery) struct Author {
    pub(in crate::recovery) question: Question,
    pub(in crate::recovery) name: &'static str,
}

/// An answer or an add-on that a sender uses, with its row in the catalogue.
#[derive(Debug)]
pub struct Answer<T: ?Sized> {
    row: &'static Row,
    algorithm: Box<T>,
}

impl<T: ?Sized> Answer<T> {
    pub(in crate::recovery) fn new(row: &'static Row, algorithm: Box<T>) -> Self {
        Self { row, algorithm }
    }

    /// Returns the row. Its name is the one in the decision trace.
    pub fn row(&self) -> &'static Row {
        self.row
    }

    pub(in crate::recovery) fn author(&self) -> Author {
        Author { question: self.row.question(), name: self.row.name }
    }
}

impl<T: ?Sized> Deref for Answer<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.algorithm
    }
}

impl<T: ?Sized> DerefMut for Answer<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.algorithm
    }
}
