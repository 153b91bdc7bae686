//! Reading of files with a size limit.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::limits;

/// The source of a file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSource {
    /// A user, on the command line. The file may be a pipe, such as `/dev/stdin` or the shell's `<(…)`.
    User,
    /// Another file, which an untrusted user may have written. Only regular files are read.
    File,
}

/// Opens a file for reading. A file whose name comes from another file must be a regular file. The type is
/// checked first, because opening a pipe blocks and opening some devices has side effects.
pub fn open(path: impl AsRef<Path>, source: PathSource) -> io::Result<File> {
    let path = path.as_ref();
    if source == PathSource::User {
        return File::open(path);
    }
    check_regular(fs::metadata(path)?.file_type())?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // The file may have been replaced since the check, and opening some files of /proc blocks.
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    let file = options.open(path)?;
    check_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a whole file, which must not be longer than `limit` bytes.
pub fn read(path: impl AsRef<Path>, source: PathSource, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path, source)?;
    let about = file.metadata()?;
    // The length is checked again after reading, because files in /proc report a length of 0, and files can
    // grow.
    if about.is_file() && about.len() > limit {
        return Err(too_long(limit));
    }
    let mut octets = Vec::new();
    file.take(limit + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > limit { Err(too_long(limit)) } else { Ok(octets) }
}

/// Reads a whole file as UTF-8 text, like [`read`].
pub fn read_text(path: impl AsRef<Path>, source: PathSource, limit: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not a text in UTF-8");
    String::from_utf8(read(path, source, limit)?).map_err(not_text)
}

/// Reads a result that a program of this project wrote. Its directory may belong to another user, so only
/// regular files are read.
pub fn read_result(path: impl AsRef<Path>) -> io::Result<String> {
    read_text(path, PathSource::File, limits::RESULT)
}

fn too_long(limit: u64) -> io::Error {
    let limit = limits::in_words(limit);
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {limit}, which is the limit here"))
}

fn check_regular(kind: FileType) -> io::Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    let kind = kind_name(kind);
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {kind}, and an ordinary file is wanted")))
}

fn kind_name(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        } else if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        } else if kind.is_socket() {
            return "a socket";
        }
    }
    if kind.is_dir() { "a directory" } else { "something else" }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;
    use crate::testing::Directory;

    fn refused(path: impl AsRef<Path>, source: PathSource) -> String {
        read(path, source, 1 << 20).unwrap_err().to_string()
    }

    #[test]
    fn endless_device_is_refused_at_size_limit() {
        assert_eq!(
            refused("/dev/zero", PathSource::User),
            "it is longer than 1 MiB, which is the limit here"
        );
    }

    #[test]
    fn paths_named_in_files_must_be_regular_files() {
        let directory = Directory::new("ordinary");
        let (pipe, link) = (directory.path("pipe"), directory.path("link"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink(&pipe, &link).unwrap();
        // Opening a pipe for reading blocks until it has a writer.
        for pipe in [&pipe, &link] {
            assert_eq!(refused(pipe, PathSource::File), "it is a pipe, and an ordinary file is wanted");
        }
        assert!(refused("/dev/zero", PathSource::File).starts_with("it is a device"));
        assert!(refused("/tmp", PathSource::File).starts_with("it is a directory"));
    }

    #[test]
    fn file_is_read_up_to_exact_size_limit() {
        let directory = Directory::new("limit");
        let path = directory.path("text");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, PathSource::File, 5).unwrap(), "12345");
        let error = read_text(&path, PathSource::File, 4).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 4 octets, which is the limit here");
        // Files in /proc report a length of 0.
        assert!(read("/proc/self/status", PathSource::File, 10).is_err());
        fs::write(&path, b"\xff").unwrap();
        assert!(read_text(&path, PathSource::File, 5).unwrap_err().to_string().contains("UTF-8"));
    }
}
