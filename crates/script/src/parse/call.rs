//! The parser for calls: `accept(3, ..., ...) = 4`, and the short form `write 4000` for the
//! connection that was accepted or connected last.

use super::{ParseError, Parser, TokenKind};
use crate::ast::{Call, Expect, Form, Value};

/// Calls with a short form without parentheses, and whether they take a length.
const SHORT: [(&str, bool); 4] = [("write", true), ("read", true), ("close", false), ("shutdown", false)];

impl Parser<'_> {
    pub(super) fn call(&mut self) -> Result<Call, ParseError> {
        let line = self.position().line;
        let name = self.word("a call")?;
        if !self.eat('(') {
            return self.short(name, line);
        }
        let args = self.values(')')?;
        if !self.eat('=') {
            return Err(self
                .error(format!("`{name}` needs a result: `= 0`, `= -1 EAGAIN`, or `= ...` for any result")));
        }
        let expect = self.result()?;
        // A comment for readers: `(Resource temporarily unavailable)`, `(flags O_RDWR)`.
        if *self.peek() == TokenKind::Punct('(') {
            while !self.eat(')') {
                if *self.peek() == TokenKind::End {
                    return Err(self.error("expected `)`"));
                }
                self.at += 1;
            }
        }
        Ok(Call { form: Form::Full, name, args, expect })
    }

    fn short(&mut self, name: String, line: usize) -> Result<Call, ParseError> {
        let Some((_, takes_length)) = SHORT.iter().find(|(known, _)| *known == name) else {
            return Err(self.error(format!("expected `(` after `{name}`, found {}", self.peek())));
        };
        let mut args = Vec::new();
        if *takes_length {
            if self.position().line != line {
                return Err(self.error(format!("`{name}` needs a length on the same line")));
            }
            args.push(Value::Int(self.integer("a length")?));
        }
        Ok(Call { form: Form::Short, name, args, expect: Expect::Success })
    }

    fn result(&mut self) -> Result<Expect, ParseError> {
        let line = self.line();
        let value = self.value()?;
        // The name of the error is optional. It must be on the same line as the number.
        if value == Value::Int(-1) && matches!(self.peek(), TokenKind::Word(_)) && self.line() == line {
            return Ok(Expect::Error(self.word("the name of an error such as EAGAIN")?));
        }
        Ok(Expect::Value(value))
    }

    fn value(&mut self) -> Result<Value, ParseError> {
        match self.peek().clone() {
            TokenKind::Ellipsis => {
                self.at += 1;
                Ok(Value::Ellipsis)
            }
            TokenKind::Text(mut text) => {
                self.at += 1;
                // Adjacent strings are concatenated. The `...` after a truncated string is strace's
                // notation and is ignored.
                while let TokenKind::Text(more) = self.peek() {
                    text.push_str(more);
                    self.at += 1;
                }
                if *self.peek() == TokenKind::Ellipsis {
                    self.at += 1;
                }
                Ok(Value::Text(text))
            }
            TokenKind::Number(_) | TokenKind::Punct('-') => Ok(Value::Int(self.integer("a number")?)),
            TokenKind::Punct('[') => {
                self.at += 1;
                Ok(Value::List(self.values(']')?))
            }
            TokenKind::Punct('{') => {
                self.at += 1;
                self.members()
            }
            TokenKind::Word(word) => {
                self.at += 1;
                if self.eat('(') {
                    return Ok(Value::Apply(word, self.values(')')?));
                }
                let mut symbols = vec![word];
                while self.eat('|') {
                    symbols.push(match self.peek() {
                        TokenKind::Number(_) => self.integer::<i64>("a number")?.to_string(),
                        _ => self.word("another flag")?,
                    });
                }
                Ok(Value::Symbols(symbols))
            }
            other => Err(self.error(format!("expected an argument, found {other}"))),
        }
    }

    /// Parses values separated by commas, and the closing bracket.
    fn values(&mut self, close: char) -> Result<Vec<Value>, ParseError> {
        let mut values = Vec::new();
        while !self.eat(close) {
            if !values.is_empty() {
                self.expect(',')?;
            }
            values.push(self.value()?);
        }
        Ok(values)
    }

    /// Parses the rest of a struct: `onoff=1, linger=0}`. A key may have arguments, as in
    /// `msg_name(...)=...`.
    fn members(&mut self) -> Result<Value, ParseError> {
        let mut members = Vec::new();
        while !self.eat('}') {
            if !members.is_empty() {
                self.expect(',')?;
            }
            let value = self.value()?;
            let key = match &value {
                Value::Symbols(words) if words.len() == 1 => Some(words[0].clone()),
                Value::Apply(word, _) => Some(word.clone()),
                _ => None,
            };
            match key {
                Some(key) if self.eat('=') => members.push((Some(key), self.value()?)),
                _ => members.push((None, value)),
            }
        }
        Ok(Value::Struct(members))
    }
}
