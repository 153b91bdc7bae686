//! The code between `%{` and `}%`: the part of Python that asserts on TCP_INFO use.
//!
//! Supported are assert, assignments, print, if, pass and expressions. Expressions have arithmetic, bit
//! operations, comparisons, `in`, `and`, `or`, `not`, conditions, tuples, lists and a few functions. Anything
//! else is an error, whose message quotes it. Loops are not supported, so each block ends.

mod lex;
mod parse;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;

use self::value::{Comparison, Operator, Unary, Value};

/// Variables that assignments have set.
pub(crate) type Variables = BTreeMap<String, Value>;

/// Returns the value of a name that is not a variable, or an error message.
pub(crate) type Names<'a> = dyn Fn(&str) -> Result<u64, String> + 'a;

/// The line of a problem, counted from the one with `%{`, and its description.
pub(crate) type Problem = (usize, String);

/// The code between `%{` and `}%`.
#[derive(Debug)]
pub(crate) struct Block(Vec<Statement>);

#[derive(Debug)]
struct Statement {
    line: usize,
    kind: StatementKind,
}

#[derive(Debug)]
enum StatementKind {
    Assert {
        text: String,
        test: Expr,
        message: Option<Expr>,
    },
    /// `a = b = value`.
    Assign {
        targets: Vec<Target>,
        value: Expr,
    },
    /// `name += value`.
    Augment {
        name: String,
        operator: Operator,
        value: Expr,
    },
    Print(Vec<Expr>),
    Evaluate(Expr),
    If(Vec<Branch>),
    Pass,
}

/// A branch of `if`. `else` has no condition.
#[derive(Debug)]
struct Branch {
    line: usize,
    condition: Option<Expr>,
    body: Vec<Statement>,
}

#[derive(Debug)]
enum Target {
    Name(String),
    /// `a, b`.
    Names(Vec<String>),
}

#[derive(Debug)]
enum Expr {
    Constant(Value),
    Name(String),
    Tuple(Vec<Self>),
    List(Vec<Self>),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
    Unary(Unary, Box<Self>),
    Binary(Box<[Self; 2]>, Operator),
    /// `a < b <= c`.
    Compare(Box<Self>, Vec<(Comparison, Self)>),
    /// Condition, value if it is true, value if it is false.
    Choice(Box<[Self; 3]>),
    Call(&'static str, Vec<Self>),
}

/// The results of a block besides a failed assert.
#[derive(Debug, Default)]
pub(crate) struct BlockOutput {
    /// Lines that `print` wrote.
    pub(crate) output: Vec<String>,
    /// Remarks about the code.
    pub(crate) notes: Vec<String>,
}

impl Block {
    pub(crate) fn parse(code: &str) -> Result<Self, Problem> {
        parse::statements(code).map(Self)
    }

    /// Runs the code up to the first assert that does not hold.
    pub(crate) fn run(
        &self,
        variables: &mut Variables,
        names: &Names<'_>,
        written: &mut BlockOutput,
    ) -> Result<(), Problem> {
        run(&self.0, &mut Scope { variables, names }, written)
    }
}

struct Scope<'a> {
    variables: &'a mut Variables,
    names: &'a Names<'a>,
}

impl Scope<'_> {
    fn value(&self, name: &str) -> Result<Value, String> {
        match self.variables.get(name) {
            Some(value) => Ok(value.clone()),
            None => (self.names)(name).map(|value| Value::Int(value.into())),
        }
    }
}

fn run(statements: &[Statement], scope: &mut Scope<'_>, written: &mut BlockOutput) -> Result<(), Problem> {
    for Statement { line, kind } in statements {
        match kind {
            StatementKind::If(branches) => run_branches(branches, scope, written)?,
            kind => kind.run(scope, written).map_err(|message| (*line, message))?,
        }
    }
    Ok(())
}

fn run_branches(
    branches: &[Branch],
    scope: &mut Scope<'_>,
    written: &mut BlockOutput,
) -> Result<(), Problem> {
    for Branch { line, condition, body } in branches {
        let holds = match condition {
            Some(condition) => condition.value(scope).map_err(|message| (*line, message))?.is_true(),
            None => true,
        };
        if holds {
            return run(body, scope, written);
        }
    }
    Ok(())
}

impl StatementKind {
    fn run(&self, scope: &mut Scope<'_>, written: &mut BlockOutput) -> Result<(), String> {
        match self {
            Self::Assert { text, test, message } => {
                if matches!(test, Expr::Tuple(items) if !items.is_empty()) {
                    written.notes.push(format!("`{text}` always holds, because it asserts a tuple"));
                }
                if !test.value(scope)?.is_true() {
                    return Err(failed(text, test, message.as_ref(), scope));
                }
            }
            Self::Assign { targets, value } => {
                let value = value.value(scope)?;
                targets.iter().try_for_each(|target| target.assign(&value, scope.variables))?;
            }
            Self::Augment { name, operator, value } => {
                let value = operator.apply(&scope.value(name)?, &value.value(scope)?)?;
                scope.variables.insert(name.clone(), value);
            }
            Self::Print(items) => {
                let items = items.iter().map(|item| item.value(scope)).collect::<Result<Vec<_>, _>>()?;
                let line = items.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
                written.output.push(line);
            }
            Self::Evaluate(expr) => {
                expr.value(scope)?;
            }
            Self::If(_) | Self::Pass => {}
        }
        Ok(())
    }
}

/// Describes a failed assert, with the values of its names and its message.
fn failed(text: &str, test: &Expr, message: Option<&Expr>, scope: &Scope<'_>) -> String {
    let mut names = Vec::new();
    test.names(&mut names);
    if let Some(message) = message {
        message.names(&mut names);
    }
    let values = names.iter().filter_map(|name| Some(format!("{name} is {}", scope.value(name).ok()?)));
    let mut details: Vec<String> = values.collect();
    match message {
        // The list contains the value of the message.
        None | Some(Expr::Name(_)) => {}
        Some(message) => details.extend(message.value(scope).map(|value| value.to_string())),
    }
    match details.is_empty() {
        true => format!("`{text}` does not hold"),
        false => format!("`{text}` does not hold: {}", details.join(", ")),
    }
}

impl Target {
    fn assign(&self, value: &Value, variables: &mut Variables) -> Result<(), String> {
        match (self, value) {
            (Self::Name(name), value) => {
                variables.insert(name.clone(), value.clone());
                Ok(())
            }
            (Self::Names(names), Value::Tuple(values) | Value::List(values))
                if names.len() == values.len() =>
            {
                variables.extend(names.iter().cloned().zip(values.iter().cloned()));
                Ok(())
            }
            (Self::Names(names), _) => {
                Err(format!("expected {} values for {}", names.len(), names.join(", ")))
            }
        }
    }
}

impl Expr {
    fn value(&self, scope: &Scope<'_>) -> Result<Value, String> {
        let values =
            |items: &[Self]| items.iter().map(|item| item.value(scope)).collect::<Result<Vec<_>, _>>();
        match self {
            Self::Constant(value) => Ok(value.clone()),
            Self::Name(name) => scope.value(name),
            Self::Tuple(items) => Value::Tuple(values(items)?).checked(),
            Self::List(items) => Value::List(values(items)?).checked(),
            Self::Not(inner) => Ok(Value::Bool(!inner.value(scope)?.is_true())),
            // As in Python, the result is the operand that decides.
            Self::And(operands) => first_or_last(operands, scope, false),
            Self::Or(operands) => first_or_last(operands, scope, true),
            Self::Unary(unary, inner) => unary.apply(&inner.value(scope)?),
            Self::Binary(operands, operator) => {
                let [a, b] = &**operands;
                operator.apply(&a.value(scope)?, &b.value(scope)?)
            }
            Self::Compare(first, rest) => {
                let mut left = first.value(scope)?;
                for (comparison, right) in rest {
                    let right = right.value(scope)?;
                    if !comparison.holds(&left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            Self::Choice(parts) => {
                let [condition, then, otherwise] = &**parts;
                if condition.value(scope)?.is_true() { then.value(scope) } else { otherwise.value(scope) }
            }
            Self::Call(function, args) => value::call(function, &values(args)?),
        }
    }

    /// Adds the names in this expression, each once.
    fn names(&self, into: &mut Vec<String>) {
        match self {
            Self::Constant(_) => {}
            Self::Name(name) => {
                if !into.contains(name) {
                    into.push(name.clone());
                }
            }
            Self::Not(inner) | Self::Unary(_, inner) => inner.names(into),
            Self::Binary(operands, _) => operands.iter().for_each(|operand| operand.names(into)),
            Self::Choice(parts) => parts.iter().for_each(|part| part.names(into)),
            Self::Compare(first, rest) => {
                first.names(into);
                rest.iter().for_each(|(_, operand)| operand.names(into));
            }
            Self::Tuple(items)
            | Self::List(items)
            | Self::And(items)
            | Self::Or(items)
            | Self::Call(_, items) => items.iter().for_each(|item| item.names(into)),
        }
    }
}

/// Returns the first operand with this truth value. If there is none, returns the last operand.
fn first_or_last(operands: &[Expr], scope: &Scope<'_>, truth: bool) -> Result<Value, String> {
    let mut value = Value::None;
    for operand in operands {
        value = operand.value(scope)?;
        if value.is_true() == truth {
            break;
        }
    }
    Ok(value)
}
