//! Arbitrary programs of user calls, time steps and packets that arrive, are lost or are forged.

#![no_main]

mod draw;

use airtcp_testkit::calls;
use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let program = (data.len() as u32 / 3).min(1000);
    if let Err(error) = calls::run(&mut draw::Input(Unstructured::new(data)), program) {
        panic!("{error}");
    }
});
