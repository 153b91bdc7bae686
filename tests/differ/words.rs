//! Words for events, as used in scripts and in `expected.toml`.

use airwire::segment::Flags;

use crate::plan::{Call, PlannedSegment};

/// The kind of a segment.
pub(crate) fn segment(segment: &PlannedSegment) -> &'static str {
    let has = |flag| segment.flags.contains(flag);
    match () {
        () if has(Flags::RST) => "rst",
        () if has(Flags::SYN.with(Flags::ACK)) => "syn-ack",
        () if has(Flags::SYN) && segment.len > 0 => "syn-with-text",
        () if has(Flags::SYN) => "syn",
        () if has(Flags::FIN) => "fin",
        () if segment.len > 0 => "data",
        () => "ack",
    }
}

/// A call as a script shows it.
pub(crate) fn call(call: &Call) -> String {
    match call {
        Call::Write(len) => format!("write({len})"),
        Call::Read(len) => format!("read({len})"),
        Call::ShutdownWrite => "shutdown(SHUT_WR)".to_owned(),
        Call::Close => "close()".to_owned(),
        Call::Abort => "close(), with SO_LINGER of zero".to_owned(),
        Call::NoDelay => "setsockopt(TCP_NODELAY)".to_owned(),
    }
}

/// The word for a call.
pub(crate) fn call_word(call: &Call) -> &'static str {
    match call {
        Call::Write(_) => "call:write",
        Call::Read(_) => "call:read",
        Call::ShutdownWrite => "call:shutdown",
        Call::Close => "call:close",
        Call::Abort => "call:abort",
        Call::NoDelay => "call:nodelay",
    }
}
