//! Scenarios: tests of presets, error messages, `extends`, changed settings, and the reference in the
//! documentation.

mod command;
mod extending;
mod foreign_files;
mod mistakes;
mod presets;
mod reference;
mod settings;

use airlink::machine::{Machine, Port, catch_up, drain};
use airlink::path::{FIXED, Path};
use airlink::scenario::{Problem, Scenario};
use airlink::stage::Recording;
use airtcp_testkit::temporary::TempDir;
use airwire::time::Instant;

fn build(scenario: &Scenario, seed: Option<u64>) -> Path {
    scenario.build(seed, Recording::Off, false).unwrap()
}

/// A scenario with one stage of this kind, and `settings` as its following lines.
fn stage(kind: &str, settings: &str) -> String {
    format!("schema = 1\n[[stage]]\nkind = \"{kind}\"\n{settings}\n")
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn problems(text: &str) -> Vec<Problem> {
    match Scenario::parse(text, "x.toml") {
        Ok(scenario) => panic!("the scenario should have been refused: {scenario:?}"),
        Err(error) => error.problems().to_vec(),
    }
}

/// Creates a temporary directory with these files.
fn directory(name: &str, files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new(name);
    for (name, content) in files {
        std::fs::create_dir_all(directory.join(name).parent().unwrap()).unwrap();
        directory.write(name, content);
    }
    directory
}

/// Sends 500 packets. Returns the numbers of those that arrive.
fn arrivals(path: &mut Path) -> Vec<u16> {
    let mut arrived = Vec::new();
    for number in 0..500_u16 {
        let now = Instant::from_millis(u64::from(number));
        let mut record = |_, _, packet: Vec<u8>| arrived.push(u16::from_be_bytes([packet[0], packet[1]]));
        catch_up(path, now, &mut record);
        path.handle_packet(now, FIXED, number.to_be_bytes().to_vec());
        drain(path, now, &mut record);
    }
    arrived
}
