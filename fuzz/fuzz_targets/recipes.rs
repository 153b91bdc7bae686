//! Arbitrary text as a sender, `RECIPE[@PROFILE]`. Either parsing fails with a message, or the
//! sender keeps its meaning when written and parsed again, and transfers a stream over a path with
//! loss and reordering.

#![cfg_attr(fuzzing, no_main)]

mod target;

use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::sender::SenderSpec;
use airtcp::tcp::SocketOptions;
use airtcp_testkit::exchange::{Exchange, ExchangeSpec, Faults, Opening};
use airtcp_testkit::pair::{Impairments, Pair};
use airwire::time::Duration;

target::run!(run);

fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let sender: SenderSpec = match text.parse() {
        Ok(sender) => sender,
        Err(error) => return assert!(!format!("{error}").is_empty()),
    };
    for written in [sender.to_string(), sender.canonical()] {
        let reparsed: SenderSpec = written.parse().unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(reparsed.canonical(), sender.canonical(), "{written}");
    }
    transfer(&sender).unwrap_or_else(|error| panic!("{sender}: {error}"));
}

fn transfer(sender: &SenderSpec) -> Result<(), String> {
    let profile = sender.profile.map(|name| name.profile()).unwrap_or_default();
    let path = Impairments {
        loss: 0.05,
        reorder: 0.05,
        reorder_by: Duration::from_millis(30),
        delay: Duration::from_millis(10),
        queue: usize::MAX,
        ..Impairments::default()
    };
    let ordinary = (Recipe::default(), Profile::default());
    let pair = Pair::new(1, (&sender.recipe, &ordinary.0), (&profile, &ordinary.1), path);
    let plan = ExchangeSpec {
        opening: Opening::Passive,
        eager: false,
        options: SocketOptions::of(&profile),
        bytes: [20_000, 1000],
        read_at_most: 1 << 16,
        read_every: Duration::ZERO,
        faults: Faults::Fail,
    };
    Exchange::new(pair, plan)?.complete(Duration::from_secs(20_000))
}
