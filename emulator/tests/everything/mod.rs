//! A scenario in which much happens, in a directory of its own.

#![allow(dead_code, reason = "each test program uses some of it")]

use airtcp_testkit::temporary::TempDir;

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
pub(crate) struct Directory(TempDir);

impl Directory {
    /// With the scenario. `name` is of the test.
    pub(crate) fn new(name: &str) -> Self {
        let directory = TempDir::new(name);
        directory.write("scenario.toml", SCENARIO);
        Self(directory)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.path(name)
    }

    pub(crate) fn scenario(&self) -> String {
        self.file("scenario.toml")
    }
}
