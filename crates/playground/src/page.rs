//! The HTML page: one file that contains the compressed core and does not load anything.

use std::io::Write;

use airtcp_report::html::document::Document;
use airtcp_report::html::modules::{Module, bundle};
use airtcp_report::html::{graphs, tables_style};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::SCENES;

/// The page's own keys.
const KEYS: [(&str, &str); 4] = [
    ("[ ]", "previous or next decision of the sender"),
    ("a", "play or pause: the cursor moves through the run, and the packets through the ladder diagram"),
    ("d", "show or hide the ladder diagram"),
    (
        "f",
        "present the scene in full screen: ← and → change the step, ↑ and ↓ move between decisions, Space plays, \
         Esc ends",
    ),
];

/// Returns the complete file. `core` is this crate, compiled to WebAssembly.
pub fn html(core: &[u8]) -> String {
    let script = bundle("playground.js", &modules());
    let style = [
        graphs::style().as_str(),
        tables_style(),
        include_str!("../page/playground.css"),
        include_str!("../page/present.css"),
    ]
    .concat();
    let body = format!(
        "{}<main id=\"graphs\" aria-label=\"Graphs\">\n{}{}{}<div id=\"figures\">{}{}</div></main>\n{}<script type=\"text/plain\" id=\"core\">{}</script>\n\
         <script type=\"application/json\" id=\"about\">{}</script>\n",
        include_str!("../page/settings.html"),
        include_str!("../page/slide.html"),
        graphs::bar(include_str!("../page/bar.html")),
        include_str!("../page/moment.html"),
        include_str!("../page/ladder.html"),
        graphs::panels("No run yet."),
        graphs::help(&[], &KEYS),
        compressed(core),
        // The comments of presets can contain any text.
        crate::about::about().to_string().replace('<', "\\u003c"),
    );
    // The page itself contains the core and its worker.
    let additional_sources = [("script-src", "'wasm-unsafe-eval'"), ("worker-src", "blob:")];
    Document {
        title: "airtcp playground",
        style: &style,
        body: &body,
        script: &script,
        additional_sources: &additional_sources,
    }
    .html()
}

/// Returns the modules of the page's script.
fn modules() -> Vec<Module> {
    let module = |name, text: &'static str| Module { name, text: text.into() };
    let worker = serde_json::Value::from(include_str!("../page/worker.js"));
    let mut modules = graphs::shared();
    modules.extend([
        module("address.js", include_str!("../page/address.js")),
        module("core.js", include_str!("../page/core.js")),
        module("knobs.js", include_str!("../page/knobs.js")),
        module("ladder.js", include_str!("../page/ladder.js")),
        module("moment.js", include_str!("../page/moment.js")),
        module("packets.js", include_str!("../page/packets.js")),
        module("pdus.js", include_str!("../page/pdus.js")),
        module("player.js", include_str!("../page/player.js")),
        module("playground.js", include_str!("../page/playground.js")),
        module("present.js", include_str!("../page/present.js")),
        module("results.js", include_str!("../page/results.js")),
        module("rungs.js", include_str!("../page/rungs.js")),
        module("runs.js", include_str!("../page/runs.js")),
        module("seeds.js", include_str!("../page/seeds.js")),
        module("senders.js", include_str!("../page/senders.js")),
        module("steps.js", include_str!("../page/steps.js")),
        module("tour.js", include_str!("../page/tour.js")),
        module("troubles.js", include_str!("../page/troubles.js")),
        Module { name: "scenes.js", text: format!("export const SCENES = {SCENES};\n").into() },
        Module { name: "worker_text.js", text: format!("export const WORKER = {worker};\n").into() },
    ]);
    modules
}

fn compressed(core: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let content = encoder.write_all(core).and_then(|()| encoder.finish());
    airtcp_report::html::columns::base64(&content.unwrap_or_default())
}
