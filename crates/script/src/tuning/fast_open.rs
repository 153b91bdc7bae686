//! The sysctls of TCP Fast Open.

use airtcp::profile::FastOpenRules;
use airtcp::tcp::FastOpenKeys;

/// Parses `net.ipv4.tcp_fastopen`, which is decimal or begins with 0x.
pub(super) fn rules(value: &str) -> Option<FastOpenRules> {
    let value = value.trim();
    let bits = match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => value.parse(),
    };
    bits.ok().map(FastOpenRules::of_bits)
}

/// Parses `net.ipv4.tcp_fastopen_key`: four 32-bit numbers in hexadecimal, and after a comma four more for
/// the backup key.
pub(super) fn keys(value: &str) -> Option<FastOpenKeys> {
    match value.trim().split_once(',') {
        None => Some(FastOpenKeys { primary: key(value.trim())?, backup: None }),
        Some((primary, backup)) => Some(FastOpenKeys { primary: key(primary)?, backup: Some(key(backup)?) }),
    }
}

/// Returns the keys that hold until a sysctl sets others. They give the cookie TFO_COOKIE, which Linux's
/// scripts assume.
pub(super) fn default_keys() -> FastOpenKeys {
    keys("a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4").expect("a valid key")
}

fn key(value: &str) -> Option<[u8; 16]> {
    let words: Vec<[u8; 4]> = value
        .split('-')
        .map(|word| u32::from_str_radix(word.trim(), 16).ok().map(u32::to_le_bytes))
        .collect::<Option<_>>()?;
    <[u8; 16]>::try_from(words.concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_words_are_little_endian() {
        let keys = keys("03020100-07060504-0b0a0908-0f0e0d0c").unwrap();
        assert_eq!(keys.primary, std::array::from_fn::<u8, 16, _>(|at| at as u8));
        assert_eq!(keys.backup, None);
    }

    #[test]
    fn backup_key_follows_comma() {
        let keys = keys("0-0-0-0,1-0-0-0").unwrap();
        assert_eq!((keys.primary[0], keys.backup.unwrap()[0]), (0, 1));
        for wrong in ["", "0-0-0", "0-0-0-0-0", "0-0-0-x", "0-0-0-0,", "100000000-0-0-0"] {
            assert_eq!(super::keys(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rules_are_decimal_or_hexadecimal() {
        assert_eq!(rules("3"), Some(FastOpenRules::BOTH));
        assert_eq!(rules("0x602"), rules("1538"));
        assert_eq!(rules("on"), None);
    }
}
