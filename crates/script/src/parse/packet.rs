//! The parser for packets: `< [ect0] S. 0:0(0) ack 1 win 1000 <mss 1460,nop>` and `< icmp …`.

use super::{ParseError, Parser, TokenKind};
use crate::ast::{
    Action, Addressing, Flags, FlowName, Icmp, IcmpKind, Inbound, Options, Segment, TcpOption, Tos,
};
use crate::wire;

/// The Fast Open cookies that Linux's scripts name without defining them. Both are for the script's address
/// 192.0.2.1: the first with the key of [`Tuning::default`](crate::tuning::Tuning), the second with the key
/// 0-0-0-0.
const COOKIES: [(&str, u64); 2] =
    [("TFO_COOKIE", 0x3021_b9d8_8901_7eeb), ("TFO_COOKIE_ZERO", 0xb7c1_2350_a90d_c8f5)];

/// Length of the IPv6 and TCP headers without options.
const HEADERS: usize = 40 + 20;
const IP_MAX: usize = 65535;
const TOO_LONG: &str = "with its headers, this packet is longer than the 65535 bytes that IP can carry";

impl Parser<'_> {
    pub(super) fn packet(&mut self) -> Result<Action, ParseError> {
        let inbound = self.eat('<');
        if !inbound {
            self.expect('>')?;
        }
        let addressing = self.addressing(inbound)?;
        if let TokenKind::Word(word) = self.peek() {
            // Protocols that packetdrill supports.
            let problem = match word.as_str() {
                "udp" => Some("airtcp does not support UDP, only TCP and ICMP errors about TCP"),
                "ipv4" | "ipv6" | "gre" | "GREv0" | "mpls" => {
                    Some("airtcp supports a single IP header, followed by TCP flags such as `S` or `.`")
                }
                _ => None,
            };
            if let Some(problem) = problem {
                return Err(self.error(problem));
            }
        }
        if self.eat_word("icmp") {
            if !inbound {
                return Err(self.error("a TCP socket never sends ICMP; use `<`"));
            }
            return Ok(Action::Inbound(addressing, Inbound::Icmp(self.icmp()?)));
        }
        let position = self.position();
        let segment = self.segment()?;
        if !inbound {
            return Ok(Action::Outbound(addressing, segment));
        }
        let Options::Exactly(options) = &segment.options else {
            return Err(ParseError::new(position, "`<...>` is only for packets that the host sends"));
        };
        if HEADERS + wire::options_len(options) + segment.len as usize > IP_MAX {
            return Err(ParseError::new(position, TOO_LONG));
        }
        if segment.win.is_none() {
            let message = "a packet that the script sends needs a window; add `win N` after the ack";
            return Err(ParseError::new(position, message));
        }
        Ok(Action::Inbound(addressing, Inbound::Tcp(segment)))
    }

    /// Parses prefixes in either kind of bracket: `[fd 4] [ect0]`, `(ttl 1)`.
    fn addressing(&mut self, inbound: bool) -> Result<Addressing, ParseError> {
        let mut addressing = Addressing::default();
        loop {
            let close = match self.peek() {
                TokenKind::Punct('(') => ')',
                TokenKind::Punct('[') => ']',
                _ => return Ok(addressing),
            };
            self.at += 1;
            loop {
                self.prefix(&mut addressing, inbound)?;
                if !self.eat(',') {
                    break;
                }
            }
            self.expect(close)?;
        }
    }

    fn prefix(&mut self, addressing: &mut Addressing, inbound: bool) -> Result<(), ParseError> {
        const EXPECTED: &str = "ect0, ect1, ect01, ce, noecn, tos N, ttl N, fd N or new";
        let position = self.position();
        let refuse = |message: &str| Err(ParseError::new(position.clone(), message));
        match self.word(EXPECTED)?.as_str() {
            "noecn" => addressing.ip.tos = Some(Tos::Ecn(0)),
            "ect1" => addressing.ip.tos = Some(Tos::Ecn(1)),
            "ect0" => addressing.ip.tos = Some(Tos::Ecn(2)),
            "ce" => addressing.ip.tos = Some(Tos::Ecn(3)),
            "ect01" if inbound => {
                return refuse("`ect01` is only for packets that the host sends; use ect0 or ect1");
            }
            "ect01" => addressing.ip.tos = Some(Tos::AnyEct),
            "tos" => addressing.ip.tos = Some(Tos::Octet(self.integer("a TOS byte from 0 to 0xff")?)),
            // As in packetdrill, 0 means that no TTL is given.
            "ttl" => {
                addressing.ip.ttl = Some(self.integer("a TTL from 0 to 255")?).filter(|ttl| *ttl != 0);
            }
            "flowlabel" => return refuse("airtcp does not support IPv6 flow labels"),
            "fd" => addressing.flow = FlowName::Fd(self.integer("a file descriptor")?),
            "new" => addressing.flow = FlowName::New,
            other => return refuse(&format!("expected {EXPECTED}, found `{other}`")),
        }
        Ok(())
    }

    fn segment(&mut self) -> Result<Segment, ParseError> {
        let flags = self.flags()?;
        let (seq, len) = self.sequence()?;
        let ack = self.optional("ack", "an acknowledgment number")?;
        let win = self.optional("win", "a window from 0 to 65535")?;
        let urg = self.optional("urg", "an urgent pointer from 0 to 65535")?;
        let options = if self.eat('<') { self.options()? } else { Options::Exactly(Vec::new()) };
        Ok(Segment { flags, seq, len, ack, win, urg, options })
    }

    /// Parses flags: `S.`, `-` for none, or `P.5`, where the digit combines AE, CWR and ECE (the
    /// ACE field of RFC 9768).
    fn flags(&mut self) -> Result<Flags, ParseError> {
        let first = self.at;
        let mut flags = Flags::default();
        loop {
            let text = match self.peek() {
                TokenKind::Punct(c @ ('.' | '-')) => c.to_string(),
                TokenKind::Word(word) => word.clone(),
                // `.5`, or the 5 of `SP5`.
                TokenKind::Number(digits)
                    if digits.starts_with('.') || (self.at > first && self.touches()) =>
                {
                    digits.clone()
                }
                _ if self.at == first => {
                    let ports = matches!(self.peek(), TokenKind::Number(_))
                        && *self.peek_next() == TokenKind::Punct('>');
                    let hint = match ports {
                        true => " (ports cannot be chosen; use `[fd N]` to select a connection)",
                        false => "",
                    };
                    return Err(self
                        .error(format!("expected TCP flags such as S. or P., found {}{hint}", self.peek())));
                }
                _ => return Ok(flags),
            };
            for letter in text.chars() {
                flags = self.flag(flags, letter)?;
            }
            self.at += 1;
        }
    }

    fn flag(&self, flags: Flags, letter: char) -> Result<Flags, ParseError> {
        const ACE: Flags = Flags::AE.with(Flags::CWR).with(Flags::ECE);
        // FreeBSD's packetdrill writes C for CWR.
        let letter = if letter == 'C' { 'W' } else { letter };
        if letter == '-' {
            return Ok(flags);
        }
        if let Some(ace) = letter.to_digit(8) {
            if flags.0 & ACE.0 != 0 {
                return Err(self.error("E, W and A are the bits of this number; use one form or the other"));
            }
            let bits = [(4, Flags::AE), (2, Flags::CWR), (1, Flags::ECE)];
            return Ok(bits
                .iter()
                .filter(|(bit, _)| ace & bit != 0)
                .fold(flags, |flags, (_, flag)| flags.with(*flag)));
        }
        match Flags::LETTERS.iter().find(|(known, _)| *known == letter) {
            Some((_, flag)) => Ok(flags.with(*flag)),
            None => Err(self.error(format!(
                "`{letter}` is not a TCP flag; the flags are F S R P U E W A . and -, and 0 to 7 for A W E"
            ))),
        }
    }

    /// Returns whether this token directly follows the previous one.
    fn touches(&self) -> bool {
        self.at > 0 && self.tokens[self.at - 1].end == self.tokens[self.at].start
    }

    /// Parses `1:1001(1000)` or `1(1000)`.
    fn sequence(&mut self) -> Result<(u32, u32), ParseError> {
        let position = self.position();
        let seq: u32 = self.integer("a sequence number")?;
        let end: Option<u32> =
            if self.eat(':') { Some(self.integer("the sequence number of the end")?) } else { None };
        self.expect('(')?;
        let len: u16 = self.integer("a payload length from 0 to 65535")?;
        let len = u32::from(len);
        if let Some(end) = end
            && end != seq.wrapping_add(len)
        {
            let message = format!("{seq}:{end} has {} bytes, not {len}", end.wrapping_sub(seq));
            return Err(ParseError::new(position, message));
        }
        self.expect(')')?;
        Ok((seq, len))
    }

    /// Parses the options after the opening `<`.
    fn options(&mut self) -> Result<Options, ParseError> {
        if *self.peek() == TokenKind::Ellipsis {
            self.at += 1;
            self.expect('>')?;
            return Ok(Options::Any);
        }
        let position = self.position();
        let mut options = vec![self.option()?];
        while !self.eat('>') {
            self.expect(',')?;
            options.push(self.option()?);
        }
        let len = wire::options_len(&options);
        let problem = match len {
            41.. => format!("these options take {len} bytes, but a header has room for 40"),
            _ if !len.is_multiple_of(4) => format!(
                "these options take {len} bytes, but their length must be a multiple of 4; pad with `nop` or `eol`"
            ),
            _ => return Ok(Options::Exactly(options)),
        };
        Err(ParseError::new(position, problem))
    }

    fn option(&mut self) -> Result<TcpOption, ParseError> {
        const EXPECTED: &str = "an option: mss, wscale, sackOK, sack, TS, nop, eol, md5, FO or FOEXP";
        let position = self.position();
        Ok(match self.word(EXPECTED)?.as_str() {
            "eol" => TcpOption::Eol,
            "nop" => TcpOption::Nop,
            "mss" => TcpOption::Mss(self.integer("an MSS from 0 to 65535")?),
            "wscale" => TcpOption::WindowScale(self.integer("a window shift from 0 to 255")?),
            "sackOK" => TcpOption::SackPermitted,
            "sack" => {
                let mut blocks = Vec::new();
                while blocks.is_empty() || matches!(self.peek(), TokenKind::Number(_)) {
                    let left = self.integer("the left edge of a block")?;
                    self.expect(':')?;
                    blocks.push((left, self.integer("the right edge of a block")?));
                }
                TcpOption::Sack(blocks)
            }
            "TS" => {
                let val = self.optional("val", "a timestamp")?;
                let ecr = self.optional("ecr", "a timestamp")?;
                if (val, ecr) == (None, None) {
                    return Err(self.error("expected `TS val N ecr N`"));
                }
                TcpOption::Timestamps { val, ecr }
            }
            // TCP Fast Open: its own kind (RFC 7413 section 4.1.1), and the experimental one used
            // before (RFC 6994).
            "FO" => TcpOption::Unknown { kind: 34, data: self.hex("a cookie")? },
            "FOEXP" => {
                TcpOption::Unknown { kind: 254, data: [vec![0xf9, 0x89], self.hex("a cookie")?].concat() }
            }
            // MD5 signature (RFC 2385).
            "md5" => TcpOption::Unknown { kind: 19, data: self.hex("a digest")? },
            other => return Err(ParseError::new(position, format!("expected {EXPECTED}, found `{other}`"))),
        })
    }

    /// Parses bytes in hexadecimal, possibly none. The lexer may have split the digits into numbers
    /// and words.
    fn hex(&mut self, what: &str) -> Result<Vec<u8>, ParseError> {
        let position = self.position();
        let first = self.at;
        let mut digits = String::new();
        while let TokenKind::Number(text) | TokenKind::Word(text) = self.peek()
            && (self.at == first || self.touches())
        {
            digits.push_str(text);
            self.at += 1;
        }
        if let Some((_, cookie)) = COOKIES.iter().find(|(name, _)| *name == digits) {
            return Ok(cookie.to_be_bytes().to_vec());
        }
        let bytes = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
            .collect::<Option<Vec<u8>>>();
        bytes.ok_or_else(|| {
            let message = format!("`{digits}` is not {what} in hexadecimal, with two digits per byte");
            ParseError::new(position, message)
        })
    }

    /// Parses the part after `icmp`: `unreachable frag_needed mtu 1000 [1:1461(1460)]`.
    fn icmp(&mut self) -> Result<Icmp, ParseError> {
        let position = self.position();
        let kind = self.word("an ICMP type such as unreachable")?;
        let code = match self.peek() {
            TokenKind::Word(word) if !["mtu", "id"].contains(&word.as_str()) => Some(self.word("a code")?),
            _ => None,
        };
        let kind = IcmpKind { kind, code };
        let numbers = [false, true].map(|v6| wire::icmp_numbers(&kind, v6));
        if numbers == [None, None] {
            let message = format!(
                "`{kind}` is not an ICMP type and code such as `unreachable frag_needed`, `time_exceeded`, `packet_too_big` or `type_3 code_4`"
            );
            return Err(ParseError::new(position, message));
        }
        let position = self.position();
        let mtu = self.optional("mtu", "an MTU")?;
        // Only these messages have an MTU field (RFC 1191 section 4, RFC 4443 section 3.2).
        if mtu.is_some() && numbers[0] != Some((3, 4)) && numbers[1] != Some((2, 0)) {
            let message =
                format!("only `unreachable frag_needed` and `packet_too_big` have an MTU, not `{kind}`");
            return Err(ParseError::new(position, message));
        }
        if matches!(self.peek(), TokenKind::Word(word) if word == "id") {
            return Err(
                self.error("airtcp does not answer ICMP echo; an ICMP line is an error about a TCP packet")
            );
        }
        if !self.eat('[') {
            return Ok(Icmp { kind, mtu, quoted: None });
        }
        if let TokenKind::Word(word) = self.peek() {
            return Err(self.error(format!(
                "expected the segment that the error quotes, such as [1:1001(1000)], found `{word}`"
            )));
        }
        let position = self.position();
        let quoted = self.sequence()?;
        if HEADERS + quoted.1 as usize > IP_MAX {
            return Err(ParseError::new(position, TOO_LONG));
        }
        self.expect(']')?;
        Ok(Icmp { kind, mtu, quoted: Some(quoted) })
    }
}
