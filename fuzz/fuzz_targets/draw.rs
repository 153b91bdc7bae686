//! Choices from a fuzzer's input, in the shape that the simulated world wants.

use airtcp_testkit::hostile::Draw;
use arbitrary::Unstructured;

pub struct Input<'a>(pub Unstructured<'a>);

impl Draw for Input<'_> {
    fn below(&mut self, n: u64) -> u64 {
        // At the end of the input everything is 0.
        self.0.int_in_range(0..=n.saturating_sub(1)).unwrap_or(0)
    }
}
