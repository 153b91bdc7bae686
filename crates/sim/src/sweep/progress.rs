//! How far the processes are that fill a store. What they have written says it, and when: rows have no time, their files do.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::error::StoreError;
use super::manifest::MANIFEST;
use super::plan::Shard;
use super::results::Results;
use super::rows::ROWS;

/// What one process has written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// How many runs of the plan have their row here.
    pub runs: usize,
    /// When the first row was there. `None`: the file system does not say when a file was made.
    pub first: Option<SystemTime>,
    /// When the last row was there.
    pub last: SystemTime,
}

impl Written {
    /// Whoever has written nothing for so long, and for ten times its usual pause, has ended or hangs.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// From one row to the next. The first is there when the file is made, so it is no part of the time.
    pub fn pause(&self) -> Option<Duration> {
        let took = self.last.duration_since(self.first?).ok()?;
        let pauses = u32::try_from(self.runs).ok()?.checked_sub(1).filter(|pauses| *pauses > 0)?;
        Some(took / pauses).filter(|pause| !pause.is_zero())
    }

    /// Whether more is to be expected. The clocks of machines differ: what is written in the future is written now.
    pub fn is_going_on(&self, now: SystemTime) -> bool {
        let since = now.duration_since(self.last).unwrap_or_default();
        since <= Self::PATIENCE.max(self.pause().unwrap_or_default() * 10)
    }
}

/// The files of one store, by the part of the plan that they were written for; of each part those of its last process.
pub fn read(store: &Path, results: &Results) -> Result<BTreeMap<Shard, Written>, StoreError> {
    // Without birth times the first file of a part is at least not older than the store.
    let made = fs::metadata(store.join(MANIFEST)).and_then(|manifest| manifest.modified()).ok();
    let mut parts = BTreeMap::new();
    for (path, runs) in results.files() {
        let Some((shard, number)) = path.file_name().and_then(|name| named(name.to_str()?)) else { continue };
        let unreadable = |error| StoreError::Read { path: path.to_owned(), error };
        let file = fs::metadata(path).map_err(unreadable)?;
        let last = file.modified().map_err(unreadable)?;
        let first = file.created().ok().or_else(|| made.filter(|_| number == 1));
        let written = Written { runs, first, last };
        // The names are in their order, so the part's last file comes last, but for clocks that were set.
        let newest: &mut Written = parts.entry(shard).or_insert(written);
        if newest.last <= last {
            *newest = written;
        }
    }
    Ok(parts)
}

/// `rows-3-of-8.0002.jsonl` is the second file of part 3 of 8.
fn named(name: &str) -> Option<(Shard, u32)> {
    let (part, number) = name.strip_prefix(ROWS.0)?.strip_suffix(ROWS.1)?.split_once('.')?;
    let (of, all) = part.split_once("-of-")?;
    Some((format!("{of}/{all}").parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn written(runs: usize, first: Option<u64>, last: u64) -> Written {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        Written { runs, first: first.map(at), last: at(last) }
    }

    #[test]
    fn a_file_is_named_for_its_part() {
        assert_eq!(named("rows-3-of-8.0002.jsonl"), Some((Shard { number: 3, of: 8 }, 2)));
        for other in ["rows-9-of-8.0001.jsonl", "rows-3.0001.jsonl", "rows-.jsonl", "manifest.json"] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn rows_have_a_pause_between_them_and_the_first_has_none_before_it() {
        assert_eq!(written(5, Some(100), 108).pause(), Some(2 * SECOND));
        for none in [written(1, Some(100), 108), written(5, None, 108), written(5, Some(108), 108)] {
            assert_eq!(none.pause(), None);
        }
        // The file was copied, and is younger than what is in it.
        assert_eq!(written(5, Some(109), 108).pause(), None);
    }

    #[test]
    fn who_writes_seldom_is_waited_for_longer() {
        let [often, seldom] = [written(5, Some(100), 108), written(5, Some(0), 108)];
        let goes_on = |written: Written, seconds| written.is_going_on(written.last + seconds * SECOND);
        assert!(goes_on(often, 60) && !goes_on(often, 61));
        assert!(goes_on(seldom, 270) && !goes_on(seldom, 271));
        assert!(often.is_going_on(often.last - SECOND));
    }
}
