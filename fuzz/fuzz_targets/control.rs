//! Arbitrary bytes at the control socket of a running link, as `airlink ctl` or any process of the
//! same user may send them. Each line gets one line of JSON as answer, and the scenario stays
//! consistent with the running stages.

#![cfg_attr(fuzzing, no_main)]

mod target;

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use airlink::control::{Address, Control, Request, RequestHandler};
use airlink::path::Path;
use airlink::reactor::{Clock, Reactor, Token};
use airlink::scenario::Scenario;
use airlink::stage::Recording;
use airwire::time::Instant;
use serde_json::Value;

target::run!(run);

/// Maximum length of the input. Longer requests only reach the length limit of a line.
const MAX_INPUT: usize = 16 << 10;

struct Link {
    scenario: Scenario,
    path: Path,
}

impl RequestHandler for Link {
    fn answer(&mut self, request: &Request) -> Result<Value, String> {
        match request {
            Request::Get { key: None } => Ok(self.scenario.to_json()),
            Request::Get { key: Some(key) } => self.scenario.get(key).map_err(|error| error.to_string()),
            Request::Set { key, value } => self.scenario.change(&mut self.path, Instant::ZERO, key, value),
            Request::Stats | Request::Watch { .. } => Ok(self.path.stats()),
            Request::Stop => Ok(Value::Null),
        }
    }
}

fn run(data: &[u8]) {
    let data = &data[..data.len().min(MAX_INPUT)];
    let scenario = Scenario::load("wcdma-384").expect("wcdma-384 is a preset");
    let path = scenario.build(None, Recording::Off, false).expect("a preset needs no file");
    let mut link = Link { scenario, path };

    let name = format!("fuzz-{}", std::process::id());
    let mut reactor = Reactor::new(Clock::start()).expect("the reactor starts");
    let mut control = Control::listen(Address::Named(name.clone()), &[], Token(1), &mut reactor)
        .expect("the name is unused");
    let address =
        SocketAddr::from_abstract_name(format!("airlink/{name}")).expect("the name is short enough");
    let mut client = UnixStream::connect_addr(&address).expect("the control socket listens");
    client.set_nonblocking(true).expect("the socket can be non-blocking");
    let mut handle_events = |tokens: &[Token]| {
        control.handle_events(Instant::ZERO, tokens, &mut reactor, &mut link).expect("the reactor works");
    };
    handle_events(&[Token(1)]);
    // Sends one piece at a time and reads the answers in between, so that neither end blocks.
    let mut answers = Vec::new();
    for piece in data.chunks(1 << 10) {
        if client.write_all(piece).is_err() {
            // The server has disconnected the client, which is a valid answer.
            break;
        }
        handle_events(&[Token(2)]);
        // Answers that have not arrived are read after the next piece.
        let _ = client.read_to_end(&mut answers);
    }
    for answer in answers.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        let answer: Value = serde_json::from_slice(answer).expect("an answer is JSON");
        assert_eq!(answer["schema_version"], 1);
        assert_eq!(answer["ok"] == true, answer.get("error").is_none(), "{answer}");
    }
    // The scenario can be written, parsed and built again.
    let written = link.scenario.to_toml();
    let reparsed = Scenario::parse(&written, "now.toml").unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(reparsed.stages, link.scenario.stages);
    reparsed.build(None, Recording::Off, false).expect("a running scenario can be built");
}
