//! Atomic replacement of files: a reader gets either the old or the complete new content.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a temporary file next to the old one, syncs it to disk, and renames it over the old file.
///
/// # Errors
/// Returns errors of `content` and of the file system. The old file is then unchanged.
pub fn write_atomically<E: From<io::Error>>(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let (temporary, file) = create_temporary(path)?;
    let write = || {
        let mut file = BufWriter::new(file);
        content(&mut file)?;
        file.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        Ok(fs::rename(&temporary, path)?)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// Creates a temporary file that no other process writes to. Processes on two machines may have the
/// same process ID.
fn create_temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut attempt = 0;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.{attempt}", std::process::id()));
        let name = PathBuf::from(name);
        match File::create_new(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            created => return Ok((name, created?)),
        }
    }
}

/// Writes a file with this content like [`write_atomically`].
///
/// # Errors
/// Returns errors of the file system. The old file is then unchanged.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    write_atomically(path, |file| file.write_all(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_write_keeps_old_file() {
        let directory = std::env::temp_dir().join(format!("airtcp-test-file-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("lab.json");
        let state = || (fs::read_to_string(&path).unwrap(), fs::read_dir(&directory).unwrap().count());
        fs::write(&path, "old").unwrap();
        let half = write_atomically(&path, |file| {
            file.write_all(b"ne")?;
            Err(io::Error::other("the disk is full"))
        });
        let after_half = state();
        // Simulate a process with the same process ID on another machine.
        let theirs = directory.join(format!("lab.json.{}.0", std::process::id()));
        fs::write(&theirs, "theirs").unwrap();
        let next_to_theirs = replace(&path, b"ours");
        let ours = (fs::read_to_string(&path).unwrap(), fs::read_to_string(&theirs).unwrap());
        fs::remove_file(&theirs).unwrap();
        let written = replace(&path, b"new");
        let after_success = state();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(half.unwrap_err().to_string(), "the disk is full");
        assert_eq!(after_half, ("old".to_owned(), 1), "no partial file remains");
        assert!(written.is_ok() && next_to_theirs.is_ok());
        assert_eq!(ours, ("ours".to_owned(), "theirs".to_owned()));
        assert_eq!(after_success, ("new".to_owned(), 1));
    }
}
