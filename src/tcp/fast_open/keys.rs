//! The keys of Fast Open cookies (RFC 7413 §4.1.2).

use std::fmt;
use std::net::IpAddr;

use airwire::fast_open::Cookie;
use siphasher::sip::SipHasher24;

/// The keys of a server's cookies. As in Linux, a cookie is the SipHash-2-4 of both addresses, so a server
/// keeps no state per client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FastOpenKeys {
    /// Computes new cookies.
    pub primary: [u8; 16],
    /// The previous primary key. Its cookies are still valid, and are replaced when they are used.
    pub backup: Option<[u8; 16]>,
}

/// The keys are secret.
impl fmt::Debug for FastOpenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastOpenKeys").finish_non_exhaustive()
    }
}

/// The result of checking a cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Validity {
    Valid,
    /// Computed with the backup key.
    Outdated,
    Invalid,
}

impl FastOpenKeys {
    /// Returns the cookie of the client at `client` for the server at `server`.
    pub fn cookie(&self, client: IpAddr, server: IpAddr) -> Cookie {
        cookie(&self.primary, client, server)
    }

    pub(crate) fn check(&self, given: Cookie, client: IpAddr, server: IpAddr) -> Validity {
        let matches = |key| cookie(key, client, server) == given;
        match self.backup {
            _ if matches(&self.primary) => Validity::Valid,
            Some(backup) if matches(&backup) => Validity::Outdated,
            _ => Validity::Invalid,
        }
    }
}

fn cookie(key: &[u8; 16], client: IpAddr, server: IpAddr) -> Cookie {
    let hasher = SipHasher24::new_with_key(key);
    let hash = match (client, server) {
        (IpAddr::V4(client), IpAddr::V4(server)) => hasher.hash(&[client.octets(), server.octets()].concat()),
        (client, server) => hasher.hash(&[v6(client), v6(server)].concat()),
    };
    Cookie::from(hash.to_le_bytes())
}

fn v6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    fn keys(primary: [u8; 16], backup: Option<[u8; 16]>) -> FastOpenKeys {
        FastOpenKeys { primary, backup }
    }

    /// The hashes are the reference vectors of SipHash-2-4 for messages of 8 and 32 bytes.
    #[test]
    fn cookie_is_siphash_of_both_addresses() {
        let keys = keys(KEY, None);
        let cookie = keys.cookie([0, 1, 2, 3].into(), [4, 5, 6, 7].into());
        assert_eq!(cookie.to_string(), "6224939a79f5f593");
        let bytes = |from: u8| std::array::from_fn::<u8, 16, _>(|at| from + at as u8);
        let cookie = keys.cookie(bytes(0).into(), bytes(16).into());
        assert_eq!(cookie.to_string(), "ce7cf2722f512771");
    }

    #[test]
    fn cookie_of_backup_key_is_outdated() {
        let (client, server) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let old = keys(KEY, None).cookie(client, server);
        let rotated = keys([7; 16], Some(KEY));
        assert_eq!(rotated.check(old, client, server), Validity::Outdated);
        assert_eq!(rotated.check(rotated.cookie(client, server), client, server), Validity::Valid);
        assert_eq!(rotated.check(old, server, client), Validity::Invalid);
        assert_eq!(keys([7; 16], None).check(old, client, server), Validity::Invalid);
        let short = Cookie::new(&old.as_slice()[..4]).unwrap();
        assert_eq!(rotated.check(short, client, server), Validity::Invalid);
    }

    #[test]
    fn debug_output_hides_keys() {
        assert_eq!(format!("{:?}", keys([0xab; 16], None)), "FastOpenKeys { .. }");
    }
}
