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
    /// The figures to which they apply.
    pub scope: Scope,
    /// One Markdown paragraph per choice.
    pub choices: Vec<String>,
}

/// The figures to which choices apply.
#[derive(Clone, Debug)]
pub enum Scope {
    /// All figures of the paper.
    All,
    /// The figures with these ids.
    These(Vec<&'static str>),
}

impl Scope {
    /// Whether the choices apply to `figure`.
    pub fn contains(&self, figure: &Figure) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(&figure.id),
        }
    }

    /// The heading of the choices, in Markdown.
    pub fn heading(&self) -> String {
        let figures = match self {
            Self::All => "all figures".to_owned(),
            Self::These(names) => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        };
        format!("In {figures}, unless a figure says otherwise:")
    }
}

impl Shared {
    /// The choices under their heading.
    pub fn markdown(&self) -> String {
        format!("{}\n{}\n", wrapped("", &self.scope.heading(), WIDTH), listed(&self.choices))
    }
}

/// The sections of a `choices.md`: the figures of each, and its choices.
fn sections(text: &'static str) -> impl Iterator<Item = (Scope, Vec<String>)> {
    text.split("\n## ").skip(1).map(|section| {
        let (heading, list) = section.split_once('\n').unwrap_or((section, ""));
        let scope = if heading == ALL { Scope::All } else { Scope::These(heading.split(", ").collect()) };
        let unwrapped = |item: &str| item.split_whitespace().collect::<Vec<_>>().join(" ");
        (scope, list.split("\n- ").skip(1).map(unwrapped).collect())
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
        let shared = sections(self.choices()).map(|(scope, choices)| Shared { scope, choices });
        shared.filter(|shared| !matches!(&shared.scope, Scope::These(names) if names.len() == 1))
    }

    /// The shared choices that apply to any of `figures`.
    pub fn shared_by(self, figures: &[Figure]) -> impl Iterator<Item = Shared> {
        self.shared().filter(|shared| figures.iter().any(|figure| shared.scope.contains(figure)))
    }

    /// The choices of one figure alone.
    pub(crate) fn own_choices(self, id: &str) -> Vec<String> {
        let is_own = |scope: &Scope| matches!(scope, Scope::These(names) if names == &[id]);
        sections(self.choices()).filter(|(scope, _)| is_own(scope)).flat_map(|(_, choices)| choices).collect()
    }
}

impl Figure {
    /// The shared choices that apply to this figure.
    pub fn shared(&self) -> impl Iterator<Item = Shared> {
        self.paper.shared().filter(|shared| shared.scope.contains(self))
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
            for (scope, choices) in sections(paper.choices()) {
                assert!(!choices.is_empty(), "{scope:?}");
                let Scope::These(names) = scope else { continue };
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
