//! Python's values and operators.

use std::cmp::Ordering;
use std::fmt;

/// Maximum size of a value: the number of elements and characters, plus [`NESTING`] per tuple or list.
/// Without it, a value that is joined with itself several times would not fit into memory.
const MAX_SIZE: usize = 10_000;
/// Bounds the depth of nested tuples.
const NESTING: usize = 100;

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    Tuple(Vec<Self>),
    List(Vec<Self>),
}

/// An operator with two operands, except comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unary {
    Plus,
    Minus,
    Invert,
}

/// The functions that airtcp knows.
pub(super) const FUNCTIONS: [&str; 5] = ["abs", "int", "len", "max", "min"];

const TOO_LARGE: &str = "the result is too large";

impl Operator {
    pub(super) const ALL: [(&'static str, Self); 12] = [
        ("+", Self::Add),
        ("-", Self::Subtract),
        ("*", Self::Multiply),
        ("/", Self::Divide),
        ("//", Self::FloorDivide),
        ("%", Self::Remainder),
        ("**", Self::Power),
        ("&", Self::BitAnd),
        ("|", Self::BitOr),
        ("^", Self::BitXor),
        ("<<", Self::ShiftLeft),
        (">>", Self::ShiftRight),
    ];

    pub(super) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    pub(super) fn apply(self, a: &Value, b: &Value) -> Result<Value, String> {
        match (self, a, b) {
            (Self::Add, Value::Text(a), Value::Text(b)) => return Value::Text(format!("{a}{b}")).checked(),
            (Self::Add, Value::Tuple(a), Value::Tuple(b)) => {
                return Value::Tuple([a.as_slice(), b.as_slice()].concat()).checked();
            }
            (Self::Add, Value::List(a), Value::List(b)) => {
                return Value::List([a.as_slice(), b.as_slice()].concat()).checked();
            }
            (Self::Remainder, Value::Text(format), b) => return formatted(format, b)?.checked(),
            (Self::BitAnd, Value::Bool(a), Value::Bool(b)) => return Ok(Value::Bool(a & b)),
            (Self::BitOr, Value::Bool(a), Value::Bool(b)) => return Ok(Value::Bool(a | b)),
            (Self::BitXor, Value::Bool(a), Value::Bool(b)) => return Ok(Value::Bool(a ^ b)),
            _ => {}
        }
        let result = match (a.int(), b.int()) {
            (Some(a), Some(b)) => self.on_ints(a, b)?,
            _ => match (a.float(), b.float()) {
                (Some(a), Some(b)) => self.on_floats(a, b)?,
                _ => None,
            },
        };
        result.ok_or_else(|| {
            format!("`{}` is not defined between {} and {}", self.name(), a.type_name(), b.type_name())
        })
    }

    fn on_ints(self, a: i128, b: i128) -> Result<Option<Value>, String> {
        if b == 0 && [Self::Divide, Self::FloorDivide, Self::Remainder].contains(&self) {
            return Err("division by zero".to_owned());
        }
        // Python rounds a quotient down, and a remainder has the sign of the divisor.
        let rounds = |remainder: i128| remainder != 0 && (remainder < 0) != (b < 0);
        let result = match self {
            Self::Add => a.checked_add(b),
            Self::Subtract => a.checked_sub(b),
            Self::Multiply => a.checked_mul(b),
            Self::Divide => return Ok(Some(Value::Float(a as f64 / b as f64))),
            Self::FloorDivide => a.checked_div(b).map(|quotient| quotient - i128::from(rounds(a % b))),
            Self::Remainder => {
                a.checked_rem(b).map(|remainder| remainder + if rounds(remainder) { b } else { 0 })
            }
            Self::Power if b < 0 => return self.on_floats(a as f64, b as f64),
            Self::Power => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            Self::BitAnd => Some(a & b),
            Self::BitOr => Some(a | b),
            Self::BitXor => Some(a ^ b),
            Self::ShiftLeft | Self::ShiftRight if b < 0 => return Err("negative shift count".to_owned()),
            Self::ShiftLeft => {
                let bits = u32::try_from(b).ok().filter(|bits| *bits < 127);
                bits.and_then(|bits| a.checked_mul(1_i128 << bits))
            }
            Self::ShiftRight => Some(a >> b.min(127)),
        };
        result.map(|result| Some(Value::Int(result))).ok_or_else(|| TOO_LARGE.to_owned())
    }

    fn on_floats(self, a: f64, b: f64) -> Result<Option<Value>, String> {
        let divides = [Self::Divide, Self::FloorDivide, Self::Remainder].contains(&self);
        if (b == 0.0 && divides) || (self == Self::Power && a == 0.0 && b < 0.0) {
            return Err("division by zero".to_owned());
        }
        Ok(Some(Value::Float(match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
            Self::FloorDivide => (a / b).floor(),
            Self::Remainder => {
                let remainder = a % b;
                if remainder != 0.0 && (remainder < 0.0) != (b < 0.0) { remainder + b } else { remainder }
            }
            Self::Power => a.powf(b),
            _ => return Ok(None),
        })))
    }
}

impl Comparison {
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterEqual,
            _ => return None,
        })
    }

    pub(super) fn holds(self, a: &Value, b: &Value) -> Result<bool, String> {
        Ok(match self {
            Self::Equal => a.equals(b),
            Self::NotEqual => !a.equals(b),
            Self::In => b.contains(a)?,
            Self::NotIn => !b.contains(a)?,
            Self::Less => a.order(b)? == Some(Ordering::Less),
            Self::Greater => a.order(b)? == Some(Ordering::Greater),
            Self::LessEqual => a.order(b)?.is_some_and(Ordering::is_le),
            Self::GreaterEqual => a.order(b)?.is_some_and(Ordering::is_ge),
        })
    }
}

impl Unary {
    pub(super) fn apply(self, value: &Value) -> Result<Value, String> {
        match (self, value.int(), value) {
            (Self::Plus, Some(int), _) => Ok(Value::Int(int)),
            (Self::Minus, Some(int), _) => {
                int.checked_neg().map(Value::Int).ok_or_else(|| TOO_LARGE.to_owned())
            }
            (Self::Invert, Some(int), _) => Ok(Value::Int(!int)),
            (Self::Plus, _, Value::Float(float)) => Ok(Value::Float(*float)),
            (Self::Minus, _, Value::Float(float)) => Ok(Value::Float(-float)),
            _ => Err(format!("this sign is not defined for {}", value.type_name())),
        }
    }
}

impl Value {
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Tuple(values) | Self::List(values) => !values.is_empty(),
        }
    }

    /// Returns an integer or a Boolean as an integer.
    fn int(&self) -> Option<i128> {
        match self {
            Self::Bool(value) => Some(i128::from(*value)),
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            other => other.int().map(|value| value as f64),
        }
    }

    fn values(&self) -> Option<&[Self]> {
        match self {
            Self::Tuple(values) | Self::List(values) => Some(values),
            _ => None,
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a Boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Tuple(values) | Self::List(values) => {
                NESTING + values.iter().map(Self::size).sum::<usize>()
            }
            _ => 1,
        }
    }

    /// Fails if the value is too large.
    pub(super) fn checked(self) -> Result<Self, String> {
        if self.size() <= MAX_SIZE { Ok(self) } else { Err(TOO_LARGE.to_owned()) }
    }

    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Tuple(a), Self::Tuple(b)) | (Self::List(a), Self::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
            }
            (a, b) => match (a.int(), b.int()) {
                (Some(a), Some(b)) => a == b,
                _ => matches!((a.float(), b.float()), (Some(a), Some(b)) if a == b),
            },
        }
    }

    /// Returns the order of two values. `None` for a float that is not a number.
    fn order(&self, other: &Self) -> Result<Option<Ordering>, String> {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => Ok(Some(a.cmp(b))),
            (Self::Tuple(a), Self::Tuple(b)) | (Self::List(a), Self::List(b)) => {
                match a.iter().zip(b).find(|(a, b)| !a.equals(b)) {
                    Some((a, b)) => a.order(b),
                    None => Ok(Some(a.len().cmp(&b.len()))),
                }
            }
            (a, b) => match (a.int(), b.int(), a.float(), b.float()) {
                (Some(a), Some(b), ..) => Ok(Some(a.cmp(&b))),
                (_, _, Some(a), Some(b)) => Ok(a.partial_cmp(&b)),
                _ => Err(format!("{} and {} have no order", a.type_name(), b.type_name())),
            },
        }
    }

    fn contains(&self, value: &Self) -> Result<bool, String> {
        match (self, value) {
            (Self::Text(text), Self::Text(part)) => Ok(text.contains(part.as_str())),
            (Self::Tuple(values) | Self::List(values), value) => {
                Ok(values.iter().any(|item| item.equals(value)))
            }
            _ => Err(format!("`in` is not defined between {} and {}", value.type_name(), self.type_name())),
        }
    }

    fn repr(&self) -> String {
        let joined = |values: &[Self]| values.iter().map(Self::repr).collect::<Vec<_>>().join(", ");
        match self {
            Self::None => "None".to_owned(),
            Self::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
            Self::Int(value) => value.to_string(),
            // Python writes 3.0, not 3.
            Self::Float(value) => format!("{value:?}"),
            Self::Text(text) => format!("'{text}'"),
            Self::Tuple(values) if values.len() == 1 => format!("({},)", joined(values)),
            Self::Tuple(values) => format!("({})", joined(values)),
            Self::List(values) => format!("[{}]", joined(values)),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            other => f.write_str(&other.repr()),
        }
    }
}

/// Calls a function of [`FUNCTIONS`].
pub(super) fn call(function: &str, args: &[Value]) -> Result<Value, String> {
    let wrong = || {
        let types: Vec<_> = args.iter().map(Value::type_name).collect();
        Err(format!("`{function}` is not defined for ({})", types.join(", ")))
    };
    match (function, args) {
        ("abs", [Value::Float(float)]) => Ok(Value::Float(float.abs())),
        ("abs", [value]) => match value.int() {
            Some(int) => int.checked_abs().map(Value::Int).ok_or_else(|| TOO_LARGE.to_owned()),
            None => wrong(),
        },
        ("int", [Value::Float(float)]) if float.abs() < 1e38 => Ok(Value::Int(*float as i128)),
        ("int", [Value::Text(text)]) => match text.trim().parse() {
            Ok(int) => Ok(Value::Int(int)),
            Err(_) => Err(format!("`{text}` is not an integer")),
        },
        ("int", [value]) => value.int().map_or_else(wrong, |int| Ok(Value::Int(int))),
        ("len", [Value::Text(text)]) => Ok(Value::Int(text.chars().count() as i128)),
        ("len", [value]) => value.values().map_or_else(wrong, |values| Ok(Value::Int(values.len() as i128))),
        ("max" | "min", _) => {
            let values = match args {
                [value] => value.values().unwrap_or_default(),
                values => values,
            };
            let Some((first, rest)) = values.split_first() else { return wrong() };
            let better = if function == "max" { Ordering::Greater } else { Ordering::Less };
            let mut best = first;
            for value in rest {
                if value.order(best)? == Some(better) {
                    best = value;
                }
            }
            Ok(best.clone())
        }
        _ => wrong(),
    }
}

/// Applies `format % args` with the conversions `%d`, `%i`, `%s`, `%r`, `%x`, `%f` and `%.3f`.
fn formatted(format: &str, args: &Value) -> Result<Value, String> {
    let args = match args {
        Value::Tuple(args) => args.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut args = args.iter();
    let (mut text, mut rest) = (String::new(), format);
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let length = after.find(char::is_alphabetic).unwrap_or(after.len());
        let conversion = after[length..].chars().next().unwrap_or_default();
        let plain = length == 0;
        let digits: Option<usize> = match after[..length].strip_prefix('.') {
            Some(digits) => digits.parse().ok().filter(|digits| *digits <= 20),
            None => plain.then_some(6),
        };
        let value = args.next().ok_or("the format has more conversions than arguments")?;
        let piece = match (conversion, value.float()) {
            ('s', _) if plain => Some(value.to_string()),
            ('r', _) if plain => Some(value.repr()),
            ('d' | 'i', Some(float)) if plain => {
                Some(value.int().map_or_else(|| format!("{}", float.trunc()), |int| int.to_string()))
            }
            ('x', _) if plain => value.int().map(|int| {
                let sign = if int < 0 { "-" } else { "" };
                format!("{sign}{:x}", int.unsigned_abs())
            }),
            ('f', Some(float)) => digits.map(|digits| format!("{float:.digits$}")),
            _ => None,
        };
        let end = length + conversion.len_utf8().min(after.len() - length);
        text.push_str(&piece.ok_or_else(|| {
            format!("the conversion `%{}` of {} is not supported", &after[..end], value.type_name())
        })?);
        rest = &after[end..];
    }
    text.push_str(rest);
    match args.next() {
        None => Ok(Value::Text(text)),
        Some(_) => Err("the format has fewer conversions than arguments".to_owned()),
    }
}
