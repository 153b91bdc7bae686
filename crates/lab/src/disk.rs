//! Detection of a full disk, on which no results can be saved.

use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;

/// Captures and logs are written in chunks. If less space than this remains, the next chunk did not fit.
const MIN_FREE_BYTES: u64 = 64 << 10;

/// Returns true if an operation in this directory failed because the disk is full. `why` is its error
/// message. The free space is also checked, because an incomplete capture may be the only sign.
pub(crate) fn is_full(directory: &Path, why: &str) -> bool {
    [Errno::ENOSPC, Errno::EDQUOT].into_iter().any(|error| why.contains(&message_of(error)))
        || statvfs(directory).is_ok_and(|disk| {
            // The integer types differ between platforms.
            #[expect(clippy::useless_conversion, reason = "they are u32 on other machines")]
            let (blocks, size) = (u64::from(disk.blocks_available()), u64::from(disk.fragment_size()));
            blocks * size < MIN_FREE_BYTES
        })
}

/// The C library's error message, which all programs print.
fn message_of(error: Errno) -> String {
    let text = io::Error::from(error).to_string();
    text.replace(&format!(" (os error {})", error as i32), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_is_recognized_from_failure_text() {
        let directory = std::env::temp_dir();
        let full = "the sender exited with code 1: airtcp: cannot write x.jsonl: No space left on device (os error 28)";
        assert!(is_full(&directory, full));
        let quota = "airtcp: cannot write x.jsonl: Disk quota exceeded (os error 122)";
        assert!(is_full(&directory, quota), "an exceeded quota is a full disk too");
        assert!(is_full(&directory, "write: Disk quota exceeded"), "the message of a C program");
        let other = "not complete after 600 s";
        assert!(!is_full(&directory, other), "this test needs 64 kB in {}", directory.display());
    }
}
