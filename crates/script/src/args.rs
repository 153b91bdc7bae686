//! The arguments of a call: numbers, names of constants, addresses, lists.

use std::net::{IpAddr, SocketAddr};

use super::ast::{Call, Value};
use super::errno::Errno;
use super::sockopt::SockOpt;
use super::syscall::{Blocking, Events, FastOpenKeys, Fd, OptionValue, ShutdownHow};
use super::verdict::Problem;

pub(super) const O_RDWR: i64 = 2;
pub(super) const O_NONBLOCK: i64 = 0o4000;

/// Values of the symbolic constants.
const SYMBOLS: [(&str, i64); 10] = [
    ("O_RDWR", O_RDWR),
    ("O_NONBLOCK", O_NONBLOCK),
    ("IP_PMTUDISC_DONT", 0),
    ("IP_PMTUDISC_WANT", 1),
    ("IP_PMTUDISC_DO", 2),
    ("IP_PMTUDISC_PROBE", 3),
    ("IPV6_PMTUDISC_DONT", 0),
    ("IPV6_PMTUDISC_DO", 2),
    ("IPTOS_LOWDELAY", 0x10),
    ("IPTOS_THROUGHPUT", 0x08),
];

pub(super) fn fd(call: &Call) -> Result<Fd, Problem> {
    let number = number(call, 0)?;
    i32::try_from(number).map(Fd).map_err(|_| Problem::new(format!("{number} is not a file descriptor")))
}

pub(super) fn number(call: &Call, nth: usize) -> Result<i64, Problem> {
    let arg = call
        .args
        .get(nth)
        .ok_or_else(|| Problem::new(format!("`{}` needs argument {}", call.name, nth + 1)))?;
    value(arg)
}

pub(super) fn size(len: i64) -> Result<usize, Problem> {
    usize::try_from(len).map_err(|_| Problem::new(format!("{len} is not a length")))
}

pub(super) fn value(value: &Value) -> Result<i64, Problem> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::Symbols(names) => names.iter().try_fold(0, |sum, name| {
            let known = SYMBOLS.iter().find(|(known, _)| known == name).map(|(_, number)| *number);
            let number = known.or_else(|| Errno::by_name(name).map(|errno| i64::from(errno.number)));
            number
                .or_else(|| name.parse().ok())
                .map(|number| sum | number)
                .ok_or_else(|| Problem::new(format!("unknown value `{name}`")))
        }),
        other => Err(Problem::new(format!("expected a number, found {other:?}"))),
    }
}

pub(super) fn symbol(call: &Call, nth: usize) -> Result<&str, Problem> {
    match call.args.get(nth) {
        Some(Value::Symbols(names)) if names.len() == 1 => Ok(&names[0]),
        _ => {
            Err(Problem::new(format!("`{}` needs the name of a constant as argument {}", call.name, nth + 1)))
        }
    }
}

pub(super) fn flags<'a>(call: &'a Call, nth: usize, known: &[&str]) -> Result<Vec<&'a str>, Problem> {
    match call.args.get(nth) {
        None | Some(Value::Int(0)) => Ok(Vec::new()),
        Some(Value::Symbols(names)) => match names.iter().find(|name| !known.contains(&name.as_str())) {
            None => Ok(names.iter().map(String::as_str).collect()),
            Some(name) => Err(Problem::new(format!(
                "`{}` accepts the flags {}, not {name}",
                call.name,
                known.join(" ")
            ))),
        },
        Some(_) => Err(Problem::new(format!("expected 0 or names as flags of `{}`", call.name))),
    }
}

pub(super) fn wait(flags: &[&str]) -> Blocking {
    if flags.contains(&"MSG_DONTWAIT") { Blocking::Return } else { Blocking::Wait }
}

pub(super) fn how(call: &Call) -> Result<ShutdownHow, Problem> {
    match symbol(call, 1)? {
        "SHUT_RD" => Ok(ShutdownHow::Read),
        "SHUT_WR" => Ok(ShutdownHow::Write),
        "SHUT_RDWR" => Ok(ShutdownHow::Both),
        other => Err(Problem::new(format!("shutdown accepts SHUT_RD, SHUT_WR and SHUT_RDWR, not {other}"))),
    }
}

pub(super) fn option(call: &Call) -> Result<SockOpt, Problem> {
    Ok(SockOpt::by_name(symbol(call, 1)?, symbol(call, 2)?)?)
}

/// Checks an argument that points to memory, whose content airtcp does not read.
pub(super) fn memory(call: &Call, nth: usize) -> Result<(), Problem> {
    match call.args.get(nth) {
        None | Some(Value::Ellipsis | Value::Int(0)) => Ok(()),
        Some(_) => Err(Problem::new(format!(
            "airtcp does not read argument {} of `{}`; write `...`",
            nth + 1,
            call.name
        ))),
    }
}

/// Checks the arguments of socket(2). Returns whether calls on the new descriptor block.
pub(super) fn stream_socket(call: &Call) -> Result<Blocking, Problem> {
    let [domain, kind, protocol] = call.args.as_slice() else {
        return Err(Problem::new("`socket` needs three arguments"));
    };
    let is_one_of = |value: &Value, names: &[&str]| match value {
        Value::Ellipsis => true,
        Value::Symbols(symbols) => symbols.len() == 1 && names.contains(&symbols[0].as_str()),
        _ => false,
    };
    let refuse = |value: &Value| {
        let name = match value {
            Value::Symbols(symbols) => symbols.join("|"),
            other => format!("{other:?}"),
        };
        Err(Problem::new(format!("airtcp supports only TCP over IPv4 and IPv6, not `{name}`")))
    };
    if !is_one_of(domain, &["AF_INET", "AF_INET6", "PF_INET", "PF_INET6"]) {
        return refuse(domain);
    }
    if *protocol != Value::Int(0) && !is_one_of(protocol, &["IPPROTO_TCP", "IPPROTO_IP"]) {
        return refuse(protocol);
    }
    let kinds = flags(call, 1, &["SOCK_STREAM", "SOCK_NONBLOCK", "SOCK_CLOEXEC"])?;
    if !kinds.contains(&"SOCK_STREAM") {
        return refuse(kind);
    }
    Ok(blocking(&kinds))
}

/// Returns whether a descriptor that is opened with these flags blocks.
pub(super) fn blocking(flags: &[&str]) -> Blocking {
    if flags.contains(&"SOCK_NONBLOCK") { Blocking::Return } else { Blocking::Wait }
}

pub(super) fn int_option(number: &Value) -> Result<OptionValue, Problem> {
    let number = value(number)?;
    i32::try_from(number)
        .map(OptionValue::Int)
        .map_err(|_| Problem::new(format!("{number} is out of range for an option")))
}

pub(super) fn linger(members: &[(Option<String>, Value)]) -> Result<OptionValue, Problem> {
    match members {
        [(_, on), (_, seconds)] => {
            let seconds = i32::try_from(value(seconds)?).unwrap_or(i32::MAX);
            Ok(OptionValue::Linger { on: value(on)? != 0, seconds })
        }
        _ => Err(Problem::new("expected {onoff=1, linger=0}")),
    }
}

/// Parses the value of TCP_FASTOPEN_KEY: 16 bytes, or 32 with a backup key. `\x00` is one byte. Returns a
/// value that setsockopt(2) refuses if it has another length.
pub(super) fn fast_open_keys(text: &str) -> OptionValue {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = rest.strip_prefix(b"\\x").and_then(|digits| digits.split_at_checked(2));
        let escaped = escaped.and_then(|(digits, after)| {
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        let (byte, after) = escaped.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    match bytes.split_first_chunk() {
        Some((primary, [])) => OptionValue::FastOpenKeys(FastOpenKeys { primary: *primary, backup: None }),
        Some((primary, backup)) => match backup.try_into() {
            Ok(backup) => OptionValue::FastOpenKeys(FastOpenKeys { primary: *primary, backup: Some(backup) }),
            Err(_) => OptionValue::Int(0),
        },
        None => OptionValue::Int(0),
    }
}

/// Parses `...` (the default address) or
/// `{sa_family = AF_INET, sin_port = htons(8080), sin_addr = inet_addr("192.0.2.1")}`.
pub(super) fn address(arg: Option<&Value>, default: SocketAddr) -> Result<SocketAddr, Problem> {
    let members = match arg {
        None | Some(Value::Ellipsis) => return Ok(default),
        Some(Value::Struct(members)) => members,
        Some(other) => return Err(Problem::new(format!("expected an address or `...`, found {other:?}"))),
    };
    let mut addr = default;
    for (_, member) in members {
        match member {
            Value::Apply(name, args) => match (name.as_str(), args.as_slice()) {
                ("htons", [port]) => {
                    let port = value(port)?;
                    addr.set_port(
                        u16::try_from(port).map_err(|_| Problem::new(format!("{port} is not a port")))?,
                    );
                }
                ("inet_addr", [Value::Text(ip)]) | ("inet_pton", [_, Value::Text(ip)]) => {
                    addr.set_ip(
                        ip.parse::<IpAddr>()
                            .map_err(|_| Problem::new(format!("`{ip}` is not an address")))?,
                    );
                }
                _ => {
                    return Err(Problem::new(format!(
                        "an address accepts htons, inet_addr and inet_pton, not `{name}`"
                    )));
                }
            },
            Value::Symbols(names) if ["AF_INET", "AF_INET6"].contains(&names.join("|").as_str()) => {}
            other => return Err(Problem::new(format!("{other:?} is not a part of an address"))),
        }
    }
    Ok(addr)
}

/// Returns the sum of the lengths in `[{..., 1000}, {..., 500}]`.
pub(super) fn vector_len(arg: Option<&Value>) -> Result<i64, Problem> {
    let Some(Value::List(entries)) = arg else {
        return Err(Problem::new("expected [{..., LENGTH}, ...]"));
    };
    entries.iter().try_fold(0, |sum, entry| match entry {
        Value::Struct(members) if members.len() == 2 => Ok(sum + value(&members[1].1)?),
        _ => Err(Problem::new("expected {..., LENGTH}")),
    })
}

/// Parses `[{fd=4, events=POLLIN, revents=POLLIN}]`.
pub(super) fn poll_set(call: &Call) -> Result<Vec<PollEntry>, Problem> {
    let Some(Value::List(entries)) = call.args.first() else {
        return Err(Problem::new("poll needs [{fd=4, events=POLLIN, revents=POLLIN}]"));
    };
    let entry = |entry: &Value| {
        let Value::Struct(members) = entry else {
            return Err(Problem::new("expected {fd=4, events=POLLIN, revents=POLLIN}"));
        };
        let member =
            |name: &str| members.iter().find(|(key, _)| key.as_deref() == Some(name)).map(|(_, value)| value);
        let fd = value(member("fd").ok_or_else(|| Problem::new("an entry of poll needs fd=N"))?)?;
        Ok(PollEntry {
            fd: Fd(i32::try_from(fd).unwrap_or(-1)),
            interest: member("events").map(events).transpose()?.unwrap_or_default(),
            // As in packetdrill, a missing `revents` means 0.
            revents: match member("revents") {
                Some(Value::Ellipsis) => None,
                Some(revents) => Some(events(revents)?),
                None => Some(Events::default()),
            },
        })
    };
    entries.iter().map(entry).collect()
}

/// A descriptor passed to poll(2), with the requested and the expected events.
pub(super) struct PollEntry {
    pub(super) fd: Fd,
    pub(super) interest: Events,
    pub(super) revents: Option<Events>,
}

pub(super) fn events(arg: &Value) -> Result<Events, Problem> {
    match arg {
        Value::Int(bits) => Ok(Events(*bits as i16)),
        Value::Symbols(names) => names.iter().try_fold(Events::default(), |sum, name| {
            let known = Events::NAMES.iter().find(|(known, _)| known == name);
            known
                .map(|(_, event)| Events(sum.0 | event.0))
                .ok_or_else(|| Problem::new(format!("`{name}` is not an event of poll")))
        }),
        other => Err(Problem::new(format!("expected events such as POLLIN|POLLOUT, found {other:?}"))),
    }
}
