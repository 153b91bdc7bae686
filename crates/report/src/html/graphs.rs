//! What a page with graphs is made of, beside its own tables or settings: the modules that draw them, the style sheet, and the
//! elements that these look for. `page/graphs.js` says how a page's script uses them.

use super::codes;
use super::modules::Module;
use super::table::escape;
use crate::looks;

/// The modules of the script that every page with graphs has. A page adds its own, one of which is the entry.
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

/// The style sheet of all that is here, of headings, buttons and tables, with the colours of a light and of a dark page.
pub fn style() -> String {
    format!("{}{}", include_str!("page/graphs.css"), looks::for_style())
}

/// Above the graphs: buttons, legend and the strip that shows all of the time. The page's own `buttons`, which are HTML, stand
/// between the others; one with a `data-key` does what that key does.
pub fn bar(buttons: &str) -> String {
    include_str!("page/bar.html").replace("{buttons}", buttons)
}

/// The place of the graphs, in `<main id="graphs">` like the bar. The text is there while no run is on display.
pub fn panels(nothing: &str) -> String {
    format!("<p id=\"nothing\">{}</p>\n<div id=\"panels\"></div>\n", escape(nothing))
}

/// The help, at the end of the body: what keys do. Rows of the page's own are text: those that go to other runs, and those about
/// the page as a whole.
pub fn help(of_runs: &[(&str, &str)], of_page: &[(&str, &str)]) -> String {
    let rows = |keys: &[(&str, &str)]| -> String {
        let row = |(keys, what): &(&str, &str)| {
            format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(keys), escape(what))
        };
        keys.iter().map(row).collect()
    };
    include_str!("page/help.html").replace("{of_runs}", &rows(of_runs)).replace("{of_page}", &rows(of_page))
}
