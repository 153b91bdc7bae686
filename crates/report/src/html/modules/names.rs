//! Detection of names that a module uses but neither declares nor imports.
//!
//! A browser reports such a name only when it executes the line. This check covers all lines but ignores
//! scopes: a name that is declared anywhere in a module counts as declared in the whole module.

use std::collections::BTreeSet;

use super::tokens::{Kind, Token, tokens};
use super::{Module, line_of};

#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "NaN", "Infinity", "arguments", "async", "await", "break", "case", "catch", "class", "const", "continue", "debugger",
    "default", "delete", "do", "else", "export", "extends", "false", "finally", "for", "from", "function", "get", "if",
    "import", "in", "instanceof", "let", "new", "null", "of", "return", "set", "static", "super", "switch", "this", "throw",
    "true", "try", "typeof", "undefined", "var", "void", "while", "yield",
];

/// The globals of browsers that the pages use.
#[rustfmt::skip]
const OF_THE_BROWSER: &[&str] = &[
    "Array", "BigInt", "Blob", "Boolean", "DataView", "Date", "DecompressionStream", "Error", "Event", "EventTarget",
    "FileReader", "Float64Array", "Int32Array", "JSON", "Map", "Math", "Number", "Object", "Option", "Promise",
    "RangeError", "ResizeObserver", "Response", "Set", "String", "Symbol", "TextDecoder", "TextEncoder", "TypeError",
    "URL", "URLSearchParams", "Uint32Array", "Uint8Array", "WeakMap", "WebAssembly", "Worker", "addEventListener",
    "atob", "btoa", "clearTimeout", "console", "decodeURIComponent", "devicePixelRatio", "document",
    "encodeURIComponent", "getComputedStyle", "getSelection", "history", "innerHeight", "innerWidth", "isNaN",
    "localStorage", "location", "matchMedia", "navigator", "onmessage", "performance", "postMessage", "prompt",
    "queueMicrotask", "requestAnimationFrame", "scrollBy", "self", "setTimeout", "structuredClone", "window",
];

/// Returns every name that a module uses but neither declares nor imports, with its line: a forgotten import
/// or a typo. A text that does not parse yields no names; [`bundle`](super::bundle) reports the error.
pub fn undeclared(module: &Module) -> Vec<String> {
    let Ok(tokens) = tokens(&module.text) else { return Vec::new() };
    let declared = declared(&tokens);
    let mut said = BTreeSet::new();
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let known = |names: &[&str]| names.contains(&token.text);
        if token.kind != Kind::Word
            || token.text.starts_with('#')
            || known(KEYWORDS)
            || known(OF_THE_BROWSER)
            || declared.contains(token.text)
            || is_key(&tokens, index)
            || method(&tokens, index).is_some()
        {
            continue;
        }
        if said.insert(token.text) {
            found.push(format!("{}: line {}: {}", module.name, line_of(&module.text, token.at), token.text));
        }
    }
    found
}

/// Returns true for the name of a property: after a dot, or before a colon in an object or a pattern.
fn is_key(tokens: &[Token<'_>], index: usize) -> bool {
    let before = |signs: &[&str]| index > 0 && signs.iter().any(|sign| tokens[index - 1].is(sign));
    before(&[".", "?."]) || before(&["{", ","]) && tokens.get(index + 1).is_some_and(|token| token.is(":"))
}

/// The parameters of the method with this name: `name(a, b) {`.
fn method<'t, 'a>(tokens: &'t [Token<'a>], index: usize) -> Option<&'t [Token<'a>]> {
    if tokens[index].kind != Kind::Word
        || ["if", "for", "while", "switch", "function"].contains(&tokens[index].text)
    {
        return None;
    }
    let open = index + 1;
    if !tokens.get(open)?.is("(") {
        return None;
    }
    let close = closing(tokens, open)?;
    tokens.get(close + 1)?.is("{").then(|| &tokens[open..close])
}

fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0;
    (open..tokens.len()).find(|index| {
        depth += step(&tokens[*index]);
        depth == 0
    })
}

/// The change of the bracket depth at this token.
fn step(token: &Token<'_>) -> i32 {
    match (token.kind, token.text) {
        (Kind::Sign, "(" | "[" | "{") => 1,
        (Kind::Sign, ")" | "]" | "}") => -1,
        (Kind::Template, text) => i32::from(text.ends_with("${")) - i32::from(text.starts_with('}')),
        _ => 0,
    }
}

fn declared<'a>(tokens: &[Token<'a>]) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, token) in tokens.iter().enumerate() {
        if is_key(tokens, index) {
            continue;
        }
        if let Some(parameters) = method(tokens, index) {
            pattern(parameters, &mut names);
        }
        if token.is("import") {
            let end = tokens[index..].iter().position(|token| token.is("}")).unwrap_or(0);
            pattern(&tokens[index + 1..index + end.max(1)], &mut names);
        } else if token.is("class") {
            names.extend(tokens.get(index + 1).map(|name| name.text));
        } else if token.is("function") {
            let open = (index..tokens.len()).find(|at| tokens[*at].is("(")).unwrap_or(index);
            let close = closing(tokens, open).unwrap_or(open);
            pattern(&tokens[index + 1..close], &mut names);
        } else if token.is("const") || token.is("let") || token.is("var") {
            variables(tokens, index + 1, &mut names);
        } else if token.is("=>") && index > 0 {
            let begin = if tokens[index - 1].is(")") { opening(tokens, index - 1) } else { Some(index - 1) };
            pattern(&tokens[begin.unwrap_or(index)..index], &mut names);
        }
    }
    names
}

fn opening(tokens: &[Token<'_>], close: usize) -> Option<usize> {
    let mut depth = 0;
    (0..=close).rev().find(|index| {
        depth += step(&tokens[*index]);
        depth == 0
    })
}

/// Collects the names that a pattern or a parameter list declares. Names in default values count as well,
/// although they are not declared there.
fn pattern<'a>(tokens: &[Token<'a>], names: &mut BTreeSet<&'a str>) {
    let words = tokens
        .iter()
        .enumerate()
        .filter(|(index, token)| token.kind == Kind::Word && !is_key(tokens, *index));
    names.extend(words.map(|(_, token)| token.text));
}

/// Collects the names declared after `const`, `let` or `var`: `a = 1, [b, c] = d, { e: f }`.
fn variables<'a>(tokens: &[Token<'a>], mut index: usize, names: &mut BTreeSet<&'a str>) {
    loop {
        let Some(first) = tokens.get(index) else { return };
        let last = if first.kind == Kind::Word { Some(index) } else { closing(tokens, index) };
        let Some(last) = last else { return };
        pattern(&tokens[index..=last], names);
        // Skip the value, up to the next variable.
        let mut depth = 0;
        let comma = (last + 1..tokens.len()).find(|at| {
            let token = &tokens[*at];
            depth += step(token);
            depth < 0 || depth == 0 && (token.is(",") || token.is(";") || token.is("of") || token.is("in"))
        });
        match comma {
            Some(at) if tokens[at].is(",") => index = at + 1,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undeclared_in(text: &'static str) -> Vec<String> {
        undeclared(&Module { name: "a.js", text: text.into() })
    }

    #[test]
    fn every_form_of_declaration_is_recognized() {
        let declared = "import { a, b } from './b.js';\n\
            export const c = a + b, [d, { e: f }] = c, g = (h, { i = 1 }) => h + i;\n\
            function j(k, ...l) { for (const [m, n] of k) l.push(m, n, d, f); }\n\
            class O { p(q) { return q.r + this.s(g); } static t() { for (let u = 0, v = 1; u < v; u++) j(u); } }\n\
            try { new O(); } catch (w) { console.log(`${w} ${{ x: c }.x}`, (y) => y, z => z); }\n";
        assert_eq!(undeclared_in(declared), [""; 0]);
    }

    #[test]
    fn undeclared_name_is_reported_once_with_line() {
        assert_eq!(
            undeclared_in("const a = { b: c, d };\nif (a) { e(`${f}`); a.g(e); }\n"),
            ["a.js: line 1: c", "a.js: line 1: d", "a.js: line 2: e", "a.js: line 2: f"]
        );
    }

    #[test]
    fn strings_comments_and_properties_are_not_names() {
        assert_eq!(
            undeclared_in("document.a = 'b'; // c\n/* d */ document['e'].f?.g.replace(/h/, `i`);\n"),
            [""; 0]
        );
    }
}
