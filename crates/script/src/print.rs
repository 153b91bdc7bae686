//! Formatting of packets in the notation of scripts.

use std::fmt;

use super::ast::{Addressing, Flags, FlowName, Icmp, IcmpKind, Options, Segment, TcpOption, Tos};

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}:{}({})", self.flags, self.seq, self.end(), self.len)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(win) = self.win {
            write!(f, " win {win}")?;
        }
        if let Some(urg) = self.urg {
            write!(f, " urg {urg}")?;
        }
        match &self.options {
            Options::Exactly(options) if options.is_empty() => Ok(()),
            options => write!(f, " {options}"),
        }
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Exactly(options) = self else {
            return f.write_str("<...>");
        };
        f.write_str("<")?;
        for (nth, option) in options.iter().enumerate() {
            write!(f, "{}{option}", if nth == 0 { "" } else { "," })?;
        }
        f.write_str(">")
    }
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eol => f.write_str("eol"),
            Self::Nop => f.write_str("nop"),
            Self::Mss(mss) => write!(f, "mss {mss}"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::SackPermitted => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(left, right)| write!(f, " {left}:{right}"))
            }
            Self::Timestamps { val, ecr } => {
                f.write_str("TS")?;
                val.iter().try_for_each(|val| write!(f, " val {val}"))?;
                ecr.iter().try_for_each(|ecr| write!(f, " ecr {ecr}"))
            }
            Self::Unknown { kind, data } => {
                let data = match (kind, data.as_slice()) {
                    (254, [0xf9, 0x89, cookie @ ..]) => {
                        f.write_str("FOEXP")?;
                        cookie
                    }
                    (34, cookie) => {
                        f.write_str("FO")?;
                        cookie
                    }
                    (19, digest) => {
                        f.write_str("md5")?;
                        digest
                    }
                    (kind, data) => {
                        write!(f, "option {kind}")?;
                        data
                    }
                };
                if !data.is_empty() {
                    f.write_str(" ")?;
                }
                data.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return f.write_str("-");
        }
        Self::LETTERS
            .iter()
            .filter(|(_, flag)| self.contains(*flag))
            .try_for_each(|(letter, _)| write!(f, "{letter}"))
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Addressing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.flow {
            FlowName::Current => {}
            FlowName::New => f.write_str("[new] ")?,
            FlowName::Fd(fd) => write!(f, "[fd {fd}] ")?,
        }
        if let Some(tos) = self.ip.tos {
            write!(f, "[{tos}] ")?;
        }
        self.ip.ttl.iter().try_for_each(|ttl| write!(f, "(ttl {ttl}) "))
    }
}

impl fmt::Display for Tos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Octet(tos) => write!(f, "tos {tos:#x}"),
            Self::Ecn(bits) => f.write_str(["noecn", "ect1", "ect0", "ce"][usize::from(bits & 3)]),
            Self::AnyEct => f.write_str("ect01"),
        }
    }
}

impl fmt::Display for Icmp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "icmp {}", self.kind)?;
        self.mtu.iter().try_for_each(|mtu| write!(f, " mtu {mtu}"))?;
        let Some((seq, len)) = self.quoted else { return Ok(()) };
        write!(f, " [{seq}:{}({len})]", seq.wrapping_add(len))
    }
}

impl fmt::Display for IcmpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        self.code.iter().try_for_each(|code| write!(f, " {code}"))
    }
}
