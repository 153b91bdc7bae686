//! Reproducibility: a seed gives the same run, byte for byte, on the page and on the command line. A link
//! gives the same page.

use std::fs;

use serde_json::json;

use super::{
    change, digests, go, open, reopen, requests, run_in_shell, set_value, strings, wait_for_address,
    wait_until_done,
};
use airtcp_testkit::browser::Browser;
use airtcp_testkit::machine::{TempDir, digest};
use airtcp_testkit::sample::{is_everything, sample};

fn digest_of(path: &std::path::Path) -> String {
    digest(&fs::read(path).unwrap())
}

/// Addresses with different paths, senders, directions and ends, each with its extent for a change and for
/// `make nightly`.
const ADDRESSES: [(&str, [&str; 2]); 9] = [
    ("preset=wcdma-384&sender=newreno&sender=sack+eifel@linux&seed=11", ["bytes=60k", "bytes=300k"]),
    (
        "preset=sifest-random&sender=newreno+sifest@ns2&seed=5&receiver=mss=472+delack-time=200&buffer=7552",
        ["time=20s", "time=40s"],
    ),
    ("preset=etcp-fixed-mobile&sender=etcp&seed=23", ["time=5s", "time=20s"]),
    (
        "preset=wcdma-384-tsp&set=radio.down.receiver.timer_status_prohibit=60ms&sender=sack+rack+prr+cubic&seed=4",
        ["bytes=60k", "bytes=200k"],
    ),
    ("preset=hsdpa-like&sender=linux&seed=9", ["time=1s", "time=5s"]),
    ("preset=leo&sender=bbr&seed=2", ["time=1s", "time=5s"]),
    ("preset=gprs&sender=newreno&seed=8&direction=up", ["time=20s", "time=30s"]),
    (
        "preset=tax-rebate-fairness&sender=newreno&sender=newreno+rebate&shared=yes&seed=6",
        ["time=3s", "time=20s"],
    ),
    ("preset=tax-rebate&sender=newreno+oracle&seed=3", ["time=5s", "time=20s"]),
];

#[test]
fn page_runs_match_command_line_byte_for_byte() {
    let directory = TempDir::new("digests");
    let mut browser = open("scene=1");
    for (address, extents) in ADDRESSES {
        let address = &format!("{address}&{}", extents[usize::from(is_everything())]);
        go(&mut browser, address);
        let mut page_digests = digests(&mut browser);
        // Senders that share a path also share a log.
        page_digests.dedup();
        let command = browser.text("#command");
        let lines: Vec<_> = command.lines().collect();
        assert_eq!(lines.len(), page_digests.len(), "{address}: {command}");
        for (line, page_digest) in lines.iter().zip(&page_digests) {
            let log = directory.join("run.jsonl");
            run_in_shell(line, &format!("--decisions {}", log.display()), &directory);
            assert_eq!(*page_digest, digest_of(&log), "{line}");
        }
    }
}

/// All checks share one browser, because starting a browser takes longer than a check.
#[test]
fn page_draws_explains_and_restores_runs() {
    let mut browser = open("scene=1");
    graphs_show_sent_and_lost_segments(&mut browser);
    tour_scenes_run_and_knobs_change_runs(&mut browser);
    number_of_knob_becomes_setting(&mut browser);
    history_back_restores_previous_scene(&mut browser);
    stepping_shows_each_decision(&mut browser);
    ladder_diagram_follows_played_run(&mut browser);
    link_restores_view_and_moment(&mut browser);
    edited_scenario_is_in_command_and_address(&mut browser);
}

fn edited_scenario_is_in_command_and_address(browser: &mut Browser) {
    let directory = TempDir::new("own");
    reopen(browser, "preset=lossless&sender=sack&bytes=50k");
    let text = "schema = 1\ndescription = \"it's $HOME\"\n[[stage]]\nkind = \"link\"\nname = \"air\"\nboth = { rate = \"200kbit\", delay = \"70ms\" }\n\
                [[stage]]\nkind = \"loss\"\ndown = { model = \"uniform\", per = \"3%\" }\n";
    browser.eval("document.querySelector('#edit').open = true; document.querySelector('#text').value = ''; document.querySelector('#text').focus()");
    browser.eval("document.querySelector('#said').textContent = ''");
    browser.insert(text);
    wait_until_done(browser);
    let (before, command) = (digests(browser), browser.text("#command"));
    let log = directory.join("run.jsonl");
    run_in_shell(&command, &format!("--decisions {}", log.display()), &directory);
    assert_eq!(before, [digest_of(&log)]);
    browser.until("location.hash.includes('text=')");
    let address = browser.eval("location.hash.slice(1)");
    reopen(browser, address.as_str().unwrap());
    assert_eq!(digests(browser), before);
    assert_eq!(browser.eval("document.querySelector('#text').value"), text);
}

fn link_restores_view_and_moment(browser: &mut Browser) {
    reopen(browser, "scene=4");
    browser.eval("document.querySelector('.stage').focus()");
    for _ in 0..3 {
        browser.key("+");
    }
    browser.key("]");
    // The address has a resolution of one microsecond.
    let state = "JSON.stringify([airtcp.graphs.view.from, airtcp.graphs.view.to].map(Math.round).concat([document.querySelector('#moment-state').textContent, \
                document.querySelector('#moment-time').textContent, document.querySelector('#scene h2').textContent]))";
    browser.until("location.hash.includes('view=') && location.hash.includes('at=')");
    // The page writes the address once the view stops changing.
    browser.eval("new Promise((done) => setTimeout(done, 400))");
    let (first, address) = (browser.eval(state), browser.eval("location.hash.slice(1)"));
    let before = digests(browser);
    reopen(browser, address.as_str().unwrap());
    browser.until("document.querySelector('#moment-state').textContent !== ''");
    browser.eval("new Promise((done) => setTimeout(done, 400))");
    assert_eq!(browser.eval(state), first);
    assert_eq!(digests(browser), before);
}

#[test]
fn saved_capture_and_log_match_command_line() {
    let directory = TempDir::new("files");
    let mut browser = open("preset=wcdma-384-maxdat&sender=newreno&seed=2&bytes=80k");
    browser.call(
        "Page.setDownloadBehavior",
        json!({ "behavior": "allow", "downloadPath": directory.display().to_string() }),
    );
    for (button, name) in [(1, "run-1.pcap"), (2, "run-1.jsonl")] {
        let button = browser.center(&format!("#results td button:nth-of-type({button})"));
        browser.click(button, 1);
        let file = directory.join(name);
        let begin = std::time::Instant::now();
        while !file.exists() || fs::metadata(&file).unwrap().len() == 0 {
            assert!(begin.elapsed().as_secs() < 60, "{name} was not saved");
            browser.settle();
        }
    }
    let command = browser.text("#command");
    run_in_shell(&command, "--pcap cli.pcap --decisions cli.jsonl", &directory);
    for (ours, theirs) in [("run-1.pcap", "cli.pcap"), ("run-1.jsonl", "cli.jsonl")] {
        let read = |name| fs::read(directory.join(name)).unwrap();
        assert!(read(ours) == read(theirs), "{ours} differs from {theirs}");
    }
    let analyzed = super::airtcp(&["analyze", directory.join("run-1.pcap").to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&analyzed.stdout).contains("80000"), "{analyzed:?}");
    let read =
        std::process::Command::new("tshark").arg("-r").arg(directory.join("run-1.pcap")).output().unwrap();
    let frames = String::from_utf8_lossy(&read.stdout).lines().filter(|line| line.contains("TCP")).count();
    assert!(read.status.success() && frames > 60, "{frames}");
}

fn graphs_show_sent_and_lost_segments(browser: &mut Browser) {
    reopen(browser, "preset=lossless&sender=newreno&sender=sack&bytes=60k");
    let sent = browser.eval(
        "airtcp.graphs.panels.map(({ run }) => [run.name, run.segments.at.length, run.acks.ack.at(-1), run.extra.length])",
    );
    // 60 kB in segments of 1448 bytes, and a SYN. The FIN is part of the last segment.
    assert_eq!(sent, json!([["newreno", 43, 60_002, 0], ["sack", 43, 60_002, 0]]));
    go(browser, "scene=5");
    let lost = "airtcp.graphs.panels.map(({ run }) => [run.counts['lost-radio'], run.segments.start[run.events[0]]])";
    // The scene loses the 20th segment and its retransmission.
    let twentieth = 1 + 19 * 1448;
    assert_eq!(browser.eval(lost), json!([[2, twentieth], [2, twentieth], [2, twentieth]]));
    go(browser, "preset=wcdma-384&sender=newreno&bytes=60k");
    assert_eq!(browser.eval("airtcp.graphs.panels[0].run.extra.length"), 1, "the PDUs have a separate graph");
    let [_, _, width, height] = browser.rect(".stage canvas");
    let coloured = browser.eval(
        "(() => { const { canvas, box } = airtcp.graphs.panels[0]; const ctx = canvas.getContext('2d'), { x, y, w, h } = box.extra[0]; \
         const { data } = ctx.getImageData(x + 2, y + 2, w - 4, h - 4); let n = 0; \
         for (let i = 0; i < data.length; i += 4) if (data[i + 2] > data[i] + 60) n++; return n; })()",
    );
    assert!(coloured.as_u64().unwrap() > 200, "{coloured} of {width} × {height}");
}

fn tour_scenes_run_and_knobs_change_runs(browser: &mut Browser) {
    reopen(browser, "scene=1");
    for scene in sample("scenes", 1..=10, 5) {
        if scene > 1 {
            change(browser, &format!("document.querySelector('[data-scene=\"{scene}\"]').click()"));
        }
        let title = browser.text("#scene h2");
        assert!(title.starts_with(&format!("{scene}. ")), "{title}");
        assert_eq!(
            strings(browser, "[...document.querySelectorAll('.troubles li')].map((it) => it.textContent)"),
            Vec::<String>::new()
        );
        let absent = strings(
            browser,
            "[...document.querySelectorAll('.steps button').keys()].map((i) => { document.querySelectorAll('.steps button')[i].click(); \
             return document.querySelector('.steps [aria-current]').textContent; }).filter((text) => text.includes('no such event'))",
        );
        assert_eq!(absent, Vec::<String>::new(), "{title}");
        let before = digests(browser);
        let knob = "document.querySelector('.knob button[aria-pressed=\"false\"]')";
        change(browser, &format!("{knob}.click()"));
        assert_ne!(digests(browser), before, "{title}");
        let hash = browser.eval("location.hash");
        assert!(hash.as_str().unwrap().contains(&format!("scene={scene}")), "{hash}");
    }
}

fn number_of_knob_becomes_setting(browser: &mut Browser) {
    reopen(browser, "scene=1");
    set_value(browser, ".knob input", "7", "change");
    let lost = "(({ segments, events }) => segments.start[events[0]])(airtcp.graphs.panels[0].run)";
    assert_eq!(browser.eval(lost), 1 + 6 * 1448);
    assert_eq!(browser.eval("document.querySelector('.knob input').value"), "7");
    assert_eq!(browser.eval("document.querySelector('#set').value"), "radio.down.drop=[\"segment 7\"]");
}

fn history_back_restores_previous_scene(browser: &mut Browser) {
    reopen(browser, "scene=2");
    change(browser, "document.querySelector('[data-scene=\"3\"]').click()");
    let third = digests(browser);
    wait_for_address(browser);
    change(browser, "history.back()");
    assert!(browser.text("#scene h2").starts_with("2. "));
    assert_ne!(digests(browser), third);
}

fn stepping_shows_each_decision(browser: &mut Browser) {
    reopen(browser, "scene=1");
    let time = "Number(document.querySelector('#slider').value)";
    let mut last = -1.0;
    // The first step is a window increase, the second one the detection of the loss. The third one would be
    // the end of recovery.
    for _ in 0..2 {
        let button = browser.center("#after");
        browser.click(button, 1);
        let now = browser.eval(time).as_f64().unwrap();
        assert!(now > last, "{now} after {last}");
        last = now;
    }
    browser.until("document.querySelector('#moment-state .state')?.textContent === 'recovery'");
    let rows = strings(browser, "[...document.querySelectorAll('#answers tr')].map((row) => row.innerText)");
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().any(|row| row.starts_with("What to retransmit?\tnewreno\t")), "{rows:?}");
    assert!(rows.iter().any(|row| row.contains(", segment 20 (")), "{rows:?}");
    let decided = browser.eval("[...airtcp.graphs.active.run.decisions.at].map(Math.round)");
    assert!(decided.as_array().unwrap().iter().any(|at| at.as_f64() == Some(last)), "{last} in {decided}");
}

fn ladder_diagram_follows_played_run(browser: &mut Browser) {
    reopen(browser, "scene=1");
    // The first step of the scene selects the lost segment.
    browser.eval("document.querySelector('.steps button').click()");
    browser.settle();
    let lost = "(({ packets }) => packets.outcome.reduce((sum, one) => sum + (one === 2 ? 1 : 0), 0))(airtcp.graphs.active.run)";
    assert_eq!(browser.eval(lost), 1);
    let picture = "document.querySelector('#ladder-canvas').toDataURL()";
    let before = browser.eval(picture);
    let cursor = browser.eval("airtcp.graphs.cursor").as_f64().unwrap();
    browser.eval("document.activeElement.blur()");
    browser.key("a");
    browser.until(&format!("airtcp.graphs.cursor > {cursor} + 20e3"));
    browser.key("a");
    let paused = browser.eval("airtcp.graphs.cursor");
    browser.settle();
    assert_eq!(browser.eval("airtcp.graphs.cursor"), paused);
    assert_ne!(browser.eval(picture), before);
    // A click selects the packet at this position.
    let [left, top, width, height] = browser.rect("#ladder-canvas");
    browser.click((left + width / 2.0, top + height / 2.0), 1);
    assert!(browser.eval("airtcp.graphs.active.focus !== null").as_bool().unwrap());
    browser.key("d");
    assert_eq!(browser.eval("document.querySelector('#ladder').hidden"), true);
    browser.until("location.hash.includes('ladder=no')");
}

#[test]
fn served_page_matches_file_page() {
    use std::io::{BufRead, BufReader};
    let mut server = std::process::Command::new(airtcp_testkit::programs::program("airtcp"))
        .args(["playground", "--serve", "127.0.0.1:0"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let mut browser = Browser::open_address(&format!("{}#scene=1", line.trim()), (1200, 800));
    wait_until_done(&mut browser);
    let from_server = digests(&mut browser);
    let mut requests = requests(&browser);
    reopen(&mut browser, "scene=1");
    assert_eq!(from_server, digests(&mut browser));
    server.kill().unwrap();
    server.wait().unwrap();
    requests.retain(|url| !url.contains("127.0.0.1") && !url.contains("blob:") && !url.starts_with("data:"));
    assert!(requests.is_empty(), "{requests:?}");
}
