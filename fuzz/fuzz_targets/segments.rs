//! A live connection with forged segments: their headers are valid, and every field is arbitrary.
//!
//! The first bytes select the sender, and whether the forger stays within what a TCP must survive.
//! If it does, both streams must arrive intact.

#![cfg_attr(fuzzing, no_main)]

mod draw;
mod target;

use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::tcp::SocketOptions;
use airtcp_testkit::attack::attack;
use airtcp_testkit::exchange::{Exchange, ExchangeSpec, Faults, Opening};
use airtcp_testkit::hostile::{Draw, ForgeryScope};
use airtcp_testkit::pair::{Impairments, Pair};
use airwire::time::Duration;
use arbitrary::Unstructured;

target::run!(run);

const RECIPES: [&str; 5] = ["tahoe", "reno", "newreno+frto", "sack", "sack+limited-transmit+ecn"];

fn run(data: &[u8]) {
    if let Err(error) = run_exchange(data) {
        panic!("{error}");
    }
}

fn run_exchange(data: &[u8]) -> Result<(), String> {
    let mut draw = draw::Input(Unstructured::new(data));
    let recipe: Recipe = draw.pick(&RECIPES).parse().map_err(|error| format!("{error}"))?;
    let profile = Profile::by_name(draw.pick(&["default", "linux", "freebsd"])).ok_or("no such profile")?;
    let scope = draw.pick(&[ForgeryScope::Survivable, ForgeryScope::Any]);
    let path = Impairments { queue: usize::MAX, delay: Duration::from_millis(10), ..Impairments::default() };
    let pair = Pair::new(1, (&recipe, &recipe), (&profile, &profile), path);
    let mut options = SocketOptions::of(&profile);
    options.recv_buffer = draw.pick(&[None, Some(100), Some(3000), Some(65_535)]);
    let plan = ExchangeSpec {
        opening: draw.pick(&[Opening::Passive, Opening::Simultaneous]),
        eager: false,
        options,
        bytes: [20_000, 5000],
        read_at_most: 1 << 16,
        read_every: Duration::ZERO,
        faults: if scope == ForgeryScope::Survivable { Faults::Fail } else { Faults::Close },
    };
    let mut exchange = Exchange::new(pair, plan)?;
    let forged_packets = (data.len() as u32 / 8).min(300);
    attack(&mut draw, &mut exchange, scope, forged_packets)?;
    match scope {
        ForgeryScope::Survivable => exchange.complete(Duration::from_secs(20_000)),
        ForgeryScope::Any => Ok(()),
    }
}
