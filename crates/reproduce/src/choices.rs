//! Choices for details that a paper leaves open. Each paper has them in its `choices.md`, which is Markdown in a fixed
//! form: a heading names figures, and a list below it has their choices. A choice of one figure is printed with the
//! figure. Choices of several figures are printed together, before the first one.

use airtcp_numbers::table::wrapped;

use crate::finding::WIDTH;
use crate::{Figure, Finding, Paper, listed};

/// The heading of the choices that apply to all figures of a paper.
const ALL: &str = "All figures";

/// Choices that several figures of a paper share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The figures that share them.
    pub by: By,
    /// One Markdown paragraph per choice.
    pub choices: Vec<String>,
}

/// The figures that share choices.
#[derive(Clone, Debug)]
pub enum By {
    /// All figures of the paper.
    All,
    /// The figures with these ids.
    These(Vec<&'static str>),
}

impl By {
    /// Whether `figure` is one of them.
    pub fn has(&self, figure: &Figure) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(&figure.id),
        }
    }

    /// The heading of their choices, in Markdown.
    pub fn heading(&self) -> String {
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
        format!("{}\n{}\n", wrapped("", &self.by.heading(), WIDTH), listed(&self.choices))
    }
}

/// The sections of a `choices.md`: the figures of each, and its choices.
fn sections(text: &'static str) -> impl Iterator<Item = (By, Vec<String>)> {
    text.split("\n## ").skip(1).map(|section| {
        let (heading, list) = section.split_once('\n').unwrap_or((section, ""));
        let by = if heading == ALL { By::All } else { By::These(heading.split(", ").collect()) };
        let unwrapped = |item: &str| item.split_whitespace().collect::<Vec<_>>().join(" ");
        (by, list.split("\n- ").skip(1).map(unwrapped).collect())
    })
}

impl Paper {
    const fn choices(self) -> &'static str {
        match self {
            Self::Pan2004 => include_str!("pan2004/choices.md"),
            Self::Ni2002 => include_str!("ni2002/choices.md"),
            Self::Inamura2009 => include_str!("inamura2009/choices.md"),
            Self::Lai2013 => include_str!("lai2013/choices.md"),
            Self::Chandra2003 => include_str!("chandra2003/choices.md"),
            Self::Every => include_str!("ranking/choices.md"),
        }
    }

    /// Choices that figures of this paper share.
    pub fn shared(self) -> impl Iterator<Item = Shared> {
        let shared = sections(self.choices()).map(|(by, choices)| Shared { by, choices });
        shared.filter(|shared| !matches!(&shared.by, By::These(names) if names.len() == 1))
    }

    /// The shared choices that apply to any of `figures`.
    pub fn shared_by(self, figures: &[Figure]) -> impl Iterator<Item = Shared> {
        self.shared().filter(|shared| figures.iter().any(|figure| shared.by.has(figure)))
    }

    /// The choices of one figure alone.
    pub(crate) fn own_choices(self, id: &str) -> Vec<String> {
        let is_own = |by: &By| matches!(by, By::These(names) if names == &[id]);
        sections(self.choices()).filter(|(by, _)| is_own(by)).flat_map(|(_, choices)| choices).collect()
    }
}

impl Figure {
    /// The shared choices that apply to this figure.
    pub fn shared(&self) -> impl Iterator<Item = Shared> {
        self.paper.shared().filter(|shared| shared.by.has(self))
    }

    /// All choices for this figure: the shared ones, then its own.
    pub fn choices(&self, finding: &Finding) -> Vec<String> {
        self.shared().flat_map(|shared| shared.choices).chain(finding.choices.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;

    #[test]
    fn headings_name_figures_of_paper() {
        let figures = figures();
        for paper in Paper::ALL {
            for (by, choices) in sections(paper.choices()) {
                assert!(!choices.is_empty(), "{by:?}");
                let By::These(names) = by else { continue };
                let known =
                    |name: &&&str| figures.iter().any(|figure| figure.paper == paper && figure.id == **name);
                assert_eq!(names.iter().filter(known).count(), names.len(), "{names:?}");
            }
        }
    }

    #[test]
    fn shared_choices_of_paper_are_unique() {
        for paper in Paper::ALL {
            let all: Vec<String> = paper.shared().flat_map(|shared| shared.choices).collect();
            let different: std::collections::BTreeSet<&String> = all.iter().collect();
            assert_eq!(different.len(), all.len(), "{paper:?}");
            assert!(!all.is_empty(), "{paper:?}");
        }
    }
}
