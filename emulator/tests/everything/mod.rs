//! A scenario in which much happens, in a directory of its own.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::path::PathBuf;

/// A queue that overflows and one that is managed, losses, an outage, an RLC that resets, a station that marks ACKs and is left.
const SCENARIO: &str = r#"
schema = 1
description = "a bit of everything"
[[stage]]
kind = "link"
name = "wire"
down = { rate = "500kbit", delay = "10ms", queue = { packets = 5 } }
up = { rate = "500kbit", delay = "10ms", queue = { discipline = "pie", packets = 50 } }
[[stage]]
kind = "station"
name = "cell"
loss_report = true
handover = { at = ["1s", "3s", "3000100us"] }
[[stage]]
kind = "outage"
name = "hole"
both = { at = ["1s"], lasts = "300ms", packets = "dropped" }
[[stage]]
kind = "loss"
name = "air"
both = { model = "uniform", per = "2%" }
[[stage]]
kind = "rlc"
name = "radio"
down.channel.errors = { model = "independent", bler = "10%" }
up.channel.errors = { model = "independent", bler = "10%" }
down.sender.discard = { mode = "reset-after-max-dat", max_dat = 4 }
"#;

/// It is removed with all that is in it.
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// With the scenario. `name` is of the test.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("airlink-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("scenario.toml"), SCENARIO).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn scenario(&self) -> String {
        self.file("scenario.toml")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
