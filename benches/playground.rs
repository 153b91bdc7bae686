//! The playground in Chromium, compared with the same work in native code: many runs, and the time
//! until the first picture.
//!
//! `cargo bench --bench playground [-- ROUNDS]`. The program `airtcp` in `AIRTCP_PROGRAMS`, or next to this
//! executable, writes the page. The native side runs the same core in this process.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use airtcp_numbers::statistics::{median, spread};
use airtcp_playground::Core;
use airtcp_testkit::browser::Browser;
use airtcp_testkit::programs::program;
use serde_json::{Value, json};

/// Runs per round, each of 100 s.
const RUNS: u64 = 100;
const ADDRESS: &str = "preset=sifest-random&sender=newreno&time=100s&seed=1";
const SCENE: &str = "scene=1";

fn main() {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let rounds: usize = words.first().map_or(5, |word| word.parse().expect("ROUNDS is a number"));
    let page = Page::write();
    let [mut first, mut native_first, mut ratios, mut natives] = [const { Vec::new() }; 4];
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        first.push(page.first_picture());
        native_first.push(native_scene());
        let (native, browser) = (native_runs(), page.runs());
        natives.push(native / RUNS as f64 * 1e3);
        ratios.push(browser / native);
    }
    let millis = |samples: &[f64]| samples.iter().map(|seconds| seconds * 1e3).collect::<Vec<_>>();
    println!("first picture of the page, scene 1, ms      {}", spread(&millis(&first)));
    println!("the same run natively, with its graphs, ms  {}", spread(&millis(&native_first)));
    println!("a run of 100 s natively, ms                 {:.2}", median(&natives).unwrap_or(0.0));
    println!("the same in the page / natively             {}", spread(&ratios));
}

struct Page(PathBuf);

impl Page {
    fn write() -> Self {
        let path = std::env::temp_dir().join(format!("airtcp-bench-playground-{}.html", std::process::id()));
        let written = Command::new(program("airtcp")).args(["playground", "-o"]).arg(&path).status();
        assert!(
            written.is_ok_and(|status| status.success()),
            "this airtcp has no page: build it with `make playground`"
        );
        Self(path)
    }

    fn open(&self, address: &str) -> Browser {
        let mut browser =
            Browser::open_address(&format!("file://{}#{address}", self.0.display()), (1400, 900));
        browser.until("document.querySelector('#said').textContent.startsWith('done')");
        browser
    }

    /// Returns the seconds from the start of navigation to the first picture, measured by the page
    /// in a browser that is already running.
    fn first_picture(&self) -> f64 {
        let mut browser = self.open(SCENE);
        browser.eval("performance.clearMarks()");
        browser.call("Page.reload", json!({}));
        browser.until("performance.getEntriesByName('first picture').length");
        let mark = "performance.getEntriesByName('first picture')[0].startTime";
        browser.eval(mark).as_f64().expect("the page marks its first picture") / 1e3
    }

    /// Returns the worker time for all runs, in seconds.
    fn runs(&self) -> f64 {
        let mut browser = self.open(ADDRESS);
        let took = browser.eval(&format!(
            "new Promise((done) => {{ const begin = performance.now(), workers = Math.max(1, Math.min(4, (navigator.hardwareConcurrency ?? 2) - 1)); \
             document.querySelector('#seeds').value = '{RUNS}'; document.querySelector('#many').click(); \
             const look = setInterval(() => {{ if (document.querySelector('#many-said').textContent !== '{RUNS} of {RUNS} runs') return; \
             clearInterval(look); done((performance.now() - begin) * workers); }}, 5); }})"
        ));
        took.as_f64().expect("the page returns a time") / 1e3
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn ask(core: &mut Core, request: &Value) {
    let answer = core.answer(request.to_string().as_bytes(), &mut |_| {});
    assert!(answer.starts_with(b"{\"ok\":"), "{}", String::from_utf8_lossy(&answer));
}

fn seconds(work: impl FnOnce()) -> f64 {
    #[expect(clippy::disallowed_methods, reason = "the benchmark measures wall time")]
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64()
}

fn native_runs() -> f64 {
    let setup = json!({ "preset": "sifest-random", "senders": ["newreno"], "time": "100s" });
    let mut core = Core::default();
    seconds(|| {
        for ahead in 0..RUNS {
            ask(&mut core, &json!({ "ask": "goodput", "setup": setup, "sender": 0, "ahead": ahead }));
        }
    })
}

/// Returns the seconds for the run of the tour's first scene, including the data for its graphs.
fn native_scene() -> f64 {
    let scenes: Value = serde_json::from_str(airtcp_playground::SCENES).expect("the tour is JSON");
    let setup = &scenes[0]["setup"];
    seconds(|| ask(&mut Core::default(), &json!({ "ask": "run", "slot": 0, "setup": setup, "senders": [0] })))
}
