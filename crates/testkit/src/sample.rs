//! How much of a large matrix a test tries: a seeded sample for a change, everything in `make nightly`.
//!
//! Two variables of the environment decide. `AIRTCP_TESTS=all` tries everything. `AIRTCP_SEED=NUMBER` draws other samples
//! and other random cases; `make nightly` takes the number of the day and prints it.

use std::env;

use airwire::rng::Stream;

/// Whether every case is tried, as in `make nightly`.
pub fn is_everything() -> bool {
    match env::var("AIRTCP_TESTS").as_deref() {
        Err(_) => false,
        Ok("all") => true,
        Ok(other) => panic!("AIRTCP_TESTS={other}: write AIRTCP_TESTS=all, or leave it out for a sample"),
    }
}

/// The seed of samples and random cases; 1 unless `AIRTCP_SEED` sets another.
pub fn seed() -> u64 {
    env::var("AIRTCP_SEED").map_or(1, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("AIRTCP_SEED={text}: write a number, for example AIRTCP_SEED=7"))
    })
}

/// The number of cases for a change, or for `make nightly`.
pub fn size<N>(for_a_change: N, everything: N) -> N {
    if is_everything() { everything } else { for_a_change }
}

/// At most `count` of the cases, drawn by the seed and in their order, or all of them in `make nightly`. Different names
/// make independent draws.
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
    fn a_sample_has_the_wanted_size_and_keeps_the_order() {
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
    fn fewer_cases_than_wanted_are_all_taken() {
        assert_eq!(sample("few", 0..3, 100), [0, 1, 2]);
    }
}
