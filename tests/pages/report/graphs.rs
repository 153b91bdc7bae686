//! The graphs of the report in another page, which selects runs, receives their events, and adds graphs.

use airtcp_report::html::document::Document;
use airtcp_report::html::modules::{Module, bundle};
use airtcp_report::html::{Run, graphs};
use airtcp_testkit::browser::Browser;
use serde_json::{Value, json};

use super::{
    DESKTOP, MILLISECOND, Written, assert_no_complaints, drawn, pixels, range, transfer, visit, with_states,
};

const PURPLE: [u8; 3] = [0xcc, 0x79, 0xa7];

/// Three runs. The second has an additional graph, and the third has states. Keys select them.
const MAIN: &str = "
import { frame } from './axes.js';
import { decodeRun } from './data.js';
import { $ } from './dom.js';
import { graphs } from './graphs.js';

const run = (id) => decodeRun(JSON.parse($(`run-${id}`).textContent), id);
const withGraph = () => ({ ...run(1), extra: [{ title: 'PDUs', h: 0.3, draw }] });

function draw(ctx, box, view, X, C) {
  frame(ctx, box, 0, 1, String, C);
  ctx.fillStyle = C.spurious;
  ctx.fillRect(X(200e3), box.y, X(400e3) - X(200e3), box.h);
}

graphs.keys.a = () => graphs.show([run(0)]);
graphs.keys.b = () => graphs.show([run(0), withGraph()], { keep: true });
graphs.keys.c = () => graphs.show([run(0), run(2)]);
graphs.show([run(0)]);
";

fn written(name: &str) -> Written {
    let transfers = [
        transfer(300, 5 * MILLISECOND),
        transfer(200, 5 * MILLISECOND),
        with_states(transfer(100, 5 * MILLISECOND)),
    ];
    let mut body = format!(
        "<main id=\"graphs\">{}{}</main>{}",
        graphs::bar("<button data-key=\"c\">states</button>\n"),
        graphs::panels("There is no run."),
        graphs::help(&[("a b", "some <runs>")], &[])
    );
    for (number, trace) in transfers.into_iter().enumerate() {
        let run = Run { name: format!("run {number}"), trace, ..Run::default() };
        let data = run.data();
        body += &format!("<script type=\"application/json\" id=\"run-{number}\">{data}</script>\n");
    }
    let mut modules = graphs::shared();
    modules.push(Module { name: "main.js", text: MAIN.into() });
    let (style, script) = (graphs::style(), bundle("main.js", &modules));
    let document =
        Document { title: name, style: &style, body: &body, script: &script, additional_sources: &[] };
    Written::html(&document.html())
}

/// Records all events of the graphs from now on.
fn record_events(browser: &mut Browser) {
    browser.eval(
        "window.told = []; for (const name of ['view', 'cursor', 'focus']) airtcp.graphs.on(name, (it) => \
         told.push([name, name === 'focus' && it ? { run: it.run.id, kind: it.kind, i: it.i } : structuredClone(it)])); 0",
    );
}

/// Returns the recorded events with this name, in order.
fn recorded(browser: &mut Browser, name: &str) -> Vec<Value> {
    let events =
        browser.eval(&format!("told.filter(([name]) => name === '{name}').map(([, value]) => value)"));
    events.as_array().unwrap().clone()
}

/// The checks share one browser, because starting it takes longer than a check. Each check reloads the page.
#[test]
fn embedding_page_controls_and_extends_graphs() {
    let page = written("graphs");
    let mut browser = Browser::open(page.path(), DESKTOP);
    for check in [
        check_events_are_sent_once,
        check_new_runs_reset_view_unless_kept,
        check_extra_graph_is_below_others,
        check_states_have_space_only_if_present,
    ] {
        visit(&mut browser, &page);
        check(&mut browser);
    }
    assert_no_complaints(&browser);
}

fn check_events_are_sent_once(browser: &mut Browser) {
    record_events(browser);
    browser.key("+");
    let views = recorded(browser, "view");
    let view = browser.eval("airtcp.graphs.view");
    assert_eq!(views, std::slice::from_ref(&view));
    assert_eq!((view["from"].as_f64().unwrap() / 1e6 * 1e3).round() / 1e3, range(browser).0);
    browser.eval("airtcp.graphs.setView(airtcp.graphs.view.from, airtcp.graphs.view.to)");
    assert_eq!(recorded(browser, "view").len(), 1, "an unchanged view is not an event");

    // Move to the first loss, and leave it.
    browser.key("n");
    let [cursor, focus] = ["cursor", "focus"].map(|name| recorded(browser, name));
    let lost =
        browser.eval("airtcp.graphs.panels[0].run.events.find((i) => airtcp.graphs.panels[0].focus.i === i)");
    assert_eq!(focus, [json!({ "run": 0, "kind": "segment", "i": lost })]);
    assert_eq!(cursor.len(), 1);
    assert_eq!(cursor[0], browser.eval("airtcp.graphs.cursor"));
    browser.key("Escape");
    assert_eq!(recorded(browser, "focus")[1..], [Value::Null]);
    assert_eq!(recorded(browser, "cursor")[1..], [Value::Null]);
}

fn check_new_runs_reset_view_unless_kept(browser: &mut Browser) {
    browser.eval("airtcp.graphs.setView(100e3, 300e3)");
    browser.settle();
    browser.key("b");
    assert_eq!(range(browser), (0.1, 0.3), "the page keeps the view");
    assert_eq!(browser.eval("airtcp.graphs.panels.length"), 2);
    browser.key("a");
    let (from, to) = range(browser);
    assert!(from == 0.0 && to > 1.0, "newly decoded runs show all of their time: {from} to {to}");
    browser.key("b");
    let (from, to) = range(browser);
    assert!(from == 0.0 && to > 1.0, "the full view is not kept as a range: {from} to {to}");
}

fn check_extra_graph_is_below_others(browser: &mut Browser) {
    let alone = drawn(browser);
    assert_eq!(browser.eval("airtcp.graphs.panels[0].box.extra.length"), 0);
    browser.key("b");
    let boxes = browser.eval(
        "airtcp.graphs.panels.map(({ box: { goodput, extra: [extra], bottom, sequence } }) => \
         [extra.y - goodput.y - goodput.h, bottom - extra.y - extra.h, extra.h / sequence.h])",
    );
    let boxes: Vec<[f64; 3]> = serde_json::from_value(boxes).unwrap();
    assert_eq!(boxes[0], boxes[1], "all panels have the same layout");
    let [title, below, share] = boxes[0];
    assert!((title, below) == (16.0, 0.0) && (share - 0.3 / 0.52).abs() < 0.02, "{boxes:?}");
    // The run of the first panel has no such graph, so its place stays empty.
    let purple = |browser: &mut Browser| pixels(browser, PURPLE);
    let without = purple(browser);
    browser.eval("document.querySelector('.panel').remove()");
    let with = purple(browser);
    assert!(with > without + 5_000, "{with} after {without}");
    browser.key("a");
    assert_eq!(drawn(browser), alone);
}

fn check_states_have_space_only_if_present(browser: &mut Browser) {
    let states = "airtcp.graphs.panels.map(({ box }) => box.states !== null).join()";
    assert_eq!(browser.eval(states), "false");
    let button = browser.center("[data-key=c]");
    browser.click(button, 1);
    assert_eq!(browser.eval(states), "true,true");
    browser.key("a");
    assert_eq!(browser.eval(states), "false");
    browser.eval("airtcp.graphs.roomForStates = true; airtcp.graphs.redraw()");
    assert_eq!(browser.eval(states), "true");
    browser.key("?");
    assert!(browser.text("#help").contains("some <runs>"));
}
