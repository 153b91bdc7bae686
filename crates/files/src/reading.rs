//! Reading files.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::limits;

/// Who names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A person, on the command line: it may be a pipe, such as `/dev/stdin` or the shell's `<(…)`.
    Person,
    /// Another file, which somebody else may have written: only an ordinary file is read.
    File,
}

/// Opens a file for reading. Of what a file names, anything but an ordinary file is refused before it is opened, since
/// opening alone waits at a pipe and does things to some devices.
pub fn open(path: impl AsRef<Path>, named: By) -> io::Result<File> {
    let path = path.as_ref();
    if named == By::Person {
        return File::open(path);
    }
    ordinary(fs::metadata(path)?.file_type())?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Another one may stand there by now, and some files of /proc wait for news.
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    let file = options.open(path)?;
    ordinary(file.metadata()?.file_type())?;
    Ok(file)
}

/// Everything that is in a file, of which that must not be more than `limit` octets.
pub fn read(path: impl AsRef<Path>, named: By, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path, named)?;
    let about = file.metadata()?;
    // What says how long it is need not be read for it. Files of /proc say 0, and a file may grow.
    if about.is_file() && about.len() > limit {
        return Err(too_long(limit));
    }
    let mut octets = Vec::new();
    file.take(limit + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > limit { Err(too_long(limit)) } else { Ok(octets) }
}

/// The same of a text in UTF-8.
pub fn read_text(path: impl AsRef<Path>, named: By, limit: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not a text in UTF-8");
    String::from_utf8(read(path, named, limit)?).map_err(not_text)
}

/// A text that a program of this project has left in a directory, and that is read again: the directory may have come from
/// somebody else.
pub fn read_kept(path: impl AsRef<Path>) -> io::Result<String> {
    read_text(path, By::File, limits::KEPT)
}

fn too_long(limit: u64) -> io::Error {
    let limit = limits::in_words(limit);
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {limit}, which is the limit here"))
}

fn ordinary(kind: FileType) -> io::Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    let what = what(kind);
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, and an ordinary file is wanted")))
}

fn what(kind: FileType) -> &'static str {
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

    fn refused(path: impl AsRef<Path>, named: By) -> String {
        read(path, named, 1 << 20).unwrap_err().to_string()
    }

    #[test]
    fn a_device_without_an_end_is_refused_at_the_limit() {
        assert_eq!(refused("/dev/zero", By::Person), "it is longer than 1 MiB, which is the limit here");
    }

    #[test]
    fn what_a_file_names_is_an_ordinary_file() {
        let directory = Directory::new("ordinary");
        let (pipe, link) = (directory.path("pipe"), directory.path("link"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink(&pipe, &link).unwrap();
        // Whoever opens it for reading waits for somebody who writes.
        for pipe in [&pipe, &link] {
            assert_eq!(refused(pipe, By::File), "it is a pipe, and an ordinary file is wanted");
        }
        assert!(refused("/dev/zero", By::File).starts_with("it is a device"));
        assert!(refused("/tmp", By::File).starts_with("it is a directory"));
    }

    #[test]
    fn a_file_of_exactly_the_limit_is_read_and_one_octet_more_is_not() {
        let directory = Directory::new("limit");
        let path = directory.path("text");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, By::File, 5).unwrap(), "12345");
        let error = read_text(&path, By::File, 4).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 4 octets, which is the limit here");
        // It says that it has no octets.
        assert!(read("/proc/self/status", By::File, 10).is_err());
        fs::write(&path, b"\xff").unwrap();
        assert!(read_text(&path, By::File, 5).unwrap_err().to_string().contains("UTF-8"));
    }
}
