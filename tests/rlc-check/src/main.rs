//! The command line of `rlc-check`. The library contains the checks.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::Parser;
use rlc_check::settings::{self, Time};
use rlc_check::{End, lte_nr};

/// Checks the behaviour of both ends of an RLC bearer (UMTS, LTE or NR) in a capture of its PDUs.
#[derive(Parser)]
#[command(
    name = "rlc-check",
    after_help = "\
Settings of a direction are those of the sender of its data, and of the receiver at the other end:
  tti=10ms blocks=1+2+4+8+12 flight=60ms pdu=42 flexible=7bit|15bit window=512 max-dat=10 discard=reset|mrw
  tsp=150ms poll=200ms prohibit=100ms bler=0.1 hfn=0
`flight` is the time from a PDU's transmission to its arrival: a TTI and the channel's delay. The TTI grid starts
with the first PDU of the direction, or with phase=3ms at this time since 1970. `hfn` is the HFN of the first PDU.
`flexible` is the size of length indicators with a flexible PDU size; `pdu` is then the maximum size. Settings that
are absent are not checked.
For captures of LTE and NR:
  poll-pdu=16 poll-byte=25000 poll-retransmit=100ms max-retx=32 reassembly=20ms reordering=45ms
  status-prohibit=10ms patience=60ms
`patience` is the maximum time for which a sender waits for a transport block; without it, missing PDUs are
not noticed. In unacknowledged mode, no settings apply.
Exit codes: 0 all hold, 1 some do not, 2 usage."
)]
struct Cli {
    /// Settings of the downlink, separated by commas
    #[arg(long)]
    down: String,
    /// Settings of the uplink
    #[arg(long)]
    up: String,
    /// UDP source port of PDUs that the channel damages
    #[arg(long, default_value_t = 50_002)]
    lost_port: u16,
    /// Number of the radio bearer to check, if there are several
    #[arg(long)]
    bearer: Option<u8>,
    /// Length of the capture after its first PDU, such as 60000ms; reactions that are missing at its end are violations
    #[arg(long, value_parser = time)]
    until: Option<Time>,
    /// Maximum number of violations shown for each invariant
    #[arg(long, default_value_t = 5)]
    show: usize,
    /// Capture of the PDUs
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
    settings::time(text).ok_or_else(|| format!("`{text}` is not a time: write 60000ms or 500us"))
}

fn parsed<T: FromStr<Err = String>>(settings: &str) -> anyhow::Result<T> {
    settings.parse().map_err(anyhow::Error::msg)
}

fn run(cli: &Cli) -> anyhow::Result<bool> {
    let end = cli.until.map_or(End::Unknown, End::After);
    let findings = if lte_nr::capture::is_lte_or_nr(&cli.pcap)? {
        lte_nr::check(&cli.pcap, parsed(&cli.down)?, parsed(&cli.up)?, cli.bearer, end)?
    } else {
        let (down, up) = (parsed(&cli.down)?, parsed(&cli.up)?);
        rlc_check::check(&cli.pcap, down, up, cli.lost_port, cli.bearer, end)?
    };
    print!("{}", findings.to_text(cli.show));
    Ok(findings.violations.is_empty())
}
