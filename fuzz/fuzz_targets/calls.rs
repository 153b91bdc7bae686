//! Arbitrary sequences of user calls, time steps and packets that are delivered, lost or forged.

#![cfg_attr(fuzzing, no_main)]

mod draw;
mod target;

use airtcp_testkit::calls;
use arbitrary::Unstructured;

target::run!(run);

fn run(data: &[u8]) {
    let program = (data.len() as u32 / 3).min(1000);
    if let Err(error) = calls::run(&mut draw::Input(Unstructured::new(data)), program) {
        panic!("{error}");
    }
}
