//! The syntax tree of a script.

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

use airwire::time::Duration;

use super::python::Block;

/// A position in a script, for messages: `scripts/x.pkt:12`, or with a column `scripts/x.pkt:12:7`.
#[derive(Clone, PartialEq, Eq)]
pub struct Position {
    /// The script, or a file that it includes.
    pub file: Rc<PathBuf>,
    /// Line number from 1, or 0 for the whole file.
    pub line: usize,
    /// Column in characters from 1, or 0 for the whole line.
    pub column: usize,
}

/// A script with its includes expanded.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) settings: Settings,
    pub(crate) events: Vec<ScriptEvent>,
}

/// The settings in the lines above the first event.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// `recipe NAME`.
    pub(crate) recipe: Option<Named>,
    /// `profile NAME`.
    pub(crate) profile: Option<Named>,
    /// Flags in order. If a name occurs twice, the later flag takes effect; the script's own flags
    /// override the flags of its includes.
    pub(crate) flags: Vec<Flag>,
}

/// `--name=value`, or `--name` alone.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    pub(crate) position: Position,
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) position: Position,
    pub(crate) name: String,
    /// Include depth. The outermost setting takes effect.
    pub(crate) depth: usize,
}

#[derive(Debug)]
pub(crate) struct ScriptEvent {
    pub(crate) position: Position,
    pub(crate) when: When,
    pub(crate) action: Action,
    /// The line as written, for the transcript.
    pub(crate) text: String,
}

/// The time of an event, relative to the start of the script or, with `+`, to the previous event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// No time is given: the init command, `%{ }%` or a shell line runs right after the previous
    /// event.
    Immediately,
    /// `*`: any time.
    Any,
    At(TimeBase, Duration),
    /// `.1~.2` for a packet: the earliest and the latest time.
    Window(TimeBase, Duration, Duration),
    /// `.1...0.2` for a call: it starts at the first time and returns at the second.
    Blocking(TimeBase, Duration, Duration),
}

/// The time from which the time of an event counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimeBase {
    Start,
    Previous,
}

#[derive(Debug)]
pub(crate) enum Action {
    /// `<`: the script's side sends a packet.
    Inbound(Addressing, Inbound),
    /// `>`: the host is expected to send a packet.
    Outbound(Addressing, Segment),
    Call(Call),
    Shell(String),
    /// A code block and the line of its `%{`.
    Code(Block, usize),
}

#[derive(Debug)]
pub(crate) enum Inbound {
    Tcp(Segment),
    Icmp(Icmp),
}

/// The bracketed prefixes of a packet line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Addressing {
    pub(crate) flow: FlowName,
    pub(crate) ip: IpFields,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum FlowName {
    /// The connection of the previous packet line.
    #[default]
    Current,
    /// `[new]`: a new connection, whose SYN has another source port.
    New,
    /// `[fd N]`: the connection of that descriptor.
    Fd(i64),
}

/// The IP header fields that a line gives. Fields that it leaves out are not compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct IpFields {
    pub(crate) tos: Option<Tos>,
    pub(crate) ttl: Option<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tos {
    /// `[tos 0x10]`: the whole byte.
    Octet(u8),
    /// `[ect0]` and similar: the two ECN bits.
    Ecn(u8),
    /// `[ect01]`: either of the two ECN-capable codepoints.
    AnyEct,
}

/// A TCP segment with the script's sequence numbers. A segment that the host sent is converted to
/// this type for the comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(crate) flags: Flags,
    pub(crate) seq: u32,
    pub(crate) len: u32,
    /// `None` is equal to 0, both in a line and in a packet.
    pub(crate) ack: Option<u32>,
    pub(crate) win: Option<u16>,
    /// `None` is equal to 0.
    pub(crate) urg: Option<u16>,
    pub(crate) options: Options,
}

/// The flags byte of the TCP header, plus AE from the preceding byte.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Options {
    /// `<...>`: not compared.
    Any,
    Exactly(Vec<TcpOption>),
}

/// A TCP option in the notation of scripts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// `eol`: end of the option list.
    Eol,
    /// `nop`: padding.
    Nop,
    /// `mss 1460`.
    Mss(u16),
    /// `wscale 7`.
    WindowScale(u8),
    /// `sackOK`.
    SackPermitted,
    /// `sack 1001:2001 3001:4001`: blocks as (left, right).
    Sack(Vec<(u32, u32)>),
    /// `TS val N ecr N`. `None` for a value that the script leaves out.
    Timestamps {
        /// TSval.
        val: Option<u32>,
        /// TSecr.
        ecr: Option<u32>,
    },
    /// An option without a parsed value: `FO`, `FOEXP`, `md5`, or a kind without a name in the
    /// language.
    Unknown {
        /// Option kind.
        kind: u8,
        /// Bytes after kind and length.
        data: Vec<u8>,
    },
}

/// `icmp unreachable frag_needed mtu 1000 [1:1461(1460)]`. Without brackets, the message quotes an
/// empty segment with sequence number 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Icmp {
    pub(crate) kind: IcmpKind,
    pub(crate) mtu: Option<u32>,
    /// Sequence number and length of the quoted segment.
    pub(crate) quoted: Option<(u32, u32)>,
}

/// Names of an ICMP type and code. The parser checks that they exist in ICMPv4 or ICMPv6.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IcmpKind {
    pub(crate) kind: String,
    pub(crate) code: Option<String>,
}

/// `accept(3, ..., ...) = 4`.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) form: Form,
    pub(crate) name: String,
    pub(crate) args: Vec<Value>,
    pub(crate) expect: Expect,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// `write(4, ..., 1000) = 1000`.
    Full,
    /// `write 1000`: acts on the most recently accepted or connected connection, and must transfer
    /// the whole length.
    Short,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expect {
    /// No result is written, as in every short form: the call must succeed.
    Success,
    Value(Value),
    /// `-1 EAGAIN`.
    Error(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Int(i64),
    Text(String),
    /// `A|B|0x4`.
    Symbols(Vec<String>),
    Ellipsis,
    List(Vec<Self>),
    /// `{onoff=1, linger=0}`. Members without a name have no key.
    Struct(Vec<(Option<String>, Self)>),
    /// `htons(8080)`, `inet_addr("192.0.2.1")`.
    Apply(String, Vec<Self>),
}

impl Flags {
    /// `F`.
    pub const FIN: Self = Self(0x001);
    /// `S`.
    pub const SYN: Self = Self(0x002);
    /// `R`.
    pub const RST: Self = Self(0x004);
    /// `P`.
    pub const PSH: Self = Self(0x008);
    /// `.`.
    pub const ACK: Self = Self(0x010);
    /// `U`.
    pub const URG: Self = Self(0x020);
    /// `E` (RFC 3168).
    pub const ECE: Self = Self(0x040);
    /// `W` (RFC 3168).
    pub const CWR: Self = Self(0x080);
    /// `A` (accurate ECN).
    pub const AE: Self = Self(0x100);

    /// The letters of the flags, in the order in which they are printed.
    pub const LETTERS: [(char, Self); 9] = [
        ('F', Self::FIN),
        ('S', Self::SYN),
        ('R', Self::RST),
        ('P', Self::PSH),
        ('U', Self::URG),
        ('E', Self::ECE),
        ('W', Self::CWR),
        ('A', Self::AE),
        ('.', Self::ACK),
    ];

    /// Returns whether all flags of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    /// Returns the union of both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    /// Returns the flags that are not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl Position {
    pub(crate) fn of_line(file: Rc<PathBuf>, line: usize) -> Self {
        Self { file, line, column: 0 }
    }
}

impl Segment {
    /// Returns the sequence number after the segment's payload.
    pub(crate) fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len)
    }

    pub(crate) fn has(&self, flag: Flags) -> bool {
        self.flags.contains(flag)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        [self.line, self.column].iter().take_while(|number| **number > 0).try_for_each(|n| write!(f, ":{n}"))
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
