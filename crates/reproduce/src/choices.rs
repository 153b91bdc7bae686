//! What was chosen where a paper is silent, for several of its figures at once. What one figure alone has to choose is
//! in its [`Finding`](crate::Finding).

use crate::{Figure, Finding, Paper, listed, p0, p1, p2, p3, p4};

/// Choices that figures of a paper have in common.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// Which figures.
    pub by: By,
    /// A sentence for each, in Markdown.
    pub choices: fn() -> Vec<String>,
}

/// The figures that share choices.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// Each that the paper has.
    All,
    /// Those with these names.
    These(&'static [&'static str]),
}

impl By {
    /// Whether a figure is one of them.
    pub fn has(self, figure: &Figure) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(&figure.id),
        }
    }

    /// What stands over their choices, in Markdown.
    pub fn heading(self) -> String {
        let of = match self {
            Self::All => "all figures".to_owned(),
            Self::These(names) => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        };
        format!("In {of}, unless one says otherwise:")
    }
}

impl Shared {
    /// The choices under their heading.
    pub fn markdown(&self) -> String {
        format!("{}\n\n{}\n", self.by.heading(), listed(&(self.choices)()))
    }
}

impl Paper {
    /// What its figures have in common.
    pub const fn shared(self) -> &'static [Shared] {
        match self {
            Self::P0 => p0::SHARED,
            Self::P1 => p1::SHARED,
            Self::P2 => p2::SHARED,
            Self::P3 => p3::SHARED,
            Self::P4 => p4::SHARED,
            // One figure.
            Self::Every => &[],
        }
    }

    /// What these of its figures have in common, with each other or with the rest.
    pub fn shared_by(self, figures: &[Figure]) -> impl Iterator<Item = &'static Shared> {
        self.shared().iter().filter(|shared| figures.iter().any(|figure| shared.by.has(figure)))
    }
}

impl Figure {
    /// What this figure has in common with others.
    pub fn shared(&self) -> impl Iterator<Item = &'static Shared> {
        self.paper.shared().iter().filter(|shared| shared.by.has(self))
    }

    /// All that was chosen for it, alone or in common with others.
    pub fn choices(&self, finding: &Finding) -> Vec<String> {
        self.shared().flat_map(|shared| (shared.choices)()).chain(finding.choices.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;

    #[test]
    fn what_is_shared_is_by_figures_of_the_paper_and_by_more_than_one() {
        let figures = figures();
        for paper in Paper::ALL {
            for shared in paper.shared() {
                let By::These(names) = shared.by else { continue };
                let known =
                    |name: &&&str| figures.iter().any(|figure| figure.paper == paper && figure.id == **name);
                assert_eq!(names.iter().filter(known).count(), names.len(), "{names:?}");
                assert!(names.len() > 1, "{names:?}: it belongs into the finding");
            }
        }
    }

    #[test]
    fn a_choice_stands_once_in_a_paper() {
        for paper in Paper::ALL {
            let all: Vec<String> = paper.shared().iter().flat_map(|shared| (shared.choices)()).collect();
            let different: std::collections::BTreeSet<&String> = all.iter().collect();
            assert_eq!(different.len(), all.len(), "{paper:?}");
            assert!(!all.is_empty(), "{paper:?}");
        }
    }
}
