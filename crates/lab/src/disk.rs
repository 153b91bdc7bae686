//! A disk that is full: nothing can be kept until there is room again.

use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;

/// Captures and logs are written in pieces: where less than this is left, the next piece did not fit.
const ROOM: u64 = 64 << 10;

/// Whether what failed in this directory, for this reason, failed for want of room. Programs say it in words, and a capture
/// that could not be written may be all that tells.
pub(crate) fn is_full(directory: &Path, why: &str) -> bool {
    [Errno::ENOSPC, Errno::EDQUOT].into_iter().any(|error| why.contains(&words_of(error)))
        || statvfs(directory).is_ok_and(|disk| {
            // Its types differ from machine to machine.
            #[expect(clippy::useless_conversion, reason = "they are u32 on other machines")]
            let (blocks, size) = (u64::from(disk.blocks_available()), u64::from(disk.fragment_size()));
            blocks * size < ROOM
        })
}

/// The C library's words for it, as every program says them.
fn words_of(error: Errno) -> String {
    let text = io::Error::from(error).to_string();
    let number = format!(" (os error {})", error as i32);
    text.strip_suffix(&number).map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_may_say_that_there_is_no_room() {
        let roomy = std::env::temp_dir();
        let said = "the sender exited with code 1: airtcp: cannot write x.jsonl: No space left on device (os error 28)";
        assert!(is_full(&roomy, said));
        let said = "airtcp: cannot write x.jsonl: Disk quota exceeded (os error 122)";
        assert!(is_full(&roomy, said), "a quota leaves no room either");
        assert!(is_full(&roomy, "write: Disk quota exceeded"), "as a program in C says it");
        assert!(!is_full(&roomy, "not complete after 600 s"), "this test needs 64 kB in {}", roomy.display());
    }
}
