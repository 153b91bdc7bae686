//! packetdrill's command-line options, which a script may also contain in its first lines.

use airwire::time::Duration;

/// A command-line option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlagInfo {
    /// Name with underscores, as in packetdrill. Hyphens are equivalent.
    pub name: &'static str,
    /// Placeholder for the value. `None` if the option takes no value.
    pub value: Option<&'static str>,
    /// Help text in one line.
    pub help: &'static str,
}

/// Support of airtcp for an option of packetdrill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FlagSupport {
    Supported,
    /// The value is checked, but has no effect.
    Ignored(IgnoredValue),
    /// Refused for this reason.
    Refused(&'static str),
}

/// Valid values of an option without effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IgnoredValue {
    Any,
    /// A number from 1.
    Positive,
    Number,
}

const fn flag(
    name: &'static str,
    value: Option<&'static str>,
    support: FlagSupport,
    help: &'static str,
) -> (FlagInfo, FlagSupport) {
    (FlagInfo { name, value, help }, support)
}

use FlagSupport::{Ignored, Refused, Supported};
const IGNORED: FlagSupport = Ignored(IgnoredValue::Any);
const WIRE: FlagSupport = Refused("airtcp plays a script in one process, not between two machines");

/// All options of google/packetdrill, followed by airtcp's own.
pub(super) const FLAGS: [(FlagInfo, FlagSupport); 38] = [
    flag("ip_version", Some("VERSION"), Supported, "IP version: ipv4, ipv6 or ipv4-mapped-ipv6"),
    flag("bind_port", Some("PORT"), Supported, "Port of the host [default: 8080]"),
    flag("connect_port", Some("PORT"), Supported, "Port that connect uses as destination [default: 8080]"),
    flag("local_ip", Some("ADDRESS"), Supported, "Address of the host"),
    flag("remote_ip", Some("ADDRESS"), Supported, "Address of the script's side"),
    flag("mtu", Some("BYTES"), Supported, "MTU of the host's interface [default: 1500]"),
    flag("tolerance_usecs", Some("N"), Supported, "Tolerance for times, in microseconds [default: 4000]"),
    flag(
        "tolerance_percent",
        Some("PERCENT"),
        Supported,
        "Tolerance in percent of the time since the previous line, if that is more [default: 12.5]",
    ),
    flag("tcp_ts_tick_usecs", Some("N"), Supported, "Compare TS val, with ticks of N microseconds"),
    flag("tcp_ts_ecr_scaled", None, Supported, "Allow values of TS ecr that the host has not sent"),
    flag(
        "strict_segments",
        None,
        Supported,
        "Compare a line with one segment, not with several that add up to it",
    ),
    flag("non_fatal", Some("WHAT"), Supported, "packet: report packets that differ, and continue"),
    flag("dry_run", None, Supported, "Read the scripts without playing them"),
    flag("define", Some("NAME=VALUE"), Supported, "Replace a word in the script"),
    flag(
        "init_scripts",
        Some("FILES"),
        Supported,
        "Shell scripts whose sysctls are set first, separated by commas",
    ),
    flag(
        "so_flags",
        Some("FLAGS"),
        Supported,
        "profile=…,recipe=…,psh=… and sysctls, as with the shared library",
    ),
    flag(
        "mss",
        Some("BYTES"),
        Ignored(IgnoredValue::Positive),
        "Segment size for merging on a real device (ignored)",
    ),
    flag("speed", Some("MBPS"), Ignored(IgnoredValue::Number), "Speed of a real device (ignored)"),
    flag("gateway_ip", Some("ADDRESS"), IGNORED, "Gateway of a real device (ignored)"),
    flag("netmask_ip", Some("MASK"), IGNORED, "Netmask of a real device (ignored)"),
    flag("send_omit_free", None, IGNORED, "Memory of packetdrill (ignored)"),
    flag("is_anyip", None, IGNORED, "Addresses of a real device (ignored)"),
    flag("so_filename", Some("FILE"), IGNORED, "Shared library (ignored: the host is airtcp)"),
    flag(
        "code_command",
        Some("COMMAND"),
        IGNORED,
        "Command for %{ }% (ignored: airtcp evaluates asserts itself)",
    ),
    flag(
        "code_format",
        Some("FORMAT"),
        IGNORED,
        "Format of %{ }% (ignored: airtcp evaluates asserts itself)",
    ),
    flag("code_sockopt", Some("OPTION"), IGNORED, "Socket option for %{ }% (ignored: always TCP_INFO)"),
    flag("debug", None, IGNORED, "More output (ignored: a failure is always explained)"),
    flag("verbose", None, IGNORED, "More output (ignored: a failure is always explained)"),
    flag("no_cleanup", None, IGNORED, "Keep the devices (ignored: airtcp makes none)"),
    flag("use_expect", None, IGNORED, "Option of older versions (ignored)"),
    flag("wire_client", None, WIRE, ""),
    flag("wire_server", None, WIRE, ""),
    flag("wire_server_ip", Some("ADDRESS"), IGNORED, "For two machines (ignored)"),
    flag("wire_server_at", Some("ADDRESS"), IGNORED, "For two machines (ignored)"),
    flag("wire_server_port", Some("PORT"), IGNORED, "For two machines (ignored)"),
    flag("wire_client_dev", Some("DEVICE"), IGNORED, "For two machines (ignored)"),
    flag("wire_server_dev", Some("DEVICE"), IGNORED, "For two machines (ignored)"),
    flag("psh", Some("HOW"), Supported, "Compare PSH bits: neutral (no) or exact [default: neutral]"),
];

/// Returns the options that a command line accepts, each with whether it has an effect.
pub fn flags() -> impl Iterator<Item = (FlagInfo, bool)> {
    let accepted = FLAGS.iter().filter(|(_, support)| !matches!(support, Refused(_)));
    accepted.map(|(info, support)| (*info, *support == Supported))
}

/// Tolerance for the time of an event: the larger of a fixed time and a fraction of the time since
/// the previous line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// Minimum tolerance.
    pub least: Duration,
    /// Fraction of the time since the previous line, from 0 to 1.
    pub fraction: f64,
}

impl Tolerance {
    /// No tolerance.
    pub const EXACT: Self = Self { least: Duration::ZERO, fraction: 0.0 };
    /// packetdrill's default. Linux's timers may be off by up to an eighth.
    pub const PACKETDRILL: Self = Self { least: Duration::from_micros(4000), fraction: 0.125 };

    /// Returns the tolerance for an event `gap` after the previous line.
    pub(super) fn after(self, gap: Duration) -> Duration {
        self.least.max(Duration::from_nanos((gap.as_nanos() as f64 * self.fraction) as u64))
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self::PACKETDRILL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerance_is_larger_of_absolute_and_relative() {
        let ms = Duration::from_millis;
        assert_eq!(Tolerance::PACKETDRILL.after(ms(16)), ms(4));
        assert_eq!(Tolerance::PACKETDRILL.after(ms(1000)), ms(125));
        assert_eq!(Tolerance::EXACT.after(ms(1000)), Duration::ZERO);
    }

    #[test]
    fn flag_names_are_unique() {
        let mut names: Vec<_> = FLAGS.iter().map(|(info, _)| info.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FLAGS.len());
    }
}
