//! SHA-256 digests of sent and received data.

use sha2::{Digest, Sha256};

/// A running digest, or nothing if digests are disabled, because they cost CPU time.
pub(crate) struct Hasher(Option<Sha256>);

impl Hasher {
    pub(crate) fn new(enabled: bool) -> Self {
        Self(enabled.then(Sha256::new))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some(sha256) = &mut self.0 {
            sha256.update(bytes);
        }
    }

    /// Returns the digest as 64 hexadecimal digits.
    pub(crate) fn finish(self) -> Option<String> {
        Some(self.0?.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Extracts the digest from a receiver's answer: its first word, as in the output of `sha256sum`.
pub(crate) fn in_answer(answer: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(answer).ok()?;
    let word = text.split_ascii_whitespace().next()?;
    let is_digest = word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| word.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_of_abc_matches_fips_180() {
        let mut hasher = Hasher::new(true);
        hasher.update(b"a");
        hasher.update(b"bc");
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hasher.finish().as_deref(), Some(digest));
        let answer = format!("{}  -\n", digest.to_uppercase());
        assert_eq!(in_answer(answer.as_bytes()).as_deref(), Some(digest));
    }

    #[test]
    fn non_digest_answers_are_rejected() {
        for answer in ["", "\n", "404 Not Found", "ba7816bf", &"g".repeat(64)] {
            assert_eq!(in_answer(answer.as_bytes()), None, "{answer}");
        }
    }
}
