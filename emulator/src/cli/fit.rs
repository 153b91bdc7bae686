//! `airlink fit`: creates a scenario that reproduces a recorded path.

mod replay;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use aircaptures::{Capture, Next};
use airlink::packet::{Direction, PerDirection};
use airlink::scenario::Scenario;
use airlink::stage::Recording as Events;
use airlink_fit::clock::Clock;
use airlink_fit::{
    self as fit, Bound, Burst, Comparison, Fitted, FittedDirection, FittedFiles, Matched, Observed, Options,
};
use airwire::time::Duration;
use airwire::units::Rate;
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use super::{console, failure};

/// Create a scenario from captures of both ends of a path
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fit {
    /// Capture at the fixed end of the path
    #[arg(value_name = "FIXED")]
    fixed: PathBuf,
    /// Capture at the mobile end, of the same period
    #[arg(value_name = "MOBILE")]
    mobile: PathBuf,
    /// File to write: the scenario, NAME.toml
    ///
    /// Rates and delays that change with time are written to NAME-down.csv and NAME-up.csv in the same
    /// directory.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Only these packets, as a tcpdump filter such as 'host 10.0.0.2'
    ///
    /// Packets that do not cross the path look like losses.
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,
    /// Time by which the clock of each capture is ahead of the first one's, here of the second: 3ms or -20us
    /// [default: estimated from the packets]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = offset)]
    clock_offset: Option<i64>,
    /// Interval over which rates and delays are measured
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = airwire::units::typed_time)]
    step: Duration,
    /// Print JSON instead of text: one object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Example:
  Fit a path, and run a program over it:
    airlink fit fixed.pcap mobile.pcap --filter 'host 10.0.0.2' \\
      --output train.toml
    airlink run -s train.toml -- ./my-program

While recording, send as fast as the path allows in each direction that
matters: the rate can be measured only while packets wait. Switch offload off
at both ends (ethtool -K DEVICE gro off tso off gso off): otherwise the
captures contain joined packets that never existed on the path.";

/// Shorter steps would contain at most one packet.
const SHORTEST_STEP: Duration = Duration::from_millis(1);

fn offset(text: &str) -> Result<i64, String> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text),
    };
    let time = airwire::units::typed_time(text).map_err(|error| error.to_string())?;
    Ok(sign * time.as_nanos() as i64)
}

impl Fit {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        if self.step < SHORTEST_STEP {
            return Err(failure::usage("--step must be at least 1ms"));
        }
        let name = self.name()?;
        let (fixed, mobile) = (self.observed(&self.fixed)?, self.observed(&self.mobile)?);
        let matched = fit::match_captures(fixed, mobile, self.clock_offset)?;
        let fitted = fit::fit(&matched.recording, Options { step: self.step })?;
        let description = format!(
            "{:.1} s of the path between {} and {}, fitted by airlink fit",
            fitted.duration.as_secs_f64(),
            self.fixed.display(),
            self.mobile.display()
        );
        write(&self.output, &fit::files(&fitted, &name, &description))?;
        // Check the files as written, because users will load these.
        let scenario = Scenario::load(&self.output.display().to_string())?;
        let mut path = scenario.build(None, Events::Off, false)?;
        let replayed = replay::replay(&matched.recording, &mut path);
        let check = fit::compare(&matched.recording, &replayed);
        for warning in warnings(&matched, &fitted) {
            console::print_status(format_args!("warning: {warning}\n"));
        }
        console::print(if self.json {
            format!("{:#}\n", as_json(&matched, &fitted, &check))
        } else {
            as_text(&matched, &fitted, &check)
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// Reads the packets of a capture, up to the first damage.
    fn observed(&self, path: &Path) -> anyhow::Result<Observed> {
        let mut capture = Capture::open(path, self.filter.as_deref())?;
        let mut observed = Observed::default();
        loop {
            match capture.read() {
                Next::Frame(frame) => {
                    if let Some(packet) = frame.ip() {
                        observed.packet(frame.at.0, packet);
                    }
                }
                Next::Filtered | Next::NoFrame | Next::Flaw { .. } => {}
                Next::Damaged { frame, detail } => {
                    let name = capture.name();
                    console::print_status(format_args!(
                        "{name}: warning: read only up to frame {frame}: {detail}\n"
                    ));
                    break;
                }
                Next::End => break,
            }
        }
        let passes = if self.filter.is_some() { " passes the filter" } else { " in this capture" };
        anyhow::ensure!(!observed.is_empty(), "{}: no IP packet{passes}", capture.name());
        Ok(observed)
    }

    /// File name of the scenario without its extension.
    fn name(&self) -> anyhow::Result<String> {
        let output = &self.output;
        let stem = output.file_stem().and_then(|stem| stem.to_str());
        match (stem, output.extension().and_then(|extension| extension.to_str())) {
            (Some(stem), Some("toml")) => Ok(stem.to_owned()),
            _ => Err(failure::usage(format!(
                "--output {}: the name of a scenario file must end in .toml",
                output.display()
            ))),
        }
    }
}

fn write(output: &Path, files: &FittedFiles) -> anyhow::Result<()> {
    let schedules = files.schedules.iter().map(|(name, text)| (output.with_file_name(name), text));
    for (file, text) in schedules.chain([(output.to_owned(), &files.scenario)]) {
        airfiles::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Reasons to doubt the result.
fn warnings(matched: &Matched, fitted: &Fitted) -> Vec<String> {
    let mut warnings = Vec::new();
    if matched.coalesced > 0 {
        warnings.push(format!(
            "{} packets are longer than 1514 bytes: the hosts join segments, and these packets never existed on the path. \
             Record with offload switched off (ethtool -K DEVICE gro off tso off gso off)",
            matched.coalesced
        ));
    }
    if matched.unmatched_arrivals > 0 {
        warnings.push(format!(
            "{} packets left the path but never entered it: a capture has dropped packets (tcpdump reports how many), and \
             others look lost",
            matched.unmatched_arrivals
        ));
    }
    for (direction, fitted) in fitted.directions.iter() {
        let losses = &fitted.losses;
        if fitted.rate.is_some() && losses.bound.is_none() {
            warnings.push(format!(
                "{direction}: no loss shows the limit of the queue, so the scenario has none; the longest observed queue \
                 had {} bytes",
                losses.longest_queue
            ));
        }
    }
    warnings
}

fn as_text(matched: &Matched, fitted: &Fitted, check: &PerDirection<Comparison>) -> String {
    let mut rows = vec![["".to_owned(), "down".to_owned(), "up".to_owned()]];
    let mut row = |name: &str, of: &dyn Fn(Direction) -> String| {
        rows.push([name.to_owned(), of(Direction::Down), of(Direction::Up)]);
    };
    let fitted_in = |direction: Direction| &fitted.directions[direction];
    row("packets", &|direction| matched.recording.directions[direction].crossings.len().to_string());
    row("propagation delay", &|direction| delay(fitted_in(direction)));
    row("rate", &|direction| rate(fitted_in(direction)));
    row("rate measured", &|direction| rate_measured(fitted_in(direction)));
    row("queue limit", &|direction| queue(fitted_in(direction)));
    row("lost in the queue", &|direction| fitted_in(direction).losses.to_queue.to_string());
    row("other losses", &|direction| lost(fitted_in(direction)));
    if fitted.directions.iter().any(|(_, fitted)| fitted.overtaken.is_some()) {
        row("reordered", &|direction| {
            let overtaken = fitted_in(direction).overtaken;
            overtaken.map_or_else(
                || "none".to_owned(),
                |it| format!("{}, {} late", percent(it.share), ms(it.late)),
            )
        });
    }
    if fitted.directions.iter().any(|(_, fitted)| fitted.copied > 0.0) {
        row("duplicated", &|direction| percent(fitted_in(direction).copied));
    }
    rows.push(Default::default());
    let mut both = |name: &str, of: &dyn Fn(&fit::Outcome) -> String| {
        let pair = |direction: Direction| {
            let Comparison { recorded, replayed, .. } = &check[direction];
            format!("{} / {}", of(recorded), of(replayed))
        };
        rows.push([name.to_owned(), pair(Direction::Down), pair(Direction::Up)]);
    };
    both("lost", &|outcome| percent(outcome.lost));
    both("delay, 10th percentile", &|outcome| ms(outcome.p10));
    both("delay, median", &|outcome| ms(outcome.median));
    both("delay, 90th percentile", &|outcome| ms(outcome.p90));
    let difference = |direction: Direction| ms(check[direction].mean_delay_difference);
    rows.push(["mean delay difference".to_owned(), difference(Direction::Down), difference(Direction::Up)]);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (names, downs) = (width(0), width(1));
    let mut text = String::new();
    for [name, down, up] in &rows {
        text += format!("{name:<names$}  {down:<downs$}  {up}").trim_end();
        text.push('\n');
    }
    let clock = match matched.clock {
        Clock::Same => "Both captures have the same clock.".to_owned(),
        Clock::Given { ahead_ns } => {
            format!("The clock of the second capture is {} ms ahead, as given.", ahead_ns as f64 / 1e6)
        }
        Clock::Estimated { ahead_ns } => format!(
            "The clock of the second capture is estimated to be {:.3} ms ahead: the smallest\n\
             delay is then the same in both directions. Use --clock-offset if you know it.",
            ahead_ns as f64 / 1e6
        ),
    };
    text + &format!(
        "\nThe lower part compares the recording / the same packets over the fitted path.\n\
         The fitted path repeats after {:.1} s.\n{clock}\n",
        fitted.duration.as_secs_f64()
    )
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_nanos() as f64 / 1e6)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn kbit(rate: Rate) -> String {
    format!("{:.0}", rate.as_bits_per_second() as f64 / 1e3)
}

fn delay(direction: &FittedDirection) -> String {
    let delays = direction.delay.pieces().iter().map(|(_, delay)| *delay);
    let (least, most) = (delays.clone().min().unwrap_or_default(), delays.max().unwrap_or_default());
    let jitter = if direction.jitter.is_zero() {
        String::new()
    } else {
        format!(", plus up to {}", ms(direction.jitter))
    };
    if least == most { ms(least) + &jitter } else { format!("{} to {}{jitter}", ms(least), ms(most)) }
}

fn rate(direction: &FittedDirection) -> String {
    let Some(rate) = &direction.rate else { return "unknown".to_owned() };
    let rates = rate.over_time.pieces().iter().map(|(_, rate)| *rate);
    let (least, most) = (rates.clone().min(), rates.max());
    let (least, most) = (least.unwrap_or(rate.mean), most.unwrap_or(rate.mean));
    if least == most {
        return format!("{} kbit/s", kbit(rate.mean));
    }
    format!("{} kbit/s ({} to {})", kbit(rate.mean), kbit(least), kbit(most))
}

/// Share of the time in which packets waited, so that the rate could be measured.
fn rate_measured(direction: &FittedDirection) -> String {
    let measured = direction.rate.as_ref().map(|rate| format!("{:.0} % of the time", 100.0 * rate.measured));
    measured.unwrap_or_else(|| "never: no packet waited".to_owned())
}

fn queue(direction: &FittedDirection) -> String {
    match direction.losses.bound {
        Some(Bound::Packets(packets)) => format!("{packets} packets"),
        Some(Bound::Bytes(size)) => size.to_string(),
        None => "none observed".to_owned(),
    }
}

fn lost(direction: &FittedDirection) -> String {
    let losses = &direction.losses;
    let burst = match losses.burst {
        None => String::new(),
        Some(Burst::Packets(length)) => format!(", in bursts of {length:.1} packets"),
        Some(Burst::Time(lasts, _)) => format!(", in bursts of {}", ms(lasts)),
    };
    format!("{} ({}){burst}", losses.others, percent(losses.share))
}

fn as_json(matched: &Matched, fitted: &Fitted, check: &PerDirection<Comparison>) -> Value {
    let of = |direction: Direction| {
        json!({
            "packets": matched.recording.directions[direction].crossings.len(),
            "fitted": fitted.directions[direction],
            "check": check[direction],
        })
    };
    json!({
        "schema_version": 1,
        "duration": fitted.duration,
        "clock_ahead_seconds": matched.clock.ahead() as f64 / 1e9,
        "coalesced": matched.coalesced,
        "unmatched_arrivals": matched.unmatched_arrivals,
        "down": of(Direction::Down),
        "up": of(Direction::Up),
    })
}
