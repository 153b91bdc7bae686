//! Hosts, paths and seeds that the tests of several files use.

use airtcp::host::{Host, HostConfig};
use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::tcp::SocketOptions;
use airtcp_testkit::exchange::{Exchange, ExchangeSpec, Faults, Opening};
use airtcp_testkit::pair::{Impairments, LEFT, Pair};
use airtcp_testkit::sample::size;
use airwire::time::{Duration, Instant};

pub(crate) const VARIANTS: [&str; 7] = [
    "tahoe",
    "reno",
    "newreno",
    "sack",
    "sack+limited-transmit",
    "newreno+limited-transmit+liw",
    "newreno+frto+ecn",
];
pub(crate) const PROFILES: [&str; 3] = ["default", "linux", "freebsd"];

pub(crate) fn profile(name: &str) -> Profile {
    Profile::by_name(name).unwrap()
}

pub(crate) fn recipe(name: &str) -> Recipe {
    name.parse().unwrap()
}

pub(crate) fn pair(seed: u64, recipe_name: &str, profile_name: &str, path: Impairments) -> Pair {
    let (recipe, profile) = (recipe(recipe_name), profile(profile_name));
    Pair::new(seed, (&recipe, &recipe), (&profile, &profile), path)
}

pub(crate) fn plan(profile_name: &str, bytes: [u64; 2]) -> ExchangeSpec {
    ExchangeSpec {
        opening: Opening::Passive,
        eager: false,
        options: SocketOptions::of(&profile(profile_name)),
        bytes,
        read_at_most: 1 << 16,
        read_every: Duration::ZERO,
        faults: Faults::Fail,
    }
}

pub(crate) fn path(delay_ms: u64) -> Impairments {
    Impairments {
        per_byte: Duration::from_nanos(800),
        ..Impairments::lossless(Duration::from_millis(delay_ms))
    }
}

/// Runs an exchange until both streams are complete and both hosts have removed their connections.
pub(crate) fn run(what: &str, pair: Pair, plan: ExchangeSpec, limit: Duration) -> Exchange {
    let mut exchange = Exchange::new(pair, plan).unwrap();
    exchange.complete(limit).unwrap_or_else(|error| panic!("{what}: {error}"));
    exchange.close_all().unwrap_or_else(|error| panic!("{what}: {error}"));
    exchange
}

/// A host whose peer is the test itself.
pub(crate) fn host(recipe_name: &str, profile: Profile) -> Host {
    Host::new(HostConfig { addrs: vec![LEFT], mtu: 1500, profile, recipe: recipe(recipe_name), seed: 1 })
}

pub(crate) const START: Instant = Instant::from_secs(1);

/// Seeds of a randomised test: fewer for each change, more in `make nightly`.
/// `SOAK=100 cargo test --test host hostile` tries a hundred times as many.
pub(crate) fn seeds(for_a_change: u64, everything: u64) -> std::ops::Range<u64> {
    let soak = std::env::var("SOAK").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    0..size(for_a_change, everything) * soak
}
