//! A keyed hash of addresses for numbers that peers cannot guess. It is the same on every platform, so that
//! runs are reproducible.

use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;

pub(super) fn keyed_hash(seed: u64, what: &impl Hash) -> u64 {
    let mut hasher = Portable(SipHasher13::new_with_keys(seed, 0x6169_7274_6370));
    what.hash(&mut hasher);
    hasher.finish()
}

/// A hasher that writes lengths and discriminants, such as the one of an address, with 64 bits on every
/// platform. std writes them in the size of a pointer, which is 32 bits in a browser.
struct Portable(SipHasher13);

impl Hasher for Portable {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_usize(&mut self, number: usize) {
        self.0.write(&(number as u64).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    /// `tests/pages` compares a page, where a pointer has 32 bits, with the program.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn keyed_hash_matches_std_siphash_on_64_bits() {
        for address in ["10.0.0.1:10000", "[2001:db8::1]:80"] {
            let what = ("isn", address.parse::<SocketAddr>().unwrap(), [1_u8, 2]);
            let mut plain = SipHasher13::new_with_keys(7, 0x6169_7274_6370);
            what.hash(&mut plain);
            assert_eq!(keyed_hash(7, &what), plain.finish());
        }
    }
}
