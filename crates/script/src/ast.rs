//! What a script says, before anything runs.

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

use airwire::time::Duration;

use super::expr::Check;

/// Where a line stands, for messages: `scripts/x.pkt:12`, and where in it: `scripts/x.pkt:12:7`.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// The script, or a file that it includes.
    pub file: Rc<PathBuf>,
    /// From 1; 0 is the file as a whole.
    pub line: usize,
    /// In characters, from 1; 0 is the line as a whole.
    pub column: usize,
}

/// A whole script with its includes expanded.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) settings: Settings,
    pub(crate) events: Vec<ScriptEvent>,
}

/// What the lines above the first event say.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// `recipe NAME`.
    pub(crate) recipe: Option<Named>,
    /// `profile NAME`.
    pub(crate) profile: Option<Named>,
    /// In order; of two with the same name the later counts, a script's own before an include's.
    pub(crate) flags: Vec<Flag>,
}

/// `--name=value`, or `--name` alone.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    pub(crate) place: Place,
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) place: Place,
    pub(crate) name: String,
    /// How many includes deep it was said; the outermost counts.
    pub(crate) depth: usize,
}

#[derive(Debug)]
pub(crate) struct ScriptEvent {
    pub(crate) place: Place,
    pub(crate) when: When,
    pub(crate) action: Action,
    /// The line as written, for the transcript.
    pub(crate) text: String,
}

/// When an event happens, since the start of the script or (`+`) since the previous event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// The init command, and `%{ }%` or a shell line without a time: right after what precedes it.
    Here,
    /// `*`: whenever it comes.
    Any,
    At(Base, Duration),
    /// `.1~.2` for a packet: not before, not after.
    Window(Base, Duration, Duration),
    /// `.1...0.2` for a call: it starts at the first and returns at the second.
    Blocking(Base, Duration, Duration),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    Start,
    Previous,
}

#[derive(Debug)]
pub(crate) enum Action {
    /// `<`: the script's side sends.
    Inbound(Addressing, Inbound),
    /// `>`: the host is expected to send.
    Outbound(Addressing, Segment),
    Call(Call),
    Shell(String),
    Code(Vec<Check>),
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
    /// The connection that the script spoke of last.
    #[default]
    Current,
    /// `[new]`: a SYN from another port.
    New,
    /// `[fd N]`: the connection of that descriptor.
    Fd(i64),
}

/// What a line says about the IP header; compared only where written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct IpFields {
    pub(crate) tos: Option<Tos>,
    pub(crate) ttl: Option<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tos {
    /// `[tos 0x10]`: the whole octet.
    Octet(u8),
    /// `[ect0]` and its kind: the two ECN bits.
    Ecn(u8),
    /// `[ect01]`: either of the two that say ECN-capable.
    AnyEct,
}

/// A TCP segment in the script's numbers. The same type holds what the host really sent, mapped back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(crate) flags: Flags,
    pub(crate) seq: u32,
    pub(crate) len: u32,
    /// `None` is the same as 0, in a line and in a packet.
    pub(crate) ack: Option<u32>,
    pub(crate) win: Option<u16>,
    /// `None` is the same as 0.
    pub(crate) urg: Option<u16>,
    pub(crate) options: Options,
}

/// The flag octet of the TCP header, and AE from the octet before.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Options {
    /// `<...>`.
    Any,
    Exactly(Vec<TcpOption>),
}

/// A TCP option as scripts write it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// `eol`: the end of the option list.
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
    /// `None`: the script left that half open.
    Timestamps {
        /// TSval.
        val: Option<u32>,
        /// TSecr.
        ecr: Option<u32>,
    },
    /// A kind that airtcp knows nothing of: `FO`, `FOEXP`, `md5`, or one that the language has no word for.
    Unknown {
        /// Its number.
        kind: u8,
        /// What follows kind and length.
        data: Vec<u8>,
    },
}

/// `icmp unreachable frag_needed mtu 1000 [1:1461(1460)]`; without brackets an empty segment at 0 is quoted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Icmp {
    pub(crate) kind: IcmpKind,
    pub(crate) mtu: Option<u32>,
    /// Sequence number and length of the segment that the message quotes.
    pub(crate) quoted: Option<(u32, u32)>,
}

/// Type and code of either version; the parser checks that the word exists in one of them.
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
    /// `write 1000`: on the connection that was accepted or connected last; it must do all of it.
    Short,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expect {
    /// Nothing written (only in the short form): it must succeed.
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
    /// `{onoff=1, linger=0}`; an unnamed member has no key.
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

    /// In the order in which they print.
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

    /// All flags of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    /// Those of both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    /// Those that are not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl Place {
    pub(crate) fn of_line(file: Rc<PathBuf>, line: usize) -> Self {
        Self { file, line, column: 0 }
    }
}

impl Segment {
    /// The sequence number after everything that this segment occupies.
    pub(crate) fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len)
    }

    pub(crate) fn has(&self, flag: Flags) -> bool {
        self.flags.contains(flag)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        [self.line, self.column].iter().take_while(|number| **number > 0).try_for_each(|n| write!(f, ":{n}"))
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
