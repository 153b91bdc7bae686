//! Choices for several figures of a paper at once, where the paper leaves something open. Choices for a single figure
//! are in its [`Finding`](crate::Finding).

use airtcp_numbers::table::wrapped;

use crate::finding::WIDTH;
use crate::{Figure, Finding, Paper, chandra2003, inamura2009, lai2013, listed, ni2002, pan2004};

/// Choices that several figures of a paper share.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// The figures that share them.
    pub by: By,
    /// One Markdown paragraph per choice.
    pub choices: fn() -> Vec<String>,
}

/// The figures that share choices.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// All figures of the paper.
    All,
    /// The figures with these ids.
    These(&'static [&'static str]),
}

impl By {
    /// Whether `figure` is one of them.
    pub fn has(self, figure: &Figure) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(&figure.id),
        }
    }

    /// The heading of their choices, in Markdown.
    pub fn heading(self) -> String {
        let of = match self {
            Self::All => "all figures".to_owned(),
            Self::These(names) => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        };
        format!("In {of}, unless a figure says otherwise:")
    }
}

impl Shared {
    /// The choices under their heading.
    pub fn markdown(&self) -> String {
        format!("{}\n{}\n", wrapped("", &self.by.heading(), WIDTH), listed(&(self.choices)()))
    }
}

impl Paper {
    /// Choices that figures of this paper share.
    pub const fn shared(self) -> &'static [Shared] {
        match self {
            Self::Pan2004 => pan2004::SHARED,
            Self::Ni2002 => ni2002::SHARED,
            Self::Inamura2009 => inamura2009::SHARED,
            Self::Lai2013 => lai2013::SHARED,
            Self::Chandra2003 => chandra2003::SHARED,
            // It has only one figure.
            Self::Every => &[],
        }
    }

    /// The shared choices that apply to any of `figures`.
    pub fn shared_by(self, figures: &[Figure]) -> impl Iterator<Item = &'static Shared> {
        self.shared().iter().filter(|shared| figures.iter().any(|figure| shared.by.has(figure)))
    }
}

impl Figure {
    /// The shared choices that apply to this figure.
    pub fn shared(&self) -> impl Iterator<Item = &'static Shared> {
        self.paper.shared().iter().filter(|shared| shared.by.has(self))
    }

    /// All choices for this figure: the shared ones, then its own.
    pub fn choices(&self, finding: &Finding) -> Vec<String> {
        self.shared().flat_map(|shared| (shared.choices)()).chain(finding.choices.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;

    #[test]
    fn shared_choices_belong_to_several_figures_of_paper() {
        let figures = figures();
        for paper in Paper::ALL {
            for shared in paper.shared() {
                let By::These(names) = shared.by else { continue };
                let known =
                    |name: &&&str| figures.iter().any(|figure| figure.paper == paper && figure.id == **name);
                assert_eq!(names.iter().filter(known).count(), names.len(), "{names:?}");
                assert!(names.len() > 1, "{names:?}: a choice of one figure belongs in its finding");
            }
        }
    }

    #[test]
    fn shared_choices_of_paper_are_unique() {
        for paper in Paper::ALL {
            let all: Vec<String> = paper.shared().iter().flat_map(|shared| (shared.choices)()).collect();
            let different: std::collections::BTreeSet<&String> = all.iter().collect();
            assert_eq!(different.len(), all.len(), "{paper:?}");
            assert!(!all.is_empty(), "{paper:?}");
        }
    }
}
