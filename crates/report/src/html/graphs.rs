//! The parts of a page with graphs that do not depend on the page: the modules that draw the graphs, the
//! style sheet, and the elements that both expect. `page/graphs.js` describes how a page's script uses them.

use super::codes;
use super::modules::Module;
use super::table::escape;
use crate::looks;

/// Returns the modules that every page with graphs shares. A page adds more modules, one of which is the entry.
pub fn shared() -> Vec<Module> {
    let module = |name, text: &'static str| Module { name, text: text.into() };
    vec![
        Module { name: "codes.js", text: codes::module().into() },
        module("axes.js", include_str!("page/axes.js")),
        module("data.js", include_str!("page/data.js")),
        module("dom.js", include_str!("page/dom.js")),
        module("graphs.js", include_str!("page/graphs.js")),
        module("legend.js", include_str!("page/legend.js")),
        module("marks.js", include_str!("page/marks.js")),
        module("overview.js", include_str!("page/overview.js")),
        module("panel.js", include_str!("page/panel.js")),
        module("plots.js", include_str!("page/plots.js")),
        module("pointers.js", include_str!("page/pointers.js")),
        module("sequence.js", include_str!("page/sequence.js")),
        module("time.js", include_str!("page/time.js")),
        module("words.js", include_str!("page/words.js")),
    ]
}

/// Returns the style sheet for the graphs, headings, buttons and tables, with the colours of light and dark pages.
pub fn style() -> String {
    format!("{}{}", include_str!("page/graphs.css"), looks::for_style())
}

/// Returns the bar above the graphs: buttons, the legend, and a strip with the whole time range. `buttons` is
/// HTML that is inserted between the built-in buttons. A button with a `data-key` does the same as that key.
pub fn bar(buttons: &str) -> String {
    include_str!("page/bar.html").replace("{buttons}", buttons)
}

/// Returns the container of the graphs, in `<main id="graphs">` like the bar. The text is shown while no run is
/// displayed.
pub fn panels(nothing: &str) -> String {
    format!("<p id=\"nothing\">{}</p>\n<div id=\"panels\"></div>\n", escape(nothing))
}

/// Returns the help at the end of the body: a table of keys. A page adds rows of plain text: keys that switch between
/// runs, and keys that concern the whole page.
pub fn help(of_runs: &[(&str, &str)], of_page: &[(&str, &str)]) -> String {
    let rows = |keys: &[(&str, &str)]| -> String {
        let row = |(keys, action): &(&str, &str)| {
            format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(keys), escape(action))
        };
        keys.iter().map(row).collect()
    };
    include_str!("page/help.html").replace("{of_runs}", &rows(of_runs)).replace("{of_page}", &rows(of_page))
}
