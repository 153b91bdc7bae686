//! The names of the profiles.

use std::fmt;

use super::Profile;

/// The name of a [`Profile`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ProfileName {
    /// [`Profile::default`].
    #[default]
    Default,
    /// [`Profile::linux`].
    Linux,
    /// [`Profile::freebsd`].
    FreeBsd,
    /// [`Profile::ns2`].
    Ns2,
}

impl ProfileName {
    /// All names.
    pub const ALL: [Self; 4] = [Self::Default, Self::Linux, Self::FreeBsd, Self::Ns2];

    /// Returns the name that users type.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Linux => "linux",
            Self::FreeBsd => "freebsd",
            Self::Ns2 => "ns2",
        }
    }

    /// Returns a short description of the profile.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Default => "the RFCs: timeout of at least 1 s, half the window after a loss",
            Self::Linux => "Linux 6.18: timeout of at least 200 ms, 0.7 of the window after a loss",
            Self::FreeBsd => "FreeBSD: timeout of at least 230 ms",
            Self::Ns2 => {
                "one-way agents of ns-2.35: whole segments, 10 ms ticks, initial window of one segment"
            }
        }
    }

    /// Returns the profile.
    pub fn profile(self) -> Profile {
        match self {
            Self::Default => Profile::default(),
            Self::Linux => Profile::linux(),
            Self::FreeBsd => Profile::freebsd(),
            Self::Ns2 => Profile::ns2(),
        }
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
