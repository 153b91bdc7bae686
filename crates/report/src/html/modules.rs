//! Bundles ECMAScript modules into one script, so that a page is a single file and fetches nothing.
//!
//! Each module becomes a function, in import order. The module's imports become the function's parameters,
//! and its exports become the result. The bundler reads lines, not the language: an import is
//! `import { a, b } from './file.js';` from the start of a line, and an export is a line that begins with
//! `export` and declares one constant, function or class. The browser reports all other errors.

use std::borrow::Cow;

/// A source file of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The name that other modules import it by, without `./`.
    pub name: &'static str,
    /// The content of the file.
    pub text: Cow<'static, str>,
}

/// Returns one script that runs the module `entry` after everything it imports. Modules that no other module
/// imports are left out.
///
/// # Panics
///
/// Panics if a module or an exported name is missing, modules import each other, or a line that begins with
/// `import` or `export` has another form.
pub fn bundle(entry: &str, modules: &[Module]) -> String {
    let mut script = String::from(
        "// Each module is a function: it is given what it imports, and returns what it exports.\nconst modules = {};\n",
    );
    let parsed: Vec<_> = modules.iter().map(Parsed::new).collect();
    let mut order = Vec::new();
    visit(entry, &parsed, &mut Vec::new(), &mut order);
    order.into_iter().for_each(|module| script += &module.function());
    script
}

/// Appends the module `name` to `order` after all modules that it imports, and returns it.
fn visit<'a>(
    name: &str,
    all: &'a [Parsed<'a>],
    importing: &mut Vec<&'a str>,
    order: &mut Vec<&'a Parsed<'a>>,
) -> &'a Parsed<'a> {
    let module = all.iter().find(|module| module.name == name);
    let module = module.unwrap_or_else(|| panic!("missing module {name}, imported from {importing:?}"));
    assert!(!importing.contains(&name), "import cycle: {importing:?} → {name}");
    if !order.iter().any(|done| done.name == name) {
        importing.push(module.name);
        for (names, from) in &module.imports {
            let exports = &visit(from, all, importing, order).exports;
            let missing = names.iter().find(|name| !exports.contains(name));
            assert!(missing.is_none(), "{name}: {from} does not export {missing:?}");
        }
        importing.pop();
        order.push(module);
    }
    module
}

struct Parsed<'a> {
    name: &'a str,
    /// For each import statement, the imported names and their module.
    imports: Vec<(Vec<&'a str>, &'a str)>,
    exports: Vec<&'a str>,
    /// The text without import statements and without the keyword `export`.
    body: String,
}

impl<'a> Parsed<'a> {
    fn new(Module { name, text }: &'a Module) -> Self {
        let lower = text.to_lowercase();
        assert!(!lower.contains("</script") && !lower.contains("<!--"), "{name}: ends the script in HTML");
        let mut parsed = Self { name, imports: Vec::new(), exports: Vec::new(), body: String::new() };
        let mut rest: &str = text;
        while !rest.is_empty() {
            if rest.starts_with("import") {
                let (statement, after) = rest.split_once(";\n").unwrap_or((rest, ""));
                let parts = statement.strip_prefix("import {").and_then(|it| it.split_once("} from './"));
                let parts = parts.and_then(|(names, from)| Some((names, from.strip_suffix('\'')?)));
                let (names, from) = parts.unwrap_or_else(|| panic!("{name}: cannot bundle {statement}"));
                let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
                parsed.imports.push((names.collect(), from));
                rest = after;
                // Do not leave two adjacent empty lines.
                if rest.starts_with('\n') && (parsed.body.is_empty() || parsed.body.ends_with("\n\n")) {
                    rest = &rest[1..];
                }
                continue;
            }
            let line = rest.split_inclusive('\n').next().unwrap_or_default();
            let declaration = line.strip_prefix("export ");
            if let Some(declaration) = declaration {
                let kinds = ["const ", "function ", "async function ", "class "];
                let declared = kinds.iter().find_map(|kind| declaration.strip_prefix(kind));
                let declared = declared.unwrap_or_else(|| panic!("{name}: cannot bundle {line}"));
                let end = declared.find(|c: char| !c.is_alphanumeric() && !"$_".contains(c));
                parsed.exports.push(&declared[..end.unwrap_or(declared.len())]);
            }
            parsed.body += declaration.unwrap_or(line);
            rest = &rest[line.len()..];
        }
        parsed.exports.sort_unstable();
        parsed
    }

    /// Returns the module as a function that is called immediately.
    fn function(&self) -> String {
        let parameters: Vec<_> =
            self.imports.iter().map(|(names, _)| format!("{{ {} }}", names.join(", "))).collect();
        let arguments: Vec<_> = self.imports.iter().map(|(_, from)| format!("modules['{from}']")).collect();
        let result = match self.exports.as_slice() {
            [] => String::new(),
            exports => format!("return {{ {} }};\n", exports.join(", ")),
        };
        format!(
            "\n// ---- {name}\nmodules['{name}'] = (({parameters}) => {{\n{body}\n{result}}})({arguments});\n",
            name = self.name,
            parameters = parameters.join(", "),
            body = self.body.trim_end_matches('\n'),
            arguments = arguments.join(", "),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_functions_in_import_order() {
        let module = |name, text: &'static str| Module { name, text: text.into() };
        let modules = [
            module(
                "main.js",
                "// 1\nimport { b } from './b.js';\nimport { a, c } from './a.js';\n\nb(a, c);\n",
            ),
            module("unused.js", "export const d = 1;\n"),
            module("a.js", "export class c {}\nexport const a = 1;\n"),
            module("b.js", "import {\n  a,\n} from './a.js';\n\nexport async function b() { return a; }\n"),
        ];
        let script = "// Each module is a function: it is given what it imports, and returns what it exports.\n\
            const modules = {};\n\n\
            // ---- a.js\nmodules['a.js'] = (() => {\nclass c {}\nconst a = 1;\nreturn { a, c };\n})();\n\n\
            // ---- b.js\nmodules['b.js'] = (({ a }) => {\n\
            async function b() { return a; }\nreturn { b };\n})(modules['a.js']);\n\n\
            // ---- main.js\nmodules['main.js'] = (({ b }, { a, c }) => {\n\
            // 1\n\nb(a, c);\n})(modules['b.js'], modules['a.js']);\n";
        assert_eq!(bundle("main.js", &modules), script);
    }
}
