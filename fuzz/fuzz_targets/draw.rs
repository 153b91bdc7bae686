//! Takes the choices of the simulated world from the fuzzer's input.

use airtcp_testkit::hostile::Draw;
use arbitrary::Unstructured;

pub struct Input<'a>(pub Unstructured<'a>);

impl Draw for Input<'_> {
    fn below(&mut self, n: u64) -> u64 {
        // After the end of the input, every choice is 0.
        self.0.int_in_range(0..=n.saturating_sub(1)).unwrap_or(0)
    }
}
