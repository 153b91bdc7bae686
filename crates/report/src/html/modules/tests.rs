use super::*;
use crate::html::graphs::shared;

fn module(name: &'static str, text: &'static str) -> Module {
    Module { name, text: text.into() }
}

/// The error message for a module that imports nothing.
fn bundle_error(text: &'static str) -> String {
    bundle("main.js", &[module("main.js", text)]).unwrap_err().to_string()
}

#[test]
fn bundle_wraps_modules_as_functions_in_import_order() {
    let modules = [
        module(
            "main.js",
            "// Main.\nimport { b } from './b.js';\nimport {\n  a, c,\n} from './a.js';\n\nb(a, c);\n",
        ),
        module("unused.js", "export const d = 1;\n"),
        module("a.js", "export class c {}\nexport const a = () => { let x = 1, y = 2; return [x, y]; };\n"),
        module(
            "b.js",
            "import { a } from './a.js';\nexport async function b() {}\nconst e = { export: a }.export;\n",
        ),
    ];
    let script = "// Each module is a function: it is given what it imports, and returns what it exports.\n\
        const modules = {};\n\n\
        // ---- a.js\nmodules['a.js'] = (() => {\n\
        class c {}\nconst a = () => { let x = 1, y = 2; return [x, y]; };\nreturn { a, c };\n})();\n\n\
        // ---- b.js\nmodules['b.js'] = (({ a }) => {\n\
        async function b() {}\nconst e = { export: a }.export;\nreturn { b };\n})(modules['a.js']);\n\n\
        // ---- main.js\nmodules['main.js'] = (({ b }, { a, c }) => {\n\
        // Main.\n\nb(a, c);\n})(modules['b.js'], modules['a.js']);\n";
    assert_eq!(bundle("main.js", &modules).unwrap(), script);
}

#[test]
fn missing_module_is_rejected() {
    assert_eq!(
        bundle("main.js", &[]).unwrap_err().to_string(),
        "missing module main.js, which the page imports"
    );
    assert_eq!(bundle_error("import { a } from './a.js';"), "missing module a.js, which main.js imports");
}

#[test]
fn duplicate_module_name_is_rejected() {
    let twice = [module("a.js", ""), module("a.js", "")];
    assert_eq!(bundle("a.js", &twice), Err(BundleError::SameName("a.js")));
}

#[test]
fn import_of_unexported_name_is_rejected() {
    let modules = [
        module("main.js", "import { a, b } from './a.js';"),
        module("a.js", "export const a = 1; const b = 2;"),
    ];
    assert_eq!(
        bundle("main.js", &modules).unwrap_err().to_string(),
        "main.js imports b from a.js, which does not export it"
    );
}

#[test]
fn import_cycle_is_rejected() {
    let modules = [
        module("main.js", "import { a } from './a.js';"),
        module("a.js", "import { b } from './b.js'; export const a = 1;"),
        module("b.js", "import { a } from './a.js'; export const b = 1;"),
    ];
    assert_eq!(
        bundle("main.js", &modules).unwrap_err().to_string(),
        "these import each other: a.js → b.js → a.js"
    );
    let itself = [module("a.js", "import { a } from './a.js'; export const a = 1;")];
    assert!(matches!(bundle("a.js", &itself), Err(BundleError::Twice { .. })), "a is imported and declared");
    let itself = [module("a.js", "import {} from './a.js';")];
    assert_eq!(bundle("a.js", &itself), Err(BundleError::Cycle(vec!["a.js", "a.js"])));
}

#[test]
fn duplicate_declaration_is_rejected() {
    for (text, name) in [
        ("import { a } from './a.js';\nimport { a } from './b.js';", "a"),
        ("import { a, b } from './a.js';\nfunction b() {}", "b"),
        ("const a = 1;\nlet a = 2;", "a"),
        ("export function a() {}\nexport function a() {}", "a"),
        ("function* a() {}\nclass a {}", "a"),
    ] {
        assert_eq!(bundle_error(text), format!("main.js: line 2: {name} is there already"), "{text}");
    }
    // Blocks and functions may shadow names.
    let shadows = "const a = 1;\nfunction b(a) { const b = a; }\n{ let a = `${(() => { let b = 1; return b; })()}`; }\n";
    assert!(bundle("main.js", &[module("main.js", shadows)]).is_ok());
}

#[test]
fn unsupported_module_syntax_is_rejected() {
    for import in [
        "import a from './a.js';",
        "import * as a from './a.js';",
        "import './a.js';",
        "import { a as b } from './a.js';",
        "import { a, , b } from './a.js';",
        "import { a } from 'a.js';",
        "import { a } from '../a.js';\nimport",
        "import { a } from './a.js'",
        "import { a } from './a.js' with { type: 'json' };",
        "const a = await import('./a.js');",
        "f(() => import('./a.js'));",
        "f(import.meta.url);",
    ] {
        let refusal = bundle_error(import);
        assert!(
            refusal.contains("line 1: cannot bundle this import: write import {")
                || refusal.contains("await"),
            "{refusal}"
        );
    }
    for export in [
        "export default 1;",
        "export default function a() {}",
        "export { a };",
        "export * from './a.js';",
        "export let a = 1;",
        "export var a = 1;",
        "export const a = [1, 2], b = 3;",
        "export const { a } = b;",
        "export const a = `${b}`, c = 1;",
        "export function* a() {}",
        "export class { }",
    ] {
        let refusal = bundle_error(export);
        assert!(
            refusal.contains("line 1: cannot bundle this export: write export before one"),
            "{export}: {refusal}"
        );
    }
    assert!(bundle_error("\nawait a;").contains("line 2: cannot bundle await outside of braces"));
    for text in ["const a = '</script>';", "// <!-- a", "const a = '</SCRIPT';"] {
        assert!(bundle_error(text).contains("line 1: cannot bundle </script or <!--"), "{text}");
    }
    assert_eq!(bundle_error("\nconst a = 'b\n"), "main.js: line 2: unterminated string, comment or bracket");
}

fn report_modules() -> Vec<Module> {
    let mut modules = shared();
    modules.push(module("report.js", include_str!("../page/report.js")));
    modules
}

#[test]
fn report_script_contains_every_module() {
    let modules = report_modules();
    let script = bundle("report.js", &modules).unwrap();
    for Module { name, .. } in &modules {
        assert!(script.contains(&format!("\n// ---- {name}\n")), "{name}");
    }
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/html/page")).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    for file in files.filter(|file| file.ends_with(".js")) {
        assert!(modules.iter().any(|module| module.name == file), "{file}");
    }
}

#[test]
fn report_modules_have_no_missing_or_unused_imports() {
    for module in report_modules() {
        assert_eq!(undeclared(&module), [""; 0]);
        let parsed = Parsed::new(&module).unwrap();
        let words = tokens(&parsed.body).unwrap();
        for name in parsed.imports.iter().flat_map(|import| &import.names) {
            assert!(words.iter().any(|word| word.is(name)), "{} does not use {name}", module.name);
        }
    }
}
