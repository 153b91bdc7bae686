//! IP addresses with a prefix length.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An IP address with a prefix length, written `10.0.0.1/24` or `fd00::1/64`. The host bits may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    addr: IpAddr,
    len: u8,
}

/// Reason why a value is not a [`Prefix`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// The part before the slash is not an address.
    #[error("`{0}` is not an address: write for example 10.0.0.1/24 or fd00::1/64")]
    Address(String),
    /// The part after the slash is not a number, or the address family does not allow it.
    #[error("`{0}` is not a prefix length: write a number from 0 to 32 (IPv4) or 128 (IPv6) after the slash")]
    Length(String),
}

impl Prefix {
    /// Creates a prefix. Returns an error if `len` exceeds the 32 or 128 bits of the address.
    pub fn new(addr: IpAddr, len: u8) -> Result<Self, PrefixError> {
        if len > bits(addr) {
            return Err(PrefixError::Length(len.to_string()));
        }
        Ok(Self { addr, len })
    }

    /// The address, including the host bits.
    pub fn addr(self) -> IpAddr {
        self.addr
    }

    /// The prefix length in bits.
    pub fn bit_len(self) -> u8 {
        self.len
    }

    /// The network: the address with its host bits cleared.
    pub fn network(self) -> Self {
        let addr = match self.addr {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.len)).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.len)).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & mask).into())
            }
        };
        Self { addr, len: self.len }
    }

    /// Whether `other` is in this network. Addresses of the other family, including IPv4-mapped ones, are
    /// outside.
    pub fn contains(self, other: IpAddr) -> bool {
        self.addr.is_ipv4() == other.is_ipv4()
            && self.network() == Self { addr: other, len: self.len }.network()
    }
}

fn bits(addr: IpAddr) -> u8 {
    if addr.is_ipv4() { 32 } else { 128 }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// Parses a prefix. Without a slash, the prefix covers this address only.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (addr, len) = match text.split_once('/') {
            Some((addr, len)) => (addr, Some(len)),
            None => (text, None),
        };
        let addr: IpAddr = addr.parse().map_err(|_| PrefixError::Address(text.to_owned()))?;
        let len = match len {
            Some(len) => len.parse().map_err(|_| PrefixError::Length(len.to_owned()))?,
            None => bits(addr),
        };
        Self::new(addr, len)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_text_round_trips_and_errors_name_input() {
        for text in ["10.0.0.1/24", "fd00::1/64", "0.0.0.0/0", "::/0", "1.2.3.4/32"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.1".parse::<Prefix>().unwrap().bit_len(), 32);
        assert_eq!("10.0.0/24".parse::<Prefix>(), Err(PrefixError::Address("10.0.0/24".to_owned())));
        assert_eq!("10.0.0.1/33".parse::<Prefix>(), Err(PrefixError::Length("33".to_owned())));
        assert_eq!("fd00::1/x".parse::<Prefix>(), Err(PrefixError::Length("x".to_owned())));
    }

    #[test]
    fn network_clears_host_bits() {
        let network = |text: &str| text.parse::<Prefix>().unwrap().network().to_string();
        assert_eq!(network("10.1.2.3/16"), "10.1.0.0/16");
        assert_eq!(network("10.1.2.3/0"), "0.0.0.0/0");
        assert_eq!(network("fd00:1:2::3/48"), "fd00:1:2::/48");
        assert_eq!(network("::1/128"), "::1/128");
    }

    #[test]
    fn prefix_contains_only_addresses_of_its_family() {
        let prefix: Prefix = "10.1.0.0/16".parse().unwrap();
        assert!(prefix.contains("10.1.255.1".parse().unwrap()));
        assert!(!prefix.contains("10.2.0.1".parse().unwrap()));
        assert!(!prefix.contains("::ffff:10.1.0.1".parse().unwrap()));
    }
}
