//! The layout of the HTML report in a browser: selected items come into view on a laptop and on a phone,
//! senders are compared, and idle periods can be folded.

use airtcp_analyze::trace::{Idle, Trace};
use airtcp_report::html::chart::{Chart, Interval, Sender};
use airtcp_testkit::browser::Browser;
use serde_json::{Value, json};

use super::{MILLISECOND, Written, assert_no_complaints, drag, drawn, range, transfer, visit};

const LAPTOP: (u32, u32) = (1280, 800);
const TELEPHONE: (u32, u32) = (390, 844);

const SENDERS: [&str; 4] = ["newreno", "newreno+eifel", "sack+sifest+liw", "linux:cubic"];

/// Ten rounds of four senders, and the chart that compares them.
fn forty_runs(name: &str) -> Written {
    let runs = (0..40).map(|at| (SENDERS[at % 4], transfer(100 + at as u64, 5 * MILLISECOND)));
    let interval = |mean: f64| Some(Interval { mean, half_width: Some(12.0) });
    let senders = SENDERS.into_iter().enumerate().map(|(at, sender)| Sender {
        name: sender.to_owned(),
        runs: (at..40).step_by(4).collect(),
        goodput: interval(60.0 + 10.0 * at as f64),
        transfers: vec![50.0, 70.0, 90.0],
        gain: interval(10.0 * at as f64).filter(|_| at > 0),
        verdict: if at > 0 { "better".to_owned() } else { String::new() },
    });
    let chart = Chart { against: SENDERS[0].to_owned(), senders: senders.collect() };
    Written::with_chart(name, runs.collect(), Some(chart))
}

/// The top and the bottom of an element in the window, without scrolling.
fn vertical_extent(browser: &mut Browser, element: &str) -> (f64, f64) {
    let ends =
        browser.eval(&format!("(({{ top, bottom }}) => [top, bottom])({element}.getBoundingClientRect())"));
    (ends[0].as_f64().unwrap(), ends[1].as_f64().unwrap())
}

/// Returns the numbers of the senders of which any part is outside the visible part of the list or the window.
fn hidden_senders(browser: &mut Browser) -> Value {
    browser.eval(
        "(() => { const { top, bottom } = document.querySelector('.senders').getBoundingClientRect(); \
         return [...document.querySelectorAll('.sender')].map((row, at) => [row.getBoundingClientRect(), at + 1]) \
         .filter(([row]) => row.top < top - 1 || row.bottom > Math.min(bottom, innerHeight) + 1).map(([, at]) => at); })()",
    )
}

#[test]
fn twelve_senders_are_visible_on_a_laptop() {
    let verdicts = ["better", "worse", "no difference", "undecided: about 17 more"];
    let page = |name: &str, count: usize| {
        let senders = (0..count).map(|at| Sender {
            name: format!("sack+rack+max-rate={at}"),
            runs: vec![at],
            goodput: Some(Interval { mean: 100.0 + at as f64, half_width: Some(12.0) }),
            transfers: vec![90.0, 110.0],
            gain: (at > 0).then_some(Interval { mean: at as f64, half_width: Some(12.0) }),
            verdict: if at > 0 { verdicts[at % 4].to_owned() } else { String::new() },
        });
        let chart = Chart { against: "sack+rack+max-rate=0".to_owned(), senders: senders.collect() };
        let runs = (0..count).map(|at| ("sender", transfer(40 + at as u64, 5 * MILLISECOND)));
        Written::with_chart(name, runs.collect(), Some(chart))
    };
    let twelve = page("twelve senders", 12);
    let mut browser = Browser::open(twelve.path(), LAPTOP);
    assert_eq!(hidden_senders(&mut browser), json!([]));
    // With more senders the list scrolls, but the best one stays in view.
    let forty = page("forty senders", 40);
    visit(&mut browser, &forty);
    let hidden = hidden_senders(&mut browser);
    let hidden = hidden.as_array().unwrap();
    assert!(!hidden.is_empty() && !hidden.contains(&json!(40)), "{hidden:?}");
    assert_no_complaints(&browser);
}

/// Checks that the element lies between `from` and `to`.
fn assert_in_view(browser: &mut Browser, element: &str, (from, to): (f64, f64)) {
    let (top, bottom) = vertical_extent(browser, element);
    assert!(top >= from - 1.0 && bottom <= to + 1.0, "{element}: {top} to {bottom}, in {from} to {to}");
}

/// The part of the window for graphs: between the bar and the lower edge.
fn graph_area(browser: &mut Browser, height: u32) -> (f64, f64) {
    (vertical_extent(browser, "document.querySelector('#bar')").1, f64::from(height))
}

/// The part of the window for the rows of the table: below its heading.
fn table_area(browser: &mut Browser) -> (f64, f64) {
    let (_, head) = vertical_extent(browser, "document.querySelector('.wide thead th')");
    (head, vertical_extent(browser, "document.querySelector('.wide')").1)
}

fn click(browser: &mut Browser, element: &str) {
    browser.eval(&format!("{element}.click()"));
    browser.settle();
}

const SHOWN: &str = "airtcp.graphs.panels.map((panel) => panel.run.id + 1).join()";

/// The checks share one browser, because starting it takes longer than a check. Each check reloads the page.
#[test]
fn forty_run_page_shows_selected_runs() {
    let page = forty_runs("forty transfers");
    let mut browser = Browser::open(page.path(), LAPTOP);
    for check in [
        check_graphs_are_visible_without_scrolling,
        check_chart_compares_and_selects_senders,
        check_selection_scrolls_into_view,
    ] {
        visit(&mut browser, &page);
        check(&mut browser);
    }
    check_idle_periods_fold_on_request(&mut browser);
    check_legend_lists_and_counts_items(&mut browser);
}

fn check_graphs_are_visible_without_scrolling(browser: &mut Browser) {
    assert_eq!(browser.eval("scrollY"), 0.0);
    let room = graph_area(browser, LAPTOP.1);
    for panel in 0..2 {
        assert_in_view(browser, &format!("airtcp.graphs.panels[{panel}].stage"), room);
    }
    assert_in_view(browser, "document.querySelector('.chart')", (0.0, 800.0));
    assert_eq!(browser.eval("document.documentElement.scrollWidth <= innerWidth"), true);
    let inside = "(({ scrollHeight, clientHeight }) => scrollHeight > 2 * clientHeight)(document.querySelector('.wide'))";
    assert_eq!(browser.eval(inside), true, "the table has its own scroll bar");
    assert_no_complaints(browser);
}

fn check_chart_compares_and_selects_senders(browser: &mut Browser) {
    let chart = browser.text(".chart");
    for expected in ["goodput (kbit/s)", "gain over newreno (%)", "70.0 ± 12.0", "+10.0 ± 12.0 better"] {
        assert!(chart.contains(expected), "{expected:?} in {chart}");
    }
    // A higher mean is further to the right, and each mean is in the middle of its interval.
    let places = browser.eval(
        "[...document.querySelectorAll('.sender')].map((row) => [...row.querySelectorAll('.track')[0].querySelectorAll('.mean, .interval')] \
         .map((it) => it.getBoundingClientRect()).map(({ left, width }) => left + width / 2))",
    );
    let places: Vec<[f64; 2]> = serde_json::from_value(places).unwrap();
    assert!(places.iter().all(|[interval, mean]| (interval - mean).abs() < 1.5), "{places:?}");
    assert!(places.windows(2).all(|pair| pair[1][1] > pair[0][1] + 4.0), "{places:?}");

    let at = browser.center(".sender:nth-child(3)");
    browser.click(at, 1);
    assert_eq!(browser.eval(SHOWN), "3,7,11,15,19,23,27,31,35,39");
    assert_eq!(browser.eval("document.querySelectorAll('tr.shown').length"), 10);
    assert_eq!(browser.eval("document.querySelector('.sender:nth-child(3)').ariaPressed"), "true");
    assert_eq!(browser.eval("document.querySelector('.sender:nth-child(1)').ariaPressed"), "false");
    // The keyboard also works.
    browser.eval("document.querySelector('.sender:nth-child(4)').focus()");
    browser.key("Enter");
    assert_eq!(browser.eval(SHOWN), "4,8,12,16,20,24,28,32,36,40");
    assert_no_complaints(browser);
}

fn check_selection_scrolls_into_view(browser: &mut Browser) {
    focus_packet_of_first_run(browser);
    browser.key("+");

    // Select the last row, to which the table must scroll.
    click(browser, "document.querySelector('tbody tr:nth-child(40)')");
    assert_run_selected(browser, 40);
    assert_nothing_in_focus(browser);
    let (from, to) = range(browser);
    assert!(from == 0.0 && to > 0.7, "the whole new run is in view: {from} to {to}");

    // Keys step through the table.
    for (key, id) in [("k", 39), ("k", 38), ("j", 39)] {
        browser.key(key);
        assert_run_selected(browser, id);
    }
    check_added_run_comes_into_view(browser);
    assert_no_complaints(browser);
}

/// Moves the pointer to a packet of the first run, which shows a note.
fn focus_packet_of_first_run(browser: &mut Browser) {
    let [left, top, ..] = browser.rect(".stage");
    let packet = browser.eval("(({ X, Y }, { at, start }) => [X(at[20]), Y(start[20] + 700)])({ X: (at) => airtcp.graphs.panels[0].X(at), Y: airtcp.graphs.panels[0].Y }, airtcp.graphs.panels[0].run.segments)");
    let at = (left + packet[0].as_f64().unwrap(), top + packet[1].as_f64().unwrap());
    browser.mouse("mouseMoved", at, json!({}));
    assert_eq!(browser.eval("document.querySelectorAll('.note:not([hidden])').length"), 1);
}

fn assert_nothing_in_focus(browser: &mut Browser) {
    for gone in [".note:not([hidden])", ".halo:not([hidden])", ".cursor:not([hidden])"] {
        assert_eq!(browser.eval(&format!("document.querySelectorAll('{gone}').length")), 0, "{gone}");
    }
    assert!(!browser.text(".values").contains("in flight"), "{}", browser.text(".values"));
}

/// Checks that only this run is shown, and that its row is in view.
fn assert_run_selected(browser: &mut Browser, id: usize) {
    assert_eq!(browser.eval(SHOWN), id.to_string());
    let table = table_area(browser);
    assert_in_view(browser, "document.querySelector('tr.shown')", table);
}

/// When a run is added to ten others, its graphs come into view. The same happens when a key moves the focus
/// in a run.
fn check_added_run_comes_into_view(browser: &mut Browser) {
    click(browser, "document.querySelector('.sender:nth-child(1)')");
    click(browser, "document.querySelector('input.tick[data-run=\"39\"]')");
    assert_eq!(browser.eval("airtcp.graphs.panels.length"), 11);
    let room = graph_area(browser, LAPTOP.1);
    assert_in_view(browser, "airtcp.graphs.panels[10].stage", room);
    browser.eval("scrollTo(0, 0)");
    assert_eq!(browser.eval("airtcp.graphs.active === airtcp.graphs.panels[10]"), true);
    browser.key("n");
    assert_in_view(browser, "airtcp.graphs.panels[10].stage", room);
    assert_in_view(browser, "document.querySelector('.note:not([hidden])')", room);
}

#[test]
fn phone_layout_fits_and_supports_touch() {
    let page = forty_runs("a telephone");
    let mut browser = Browser::open(page.path(), TELEPHONE);
    browser.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": true }));
    let across = |browser: &mut Browser| browser.eval("document.documentElement.scrollWidth");
    assert_eq!(across(&mut browser), 390.0, "the page fits the width");
    click(&mut browser, "document.querySelector('tbody tr:nth-child(7)')");
    assert_eq!(browser.eval(SHOWN), "7");
    let room = graph_area(&mut browser, TELEPHONE.1);
    assert!(room.0 < 200.0, "the bar leaves space for graphs: {room:?}");
    assert_in_view(&mut browser, "airtcp.graphs.panels[0].stage", room);
    assert!(browser.eval("airtcp.graphs.panels[0].box.sequence.w").as_f64().unwrap() > 280.0);
    assert_eq!(across(&mut browser), 390.0);

    // Tap a fast retransmission, which has the code 1 in `sending`.
    let point = browser.eval(
        "(() => { const [panel] = airtcp.graphs.panels, { at, start, sending } = panel.run.segments; \
         const i = sending.findIndex((it) => it === 1), { left, top } = panel.stage.getBoundingClientRect(); \
         return [left + panel.X(at[i]), top + panel.Y(start[i] + 700)]; })()",
    );
    let point = json!([{ "x": point[0], "y": point[1] }]);
    browser.call("Input.dispatchTouchEvent", json!({ "type": "touchStart", "touchPoints": point }));
    browser.call("Input.dispatchTouchEvent", json!({ "type": "touchEnd", "touchPoints": [] }));
    browser.settle();
    assert!(browser.text(".note").contains("fast retransmission"), "{}", browser.text(".note"));
    assert_eq!(browser.eval("document.querySelector('.note').hidden"), false, "the note stays after the tap");

    // Two fingers zoom in. After one finger is lifted, the other finger moves the view and does not open a
    // note.
    let [left, top, ..] = browser.rect(".stage");
    let touch = |browser: &mut Browser, kind: &str, fingers: &[(u32, f64)]| {
        let point = |(id, x): &(u32, f64)| json!({ "x": left + x, "y": top + 60.0, "id": id });
        let points: Vec<_> = fingers.iter().map(point).collect();
        browser.call("Input.dispatchTouchEvent", json!({ "type": kind, "touchPoints": points }));
        browser.settle();
        range(browser)
    };
    let full = range(&mut browser);
    touch(&mut browser, "touchStart", &[(0, 150.0)]);
    touch(&mut browser, "touchStart", &[(0, 150.0), (1, 200.0)]);
    let zoomed = touch(&mut browser, "touchMove", &[(0, 100.0), (1, 260.0)]);
    let span = |(from, to): (f64, f64)| to - from;
    assert!(span(zoomed) < 0.5 * span(full), "{full:?} {zoomed:?}");
    browser.eval("airtcp.graphs.panels[0].setFocus(null)");
    touch(&mut browser, "touchEnd", &[(1, 260.0)]);
    let moved = touch(&mut browser, "touchMove", &[(0, 60.0)]);
    assert!((span(moved) - span(zoomed)).abs() < 0.01 * span(zoomed), "{zoomed:?} {moved:?}");
    assert!(moved.0 > zoomed.0, "{zoomed:?} {moved:?}");
    touch(&mut browser, "touchEnd", &[(0, 60.0)]);
    assert_eq!(browser.eval("document.querySelector('.note').hidden"), true, "no note after moving");

    // The legend appears on request.
    assert_eq!(browser.eval("document.getElementById('legend').offsetHeight"), 0.0);
    click(&mut browser, "document.querySelector('[data-key=l]')");
    assert!(browser.text("#legend").contains("fast retransmission"), "{}", browser.text("#legend"));
    assert_eq!(across(&mut browser), 390.0);
    assert_no_complaints(&browser);
}

/// Inserts `silence` into the trace at `middle`.
fn with_silence(mut trace: Trace, middle: i64, silence: i64) -> Trace {
    let later = |at: &mut i64| {
        if *at > middle {
            *at += silence;
        }
    };
    trace.idle.clear();
    trace.segments.iter_mut().for_each(|it| later(&mut it.at));
    trace.acks.iter_mut().for_each(|it| later(&mut it.at));
    trace.rtt.iter_mut().for_each(|it| later(&mut it.at));
    trace.windows.iter_mut().for_each(|it| later(&mut it.at));
    trace.decisions.iter_mut().for_each(|it| later(&mut it.at));
    let sent = || trace.segments.iter().map(|it| it.at).chain(trace.acks.iter().map(|it| it.at));
    let from = sent().filter(|at| *at <= middle).max().unwrap();
    let to = sent().filter(|at| *at > middle).min().unwrap();
    trace.idle.push(Idle { from, to });
    trace
}

fn check_idle_periods_fold_on_request(browser: &mut Browser) {
    let second = 1000 * MILLISECOND;
    let silent = with_silence(transfer(200, 5 * MILLISECOND), second / 2, 20 * second);
    let page = Written::new("silence", vec![("newreno", silent), ("sack", transfer(60, 5 * MILLISECOND))]);
    visit(browser, &page);
    let before = drawn(browser);
    let width = browser.eval("airtcp.graphs.panels[0].box.sequence.w").as_f64().unwrap();
    let distance = position(browser, 20.6) - position(browser, 0.4);
    assert!(distance > 0.8 * width, "20 s without packets take {distance} of {width} pixels");

    browser.key("i");
    assert_ne!(drawn(browser), before);
    let distance = position(browser, 20.6) - position(browser, 0.4);
    assert!(distance < 0.3 * width, "20 s without packets take {distance} of {width} pixels");
    assert_eq!(browser.text("#folds"), "1 silence folded: 20.005 s");
    assert_eq!(browser.eval("document.querySelector('[data-key=i]').ariaPressed"), "true");
    check_times_convert_around_break(browser);
    check_break_has_two_strokes(browser);
    check_pointer_keeps_its_time_near_break(browser);

    browser.key("i");
    browser.key("0");
    assert_eq!(drawn(browser), before);
    assert_eq!(browser.text("#folds"), "");
    // The page reports that it cannot fold any idle period.
    click(browser, "document.querySelector('tbody tr:nth-child(2)')");
    browser.key("i");
    assert_eq!(browser.text("#folds"), "no silence is long enough to fold");
    assert_no_complaints(browser);
}

/// Returns the horizontal position of a time in the graphs of the first run, in pixels. Times are in seconds.
fn position(browser: &mut Browser, time: f64) -> f64 {
    browser.eval(&format!("airtcp.graphs.panels[0].X({time} * 1e6)")).as_f64().unwrap()
}

/// Returns the time at a position in the graphs of the first run.
fn time_at(browser: &mut Browser, position: f64) -> f64 {
    browser.eval(&format!("airtcp.graphs.panels[0].timeAt({position}) / 1e6")).as_f64().unwrap()
}

/// Converting a position back into a time gives the same result inside and outside the break.
fn check_times_convert_around_break(browser: &mut Browser) {
    for time in [0.0, 0.3, 0.5, 7.0, 20.7, 21.2] {
        let there = position(browser, time);
        let back = time_at(browser, there);
        assert!((back - time).abs() < 1e-6, "{time} becomes {back}");
    }
}

/// The torn axis has two strokes between the lower edge of the graphs and the labels, where the break is.
fn check_break_has_two_strokes(browser: &mut Browser) {
    let dark = "(() => { const { box, time, canvas } = airtcp.graphs.panels[0], [{ x, to }] = time.breaks, w = time.X(to) - x; \
         const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d'); copy.drawImage(canvas, 0, 0); \
         const { data } = copy.getImageData(Math.round(x), Math.round(box.bottom) + 2, Math.round(w), 1); let n = 0; \
         for (let i = 0; i < data.length; i += 4) n += data[i] < 128; return n; })()";
    let strokes = browser.eval(dark).as_u64().unwrap();
    assert!((2..=8).contains(&strokes), "{strokes} dark pixels");
}

/// Zooming with the wheel keeps the time under the pointer in place. Dragging moves it with the pointer.
fn check_pointer_keeps_its_time_near_break(browser: &mut Browser) {
    let [left, top, ..] = browser.rect(".stage");
    let x = position(browser, 20.6) + 8.0;
    let under = time_at(browser, x);
    browser.mouse("mouseWheel", (left + x, top + 100.0), json!({ "deltaX": 0, "deltaY": -200 }));
    let zoomed = time_at(browser, x);
    assert!((zoomed - under).abs() < 0.02, "{under} becomes {zoomed}");
    drag(browser, (left + x, top + 100.0), (left + x - 20.0, top + 100.0), 0);
    let dragged = time_at(browser, x - 20.0);
    assert!((dragged - zoomed).abs() < 0.1, "{zoomed} becomes {dragged}");
}

fn check_legend_lists_and_counts_items(browser: &mut Browser) {
    let page = Written::new("legend", vec![("newreno", transfer(400, 5 * MILLISECOND))]);
    visit(browser, &page);
    let counts: Value = browser.eval(
        "Object.fromEntries([...document.querySelectorAll('#legend button')].map((it) => [it.textContent, it.dataset.count ?? '']))",
    );
    // In each hundred segments, one is lost and one is retransmitted unnecessarily.
    for (words, count) in [
        ("sent", "400"),
        ("fast retransmission", "4"),
        ("after a timeout", "4"),
        ("lost on the radio link", "4"),
        ("spurious", "4"),
        ("duplicate ACK", "20"),
        ("declared lost", ""),
        ("timer expired", ""),
    ] {
        assert_eq!(counts[words], count, "{words} in {counts}");
    }
    for absent in ["tail probe", "window probe", "lost in a queue", "restarted"] {
        assert_eq!(counts[absent], Value::Null, "{absent}");
    }
    // The names of the lines have space above each graph.
    let free = browser.eval(
        "(({ sequence, lane, window, rtt, goodput }) => [sequence.y, window.y - lane.y - lane.h, rtt.y - window.y - window.h, \
         goodput.y - rtt.y - rtt.h])(airtcp.graphs.panels[0].box)",
    );
    assert!(free.as_array().unwrap().iter().all(|it| it.as_f64().unwrap() >= 14.0), "{free}");
}
