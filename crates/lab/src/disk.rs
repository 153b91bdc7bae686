//! Detection of a full disk, on which no results can be saved.

use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;

/// Captures and logs are written in chunks. If less space than this remains, the next chunk did not fit.
const ROOM: u64 = 64 << 10;

/// Returns true if an operation in this directory failed because the disk is full. `why` is its error
/// message. The free space is checked as well, because an incomplete capture may be the only sign.
pub(crate) fn is_full(directory: &Path, why: &str) -> bool {
    [Errno::ENOSPC, Errno::EDQUOT].into_iter().any(|error| why.contains(&words_of(error)))
        || statvfs(directory).is_ok_and(|disk| {
            // The integer types differ between platforms.
            #[expect(clippy::useless_conversion, reason = "they are u32 on other machines")]
            let (blocks, size) = (u64::from(disk.blocks_available()), u64::from(disk.fragment_size()));
            blocks * size < ROOM
        })
}

/// The C library's error message, which all programs print.
fn words_of(error: Errno) -> String {
    let text = io::Error::from(error).to_string();
    let number = format!(" (os error {})", error as i32);
    text.strip_suffix(&number).map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_is_recognized_from_failure_text() {
        let roomy = std::env::temp_dir();
        let said = "the sender exited with code 1: airtcp: cannot write x.jsonl: No space left on device (os error 28)";
        assert!(is_full(&roomy, said));
        let said = "airtcp: cannot write x.jsonl: Disk quota exceeded (os error 122)";
        assert!(is_full(&roomy, said), "an exceeded quota is a full disk too");
        assert!(is_full(&roomy, "write: Disk quota exceeded"), "the message of a C program");
        assert!(!is_full(&roomy, "not complete after 600 s"), "this test needs 64 kB in {}", roomy.display());
    }
}
