//! `airlink ctl`: reads and changes a running link.

use std::process::ExitCode;

use airlink::control::{Address, Answer, Client, Request};
use airwire::time::Duration;
use airwire::units::typed_time;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::console::{self, Reader};

/// Read or change the settings and counters of a running link
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ctl {
    /// Name of the link, as `airlink status` lists it, or path of its control socket
    #[arg(value_name = "NAME|PATH")]
    name: Address,
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  Read and change a setting:
    airlink ctl run-4711 get wire.down.rate
    airlink ctl run-4711 set wire.down.rate 64kbit
  Follow a counter:
    airlink ctl run-4711 watch --every 200ms | jq .down.left

Each line of the output is one JSON value. The control socket (abstract,
@airlink/NAME) accepts the same requests as JSON lines:
  {\"command\":\"set\",\"key\":\"wire.down.rate\",\"value\":\"64kbit\"}";

#[derive(Debug, Subcommand)]
enum Action {
    /// Print a setting, or the whole scenario
    #[command(after_help = "Example:\n  airlink ctl run-4711 get wire.down.rate")]
    Get {
        /// Setting to print [default: the whole scenario]
        #[arg(value_name = "STAGE.KEY")]
        key: Option<String>,
    },
    /// Change a setting; packets already on their way keep the old value
    #[command(after_help = "Example:\n  airlink ctl run-4711 set wire.down.rate 64kbit")]
    Set {
        /// Setting to change
        #[arg(value_name = "STAGE.KEY")]
        key: String,
        /// New value, as in a scenario file; quotes can be omitted
        #[arg(value_name = "VALUE")]
        value: String,
    },
    /// Print the counters
    #[command(after_help = "Example:\n  airlink ctl run-4711 stats | jq .down")]
    Stats,
    /// Print the counters at an interval, until interrupted
    #[command(after_help = "Example:\n  airlink ctl run-4711 watch --every 200ms | jq .down.left")]
    Watch {
        /// Interval between two outputs
        #[arg(long, value_name = "TIME", default_value = "1s", value_parser = typed_time)]
        every: Duration,
    },
    /// End the link
    #[command(after_help = "Example:\n  airlink ctl run-4711 stop")]
    Stop,
}

impl Ctl {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut client = Client::connect(&self.name)?;
        let request = match self.action {
            Action::Get { key } => Request::Get { key },
            Action::Set { key, value } => Request::Set { key, value: Value::String(value) },
            Action::Stats => Request::Stats,
            Action::Watch { every } => Request::Watch { every },
            Action::Stop => Request::Stop,
        };
        let mut reader = print(client.request(&request)?)?;
        if matches!(request, Request::Watch { .. }) {
            for answer in client {
                if reader == Reader::Closed {
                    break;
                }
                reader = print(answer?)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print(answer: Answer) -> anyhow::Result<Reader> {
    match answer.map_err(anyhow::Error::msg)? {
        Value::Null => Ok(Reader::Open),
        value => console::print(format_args!("{value}\n")),
    }
}
