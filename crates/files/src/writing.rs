//! Creating and overwriting files, except files and links that another user planted.
//!
//! In a shared directory with the sticky bit (`/tmp`), another user can create a link or a file at the path that
//! we are about to write. Such links are not followed and such files are not written. The kernel has settings
//! for the same purpose (`fs.protected_symlinks`, `fs.protected_regular`, `fs.protected_fifos`), but they may be
//! off.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Creates a file or truncates an existing one. A new file is readable by all users, unless the umask forbids
/// this.
pub fn create(path: impl AsRef<Path>) -> io::Result<File> {
    imp::create(path.as_ref(), 0o666)
}

/// Creates a file that will contain packets, or truncates an existing one. A new file is readable
/// by its owner only; an existing file keeps its mode.
pub fn create_private(path: impl AsRef<Path>) -> io::Result<File> {
    imp::create(path.as_ref(), 0o600)
}

/// Creates or overwrites a file with this content.
pub fn write(path: impl AsRef<Path>, octets: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(octets.as_ref())
}

#[cfg(not(unix))]
mod imp {
    use super::*;

    pub(super) fn create(path: &Path, _mode: u32) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).open(path)
    }
}

#[cfg(unix)]
mod imp {
    use std::fs::{self, Metadata};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
    use std::path::PathBuf;

    use super::*;

    /// The kernel follows at most this many links.
    const LINKS: usize = 40;

    pub(super) fn create(path: &Path, mode: u32) -> io::Result<File> {
        let mut path = path.to_owned();
        for _ in 0..LINKS {
            match fs::symlink_metadata(&path) {
                Ok(about) if about.is_symlink() => {
                    check_owner(&path, &about)?;
                    let Some(target) = link_target(&path)? else { break };
                    path = target;
                }
                Ok(about) if !about.is_file() => {
                    check_owner(&path, &about)?;
                    // For example a pipe, whose opening waits for a reader.
                    return open(&path, mode, 0);
                }
                _ => {
                    let file = open(&path, mode, libc::O_NOFOLLOW)?;
                    let about = file.metadata()?;
                    check_owner(&path, &about)?;
                    if about.is_file() {
                        // Truncate only after the check of the owner.
                        file.set_len(0)?;
                    }
                    return Ok(file);
                }
            }
        }
        // A descriptor of this process (/dev/stdout), or a loop of links, which the kernel reports.
        open(&path, mode, 0)
    }

    fn open(path: &Path, mode: u32, flags: i32) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(false).mode(mode).custom_flags(flags).open(path)
    }

    /// Returns the target of a link. `None` if the link is in /proc, where targets need not be
    /// paths.
    fn link_target(link: &Path) -> io::Result<Option<PathBuf>> {
        let directory = directory(link);
        if directory.canonicalize()?.starts_with("/proc") {
            return Ok(None);
        }
        Ok(Some(directory.join(fs::read_link(link)?)))
    }

    fn directory(path: &Path) -> &Path {
        match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        }
    }

    /// Checks that another user cannot have planted the file at `path`, whose metadata is `about`.
    fn check_owner(path: &Path, about: &Metadata) -> io::Result<()> {
        // SAFETY: `geteuid` takes no pointers and cannot fail.
        #[expect(unsafe_code, reason = "std does not have the user ID")]
        let own = unsafe { libc::geteuid() };
        let directory = fs::metadata(directory(path))?;
        if !may_be_planted(own, about.uid(), directory.uid(), directory.mode()) {
            return Ok(());
        }
        let kind = about.file_type();
        let what = match () {
            () if kind.is_symlink() => "a link",
            () if kind.is_fifo() => "a pipe",
            () => "a file",
        };
        let message = format!("{what} of another user (UID {}) exists in this shared directory", about.uid());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    /// Returns whether the user `own` must not use a file of the user `owner`: the file belongs
    /// neither to `own` nor to the owner of its directory, and the directory is shared.
    pub(super) fn may_be_planted(own: u32, owner: u32, directory_owner: u32, directory_mode: u32) -> bool {
        let shared = directory_mode & 0o1000 != 0 && directory_mode & 0o022 != 0;
        shared && owner != own && owner != directory_owner
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::*;
    use crate::testing::Directory;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Creates a directory with the mode of /tmp.
    fn shared(name: &str) -> Directory {
        let directory = Directory::new(name);
        fs::set_permissions(directory.path(""), Permissions::from_mode(0o1777)).unwrap();
        directory
    }

    #[test]
    fn overwriting_file_replaces_content_and_keeps_mode() {
        let directory = Directory::new("replaced");
        let path = directory.path("file");
        create_private(&path).unwrap().write_all(b"long text").unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        drop(create_private(&path).unwrap());
        assert_eq!((fs::read(&path).unwrap().len(), mode(&path)), (0, 0o640));
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn own_symlinks_are_followed_until_they_loop() {
        let directory = shared("own");
        let (link, further, target) =
            (directory.path("link"), directory.path("further"), directory.path("target"));
        symlink("further", &link).unwrap();
        symlink(&target, &further).unwrap();
        write(&link, "through").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "through");
        symlink("circle", directory.path("circle")).unwrap();
        assert!(create(directory.path("circle")).is_err());
    }

    #[test]
    fn device_files_are_written_directly() {
        write("/dev/stdout", "").unwrap();
        write("/dev/null", "nothing").unwrap();
        assert_eq!(write("/dev/full", "x").unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    /// `tests/kernel/files.rs` tests this with files of another user, which only root can create.
    #[test]
    fn only_strangers_files_in_shared_directories_are_refused() {
        let (own, stranger, other) = (1000, 1001, 1002);
        for mode in [0o1777, 0o1775, 0o1757, 0o41777] {
            assert!(imp::may_be_planted(own, stranger, other, mode), "{mode:o}");
            assert!(imp::may_be_planted(own, stranger, own, mode), "{mode:o}");
            assert!(!imp::may_be_planted(own, own, other, mode), "{mode:o}");
            assert!(!imp::may_be_planted(own, stranger, stranger, mode), "{mode:o}");
        }
        // Like the kernel's settings, this applies only to sticky directories that others can write to.
        for mode in [0o1755, 0o777, 0o755] {
            assert!(!imp::may_be_planted(own, stranger, other, mode), "{mode:o}");
        }
    }
}
