//! Saved findings, one file per figure, so that a run of several hours can be resumed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airtcp_reproduce::{Figure, Finding};
use airtcp_sim::file;
use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::FinishedFigure;
use super::plan::SeedPlan;

pub(super) struct ResultCache {
    directory: PathBuf,
    asked: SeedPlan,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    asked: SeedPlan,
    seeds: u32,
    finding: Finding,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
}

impl ResultCache {
    pub(super) fn open(directory: &Path, asked: SeedPlan) -> anyhow::Result<Self> {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self { directory: directory.to_owned(), asked })
    }

    /// Returns the result of an earlier run of this figure, if the same numbers of seeds were requested.
    pub(super) fn take(&self, figure: &Figure) -> anyhow::Result<Option<FinishedFigure>> {
        let path = self.path(figure);
        let text = match airfiles::read_result(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let entry: Entry = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a saved result: delete it", path.display()))?;
        let Entry { asked, seeds, finding, notices } = entry;
        Ok((asked == self.asked).then_some(FinishedFigure {
            figure: *figure,
            seeds,
            plan: asked,
            finding,
            notices,
        }))
    }

    pub(super) fn put(&self, figure: &FinishedFigure) -> anyhow::Result<()> {
        let path = self.path(&figure.figure);
        let FinishedFigure { seeds, finding, notices, .. } = figure;
        let (finding, notices) = (finding.clone(), notices.clone());
        let entry = Entry { asked: self.asked, seeds: *seeds, finding, notices };
        file::replace(&path, serde_json::to_string(&entry)?.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn path(&self, figure: &Figure) -> PathBuf {
        self.directory.join(format!("{}.json", figure.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_is_reused_for_same_seed_counts() {
        let directory = std::env::temp_dir().join(format!("cache-{}", std::process::id()));
        let figure = airtcp_reproduce::figures()[0];
        let asked = SeedPlan::default();
        let cache = ResultCache::open(&directory, asked).unwrap();
        assert!(cache.take(&figure).unwrap().is_none());
        let remarks = vec!["seen".to_owned()];
        let finding = Finding { remarks, ..Finding::default() };
        let notices = vec!["a: missing".to_owned()];
        cache
            .put(&FinishedFigure { figure, seeds: 60, plan: asked, finding, notices: notices.clone() })
            .unwrap();
        let taken = cache.take(&figure).unwrap().unwrap();
        assert_eq!((taken.seeds, taken.finding.remarks), (60, vec!["seen".to_owned()]));
        assert_eq!(taken.notices, notices);
        let more = ResultCache::open(&directory, SeedPlan { most_seeds: 480, ..asked }).unwrap();
        assert!(more.take(&figure).unwrap().is_none());
        fs::write(directory.join(format!("{}.json", figure.id)), "{").unwrap();
        assert!(cache.take(&figure).err().unwrap().to_string().ends_with("delete it"));
        fs::remove_dir_all(&directory).unwrap();
    }
}
