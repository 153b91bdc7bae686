//! Drives a page in headless Chromium with real input events, over the DevTools protocol on a pair of pipes.
//! Crates for this protocol depend on a WebSocket client or an async runtime.

#![expect(clippy::disallowed_methods, reason = "the browser is another program")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::temporary::TempDir;

/// Timeout for one answer, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A browser with one page. It is closed when this is dropped.
pub struct Browser {
    process: Child,
    commands: Option<ChildStdin>,
    messages: Receiver<Value>,
    _profile: TempDir,
    session: Value,
    last_id: u64,
    events: Vec<Value>,
}

impl Browser {
    /// Opens a file in a window of this size, and waits until it is loaded.
    pub fn open(page: &Path, size: (u32, u32)) -> Self {
        Self::open_address(&format!("file://{}", page.display()), size)
    }

    /// Opens any address, like [`Browser::open`].
    pub fn open_address(address: &str, (width, height): (u32, u32)) -> Self {
        let profile = TempDir::new("browser");
        let mut process = start(&profile, width, height);
        let messages = read_messages(process.stdout.take().unwrap());
        let commands = process.stdin.take();
        let (session, events) = (Value::Null, Vec::new());
        let mut browser =
            Self { process, commands, messages, _profile: profile, session, last_id: 0, events };
        browser.attach();
        browser.resize(width, height);
        browser.load(address);
        browser
    }

    /// Creates the page, and subscribes to its events.
    fn attach(&mut self) {
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = self.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        self.session = attached["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Opens an address, and waits until it is loaded.
    fn load(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        while self.events_of("Page.loadEventFired").is_empty() {
            let message = self.message();
            self.events.push(message);
        }
        self.settle();
    }

    /// Resizes the page.
    pub fn resize(&mut self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    fn message(&mut self) -> Value {
        self.messages.recv_timeout(TIMEOUT).expect("the browser does not answer")
    }

    /// Calls a method of the protocol and returns its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let mut command = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_null() {
            command["sessionId"] = self.session.clone();
        }
        let commands = self.commands.as_mut().unwrap();
        commands.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let message = self.message();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Returns the parameters of all events of this kind so far.
    pub fn events_of(&self, method: &str) -> Vec<&Value> {
        let events = self.events.iter().filter(|event| event["method"] == method);
        events.map(|event| &event["params"]).collect()
    }

    /// Returns the value of an expression in the page. Waits for promises.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Returns the visible text of an element.
    pub fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!("document.querySelector({selector:?})?.innerText ?? '(not there)'"));
        text.as_str().unwrap().to_owned()
    }

    /// Waits for two frames, so that changes are drawn.
    pub fn settle(&mut self) {
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))");
    }

    /// Sends a mouse event of this kind, with these additional parameters.
    pub fn mouse(&mut self, kind: &str, (x, y): (f64, f64), more: Value) {
        let mut params = json!({ "type": kind, "x": x, "y": y });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.call("Input.dispatchMouseEvent", params);
        self.settle();
    }

    /// Clicks the given number of times in a row.
    pub fn click(&mut self, at: (f64, f64), times: u32) {
        for count in 1..=times {
            let button = json!({ "button": "left", "clickCount": count });
            self.mouse("mousePressed", at, button.clone());
            self.mouse("mouseReleased", at, button);
        }
    }

    /// Presses and releases a key, by its name in the DOM.
    pub fn key(&mut self, key: &str) {
        let mut params = json!({ "type": "keyDown", "key": key });
        if key.chars().count() == 1 {
            params["text"] = json!(key);
        }
        if key == "Tab" {
            params["code"] = json!("Tab");
            params["windowsVirtualKeyCode"] = json!(9);
        }
        if key == "Enter" {
            params["text"] = json!("\r");
            params["windowsVirtualKeyCode"] = json!(13);
        }
        self.call("Input.dispatchKeyEvent", params);
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
        self.settle();
    }

    /// Inserts text at the focus, as if the user had typed or pasted it.
    pub fn insert(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
        self.settle();
    }

    /// Waits until an expression is true in the page.
    ///
    /// # Panics
    /// If it does not become true in time.
    pub fn until(&mut self, expression: &str) {
        let begin = std::time::Instant::now();
        while self.eval(&format!("Boolean({expression})")) != true {
            assert!(begin.elapsed() < TIMEOUT, "never true: {expression}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Scrolls an element into view. Returns its left, top, width and height.
    pub fn rect(&mut self, selector: &str) -> [f64; 4] {
        let rect = self.eval(&format!(
            "(() => {{ const node = document.querySelector({selector:?}); node.scrollIntoView({{ block: 'center' }}); \
             const {{ left, top, width, height }} = node.getBoundingClientRect(); return [left, top, width, height]; }})()"
        ));
        let numbers: Vec<_> = rect.as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
        numbers.try_into().unwrap()
    }

    /// Scrolls an element into view. Returns its center.
    pub fn center(&mut self, selector: &str) -> (f64, f64) {
        let [left, top, width, height] = self.rect(selector);
        (left + width / 2.0, top + height / 2.0)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends when the pipe is closed. If not, kill it.
        self.commands = None;
        for _ in 0..50 {
            if self.process.try_wait().is_ok_and(|status| status.is_some()) {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the browser with a window of this size.
fn start(profile: &TempDir, width: u32, height: u32) -> Child {
    // The protocol uses descriptors 3 and 4.
    Command::new("sh")
        .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#, program()])
        .args(["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={width},{height}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads and parses the browser's messages in a thread.
fn read_messages(pipe: ChildStdout) -> Receiver<Value> {
    let mut pipe = BufReader::new(pipe);
    let (sender, messages) = mpsc::channel();
    thread::spawn(move || {
        let mut message = Vec::new();
        while pipe.read_until(0, &mut message).is_ok_and(|bytes| bytes > 0) {
            let parsed = serde_json::from_slice(message.strip_suffix(&[0]).unwrap_or(&message));
            if sender.send(parsed.unwrap()).is_err() {
                return;
            }
            message.clear();
        }
    });
    messages
}

fn program() -> &'static str {
    let is_installed = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
    };
    ["chromium-headless-shell", "chromium"]
        .into_iter()
        .find(|name| is_installed(name))
        .expect("chromium is not installed: `interop/setup.sh test` installs it")
}
