//! A keyed hash of addresses, for numbers that others cannot guess: the same on every platform, so that a run is.

use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;

pub(super) fn keyed_hash(seed: u64, what: &impl Hash) -> u64 {
    let mut hasher = Portable(SipHasher13::new_with_keys(seed, 0x6169_7274_6370));
    what.hash(&mut hasher);
    hasher.finish()
}

/// Lengths and discriminants, such as that of an address, have the size of a pointer where std hashes them. Here they have
/// 64 bits everywhere: in a browser a pointer has 32.
struct Portable(SipHasher13);

impl Hasher for Portable {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, octets: &[u8]) {
        self.0.write(octets);
    }

    fn write_usize(&mut self, number: usize) {
        self.0.write(&(number as u64).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    /// `tests/playground` holds a page, where it has 32, to the program.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn where_a_pointer_has_64_bits_it_is_what_std_hashes() {
        for address in ["10.0.0.1:10000", "[2001:db8::1]:80"] {
            let what = ("isn", address.parse::<SocketAddr>().unwrap(), [1_u8, 2]);
            let mut plain = SipHasher13::new_with_keys(7, 0x6169_7274_6370);
            what.hash(&mut plain);
            assert_eq!(keyed_hash(7, &what), plain.finish());
        }
    }
}
