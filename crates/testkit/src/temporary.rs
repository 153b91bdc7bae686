//! Temporary files and directories, which are removed even if a test fails.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory for a test. It is removed with its content when this is dropped, even if the test fails.
pub struct TempDir(PathBuf);

impl TempDir {
    /// Creates a directory that no other test uses. `name` is the end of its name.
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn new(name: &str) -> Self {
        let path = unique(name);
        fs::create_dir(&path).unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        Self(path)
    }

    /// Returns the path of an entry, as text.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file into the directory, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }
}

impl Deref for TempDir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for TempDir {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a path that nothing else on this machine uses.
fn unique(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("airtcp-{}-{number}-{name}", std::process::id()))
}

/// A path for a test's file, which is removed when this is dropped.
pub struct TempFile(PathBuf);

impl TempFile {
    /// Returns a path that no other test uses. `name` is its end.
    pub fn new(name: &str) -> Self {
        Self(unique(name))
    }

    /// Returns the path.
    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// Returns the content of the file.
    pub fn read(&self) -> Vec<u8> {
        fs::read(&self.0).unwrap()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
