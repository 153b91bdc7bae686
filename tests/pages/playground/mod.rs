//! `airtcp playground` in a browser: it runs the same simulations as the command line, and every feature
//! works.

mod looks;
mod runs;
mod typed;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use airtcp_testkit::browser::Browser;
use airtcp_testkit::programs::program;
use serde_json::json;

/// The page that all tests of this program share.
static PAGE: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("airtcp-playground-{}.html", std::process::id()));
    let output = airtcp(&["playground", "-o", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
});

fn airtcp(arguments: &[&str]) -> Output {
    Command::new(program("airtcp")).args(arguments).output().unwrap()
}

/// Opens the page with this address after its `#`, and waits until its runs are done.
fn open(address: &str) -> Browser {
    let mut browser = Browser::open_address(&url(address), (1400, 900));
    wait_until_done(&mut browser);
    browser
}

fn url(address: &str) -> String {
    format!("file://{}#{address}", PAGE.display())
}

/// Waits until all runs of the address are done.
fn wait_until_done(browser: &mut Browser) {
    browser.until("document.querySelector('#said').textContent.startsWith('done')");
}

/// Loads the page from scratch with another address in the same browser, and waits until its runs are done.
fn reopen(browser: &mut Browser, address: &str) {
    load(browser, address);
    wait_until_done(browser);
}

/// Loads the page from scratch with another address in the same browser.
fn load(browser: &mut Browser, address: &str) {
    for (protocol, url) in [("about:", "about:blank"), ("file:", &url(address))] {
        browser.call("Page.navigate", json!({ "url": url }));
        browser.until(&format!("location.protocol === '{protocol}' && document.readyState === 'complete'"));
    }
}

/// Changes the address without reloading the page, and waits until its runs are done.
fn go(browser: &mut Browser, address: &str) {
    wait_for_address(browser);
    browser.eval("document.querySelector('#said').textContent = ''");
    browser.eval(&format!("void (location.hash = {address:?})"));
    wait_until_done(browser);
}

/// Waits until the page has written its state into the address. The page writes it 200 ms after the last
/// change, and would overwrite a newer address that it has not read yet.
fn wait_for_address(browser: &mut Browser) {
    browser.settle();
    browser.eval("new Promise((done) => setTimeout(done, 400))");
}

/// Runs a script that changes the inputs, and waits until the new runs are done.
fn change(browser: &mut Browser, script: &str) {
    browser.eval(&format!("document.querySelector('#said').textContent = ''; void ({script})"));
    wait_until_done(browser);
}

fn strings(browser: &mut Browser, script: &str) -> Vec<String> {
    let values = browser.eval(script);
    values.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// Sets the value of an input, and waits until the new runs are done.
fn set_value(browser: &mut Browser, selector: &str, value: &str, event: &str) {
    let script = format!(
        "(() => {{ const it = document.querySelector({selector:?}); it.value = {value:?}; it.dispatchEvent(new Event({event:?})); }})()"
    );
    change(browser, &script);
}

/// Returns the addresses that the page has requested.
fn requests(browser: &Browser) -> Vec<String> {
    let requests = browser.events_of("Network.requestWillBeSent");
    requests.iter().map(|it| it["request"]["url"].as_str().unwrap().to_owned()).collect()
}

/// Returns the SHA-256 of each run's log, as the table shows it.
fn digests(browser: &mut Browser) -> Vec<String> {
    strings(
        browser,
        "[...document.querySelectorAll('#results [data-digest]')].map((node) => node.dataset.digest)",
    )
}

/// Runs the lines of "copy as command" in a shell, with `options` appended to the last line.
fn run_in_shell(command: &str, options: &str, directory: &Path) {
    let program = program("airtcp");
    let script = format!("airtcp() {{ {} \"$@\"; }}\n{command} {options} > /dev/null", program.display());
    let output = Command::new("sh").args(["-ec", &script]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}
