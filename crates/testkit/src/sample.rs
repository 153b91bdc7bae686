//! Selects the cases of a large matrix that a test tries: a seeded sample for a change, or all cases in `make
//! nightly`.
//!
//! Two environment variables control this. `AIRTCP_TESTS=all` selects all cases. `AIRTCP_SEED=NUMBER` changes
//! the samples and the random cases; `make nightly` derives the number from the date and prints it.

use std::env;

use airwire::rng::Stream;
use proptest::test_runner::{Config, RngSeed};

/// Returns whether all cases are tried, as in `make nightly`.
pub fn is_everything() -> bool {
    match env::var("AIRTCP_TESTS").as_deref() {
        Err(_) => false,
        Ok("all") => true,
        Ok(other) => panic!("AIRTCP_TESTS={other}: write AIRTCP_TESTS=all, or leave it out for a sample"),
    }
}

/// The seed without `AIRTCP_SEED`.
pub const DEFAULT_SEED: u64 = 1;

/// Returns the seed of samples and random cases: `AIRTCP_SEED`, or [`DEFAULT_SEED`].
pub fn seed() -> u64 {
    env::var("AIRTCP_SEED").map_or(DEFAULT_SEED, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("AIRTCP_SEED={text}: write a number, for example AIRTCP_SEED=7"))
    })
}

/// Returns the configuration of a property test with this number of cases. Each run tries the same cases, until
/// `AIRTCP_SEED` changes them.
pub fn cases(count: u32) -> Config {
    Config { cases: count, failure_persistence: None, rng_seed: RngSeed::Fixed(seed()), ..Config::default() }
}

/// Returns the number of cases: `everything` in `make nightly`, otherwise `for_a_change`.
pub fn size<N>(for_a_change: N, everything: N) -> N {
    if is_everything() { everything } else { for_a_change }
}

/// Returns at most `count` of the cases in their original order. In `make nightly`, returns all cases. Draws
/// with different names are independent.
pub fn sample<T>(name: &str, cases: impl IntoIterator<Item = T>, count: usize) -> Vec<T> {
    let mut cases: Vec<(usize, T)> = cases.into_iter().enumerate().collect();
    if !is_everything() && count < cases.len() {
        let mut draw = Stream::new(seed(), name);
        for at in 0..count {
            let from = at + draw.below((cases.len() - at) as u64) as usize;
            cases.swap(at, from);
        }
        cases.truncate(count);
        cases.sort_by_key(|(index, _)| *index);
    }
    cases.into_iter().map(|(_, case)| case).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_has_requested_size_and_keeps_order() {
        let drawn = sample("order", 0..1000, 100);
        assert_eq!(drawn.len(), size(100, 1000));
        assert!(drawn.is_sorted_by(|a, b| a < b), "{drawn:?}");
    }

    #[test]
    fn every_case_can_be_drawn() {
        let mut drawn: Vec<u32> = (0..200).flat_map(|name| sample(&name.to_string(), 0..10, 2)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn sample_takes_all_cases_if_too_few() {
        assert_eq!(sample("few", 0..3, 100), [0, 1, 2]);
    }
}
