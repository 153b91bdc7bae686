//! The options of packetdrill's command line, which may also stand in the first lines of a script.

use airwire::time::Duration;

/// One option, for a command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlagInfo {
    /// With underscores, as packetdrill has it; hyphens mean the same.
    pub name: &'static str,
    /// What its value is called; `None`: it has none.
    pub value: Option<&'static str>,
    /// In one line.
    pub help: &'static str,
}

/// What becomes of an option of packetdrill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Taken,
    /// It has to be well-formed, and changes nothing.
    Idle(Idle),
    /// It asks for what airtcp cannot do.
    Refused(&'static str),
}

/// What the value of an option that changes nothing must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Idle {
    Anything,
    /// A number from 1.
    Positive,
    Number,
}

const fn flag(
    name: &'static str,
    value: Option<&'static str>,
    fate: Fate,
    help: &'static str,
) -> (FlagInfo, Fate) {
    (FlagInfo { name, value, help }, fate)
}

use Fate::{Refused, Taken};
const IDLE: Fate = Fate::Idle(Idle::Anything);
const WIRE: Fate = Refused("a script is played in one process, not between two machines");

/// All that google/packetdrill knows, then ours.
pub(super) const FLAGS: [(FlagInfo, Fate); 38] = [
    flag("ip_version", Some("VERSION"), Taken, "ipv4, ipv6 or ipv4-mapped-ipv6"),
    flag("bind_port", Some("PORT"), Taken, "The host's port [default: 8080]"),
    flag("connect_port", Some("PORT"), Taken, "The port that connect goes to [default: 8080]"),
    flag("local_ip", Some("ADDRESS"), Taken, "The host's address"),
    flag("remote_ip", Some("ADDRESS"), Taken, "The address of the script's side"),
    flag("mtu", Some("OCTETS"), Taken, "MTU of the host's interface [default: 1500]"),
    flag("tolerance_usecs", Some("N"), Taken, "How far a time may be off, in microseconds [default: 4000]"),
    flag(
        "tolerance_percent",
        Some("PERCENT"),
        Taken,
        "Or, if that is more, of the time since the line before [default: 12.5]",
    ),
    flag("tcp_ts_tick_usecs", Some("N"), Taken, "Compare TS val, which counts in this many microseconds"),
    flag("tcp_ts_ecr_scaled", None, Taken, "TS ecr may be a number that the host has not sent"),
    flag("strict_segments", None, Taken, "A line is one segment, not several that add up to it"),
    flag("non_fatal", Some("WHAT"), Taken, "packet: a packet that differs is only noted"),
    flag("dry_run", None, Taken, "Read the scripts, and play none"),
    flag("define", Some("NAME=VALUE"), Taken, "What a word in the script stands for"),
    flag(
        "init_scripts",
        Some("FILES"),
        Taken,
        "Shell scripts, separated by commas, whose sysctls are set first",
    ),
    flag("so_flags", Some("FLAGS"), Taken, "profile=…,recipe=…,psh=… and sysctls, as for the shared library"),
    flag(
        "mss",
        Some("OCTETS"),
        Fate::Idle(Idle::Positive),
        "The size of segments that a real device joins into one packet; here none are joined",
    ),
    flag("speed", Some("MBPS"), Fate::Idle(Idle::Number), "Of a real device"),
    flag("gateway_ip", Some("ADDRESS"), IDLE, "Of a real device"),
    flag("netmask_ip", Some("MASK"), IDLE, "Of a real device"),
    flag("send_omit_free", None, IDLE, "About packetdrill's own memory"),
    flag("is_anyip", None, IDLE, "About addresses of a real device"),
    flag("so_filename", Some("FILE"), IDLE, "The host is airtcp's in any case"),
    flag("code_command", Some("COMMAND"), IDLE, "What runs %{ }%: here asserts are evaluated"),
    flag("code_format", Some("FORMAT"), IDLE, "Of %{ }%: here asserts are evaluated"),
    flag("code_sockopt", Some("OPTION"), IDLE, "What %{ }% reads: always TCP_INFO"),
    flag("debug", None, IDLE, "A failure tells what happened"),
    flag("verbose", None, IDLE, "A failure tells what happened"),
    flag("no_cleanup", None, IDLE, "There is nothing to clean up"),
    flag("use_expect", None, IDLE, "Of older versions"),
    flag("wire_client", None, WIRE, ""),
    flag("wire_server", None, WIRE, ""),
    flag("wire_server_ip", Some("ADDRESS"), IDLE, "Between two machines"),
    flag("wire_server_at", Some("ADDRESS"), IDLE, "Between two machines"),
    flag("wire_server_port", Some("PORT"), IDLE, "Between two machines"),
    flag("wire_client_dev", Some("DEVICE"), IDLE, "Between two machines"),
    flag("wire_server_dev", Some("DEVICE"), IDLE, "Between two machines"),
    flag("psh", Some("HOW"), Taken, "neutral: where PSH stands is not compared; exact [default: neutral]"),
];

/// The options that change something, for a command line; the others are accepted there too.
pub fn flags() -> impl Iterator<Item = (FlagInfo, bool)> {
    FLAGS.iter().filter(|(_, fate)| !matches!(fate, Refused(_))).map(|(info, fate)| (*info, *fate == Taken))
}

/// How far from its time something may happen: so much, or so much of the time since the line before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// In any case.
    pub least: Duration,
    /// Of the time since the line before, from 0 to 1.
    pub fraction: f64,
}

impl Tolerance {
    /// Nothing may be off.
    pub const EXACT: Self = Self { least: Duration::ZERO, fraction: 0.0 };
    /// packetdrill's: Linux's timers are off by up to an eighth.
    pub const PACKETDRILL: Self = Self { least: Duration::from_micros(4000), fraction: 0.125 };

    /// For what comes `gap` after the line before.
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
    fn the_larger_of_the_two_counts() {
        let ms = Duration::from_millis;
        assert_eq!(Tolerance::PACKETDRILL.after(ms(16)), ms(4));
        assert_eq!(Tolerance::PACKETDRILL.after(ms(1000)), ms(125));
        assert_eq!(Tolerance::EXACT.after(ms(1000)), Duration::ZERO);
    }

    #[test]
    fn every_option_is_there_once() {
        let mut names: Vec<_> = FLAGS.iter().map(|(info, _)| info.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FLAGS.len());
    }
}
