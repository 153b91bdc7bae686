//! The command line of `rlc-check`. The library contains the checks.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use rlc_check::End;
use rlc_check::settings::{self, Direction, Time};

/// Checks the behaviour of both ends of an RLC AM bearer in a capture of its PDUs.
#[derive(Parser)]
#[command(
    name = "rlc-check",
    after_help = "\
Settings of a direction are those of the sender that pushes data that way, and of the receiver at its other end:
  tti=10ms blocks=1+2+4+8+12 flight=60ms pdu=42 flexible=7bit|15bit window=512 max-dat=10 discard=reset|mrw
  tsp=150ms poll=200ms prohibit=100ms bler=0.1 hfn=0
`flight` is the time from a PDU's transmission to its arrival: a TTI and the channel's delay. The grid of TTIs begins
with the first PDU of the direction, unless phase=3ms says where (since 1970); `hfn` is the HFN of the first PDU. With
`flexible`, the size of its length indicators, `pdu` is the largest size. What is absent is not checked.
Exit codes: 0 all hold, 1 some do not, 2 usage."
)]
struct Cli {
    /// Settings of the downlink, separated by commas
    #[arg(long)]
    down: Direction,
    /// Settings of the uplink
    #[arg(long)]
    up: Direction,
    /// UDP source port of PDUs that the channel damages
    #[arg(long, default_value_t = 50_002)]
    lost_port: u16,
    /// The radio bearer to look at, if there are several
    #[arg(long)]
    bearer: Option<u8>,
    /// How long the capture went on after its first PDU, such as 60000ms: what should have come by then is missed, also
    /// after the last PDU
    #[arg(long, value_parser = time)]
    until: Option<Time>,
    /// Say at most so many violations of each invariant
    #[arg(long, default_value_t = 5)]
    show: usize,
    /// The capture
    pcap: PathBuf,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("rlc-check: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn time(text: &str) -> Result<Time, String> {
    settings::time(text).ok_or_else(|| format!("`{text}` is no time: write 60000ms or 500us"))
}

fn run(cli: &Cli) -> anyhow::Result<bool> {
    let (down, up) = (cli.down.clone(), cli.up.clone());
    let end = cli.until.map_or(End::Unknown, End::After);
    let report = rlc_check::judge(&cli.pcap, down, up, cli.lost_port, cli.bearer, end)?;
    print!("{}", report.to_text(cli.show));
    Ok(report.violations.is_empty())
}
