//! `airtcp playground` in a browser: it runs the same simulations as the command line, and every feature
//! works.

#![expect(clippy::disallowed_methods, reason = "the browser and the programs are other programs")]

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
    let written = airtcp(&["playground", "-o", path.to_str().unwrap()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    path
});

fn airtcp(arguments: &[&str]) -> Output {
    Command::new(program("airtcp")).args(arguments).output().unwrap()
}

/// Opens the page with this address after its `#`, and waits until its runs are done.
fn open(address: &str) -> Browser {
    let mut browser = Browser::open_address(&at(address), (1400, 900));
    done(&mut browser);
    browser
}

fn at(address: &str) -> String {
    format!("file://{}#{address}", PAGE.display())
}

/// Waits until all runs of the address are done.
fn done(browser: &mut Browser) {
    browser.until("document.querySelector('#said').textContent.startsWith('done')");
}

/// Loads the page from scratch with another address in the same browser, and waits until its runs are done.
fn reopen(browser: &mut Browser, address: &str) {
    load(browser, address);
    done(browser);
}

/// Loads the page from scratch with another address in the same browser.
fn load(browser: &mut Browser, address: &str) {
    for (protocol, url) in [("about:", "about:blank"), ("file:", &at(address))] {
        browser.call("Page.navigate", json!({ "url": url }));
        browser.until(&format!("location.protocol === '{protocol}' && document.readyState === 'complete'"));
    }
}

/// Changes the address without reloading the page, and waits until its runs are done.
fn go(browser: &mut Browser, address: &str) {
    rest(browser);
    browser.eval("document.querySelector('#said').textContent = ''");
    browser.eval(&format!("void (location.hash = {address:?})"));
    done(browser);
}

/// Waits until the page has written its state into the address. It does so 200 ms after the last change, and
/// would overwrite a newer address that it has not read yet.
fn rest(browser: &mut Browser) {
    browser.settle();
    browser.eval("new Promise((done) => setTimeout(done, 400))");
}

/// Runs a script that changes the inputs, and waits until the new runs are done.
fn change(browser: &mut Browser, script: &str) {
    browser.eval(&format!("document.querySelector('#said').textContent = ''; void ({script})"));
    done(browser);
}

fn strings(browser: &mut Browser, script: &str) -> Vec<String> {
    let values = browser.eval(script);
    values.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// Returns the SHA-256 of each run's log, as the table shows it.
fn digests(browser: &mut Browser) -> Vec<String> {
    strings(
        browser,
        "[...document.querySelectorAll('#results [data-digest]')].map((node) => node.dataset.digest)",
    )
}

/// Runs the lines of "copy as command" in a shell, with `more` appended to the last line.
fn in_a_shell(command: &str, more: &str, directory: &Path) {
    let program = program("airtcp");
    let script = format!("airtcp() {{ {} \"$@\"; }}\n{command} {more} > /dev/null", program.display());
    let ran = Command::new("sh").args(["-ec", &script]).current_dir(directory).output().unwrap();
    assert!(ran.status.success(), "{script}: {}", String::from_utf8_lossy(&ran.stderr));
}
