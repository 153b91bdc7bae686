//! The paths of the matrix: each a scenario that `airtcp sim` takes as well.

use std::path::Path as Place;
use std::sync::LazyLock;

use airfiles::By;
use airlink::scenario::Scenario;
use airtcp::recovery::Recipe;
use airtcp_sim::sweep::setup::Setup;

/// Where the scenarios' names begin, and where the command of a failing case is to be typed.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A way from the sender to the receiver.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) name: &'static str,
    /// What `airtcp sim` is to be asked for, without the sender.
    pub(crate) setup: Setup,
    pub(crate) scenario: Scenario,
}

/// All of them.
pub(crate) static PATHS: LazyLock<Vec<Path>> = LazyLock::new(|| {
    // Some seconds for a sender whom nothing delays.
    let some_seconds = |name: &str| Setup {
        bytes: Some(400_000),
        ..Setup::new(&format!("tests/liveness/paths/{name}.toml"))
    };
    // A scaled window is counted in units of 256 octets: this is the least that has room for 1460.
    let one_segment =
        Setup { bytes: Some(60_000), receive_buffer: Some(1536), ..some_seconds("one-segment") };
    // With delayed ACKs a window of two segments has a single ACK. Of those, five in a row are lost soon enough, and how
    // long the timer backs off for it (Karn) is luck, whatever the recipe.
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
        let scenario = setup.scenario(Place::new(ROOT), By::Person);
        let scenario = scenario.unwrap_or_else(|error| panic!("{}: {error}", setup.scenario));
        Path { name, setup, scenario }
    })
    .collect()
});
