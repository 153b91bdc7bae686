//! Packet lines: `< [ect0] S. 0:0(0) ack 1 win 1000 <mss 1460,nop>` and `< icmp …`.

use super::{ParseError, Parser, TokenKind};
use crate::ast::{
    Action, Addressing, Flags, FlowName, Icmp, IcmpKind, Inbound, Options, Segment, TcpOption, Tos,
};
use crate::wire;

impl Parser<'_> {
    pub(super) fn packet(&mut self) -> Result<Action, ParseError> {
        let inbound = self.eat('<');
        if !inbound {
            self.expect('>')?;
        }
        let addressing = self.addressing()?;
        if self.eat_word("icmp") {
            if !inbound {
                return Err(self.error("airtcp sends no ICMP: only `<` can carry it"));
            }
            return Ok(Action::Inbound(addressing, Inbound::Icmp(self.icmp()?)));
        }
        let segment = self.segment()?;
        if !inbound {
            return Ok(Action::Outbound(addressing, segment));
        }
        if segment.options == Options::Any {
            return Err(self.error("`<...>` can only be compared with, not sent"));
        }
        if segment.has(Flags::ACK) && segment.ack.is_none() {
            return Err(self.error("the flag `.` needs `ack N`"));
        }
        Ok(Action::Inbound(addressing, Inbound::Tcp(segment)))
    }

    fn addressing(&mut self) -> Result<Addressing, ParseError> {
        let mut addressing = Addressing::default();
        loop {
            if self.eat('(') {
                if !self.eat_word("ttl") {
                    return Err(self.error(format!("expected `ttl N`, found {}", self.peek())));
                }
                addressing.ip.ttl = Some(self.integer("a TTL from 0 to 255")?);
                self.expect(')')?;
                continue;
            }
            if !self.eat('[') {
                return Ok(addressing);
            }
            loop {
                self.prefix(&mut addressing)?;
                if !self.eat(',') {
                    break;
                }
            }
            self.expect(']')?;
        }
    }

    fn prefix(&mut self, addressing: &mut Addressing) -> Result<(), ParseError> {
        const EXPECTED: &str = "ect0, ect1, ce, noecn, tos N, fd N or new";
        let place = self.place();
        match self.word(EXPECTED)?.as_str() {
            "noecn" => addressing.ip.tos = Some(Tos::Ecn(0)),
            "ect1" => addressing.ip.tos = Some(Tos::Ecn(1)),
            "ect0" => addressing.ip.tos = Some(Tos::Ecn(2)),
            "ce" => addressing.ip.tos = Some(Tos::Ecn(3)),
            "tos" => addressing.ip.tos = Some(Tos::Octet(self.integer("a TOS octet from 0 to 0xff")?)),
            "fd" => addressing.flow = FlowName::Fd(self.integer("a file descriptor")?),
            "new" => addressing.flow = FlowName::New,
            other => {
                return Err(ParseError { place, message: format!("expected {EXPECTED}, found `{other}`") });
            }
        }
        Ok(())
    }

    fn segment(&mut self) -> Result<Segment, ParseError> {
        let flags = self.flags()?;
        let (seq, len) = self.sequence()?;
        let ack = if self.eat_word("ack") { Some(self.integer("an acknowledgment number")?) } else { None };
        let win = if self.eat_word("win") { Some(self.integer("a window from 0 to 65535")?) } else { None };
        let urg = if self.eat_word("urg") {
            Some(self.integer("an urgent pointer from 0 to 65535")?)
        } else {
            None
        };
        let options = if self.eat('<') { self.options()? } else { Options::Exactly(Vec::new()) };
        Ok(Segment { flags, seq, len, ack, win, urg, options })
    }

    fn flags(&mut self) -> Result<Flags, ParseError> {
        let mut flags = Flags::default();
        let mut letters = 0;
        loop {
            let text = match self.peek() {
                TokenKind::Punct('.') => ".".to_owned(),
                TokenKind::Punct('-') => "-".to_owned(),
                TokenKind::Word(word) => word.clone(),
                _ if letters == 0 => {
                    return Err(
                        self.error(format!("expected TCP flags such as S. or P., found {}", self.peek()))
                    );
                }
                _ => return Ok(flags),
            };
            for letter in text.chars().filter(|&letter| letter != '-') {
                // C is how FreeBSD's packetdrill spells CWR.
                let letter = if letter == 'C' { 'W' } else { letter };
                let Some((_, flag)) = Flags::LETTERS.iter().find(|(known, _)| *known == letter) else {
                    return Err(self.error(format!(
                        "`{letter}` is not a TCP flag; the flags are F S R P U E W A . and -"
                    )));
                };
                flags = flags.with(*flag);
            }
            letters += text.len();
            self.at += 1;
        }
    }

    /// `1:1001(1000)`, or `1(1000)`.
    fn sequence(&mut self) -> Result<(u32, u32), ParseError> {
        let seq: u32 = self.integer("a sequence number")?;
        let end: Option<u32> =
            if self.eat(':') { Some(self.integer("the sequence number of the end")?) } else { None };
        self.expect('(')?;
        let len: u32 = self.integer("a payload length")?;
        if let Some(end) = end
            && end != seq.wrapping_add(len)
        {
            return Err(self.error(format!("{seq}:{end} holds {} bytes, not {len}", end.wrapping_sub(seq))));
        }
        self.expect(')')?;
        Ok((seq, len))
    }

    /// After the opening `<`.
    fn options(&mut self) -> Result<Options, ParseError> {
        if *self.peek() == TokenKind::Ellipsis {
            self.at += 1;
            self.expect('>')?;
            return Ok(Options::Any);
        }
        let mut options = Vec::new();
        while !self.eat('>') {
            if !options.is_empty() {
                self.expect(',')?;
            }
            options.extend(self.option()?);
        }
        if wire::options_len(&options) > 40 {
            return Err(self.error(format!(
                "these options take {} bytes, and a header has room for 40",
                wire::options_len(&options)
            )));
        }
        Ok(Options::Exactly(options))
    }

    /// `None` for the Fast Open cookie, which airtcp does not know.
    fn option(&mut self) -> Result<Option<TcpOption>, ParseError> {
        const EXPECTED: &str = "an option: mss, wscale, sackOK, sack, TS, nop, eol or FO";
        let place = self.place();
        Ok(Some(match self.word(EXPECTED)?.as_str() {
            "eol" => TcpOption::Eol,
            "nop" => TcpOption::Nop,
            "mss" => TcpOption::Mss(self.integer("an MSS from 0 to 65535")?),
            "wscale" => TcpOption::WindowScale(self.integer("a window shift from 0 to 255")?),
            "sackOK" => TcpOption::SackPermitted,
            "sack" => {
                let mut blocks = Vec::new();
                while let TokenKind::Number(_) = self.peek() {
                    let left = self.integer("the left edge of a block")?;
                    self.expect(':')?;
                    blocks.push((left, self.integer("the right edge of a block")?));
                }
                TcpOption::Sack(blocks)
            }
            "TS" => {
                let val = if self.eat_word("val") { Some(self.integer("a timestamp")?) } else { None };
                let ecr = if self.eat_word("ecr") { Some(self.integer("a timestamp")?) } else { None };
                if (val, ecr) == (None, None) {
                    return Err(self.error("expected `TS val N ecr N`"));
                }
                TcpOption::Timestamps { val, ecr }
            }
            "FO" | "FOEXP" => {
                while !matches!(self.peek(), TokenKind::Punct(',' | '>') | TokenKind::End) {
                    self.at += 1;
                }
                return Ok(None);
            }
            other => {
                return Err(ParseError { place, message: format!("expected {EXPECTED}, found `{other}`") });
            }
        }))
    }

    /// After `icmp`: `unreachable frag_needed mtu 1000 [1:1461(1460)]`.
    fn icmp(&mut self) -> Result<Icmp, ParseError> {
        let place = self.place();
        let kind = self.word("an ICMP type such as unreachable")?;
        let code = match self.peek() {
            TokenKind::Word(word) if word != "mtu" => Some(self.word("a code")?),
            _ => None,
        };
        let kind = IcmpKind { kind, code };
        if wire::icmp_numbers(&kind, true).is_none() && wire::icmp_numbers(&kind, false).is_none() {
            return Err(ParseError {
                place,
                message: format!(
                    "`{kind}` is not an ICMP type and code such as `unreachable frag_needed`, `time_exceeded` or `packet_too_big`"
                ),
            });
        }
        let mtu = if self.eat_word("mtu") { Some(self.integer("an MTU")?) } else { None };
        self.expect('[')?;
        let (quoted_seq, quoted_len) = self.sequence()?;
        self.expect(']')?;
        Ok(Icmp { kind, mtu, quoted_seq, quoted_len })
    }
}
