//! A scenario with many kinds of events, in a temporary directory.

use airtcp_testkit::temporary::TempDir;

/// A queue that overflows, an actively managed queue, losses, an outage, RLC resets, and a station with ACK marks and handovers.
const SCENARIO: &str = r#"
schema = 1
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

/// Creates a directory with the scenario in `scenario.toml`. `name` identifies the test.
pub(crate) fn directory(name: &str) -> TempDir {
    let directory = TempDir::new(name);
    directory.write("scenario.toml", SCENARIO);
    directory
}
