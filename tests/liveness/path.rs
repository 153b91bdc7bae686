//! The paths on which each recipe is tested. Each path is a scenario that `airtcp sim` accepts.

use std::path::Path as FilePath;
use std::sync::LazyLock;

use airfiles::PathSource;
use airlink::scenario::Scenario;
use airtcp::recovery::Recipe;
use airtcp_sim::sweep::setup::Setup;

/// Directory that scenario paths are relative to, and in which to run the command of a failing case.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A path from the sender to the receiver.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) name: &'static str,
    /// The options for `airtcp sim`, without the sender.
    pub(crate) setup: Setup,
    pub(crate) scenario: Scenario,
}

/// All paths.
pub(crate) static PATHS: LazyLock<Vec<Path>> = LazyLock::new(|| {
    // The size gives a transfer of a few seconds for a sender that is never delayed.
    let some_seconds = |name: &str| Setup {
        bytes: Some(400_000),
        ..Setup::new(&format!("tests/liveness/paths/{name}.toml"))
    };
    // The scaled window field counts units of 256 bytes. 1536 is the smallest multiple with room for 1460
    // bytes.
    let one_segment =
        Setup { bytes: Some(60_000), receive_buffer: Some(1536), ..some_seconds("one-segment") };
    // With delayed ACKs, a window of two segments yields a single ACK. If five such ACKs in a row are lost,
    // every recipe waits for a timer with a long backoff (Karn's algorithm), so the transfer time is random.
    let no_delack: Recipe = "no-delack".parse().expect("an option of the catalogue");
    let ack_loss = Setup { receiver_options: Some(no_delack), ..some_seconds("ack-loss") };
    [
        ("lossless", some_seconds("lossless")),
        ("loss", some_seconds("loss")),
        ("bursts", some_seconds("bursts")),
        ("reordering", some_seconds("reordering")),
        ("blackout", some_seconds("blackout")),
        ("one-segment", one_segment),
        ("wcdma-resets", some_seconds("wcdma-resets")),
        ("ack-loss", ack_loss),
    ]
    .into_iter()
    .map(|(name, setup)| {
        let scenario = setup.scenario(FilePath::new(ROOT), PathSource::User);
        let scenario = scenario.unwrap_or_else(|error| panic!("{}: {error}", setup.scenario));
        Path { name, setup, scenario }
    })
    .collect()
});
