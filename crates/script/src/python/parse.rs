//! The parser: tokens to statements and expressions.

use super::Problem;
use super::lex::{self, Kind, Token};
use super::value::{Comparison, FUNCTIONS, Operator, Unary, Value};
use super::{Branch, Expr, Statement, StatementKind, Target};

/// Maximum depth of brackets, signs and blocks.
const MAX_DEPTH: usize = 40;

/// Maximum number of operators in a statement. It bounds the depth of the expression.
const MAX_OPERATORS: usize = 200;

const STATEMENTS: &str = "airtcp supports assert, assignments, if, pass and print";

/// Words that are not names.
const KEYWORDS: [&str; 32] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not",
    "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Binary operators from the loosest to the tightest, without `**`.
const LEVELS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "//", "%"]];

pub(super) fn statements(code: &str) -> Result<Vec<Statement>, Problem> {
    let tokens = lex::tokens(code)?;
    let mut parser = Parser { code, tokens, at: 0, depth: 0, operators: 0 };
    let mut statements = Vec::new();
    while let Kind::Line(indentation) = *parser.peek() {
        parser.line(indentation, &mut statements)?;
    }
    Ok(statements)
}

struct Parser<'a> {
    code: &'a str,
    /// Ends with `Kind::End`.
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    operators: usize,
}

impl Parser<'_> {
    /// Parses the statements of a line, and the blocks below it.
    fn line(&mut self, indentation: usize, into: &mut Vec<Statement>) -> Result<(), Problem> {
        self.at += 1;
        if self.is_word("if") {
            into.push(self.choice(indentation)?);
            return Ok(());
        }
        self.simple_statements(into)
    }

    /// Parses `if`, `elif` and `else` with their blocks.
    fn choice(&mut self, indentation: usize) -> Result<Statement, Problem> {
        let line = self.line_number();
        let mut branches = Vec::new();
        loop {
            let line = self.line_number();
            self.at += 1;
            self.operators = 0;
            let condition = Some(self.expression()?);
            let body = self.block(indentation)?;
            branches.push(Branch { line, condition, body });
            if !self.continues(indentation, "elif") {
                break;
            }
        }
        if self.continues(indentation, "else") {
            let line = self.line_number();
            self.at += 1;
            let body = self.block(indentation)?;
            branches.push(Branch { line, condition: None, body });
        }
        Ok(Statement { line, kind: StatementKind::If(branches) })
    }

    /// Returns whether the next line has the same indentation and begins with `word`, and skips its
    /// beginning.
    fn continues(&mut self, indentation: usize, word: &str) -> bool {
        let found = *self.peek() == Kind::Line(indentation)
            && matches!(&self.tokens[self.at + 1].kind, Kind::Name(name) if name == word);
        self.at += usize::from(found);
        found
    }

    /// Parses `:` and the statements on the same line, or the lines that are indented further.
    fn block(&mut self, header: usize) -> Result<Vec<Statement>, Problem> {
        self.expect(":")?;
        let mut body = Vec::new();
        let Kind::Line(inner) = *self.peek() else {
            self.simple_statements(&mut body)?;
            return Ok(body);
        };
        if inner <= header {
            return Err(self.error("expected an indented block after `:`"));
        }
        self.nested(|parser| {
            while let Kind::Line(found) = *parser.peek() {
                if found > inner || (header < found && found < inner) {
                    let message = "the indentation of this line fits no block";
                    return Err((parser.line_number(), message.to_owned()));
                }
                if found < inner {
                    break;
                }
                parser.line(inner, &mut body)?;
            }
            Ok(body)
        })
    }

    /// Parses statements separated by `;` up to the end of the line.
    fn simple_statements(&mut self, into: &mut Vec<Statement>) -> Result<(), Problem> {
        loop {
            into.push(self.simple_statement()?);
            let more = self.eat(";");
            if matches!(self.peek(), Kind::Line(_) | Kind::End) {
                return Ok(());
            }
            if !more {
                return Err(self.unexpected());
            }
        }
    }

    fn simple_statement(&mut self) -> Result<Statement, Problem> {
        let (line, first) = (self.line_number(), self.at);
        self.operators = 0;
        let word = match self.peek() {
            Kind::Name(name) => name.clone(),
            _ => String::new(),
        };
        let kind = match word.as_str() {
            "assert" => {
                self.at += 1;
                let test = self.expression()?;
                let message = if self.eat(",") { Some(self.expression()?) } else { None };
                StatementKind::Assert { text: self.source(first), test, message }
            }
            "pass" => {
                self.at += 1;
                StatementKind::Pass
            }
            "print" => {
                self.at += 1;
                if !self.eat("(") {
                    return Err(self.error("`print` needs parentheses"));
                }
                StatementKind::Print(self.list(")")?)
            }
            "elif" | "else" => return Err(self.error(format!("`{word}` without `if`"))),
            "not" => StatementKind::Evaluate(self.values()?),
            word if KEYWORDS.contains(&word) => {
                return Err(self.error(format!("`{word}` is not supported here; {STATEMENTS}")));
            }
            _ => self.assignment()?,
        };
        Ok(Statement { line, kind })
    }

    /// Parses an assignment, or an expression without effect.
    fn assignment(&mut self) -> Result<StatementKind, Problem> {
        let mut value = self.values()?;
        if let Kind::Operator(operator) = *self.peek()
            && let Some(operator) = operator.strip_suffix('=').and_then(Operator::by_name)
        {
            let Expr::Name(name) = value else { return Err(self.error("expected a name before this")) };
            self.at += 1;
            return Ok(StatementKind::Augment { name, operator, value: self.values()? });
        }
        let mut targets = Vec::new();
        while *self.peek() == Kind::Operator("=") {
            targets.push(self.target(value)?);
            self.at += 1;
            value = self.values()?;
        }
        if targets.is_empty() {
            return Ok(StatementKind::Evaluate(value));
        }
        Ok(StatementKind::Assign { targets, value })
    }

    fn target(&self, left: Expr) -> Result<Target, Problem> {
        let names = match left {
            Expr::Name(name) => return Ok(Target::Name(name)),
            Expr::Tuple(items) | Expr::List(items) => items,
            _ => Vec::new(),
        };
        let names: Option<Vec<_>> = names
            .into_iter()
            .map(|item| match item {
                Expr::Name(name) => Some(name),
                _ => None,
            })
            .collect();
        match names {
            Some(names) if !names.is_empty() => Ok(Target::Names(names)),
            _ => Err(self.error("expected a name, or several separated by commas, before `=`")),
        }
    }

    /// Parses an expression, or a tuple without parentheses.
    fn values(&mut self) -> Result<Expr, Problem> {
        let first = self.expression()?;
        if *self.peek() != Kind::Operator(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat(",") {
            if matches!(self.peek(), Kind::Line(_) | Kind::End | Kind::Operator("=" | ";")) {
                break;
            }
            items.push(self.expression()?);
        }
        Ok(Expr::Tuple(items))
    }

    /// Parses expressions separated by commas, and the closing bracket.
    fn list(&mut self, close: &str) -> Result<Vec<Expr>, Problem> {
        let mut items = Vec::new();
        while !self.eat(close) {
            if !items.is_empty() {
                self.expect(",")?;
                if self.eat(close) {
                    break;
                }
            }
            items.push(self.expression()?);
        }
        Ok(items)
    }

    /// Parses `a if condition else b`.
    fn expression(&mut self) -> Result<Expr, Problem> {
        self.nested(|parser| {
            let then = parser.or()?;
            if !parser.eat_word("if") {
                return Ok(then);
            }
            let condition = parser.or()?;
            if !parser.eat_word("else") {
                return Err(parser.error(format!("expected `else`, found {}", parser.found())));
            }
            let otherwise = parser.expression()?;
            Ok(Expr::Choice(Box::new([condition, then, otherwise])))
        })
    }

    fn or(&mut self) -> Result<Expr, Problem> {
        let first = self.and()?;
        let mut operands = vec![first];
        while self.eat_word("or") {
            operands.push(self.and()?);
        }
        Ok(if operands.len() == 1 { operands.remove(0) } else { Expr::Or(operands) })
    }

    fn and(&mut self) -> Result<Expr, Problem> {
        let first = self.not()?;
        let mut operands = vec![first];
        while self.eat_word("and") {
            operands.push(self.not()?);
        }
        Ok(if operands.len() == 1 { operands.remove(0) } else { Expr::And(operands) })
    }

    fn not(&mut self) -> Result<Expr, Problem> {
        if !self.eat_word("not") {
            return self.comparison();
        }
        self.nested(|parser| Ok(Expr::Not(Box::new(parser.not()?))))
    }

    fn comparison(&mut self) -> Result<Expr, Problem> {
        let first = self.binary(0)?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.comparison_operator()? {
            rest.push((comparison, self.binary(0)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(first), rest) })
    }

    fn comparison_operator(&mut self) -> Result<Option<Comparison>, Problem> {
        let found = match self.peek() {
            Kind::Operator(operator) => Comparison::by_name(operator),
            Kind::Name(name) if name == "in" => Some(Comparison::In),
            Kind::Name(name) if name == "not" => {
                // After an operand, `not` can only be a part of `not in`.
                self.at += 1;
                if !self.is_word("in") {
                    return Err(self.error(format!("expected `in` after `not`, found {}", self.found())));
                }
                Some(Comparison::NotIn)
            }
            Kind::Name(name) if name == "is" => {
                return Err(self.error("`is` is not supported; use `==`"));
            }
            _ => None,
        };
        self.at += usize::from(found.is_some());
        Ok(found)
    }

    fn binary(&mut self, level: usize) -> Result<Expr, Problem> {
        let Some(operators) = LEVELS.get(level) else { return self.sign() };
        let mut left = self.binary(level + 1)?;
        while let Kind::Operator(name) = *self.peek()
            && operators.contains(&name)
        {
            let Some(operator) = Operator::by_name(name) else { break };
            self.at += 1;
            left = self.joined(left, operator, |parser| parser.binary(level + 1))?;
        }
        Ok(left)
    }

    fn joined(
        &mut self,
        left: Expr,
        operator: Operator,
        right: impl FnOnce(&mut Self) -> Result<Expr, Problem>,
    ) -> Result<Expr, Problem> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(self.error(format!("more than {MAX_OPERATORS} operators in a statement")));
        }
        Ok(Expr::Binary(Box::new([left, right(self)?]), operator))
    }

    fn sign(&mut self) -> Result<Expr, Problem> {
        let sign = match self.peek() {
            Kind::Operator("+") => Unary::Plus,
            Kind::Operator("-") => Unary::Minus,
            Kind::Operator("~") => Unary::Invert,
            _ => return self.power(),
        };
        self.at += 1;
        self.nested(|parser| Ok(Expr::Unary(sign, Box::new(parser.sign()?))))
    }

    fn power(&mut self) -> Result<Expr, Problem> {
        let base = self.atom()?;
        if !self.eat("**") {
            return Ok(base);
        }
        self.nested(|parser| parser.joined(base, Operator::Power, Self::sign))
    }

    fn atom(&mut self) -> Result<Expr, Problem> {
        let atom = match self.peek().clone() {
            Kind::Number(value) => {
                self.at += 1;
                Expr::Constant(value)
            }
            Kind::Text(mut text) => {
                self.at += 1;
                // Adjacent strings are concatenated.
                while let Kind::Text(more) = self.peek() {
                    text.push_str(more);
                    self.at += 1;
                }
                Expr::Constant(Value::Text(text))
            }
            Kind::Operator("(") => {
                self.at += 1;
                self.parenthesised()?
            }
            Kind::Operator("[") => {
                self.at += 1;
                Expr::List(self.list("]")?)
            }
            Kind::Operator("{") => {
                return Err(self.error("`{` is not supported: airtcp has no dictionaries and sets"));
            }
            Kind::Name(name) if !KEYWORDS.contains(&name.as_str()) => {
                self.at += 1;
                self.named(name)?
            }
            _ => return Err(self.error(format!("expected a value, found {}", self.found()))),
        };
        match self.peek() {
            Kind::Operator("[") => Err(self.error("`[` after a value is not supported")),
            Kind::Operator("(") => Err(self.error("only functions can be called")),
            _ => Ok(atom),
        }
    }

    /// Parses the rest of `(a)`, `()` or `(a, b)`.
    fn parenthesised(&mut self) -> Result<Expr, Problem> {
        if self.eat(")") {
            return Ok(Expr::Tuple(Vec::new()));
        }
        let first = self.expression()?;
        if self.eat(")") {
            return Ok(first);
        }
        self.expect(",")?;
        let mut items = vec![first];
        items.extend(self.list(")")?);
        Ok(Expr::Tuple(items))
    }

    /// Parses a variable or constant, or the arguments of a function.
    fn named(&mut self, name: String) -> Result<Expr, Problem> {
        if !self.eat("(") {
            return Ok(match name.as_str() {
                "True" => Expr::Constant(Value::Bool(true)),
                "False" => Expr::Constant(Value::Bool(false)),
                "None" => Expr::Constant(Value::None),
                _ => Expr::Name(name),
            });
        }
        let Some(function) = FUNCTIONS.into_iter().find(|known| *known == name) else {
            let known = FUNCTIONS.join(", ");
            return Err(self.error(format!("unknown function `{name}`; airtcp has {known}")));
        };
        Ok(Expr::Call(function, self.list(")")?))
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Problem>) -> Result<T, Problem> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = parse(self)?;
        self.depth -= 1;
        Ok(result)
    }

    fn peek(&self) -> &Kind {
        &self.tokens[self.at].kind
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Kind::Name(name) if name == word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn eat(&mut self, operator: &str) -> bool {
        let found = matches!(self.peek(), Kind::Operator(found) if *found == operator);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, operator: &str) -> Result<(), Problem> {
        if self.eat(operator) {
            return Ok(());
        }
        if self.is_word("for") {
            return Err(self.error("`for` is not supported: airtcp has no loops and comprehensions"));
        }
        Err(self.error(format!("expected `{operator}`, found {}", self.found())))
    }

    /// Returns the code from the token `first` to the last token read, on one line and without
    /// comments.
    fn source(&self, first: usize) -> String {
        let mut text = String::new();
        let mut end = self.tokens[first].start;
        for token in &self.tokens[first..self.at] {
            if token.start > end {
                text.push(' ');
            }
            text.push_str(&self.code[token.start..token.end]);
            end = token.end;
        }
        text
    }

    fn line_number(&self) -> usize {
        self.tokens[self.at].line
    }

    /// Describes the next token.
    fn found(&self) -> String {
        let token = &self.tokens[self.at];
        match token.kind {
            Kind::Line(_) => "the end of the line".to_owned(),
            Kind::End => "the end of the code".to_owned(),
            _ => format!("`{}`", &self.code[token.start..token.end]),
        }
    }

    fn unexpected(&self) -> Problem {
        self.error(format!("unexpected {}", self.found()))
    }

    fn error(&self, message: impl Into<String>) -> Problem {
        // The end of a line belongs to the line that is incomplete.
        let incomplete = matches!(self.peek(), Kind::Line(_) | Kind::End) && self.at > 0;
        let token = &self.tokens[if incomplete { self.at - 1 } else { self.at }];
        (token.line, message.into())
    }
}
