//! Progress of the processes that fill a store, derived from their files. Rows have no timestamps,
//! so the times of the files are used.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::error::StoreError;
use super::manifest::MANIFEST;
use super::plan::Shard;
use super::results::Results;
use super::rows::ROWS;

/// The output of one process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShardProgress {
    /// Number of the plan's runs with a row in this file.
    pub runs: usize,
    /// Time of the first row. `None` if the file system does not record creation times.
    pub first: Option<SystemTime>,
    /// Time of the last row.
    pub last: SystemTime,
}

impl ShardProgress {
    /// Time without a new row after which a process has ended or hangs. It is longer if ten mean
    /// intervals between rows are longer.
    const MAX_SILENCE: Duration = Duration::from_secs(60);

    /// Returns the mean interval between rows. The file is created with its first row, so the time
    /// of the first run is not included.
    pub fn row_interval(&self) -> Option<Duration> {
        let took = self.last.duration_since(self.first?).ok()?;
        let intervals = u32::try_from(self.runs).ok()?.checked_sub(1).filter(|intervals| *intervals > 0)?;
        Some(took / intervals).filter(|row_interval| !row_interval.is_zero())
    }

    /// Returns whether more rows are expected. Machines' clocks may differ, so a time in the future
    /// counts as now.
    pub fn is_active(&self, now: SystemTime) -> bool {
        let since = now.duration_since(self.last).unwrap_or_default();
        since <= Self::MAX_SILENCE.max(self.row_interval().unwrap_or_default() * 10)
    }
}

/// Returns the newest file of each shard in a store.
pub fn read(store: &Path, results: &Results) -> Result<BTreeMap<Shard, ShardProgress>, StoreError> {
    // Without creation times, the first file of a shard is at least not older than the store.
    let store_time = fs::metadata(store.join(MANIFEST)).and_then(|manifest| manifest.modified()).ok();
    let mut parts = BTreeMap::new();
    for (path, runs) in results.files() {
        let Some((shard, number)) = path.file_name().and_then(|name| parse_file_name(name.to_str()?)) else {
            continue;
        };
        let unreadable = |error| StoreError::Read { path: path.to_owned(), error };
        let file = fs::metadata(path).map_err(unreadable)?;
        let last = file.modified().map_err(unreadable)?;
        let first = file.created().ok().or_else(|| store_time.filter(|_| number == 1));
        let written = ShardProgress { runs, first, last };
        // Files are sorted by name, so the last file of a shard is the newest, unless a clock was
        // set back.
        let newest: &mut ShardProgress = parts.entry(shard).or_insert(written);
        if newest.last <= last {
            *newest = written;
        }
    }
    Ok(parts)
}

/// Parses a file name: `rows-3-of-8.0002.jsonl` is the second file of shard 3 of 8.
fn parse_file_name(name: &str) -> Option<(Shard, u32)> {
    let (part, number) = name.strip_prefix(ROWS.0)?.strip_suffix(ROWS.1)?.split_once('.')?;
    let (of, all) = part.split_once("-of-")?;
    Some((format!("{of}/{all}").parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn written(runs: usize, first: Option<u64>, last: u64) -> ShardProgress {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        ShardProgress { runs, first: first.map(at), last: at(last) }
    }

    #[test]
    fn row_file_name_identifies_shard() {
        assert_eq!(parse_file_name("rows-3-of-8.0002.jsonl"), Some((Shard { number: 3, of: 8 }, 2)));
        for other in ["rows-9-of-8.0001.jsonl", "rows-3.0001.jsonl", "rows-.jsonl", "manifest.json"] {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
    }

    #[test]
    fn pause_is_mean_interval_between_rows() {
        assert_eq!(written(5, Some(100), 108).row_interval(), Some(2 * SECOND));
        for none in [written(1, Some(100), 108), written(5, None, 108), written(5, Some(108), 108)] {
            assert_eq!(none.row_interval(), None);
        }
        // A copied file may have a creation time after its modification time.
        assert_eq!(written(5, Some(109), 108).row_interval(), None);
    }

    #[test]
    fn slow_writer_counts_as_running_longer() {
        let [often, seldom] = [written(5, Some(100), 108), written(5, Some(0), 108)];
        let is_running_after =
            |written: ShardProgress, seconds| written.is_active(written.last + seconds * SECOND);
        assert!(is_running_after(often, 60) && !is_running_after(often, 61));
        assert!(is_running_after(seldom, 270) && !is_running_after(seldom, 271));
        assert!(often.is_active(often.last - SECOND));
    }
}
