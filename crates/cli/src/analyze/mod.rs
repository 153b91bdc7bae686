//! `airtcp analyze`: analyses the TCP connections in captures.

mod comments;
mod lines;
mod live;
pub(crate) mod moment;
mod order;
mod output;
mod overview;
mod parquet;
mod path;
mod pictures;
mod rates;
mod resent;
mod rows;
mod select;
mod sockets;

use std::path::PathBuf;
use std::time::SystemTime;

use aircaptures::capture::{Capture, CaptureError};
use aircaptures::packet::Timestamp;
use aircaptures::problem::Problem;
use airlink::reactor::{Clock, Interest, Reactor, Token, Wakeup};
use airtcp_analyze::connections::{Limits, Traces};
use airtcp_analyze::survey::{Progress, Survey, Totals};
use airtcp_numbers::units;
use airwire::time::{Duration, Instant};
use clap::Args;
use comments::{CommentOptions, Commenting};
use order::SortKey;
use output::{Format, Output, OutputOptions};
use path::{PathAnalysis, PathOptions, SenderLogComparison};
use pictures::{PictureOptions, Pictures};
use select::Selection;

use crate::shared::console;
use crate::shared::failure;

/// Analyse the TCP connections in captures
///
/// Reads pcap and pcapng files, also compressed with gzip or zstd, or captures from an interface.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct Analyze {
    /// Captures, each analysed on its own; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "interface", conflicts_with = "interface")]
    files: Vec<PathBuf>,
    /// Capture from this interface until Ctrl-C, not in promiscuous mode
    #[arg(long, short, value_name = "NAME")]
    interface: Option<String>,
    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration, requires = "interface")]
    time: Option<Duration>,
    /// Only these packets, as a tcpdump filter such as 'port 80 and host 10.0.0.1'
    #[arg(long, short, value_name = "FILTER")]
    filter: Option<String>,

    /// Show only this connection, in detail; its number is Wireshark's tcp.stream
    #[arg(long, value_name = "NUMBER", help_heading = "Output")]
    connection: Option<u64>,
    /// Show at most this many connections, those with the most data [default: 50; with --overview 10000, with --json and --csv all]
    #[arg(
        long,
        visible_alias = "top",
        alias = "limit",
        value_name = "N",
        conflicts_with = "connection",
        help_heading = "Output"
    )]
    most: Option<usize>,
    /// Sort the connections by this key, largest first; --most shows the first ones
    #[arg(long, value_name = "KEY", hide_possible_values = false, help_heading = "Output")]
    sort: Option<SortKey>,
    /// Print one line per connection in order of time: endpoints, duration, bytes, cause, congestion
    /// control, ending
    #[arg(long, conflicts_with_all = ["json", "connection", "resent"], help_heading = "Output")]
    overview: bool,
    /// Compare the first capture with the counters of its sender: output of `airtcp send --json`, or sender.jsonl of a lab
    #[arg(long, alias = "sender", value_name = "FILE", conflicts_with = "interface")]
    sender_log: Option<PathBuf>,
    /// List each retransmission: cause, preceding duplicate ACKs, data in flight
    #[arg(long, help_heading = "Output")]
    resent: bool,
    /// Print JSON instead of text: one document
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Output comma-separated values: one row per connection, or with --resent one per retransmission
    #[arg(
        long,
        conflicts_with_all = ["json", "overview", "wide", "path", "sender_log"],
        help_heading = "Output"
    )]
    csv: bool,
    /// Also write the rows of --csv, with their types, into this Parquet file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    parquet: Option<PathBuf>,
    /// Show every column of the tables, and do not break long lines
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    wide: bool,
    #[arg(from_global)]
    quiet: bool,

    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    pictures: PictureOptions,
    #[command(flatten)]
    comments: CommentOptions,
    #[command(flatten)]
    path: PathOptions,
}

const USAGE: &str = "airtcp analyze [OPTIONS] FILE...\n       airtcp analyze [OPTIONS] -i NAME";

const EXAMPLES: &str = "\
Examples:
  All connections of a capture:
    airtcp analyze run.pcap
  One connection, with its retransmissions and with pictures:
    airtcp analyze --connection 3 big.pcapng --resent --plot pictures
  The connections of one host in a period of time:
    airtcp analyze eth0.pcap --overview --host 10.0.0.1 \\
      --between 14:03 14:05
  The ten connections with the longest round-trip times:
    airtcp analyze eth0.pcap --sort rtt --most 10
  Totals as JSON:
    airtcp analyze -f 'tcp port 9000' --json fixed.pcap mobile.pcap |
      jq '.captures[].totals'
  The cause of each slow connection as CSV:
    airtcp analyze eth0.pcap --csv > connections.csv
  Packets from tcpdump, and from an interface:
    tcpdump -w - -s 128 -i eth0 tcp | airtcp analyze -
    airtcp analyze -i eth0 -f 'port 443' --for 30s
  Show in Wireshark why each packet was sent:
    airtcp analyze send.pcap --decisions send.jsonl --comments send.pcapng
    wireshark send.pcapng
  Losses and delays along a path:
    airtcp analyze --path fixed.pcap station.pcap mobile.pcap

The output has a line per connection and direction that carried data, details
if there are few connections, and problems of the capture itself. Frame
numbers are Wireshark's.";

/// Frames read between two checks of the clock and the signals while an interface is busy.
const FRAMES_PER_CHECK: u32 = 1000;
/// Time in nanoseconds to wait for late packets of a finished connection, before the connection is shown.
/// Short, because a user is watching.
const LINGER: i64 = 5_000_000_000;
/// Time to wait after Ctrl-C for packets that the kernel still buffers.
const STOP_DELAY: Duration = Duration::from_millis(250);
const CLEANUP_INTERVAL: Duration = Duration::from_secs(1);
const CAPTURE: Token = Token(0);

impl Analyze {
    const fn format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (false, true) => Format::Csv,
            (false, false) => Format::Text,
        }
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        let filter = self.filter.as_deref();
        let open = |path: &PathBuf| Capture::open(path, filter).map_err(failed);
        let files = self.path.reported_captures(&self.files)?;
        let comments = Commenting::new(&self.comments, files, filter)?;
        // Open all captures first, so that a wrong name is reported before any capture is read.
        let captures = match &self.interface {
            Some(name) => vec![Capture::listen(name, filter).map_err(failed)?],
            None => files.iter().map(open).collect::<Result<_, _>>()?,
        };
        if captures.len() > 1 && self.connection.is_some() {
            return Err(failure::usage("--connection selects from one capture: give one file"));
        }
        let pictures = Pictures::new(&self.pictures, self.connection)?;
        let traces = self.resent || comments.is_some() || pictures.traces() != Traces::None;
        let path = PathAnalysis::new(&self.path, &self.files, filter, traces)?;
        self.selection.check()?;
        let options = OutputOptions {
            format: self.format(),
            only: self.connection,
            limit: self.most,
            resent: self.resent,
            parquet: self.parquet.clone(),
            selection: self.selection.clone(),
            sort: self.sort,
            overview: self.overview,
            wide: self.wide,
        };
        let sender = self.sender_log.as_deref().map(SenderLogComparison::new).transpose()?;
        let mut output = Output::new(options, pictures, comments, path, sender)?;
        for mut capture in captures {
            output.begin(capture.name())?;
            let totals = match self.interface {
                Some(_) => self.listen(&mut capture, &mut output)?,
                None => read(&mut capture, &mut output),
            };
            output.end(&totals)?;
        }
        output.finish()
    }

    fn listen(&self, capture: &mut Capture, output: &mut Output) -> anyhow::Result<Totals> {
        let mut reactor = Reactor::new(Clock::start())?;
        reactor.catch_stop_signals()?;
        let clock = reactor.clock();
        if let Some(descriptor) = capture.descriptor() {
            reactor.register(descriptor, CAPTURE, Interest::Read)?;
        }
        if !self.quiet {
            console::print_status(format_args!("capturing on {}; press Ctrl-C to stop", capture.name()));
        }
        output.begin_live(clock.now(), self.quiet);
        let mut end = self.time.map(|time| clock.now() + time);
        let mut survey =
            Survey::new(output.traces(), Limits { linger: LINGER, ..Limits::default() }).judging_recent();
        let mut next_cleanup = clock.now() + CLEANUP_INTERVAL;
        let mut frames_since_check = 0;
        loop {
            let progress = survey.feed(capture.read(), &mut |finished| output.take(finished));
            output.first(survey.begin());
            if progress == Progress::End || output.has_failed() {
                break;
            }
            frames_since_check =
                if progress == Progress::Nothing { FRAMES_PER_CHECK } else { frames_since_check + 1 };
            if frames_since_check < FRAMES_PER_CHECK {
                continue;
            }
            frames_since_check = 0;
            let until = if progress == Progress::Nothing { next_cleanup } else { Instant::ZERO };
            let deadline = end.map_or(until, |end| end.min(until));
            let stop = Wakeup::stop_signal(reactor.wait(Some(deadline))?);
            let now = clock.now();
            if stop.is_some() {
                end = Some(end.map_or(now + STOP_DELAY, |end| end.min(now + STOP_DELAY)));
            }
            if end.is_some_and(|end| end <= now) {
                break;
            }
            if next_cleanup <= now {
                next_cleanup = now + CLEANUP_INTERVAL;
                let wall = wall(&clock, now);
                survey.finish_old(wall, &mut |finished| output.take(finished));
                output.update_live(now, wall, &survey);
            }
        }
        if let Some(descriptor) = capture.descriptor() {
            reactor.deregister(descriptor, CAPTURE)?;
        }
        survey.lost(capture.lost());
        let mut totals = survey.finish(&mut |finished| output.take(finished));
        // A live capture cuts payload deliberately, so that is not a problem to report.
        totals.problems.remove(Problem::PayloadCut);
        Ok(totals)
    }
}

fn read(capture: &mut Capture, output: &mut Output) -> Totals {
    let mut survey = Survey::new(output.traces(), Limits::default());
    while !output.has_failed() {
        if survey.feed(capture.read(), &mut |finished| output.take(finished)) == Progress::End {
            break;
        }
        output.first(survey.begin());
    }
    survey.finish(&mut |finished| output.take(finished))
}

fn wall(clock: &Clock, now: Instant) -> Timestamp {
    let zero = clock.wall_zero().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(zero.as_nanos() as i64 + now.as_nanos() as i64)
}

pub(crate) fn failed(error: CaptureError) -> anyhow::Error {
    match error {
        CaptureError::File { .. } | CaptureError::Filter { .. } | CaptureError::NoInterface { .. } => {
            failure::usage_of(error)
        }
        CaptureError::Permission { .. } | CaptureError::Interface { .. } => {
            failure::environment(error.to_string())
        }
        CaptureError::NotACapture { .. } | CaptureError::LinkType { .. } => failure::run_of(error),
    }
}
