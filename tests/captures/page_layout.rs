//! The HTML report in a browser: what is asked for comes into view, on a screen and on a telephone; senders are compared;
//! silence can be folded.

use airtcp_analyze::trace::{Idle, Trace};
use airtcp_report::html::chart::{Chart, Interval, Sender};
use airtcp_report::html::table::Shows;
use airtcp_testkit::browser::Browser;
use serde_json::{Value, json};

use crate::page::{MILLISECOND, Written, assert_no_complaints, drawn, range, transfer, visit};

const LAPTOP: (u32, u32) = (1280, 800);
const TELEPHONE: (u32, u32) = (390, 844);

const SENDERS: [&str; 4] = ["newreno", "newreno+eifel", "sack+sifest+liw", "linux:cubic"];

/// Ten rounds of four senders, and the chart over them.
fn forty(name: &str) -> Written {
    let runs = (0..40).map(|at| (SENDERS[at % 4], transfer(100 + at as u64, 5 * MILLISECOND)));
    let interval = |mean: f64| Some(Interval { mean, half_width: Some(12.0) });
    let senders = SENDERS.into_iter().enumerate().map(|(at, sender)| Sender {
        name: sender.to_owned(),
        shows: Shows { runs: (at..40).step_by(4).collect() },
        goodput: interval(60.0 + 10.0 * at as f64),
        transfers: vec![50.0, 70.0, 90.0],
        gain: interval(10.0 * at as f64).filter(|_| at > 0),
        verdict: if at > 0 { "better".to_owned() } else { String::new() },
    });
    let chart = Chart { against: SENDERS[0].to_owned(), senders: senders.collect() };
    Written::with_chart(name, runs.collect(), Some(chart))
}

/// Top and bottom of an element in the window, without scrolling to it.
fn upright(browser: &mut Browser, element: &str) -> (f64, f64) {
    let ends =
        browser.eval(&format!("(({{ top, bottom }}) => [top, bottom])({element}.getBoundingClientRect())"));
    (ends[0].as_f64().unwrap(), ends[1].as_f64().unwrap())
}

/// The element is to be seen between the end of another one and that of the window or of the element around it.
fn assert_in_view(browser: &mut Browser, element: &str, (from, to): (f64, f64)) {
    let (top, bottom) = upright(browser, element);
    assert!(top >= from - 1.0 && bottom <= to + 1.0, "{element}: {top} to {bottom}, in {from} to {to}");
}

/// Where graphs are to be seen: between the bar and the end of the window.
fn room(browser: &mut Browser, height: u32) -> (f64, f64) {
    (upright(browser, "document.querySelector('#bar')").1, f64::from(height))
}

/// Where rows are to be seen in the table of transfers: under its heading.
fn rows(browser: &mut Browser) -> (f64, f64) {
    let (_, head) = upright(browser, "document.querySelector('.wide thead th')");
    (head, upright(browser, "document.querySelector('.wide')").1)
}

fn click(browser: &mut Browser, element: &str) {
    browser.eval(&format!("{element}.click()"));
    browser.settle();
}

const SHOWN: &str = "airtcp.graphs.panels.map((panel) => panel.run.id + 1).join()";

/// Each check loads the page again, in the same browser: starting a browser takes longer than a check.
#[test]
fn a_page_of_forty_transfers_shows_what_is_asked_for() {
    let page = forty("forty transfers");
    let mut browser = Browser::open(&page.0, LAPTOP);
    for look in [
        with_forty_transfers_the_graphs_are_to_be_seen_without_scrolling,
        a_chart_compares_all_senders_and_shows_their_runs,
        what_is_chosen_comes_into_view_and_nothing_stays_of_what_was,
    ] {
        visit(&mut browser, &page);
        look(&mut browser);
    }
    silence_is_folded_on_request_and_the_axis_says_so(&mut browser);
    the_legend_names_all_that_is_drawn_and_says_how_often_it_occurs(&mut browser);
}

fn with_forty_transfers_the_graphs_are_to_be_seen_without_scrolling(browser: &mut Browser) {
    assert_eq!(browser.eval("scrollY"), 0.0);
    let room = room(browser, LAPTOP.1);
    for panel in 0..2 {
        assert_in_view(browser, &format!("airtcp.graphs.panels[{panel}].stage"), room);
    }
    assert_in_view(browser, "document.querySelector('.chart')", (0.0, 800.0));
    assert_eq!(browser.eval("document.documentElement.scrollWidth <= innerWidth"), true);
    let inside = "(({ scrollHeight, clientHeight }) => scrollHeight > 2 * clientHeight)(document.querySelector('.wide'))";
    assert_eq!(browser.eval(inside), true, "the table scrolls in itself");
    assert_no_complaints(browser);
}

fn a_chart_compares_all_senders_and_shows_their_runs(browser: &mut Browser) {
    let chart = browser.text(".chart");
    for said in ["goodput (kbit/s)", "gain over newreno (%)", "70.0 ± 12.0", "+10.0 ± 12.0 better"] {
        assert!(chart.contains(said), "{said:?} in {chart}");
    }
    // A higher mean stands further to the right, in the middle of its interval.
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
    // By keys, too.
    browser.eval("document.querySelector('.sender:nth-child(4)').focus()");
    browser.key("Enter");
    assert_eq!(browser.eval(SHOWN), "4,8,12,16,20,24,28,32,36,40");
    assert_no_complaints(browser);
}

fn what_is_chosen_comes_into_view_and_nothing_stays_of_what_was(browser: &mut Browser) {
    // The pointer is on a packet of the first run.
    let [left, top, ..] = browser.place(".stage");
    let packet = browser.eval("(({ X, Y }, { at, start }) => [X(at[20]), Y(start[20] + 700)])({ X: (at) => airtcp.graphs.panels[0].X(at), Y: airtcp.graphs.panels[0].Y }, airtcp.graphs.panels[0].run.segments)");
    let at = (left + packet[0].as_f64().unwrap(), top + packet[1].as_f64().unwrap());
    browser.mouse("mouseMoved", at, json!({}));
    assert_eq!(browser.eval("document.querySelectorAll('.note:not([hidden])').length"), 1);
    browser.key("+");

    // The last row, which is out of view in its table.
    click(browser, "document.querySelector('tbody tr:nth-child(40)')");
    assert_eq!(browser.eval(SHOWN), "40");
    let table = rows(browser);
    assert_in_view(browser, "document.querySelector('tr.shown')", table);
    for gone in [".note:not([hidden])", ".halo:not([hidden])", ".cursor:not([hidden])"] {
        assert_eq!(browser.eval(&format!("document.querySelectorAll('{gone}').length")), 0, "{gone}");
    }
    assert!(!browser.text(".values").contains("in flight"), "{}", browser.text(".values"));
    let (from, to) = range(browser);
    assert!(from == 0.0 && to > 0.7, "all of another run: {from} to {to}");

    // Keys go through the table.
    for (key, id) in [("k", 39), ("k", 38), ("j", 39)] {
        browser.key(key);
        assert_eq!(browser.eval(SHOWN), id.to_string());
        let table = rows(browser);
        assert_in_view(browser, "document.querySelector('tr.shown')", table);
    }

    // A run that is put beside nine others has its graphs in view, and so has one that a key moves in.
    click(browser, "document.querySelector('.sender:nth-child(1)')");
    click(browser, "document.querySelector('input.tick[data-run=\"39\"]')");
    assert_eq!(browser.eval("airtcp.graphs.panels.length"), 11);
    let room = room(browser, LAPTOP.1);
    assert_in_view(browser, "airtcp.graphs.panels[10].stage", room);
    browser.eval("scrollTo(0, 0)");
    assert_eq!(browser.eval("airtcp.graphs.active === airtcp.graphs.panels[10]"), true);
    browser.key("n");
    assert_in_view(browser, "airtcp.graphs.panels[10].stage", room);
    assert_in_view(browser, "document.querySelector('.note:not([hidden])')", room);
    assert_no_complaints(browser);
}

#[test]
fn a_telephone_has_room_for_everything_and_a_finger_asks_about_packets() {
    let page = forty("a telephone");
    let mut browser = Browser::open(&page.0, TELEPHONE);
    browser.call("Emulation.setTouchEmulationEnabled", json!({ "enabled": true }));
    let across = |browser: &mut Browser| browser.eval("document.documentElement.scrollWidth");
    assert_eq!(across(&mut browser), 390.0, "nothing sticks out");
    click(&mut browser, "document.querySelector('tbody tr:nth-child(7)')");
    assert_eq!(browser.eval(SHOWN), "7");
    let room = room(&mut browser, TELEPHONE.1);
    assert!(room.0 < 200.0, "the bar leaves room: {room:?}");
    assert_in_view(&mut browser, "airtcp.graphs.panels[0].stage", room);
    assert!(browser.eval("airtcp.graphs.panels[0].box.sequence.w").as_f64().unwrap() > 280.0);
    assert_eq!(across(&mut browser), 390.0);

    // A fast retransmission, which is 1 among the reasons to send, by a finger.
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
    assert_eq!(browser.eval("document.querySelector('.note').hidden"), false, "and it stays");

    // Two fingers zoom in. One is lifted, and the other goes on from there: it moves what is in view, and asks nothing.
    let [left, top, ..] = browser.place(".stage");
    let touch = |browser: &mut Browser, kind: &str, fingers: &[(u32, f64)]| {
        let point = |(id, x): &(u32, f64)| json!({ "x": left + x, "y": top + 60.0, "id": id });
        let points: Vec<_> = fingers.iter().map(point).collect();
        browser.call("Input.dispatchTouchEvent", json!({ "type": kind, "touchPoints": points }));
        browser.settle();
        range(browser)
    };
    let whole = range(&mut browser);
    touch(&mut browser, "touchStart", &[(0, 150.0)]);
    touch(&mut browser, "touchStart", &[(0, 150.0), (1, 200.0)]);
    let zoomed = touch(&mut browser, "touchMove", &[(0, 100.0), (1, 260.0)]);
    let span = |(from, to): (f64, f64)| to - from;
    assert!(span(zoomed) < 0.5 * span(whole), "{whole:?} {zoomed:?}");
    browser.eval("airtcp.graphs.panels[0].setFocus(null)");
    touch(&mut browser, "touchEnd", &[(1, 260.0)]);
    let moved = touch(&mut browser, "touchMove", &[(0, 60.0)]);
    assert!((span(moved) - span(zoomed)).abs() < 0.01 * span(zoomed), "{zoomed:?} {moved:?}");
    assert!(moved.0 > zoomed.0, "{zoomed:?} {moved:?}");
    touch(&mut browser, "touchEnd", &[(0, 60.0)]);
    assert_eq!(browser.eval("document.querySelector('.note').hidden"), true, "nobody asked");

    // The legend is there when it is asked for.
    assert_eq!(browser.eval("document.getElementById('legend').offsetHeight"), 0.0);
    click(&mut browser, "document.querySelector('[data-key=l]')");
    assert!(browser.text("#legend").contains("fast retransmission"), "{}", browser.text("#legend"));
    assert_eq!(across(&mut browser), 390.0);
    assert_no_complaints(&browser);
}

/// Nothing happens for `silence` from the middle on.
fn interrupted(mut trace: Trace, middle: i64, silence: i64) -> Trace {
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

fn silence_is_folded_on_request_and_the_axis_says_so(browser: &mut Browser) {
    let second = 1000 * MILLISECOND;
    let silent = interrupted(transfer(200, 5 * MILLISECOND), second / 2, 20 * second);
    let page = Written::new("silence", vec![("newreno", silent), ("sack", transfer(60, 5 * MILLISECOND))]);
    visit(browser, &page);
    let before = drawn(browser);
    let place = |browser: &mut Browser, run: usize, second: f64| {
        browser.eval(&format!("airtcp.graphs.panels[{run}].X({second} * 1e6)")).as_f64().unwrap()
    };
    let (early, late) = (place(browser, 0, 0.4), place(browser, 0, 20.6));
    let width = browser.eval("airtcp.graphs.panels[0].box.sequence.w").as_f64().unwrap();
    assert!(late - early > 0.8 * width, "twenty seconds of nothing take {} of {width} pixels", late - early);

    browser.key("i");
    assert_ne!(drawn(browser), before);
    let (early, late) = (place(browser, 0, 0.4), place(browser, 0, 20.6));
    assert!(late - early < 0.3 * width, "{early} to {late} of {width} pixels");
    assert_eq!(browser.text("#folds"), "1 silence folded: 20.005 s");
    assert_eq!(browser.eval("document.querySelector('[data-key=i]').ariaPressed"), "true");
    // The way back from places to times is the same, in the break and beside it.
    for second in [0.0, 0.3, 0.5, 7.0, 20.7, 21.2] {
        let back = browser
            .eval(&format!("(([it]) => it.timeAt(it.X({second} * 1e6)) / 1e6)(airtcp.graphs.panels)"))
            .as_f64()
            .unwrap();
        assert!((back - second).abs() < 1e-6, "{second} becomes {back}");
    }
    // The torn axis: between the graphs' lower edge and the labels there are two strokes where the break is.
    let dark = "(() => { const { box, time, canvas } = airtcp.graphs.panels[0], [{ x, to }] = time.breaks, w = time.X(to) - x; \
         const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d'); copy.drawImage(canvas, 0, 0); \
         const { data } = copy.getImageData(Math.round(x), Math.round(box.bottom) + 2, Math.round(w), 1); let n = 0; \
         for (let i = 0; i < data.length; i += 4) n += data[i] < 128; return n; })()";
    let strokes = browser.eval(dark).as_u64().unwrap();
    assert!((2..=8).contains(&strokes), "{strokes} dark pixels");

    // What is under the hand follows it, and what is under the wheel stays.
    let [left, top, ..] = browser.place(".stage");
    let x = late + 8.0;
    let at = |browser: &mut Browser, x: f64| {
        browser.eval(&format!("airtcp.graphs.panels[0].timeAt({x}) / 1e6")).as_f64().unwrap()
    };
    let under = at(browser, x);
    browser.mouse("mouseWheel", (left + x, top + 100.0), json!({ "deltaX": 0, "deltaY": -200 }));
    assert!((at(browser, x) - under).abs() < 0.02, "{under} becomes {}", at(browser, x));
    let under = at(browser, x);
    browser.mouse("mousePressed", (left + x, top + 100.0), json!({ "button": "left", "clickCount": 1 }));
    browser.mouse("mouseMoved", (left + x - 20.0, top + 100.0), json!({ "button": "left", "buttons": 1 }));
    browser.mouse(
        "mouseReleased",
        (left + x - 20.0, top + 100.0),
        json!({ "button": "left", "clickCount": 1 }),
    );
    assert!((at(browser, x - 20.0) - under).abs() < 0.1, "{under} becomes {}", at(browser, x - 20.0));

    browser.key("i");
    browser.key("0");
    assert_eq!(drawn(browser), before);
    assert_eq!(browser.text("#folds"), "");
    // Where there is none to fold, that is said.
    click(browser, "document.querySelector('tbody tr:nth-child(2)')");
    browser.key("i");
    assert_eq!(browser.text("#folds"), "no silence is long enough to fold");
    assert_no_complaints(browser);
}

fn the_legend_names_all_that_is_drawn_and_says_how_often_it_occurs(browser: &mut Browser) {
    let page = Written::new("legend", vec![("newreno", transfer(400, 5 * MILLISECOND))]);
    visit(browser, &page);
    let counts: Value = browser.eval(
        "Object.fromEntries([...document.querySelectorAll('#legend button')].map((it) => [it.textContent, it.dataset.count ?? '']))",
    );
    // Of each hundred one is lost, and one is sent again in vain.
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
    // The names of the lines have room of their own, over each graph.
    let free = browser.eval(
        "(({ sequence, lane, window, rtt, goodput }) => [sequence.y, window.y - lane.y - lane.h, rtt.y - window.y - window.h, \
         goodput.y - rtt.y - rtt.h])(airtcp.graphs.panels[0].box)",
    );
    assert!(free.as_array().unwrap().iter().all(|it| it.as_f64().unwrap() >= 14.0), "{free}");
}
