//! `airtcp playground`: an HTML page that simulates in the browser, written to a file or served over HTTP.

mod server;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use airfiles::PathSource;
use airtcp_numbers::units;
use anyhow::Context;
use clap::Args;

use crate::shared::{console, failure};

/// Write an HTML page that runs the simulator in a browser
///
/// Choose a path and senders, and compare them under the same losses: time-sequence graphs, window, RTT, goodput,
/// decisions, states, lost packets, and the PDUs of the radio link. A tour of ten scenes starts with three duplicate
/// ACKs. The page works from disk and loads nothing from the network. A seed gives the same run as in `airtcp sim`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Playground {
    /// File to write; an existing file is overwritten
    #[arg(long, short, value_name = "FILE", default_value = "playground.html")]
    output: PathBuf,
    /// Serve the page over HTTP at this address, until stopped by a signal, instead of writing a file
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listening_address, conflicts_with = "output")]
    serve: Option<SocketAddr>,
    /// WebAssembly core of the page, instead of the one in this program
    #[arg(long, value_name = "FILE")]
    core: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  airtcp playground -o playground.html
  airtcp playground --serve 127.0.0.1:8000

If this program was built without the page's core, `make playground` builds
both.";

/// Maximum size of a core in bytes, larger than any real core.
const LARGEST: u64 = 64 << 20;
/// The core that is built into this program. Empty if it was not built first.
const CORE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/playground.wasm"));

fn listening_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:8000".to_owned())
}

impl Playground {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let core = match &self.core {
            Some(path) => airfiles::read(path, PathSource::User, LARGEST)
                .with_context(|| format!("cannot read {}", path.display()))?,
            None => CORE.to_vec(),
        };
        if core.is_empty() {
            return Err(failure::environment(
                "this program was built without the playground's core: run `make playground` in the sources (it needs the target \
                 wasm32-unknown-unknown), or pass the core with --core FILE",
            ));
        }
        if !core.starts_with(b"\0asm") {
            let named = self.core.unwrap_or_default();
            return Err(failure::usage(format!(
                "{} is not a WebAssembly module; `make core` builds one",
                named.display()
            )));
        }
        let html = airtcp_playground::page::html(&core);
        if let Some(address) = self.serve {
            return server::serve(address, html.into_bytes());
        }
        airfiles::write(&self.output, &html)
            .with_context(|| format!("cannot write {}", self.output.display()))?;
        let size = units::show_bytes(html.len() as u64);
        writeln!(console::stdout(), "{}: {size}; open it in a browser", self.output.display())?;
        Ok(())
    }
}
