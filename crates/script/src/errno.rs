//! The error numbers that socket calls return, with Linux's names and numbers.

use std::fmt;

/// An error that airtcp's socket calls can return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno {
    /// Name as in errno.h: `EAGAIN`.
    pub name: &'static str,
    /// Linux's error number.
    pub number: i32,
}

macro_rules! errnos {
    ($($name:ident = $number:literal),* $(,)?) => {
        impl Errno {
            $(#[doc = concat!("Number ", stringify!($number), ".")]
            pub const $name: Self = Self { name: stringify!($name), number: $number };)*
            const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

errnos! {
    EBADF = 9,
    EAGAIN = 11,
    EACCES = 13,
    EFAULT = 14,
    EINVAL = 22,
    EPIPE = 32,
    ENONET = 64,
    EPROTO = 71,
    EDESTADDRREQ = 89,
    EMSGSIZE = 90,
    ENOPROTOOPT = 92,
    EPROTONOSUPPORT = 93,
    EOPNOTSUPP = 95,
    EAFNOSUPPORT = 97,
    EADDRINUSE = 98,
    EADDRNOTAVAIL = 99,
    ENETUNREACH = 101,
    ECONNABORTED = 103,
    ECONNRESET = 104,
    ENOBUFS = 105,
    EISCONN = 106,
    ENOTCONN = 107,
    ETIMEDOUT = 110,
    ECONNREFUSED = 111,
    EHOSTDOWN = 112,
    EHOSTUNREACH = 113,
    EALREADY = 114,
    EINPROGRESS = 115,
}

impl Errno {
    /// Finds an error by name. EWOULDBLOCK is an alias of EAGAIN. `None` if airtcp never returns
    /// this error.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let name = if name == "EWOULDBLOCK" { "EAGAIN" } else { name };
        Self::ALL.iter().copied().find(|errno| errno.name == name)
    }

    /// Finds an error by number. `None` if airtcp never returns it.
    pub fn by_number(number: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|errno| errno.number == number)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
