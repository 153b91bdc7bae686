//! Bundles ECMAScript modules into one script, so that a page is a single file and fetches nothing.
//!
//! ```
//! use airtcp_report::html::modules::{Module, bundle};
//!
//! let greet = "export function greet(name) { return `Hello, ${name}`; }\n";
//! let main = "import { greet } from './greet.js';\ndocument.title = greet('you');\n";
//! let modules =
//!     [Module { name: "greet.js", text: greet.into() }, Module { name: "main.js", text: main.into() }];
//! let script = bundle("main.js", &modules)?;
//! assert!(script.find("function greet").unwrap() < script.find("document.title").unwrap());
//! # Ok::<(), airtcp_report::html::modules::BundleError>(())
//! ```
//!
//! Each module becomes a function, in import order. The module's imports become the function's parameters,
//! and its exports become the result. No name leaks, and a module sees only what it imports. The bundler
//! supports only the forms that these pages use: `import { a, b } from './file.js';`, and `export` before a
//! constant, a function or a class. It rejects all others.

mod names;
mod tokens;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub use self::names::undeclared;
use self::tokens::{Kind, Token, tokens};

/// A source file of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The name that other modules import it by, without `./`.
    pub name: &'static str,
    /// The content of the file.
    pub text: Cow<'static, str>,
}

/// The reason why modules cannot be bundled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// The entry module, or a module that another one imports from, does not exist.
    #[error("missing module {name}, which {} imports", .from.unwrap_or("the page"))]
    NoModule {
        /// The missing module.
        name: String,
        /// The importing module; `None` for the entry.
        from: Option<&'static str>,
    },
    /// Two modules have this name.
    #[error("two modules are called {0}")]
    SameName(&'static str),
    /// A module imports a name that the other module does not export.
    #[error("{module} imports {name} from {from}, which does not export it")]
    NotExported {
        /// The importing module.
        module: &'static str,
        /// The missing name.
        name: String,
        /// The module that should export it.
        from: &'static str,
    },
    /// An import cycle. The first module is repeated at the end.
    #[error("these import each other: {}", .0.join(" → "))]
    Cycle(Vec<&'static str>),
    /// A name is imported twice, or imported and declared, or exported twice.
    #[error("{module}: line {line}: {name} is there already")]
    Twice {
        /// The module.
        module: &'static str,
        /// The line of the second occurrence.
        line: usize,
        /// The name.
        name: String,
    },
    /// A form of the language that the bundler does not support.
    #[error("{module}: line {line}: cannot bundle {what}")]
    Unsupported {
        /// The module.
        module: &'static str,
        /// The line.
        line: usize,
        /// The unsupported form, and what to write instead.
        what: &'static str,
    },
    /// A string, comment, template, regular expression or block does not end.
    #[error("{module}: line {line}: unterminated string, comment or bracket")]
    Endless {
        /// The module.
        module: &'static str,
        /// The line in which it begins.
        line: usize,
    },
}

/// Returns one script that runs the module `entry` after everything it imports. Modules that no other module
/// imports are left out.
///
/// # Errors
///
/// Returns an error if modules are missing, import each other in a cycle, or use an unsupported form.
pub fn bundle(entry: &str, modules: &[Module]) -> Result<String, BundleError> {
    let mut parsed = BTreeMap::new();
    for module in modules {
        if parsed.insert(module.name, Parsed::new(module)?).is_some() {
            return Err(BundleError::SameName(module.name));
        }
    }
    let first =
        parsed.get(entry).ok_or_else(|| BundleError::NoModule { name: entry.to_owned(), from: None })?;
    let mut order = Vec::new();
    visit(first, &parsed, &mut Vec::new(), &mut order)?;
    let mut script = String::from(
        "// Each module is a function: it is given what it imports, and returns what it exports.\nconst modules = {};\n",
    );
    for module in order {
        script += &module.function();
    }
    Ok(script)
}

/// Appends this module to `order` after all modules that it imports, depth first.
fn visit<'a>(
    module: &'a Parsed<'a>,
    all: &'a BTreeMap<&'static str, Parsed<'a>>,
    path: &mut Vec<&'static str>,
    order: &mut Vec<&'a Parsed<'a>>,
) -> Result<(), BundleError> {
    let name = module.module.name;
    if order.iter().any(|done| done.module.name == name) {
        return Ok(());
    }
    if let Some(begin) = path.iter().position(|before| *before == name) {
        let circle = path[begin..].iter().copied().chain([name]);
        return Err(BundleError::Cycle(circle.collect()));
    }
    path.push(name);
    for Import { names, from } in &module.imports {
        let source = all
            .get(*from)
            .ok_or_else(|| BundleError::NoModule { name: (*from).to_owned(), from: Some(name) })?;
        if let Some(missing) = names.iter().find(|name| !source.exports.contains(*name)) {
            let missing = (*missing).to_owned();
            return Err(BundleError::NotExported { module: name, name: missing, from: source.module.name });
        }
        visit(source, all, path, order)?;
    }
    path.pop();
    order.push(module);
    Ok(())
}

/// One import statement.
struct Import<'a> {
    names: Vec<&'a str>,
    from: &'a str,
}

/// A parsed module.
struct Parsed<'a> {
    module: &'a Module,
    imports: Vec<Import<'a>>,
    exports: BTreeSet<&'a str>,
    /// The text without import statements and without the keyword `export`.
    body: String,
}

impl<'a> Parsed<'a> {
    fn new(module: &'a Module) -> Result<Self, BundleError> {
        let text: &str = &module.text;
        let line = |at: usize| line_of(text, at);
        let unsupported = |at, what| BundleError::Unsupported { module: module.name, line: line(at), what };
        let lower = text.to_ascii_lowercase();
        if let Some(at) = ["</script", "<!--"].iter().find_map(|end| lower.find(end)) {
            return Err(unsupported(at, "</script or <!--, which HTML takes for its own: write <\\/script"));
        }
        let tokens = tokens(text)
            .map_err(|endless| BundleError::Endless { module: module.name, line: line(endless.0) })?;
        let (mut imports, mut exports, mut declared) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let (mut body, mut kept) = (String::with_capacity(text.len()), 0);
        let twice = |set: &mut BTreeSet<&'a str>, token: &Token<'a>| {
            if set.insert(token.text) {
                return Ok(());
            }
            let name = token.text.to_owned();
            Err(BundleError::Twice { module: module.name, line: line(token.at), name })
        };
        let mut depth = 0usize;
        let mut index = 0;
        while let Some(token) = tokens.get(index) {
            let here = &tokens[index..];
            index += 1;
            match (token.kind, token.text) {
                (Kind::Sign, "{" | "(" | "[") => depth += 1,
                (Kind::Sign, "}" | ")" | "]") => depth = depth.saturating_sub(1),
                (Kind::Template, text) => {
                    depth = (depth + usize::from(text.ends_with("${")))
                        .saturating_sub(usize::from(text.starts_with('}')));
                }
                (Kind::Word, _) if is_property(&tokens, index - 1) => {}
                (Kind::Word, "import") => {
                    let (import, names, length) = import(here).ok_or_else(|| {
                        unsupported(token.at, "this import: write import { a, b } from './file.js';")
                    })?;
                    for name in names {
                        twice(&mut declared, name)?;
                    }
                    imports.push(import);
                    body += &text[kept..token.at];
                    kept = here[length - 1].end();
                    // Also remove the statement's line break, and one of two adjacent empty lines.
                    for before in ["\n", "\n\n"] {
                        if text[kept..].starts_with('\n') && (body.is_empty() || body.ends_with(before)) {
                            kept += 1;
                        }
                    }
                    index += length - 1;
                }
                (Kind::Word, "export") => {
                    let name = export(here).ok_or_else(|| {
                        unsupported(
                            token.at,
                            "this export: write export before one const, function, async function or class with a name",
                        )
                    })?;
                    twice(&mut exports, name)?;
                    body += &text[kept..token.at];
                    kept = here[1].at;
                }
                (Kind::Word, "await") if depth == 0 => {
                    return Err(unsupported(
                        token.at,
                        "await outside of braces: call an async function with some",
                    ));
                }
                (Kind::Word, "const" | "let" | "var" | "function" | "class") if depth == 0 => {
                    let name = here[1..].iter().find(|next| !next.is("*"));
                    if let Some(name) = name.filter(|name| name.kind == Kind::Word) {
                        twice(&mut declared, name)?;
                    }
                }
                _ => {}
            }
        }
        body += &text[kept..];
        Ok(Self { module, imports, exports, body })
    }

    /// Returns the module as a function that is called immediately.
    fn function(&self) -> String {
        let names = |import: &Import<'_>| format!("{{ {} }}", import.names.join(", "));
        let parameters: Vec<_> = self.imports.iter().map(names).collect();
        let arguments: Vec<_> =
            self.imports.iter().map(|import| format!("modules['{}']", import.from)).collect();
        let exports: Vec<_> = self.exports.iter().copied().collect();
        let result = if exports.is_empty() {
            String::new()
        } else {
            format!("return {{ {} }};\n", exports.join(", "))
        };
        format!(
            "\n// ---- {name}\nmodules['{name}'] = (({parameters}) => {{\n{body}\n{result}}})({arguments});\n",
            name = self.module.name,
            parameters = parameters.join(", "),
            body = self.body.trim_end_matches('\n'),
            arguments = arguments.join(", "),
        )
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Returns true for names of properties, as in `it.export` and `{ import: 1 }`.
fn is_property(tokens: &[Token<'_>], index: usize) -> bool {
    let before = index.checked_sub(1).map(|before| tokens[before]);
    let behind = tokens.get(index + 1);
    before.is_some_and(|before| before.is(".") || before.is("?."))
        || before.is_some_and(|before| before.is("{") || before.is(","))
            && behind.is_some_and(|it| it.is(":"))
}

/// Parses the import statement that begins here. Returns it, the tokens of its names, and its number of
/// tokens.
fn import<'t, 'a>(here: &'t [Token<'a>]) -> Option<(Import<'a>, Vec<&'t Token<'a>>, usize)> {
    let end = here.iter().position(|token| token.is("}"))?;
    let [open, names @ ..] = here.get(1..end)? else { return None };
    let [from, source, semicolon] = here.get(end + 1..end + 4)? else { return None };
    if !open.is("{") || !from.is("from") || source.kind != Kind::Text || !semicolon.is(";") {
        return None;
    }
    let mut words = Vec::new();
    for pair in names.chunks(2) {
        let [name, comma @ ..] = pair else { return None };
        if name.kind != Kind::Word || comma.first().is_some_and(|comma| !comma.is(",")) {
            return None;
        }
        words.push(name);
    }
    let from = source.text.trim_matches(['\'', '"']).strip_prefix("./")?;
    let import = Import { names: words.iter().map(|word| word.text).collect(), from };
    Some((import, words, end + 4))
}

/// The name that is exported here.
fn export<'t, 'a>(here: &'t [Token<'a>]) -> Option<&'t Token<'a>> {
    let name = match here.get(1..4)? {
        [kind, name, _] if ["const", "function", "class"].iter().any(|known| kind.is(known)) => name,
        [asynchronous, function, name] if asynchronous.is("async") && function.is("function") => name,
        _ => return None,
    };
    // Only the first name of a `const` statement is recorded, so a second one is rejected.
    if here[1].is("const") {
        let mut depth = 0;
        for token in &here[3..] {
            match token.text {
                ";" if depth == 0 => break,
                "," if depth == 0 => return None,
                _ if token.kind == Kind::Template => {
                    depth += i32::from(token.text.ends_with("${")) - i32::from(token.text.starts_with('}'));
                }
                _ if token.kind != Kind::Sign => {}
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
        }
    }
    (name.kind == Kind::Word).then_some(name)
}

#[cfg(test)]
mod tests;
