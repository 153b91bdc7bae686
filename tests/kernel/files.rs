//! Files that another user planted in a shared directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::process::Command;

use airtcp_testkit::machine::TempDir;

const OTHER_USER: u32 = 12_345;

#[test]
fn other_users_files_in_shared_directory_are_refused() {
    assert!(nix::unistd::geteuid().is_root(), "this test changes owners of files: run it as root");
    let directory = TempDir::new("shared");
    fs::set_permissions(&directory, Permissions::from_mode(0o1777)).unwrap();
    let secret = directory.write("secret", "unchanged");
    let [link, file, pipe, own] = ["link", "file", "pipe", "own"].map(|name| directory.path(name));
    symlink(&secret, &link).unwrap();
    lchown(&link, Some(OTHER_USER), None).unwrap();
    fs::write(&file, "").unwrap();
    chown(&file, Some(OTHER_USER), None).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    chown(&pipe, Some(OTHER_USER), None).unwrap();
    // A link of our own that leads to another user's link.
    symlink("link", &own).unwrap();
    for (path, what) in [(&link, "a link"), (&file, "a file"), (&pipe, "a pipe"), (&own, "a link")] {
        let error = airfiles::write(path, "ours").unwrap_err().to_string();
        assert!(error.starts_with(what) && error.contains("12345"), "{error}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "unchanged");
    // In a directory that is not shared, only its owner and root can create files.
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    airfiles::write(&link, "ours").unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "ours");
}
