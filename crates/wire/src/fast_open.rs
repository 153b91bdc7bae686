//! The TCP Fast Open option and its cookie (RFC 7413 §4.1).

use std::fmt;
use std::str::FromStr;

use crate::experiment;

/// Kind of the option.
pub const KIND: u8 = 34;
/// ExID of the option in its experimental format, which has kind [`experiment::KIND`].
pub const EX_ID: u16 = 0xf989;

/// A cookie of 4 to 16 bytes, an even number. With it, a client proves that it has received a packet at its
/// address before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    /// The bytes after `len` are zero.
    bytes: [u8; 16],
    len: u8,
}

/// Error: the text is not a cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a Fast Open cookie has 8 to 32 hexadecimal digits, in multiples of 4")]
pub struct BadCookie;

impl Cookie {
    /// Creates a cookie. Returns `None` unless the number of bytes is even and from 4 to 16.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let len = bytes.len();
        if !(4..=16).contains(&len) || !len.is_multiple_of(2) {
            return None;
        }
        let mut cookie = Self { bytes: [0; 16], len: len as u8 };
        cookie.bytes[..len].copy_from_slice(bytes);
        Some(cookie)
    }

    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl From<[u8; 8]> for Cookie {
    fn from(bytes: [u8; 8]) -> Self {
        let mut cookie = Self { bytes: [0; 16], len: 8 };
        cookie.bytes[..8].copy_from_slice(&bytes);
        cookie
    }
}

/// Formats the cookie as hexadecimal digits.
impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parses hexadecimal digits.
impl FromStr for Cookie {
    type Err = BadCookie;

    fn from_str(text: &str) -> Result<Self, BadCookie> {
        let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.filter(|digits| digits.len().is_multiple_of(2)).ok_or(BadCookie)?;
        let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        Self::new(&bytes).ok_or(BadCookie)
    }
}

/// The format of the option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Kind 34 (RFC 7413 §4.1.1).
    #[default]
    Standard,
    /// Kind 254 with [`EX_ID`], which systems used before the kind was assigned.
    Experimental,
}

/// The option of a SYN or SYN,ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastOpen {
    /// The cookie. `None` requests one.
    pub cookie: Option<Cookie>,
    /// The format.
    pub format: Format,
}

impl FastOpen {
    /// Parses the bytes after the kind, the length and the ExID. A cookie of invalid length is ignored, like
    /// an option of invalid length.
    pub(crate) fn parse(format: Format, value: &[u8]) -> Option<Self> {
        match value {
            [] => Some(Self { cookie: None, format }),
            bytes => Some(Self { cookie: Some(Cookie::new(bytes)?), format }),
        }
    }

    fn value(&self) -> &[u8] {
        self.cookie.as_ref().map_or(&[], Cookie::as_slice)
    }

    /// Returns the length without padding.
    pub(crate) fn len(&self) -> usize {
        let header = if self.format == Format::Standard { 2 } else { 4 };
        header + self.value().len()
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let len = self.len() as u8;
        match self.format {
            Format::Standard => out.extend([KIND, len]),
            Format::Experimental => {
                out.extend([experiment::KIND, len]);
                out.extend(EX_ID.to_be_bytes());
            }
        }
        out.extend_from_slice(self.value());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_has_even_length_from_4_to_16() {
        for len in 0..20 {
            let bytes = vec![0xa5; len];
            let valid = [4, 6, 8, 10, 12, 14, 16].contains(&len);
            assert_eq!(Cookie::new(&bytes).is_some(), valid, "{len} bytes");
            let option = FastOpen::parse(Format::Standard, &bytes);
            assert_eq!(option.is_some(), valid || len == 0, "{len} bytes");
        }
    }

    #[test]
    fn cookie_text_round_trips() {
        let cookie: Cookie = "00ff1234".parse().unwrap();
        assert_eq!(cookie.as_slice(), [0, 0xff, 0x12, 0x34]);
        assert_eq!(cookie.to_string(), "00ff1234");
        for wrong in ["", "0", "123456", "0011223", "00112233445", "0x123456", "+1234567", "zz112233"] {
            assert_eq!(wrong.parse::<Cookie>(), Err(BadCookie), "{wrong}");
        }
    }
}
