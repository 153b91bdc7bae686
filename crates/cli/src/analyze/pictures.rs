//! `--plot` and `--xplot`: draw each direction that carried data.

use std::path::PathBuf;

use airtcp_analyze::connections::{Finished, Traces};
use airtcp_numbers::units;
use airtcp_report::emulation::{EmulatedPath, EmulationError, QueuesAndDrops, Radio};
use airtcp_report::panels::Range;
use airtcp_report::plot::Format;
use airtcp_report::{Gallery, WriteError};
use airwire::time::Duration;
use clap::Args;

use crate::shared::{console, failure};

/// Maximum number of connections to draw, because each takes about a dozen files.
const MOST: usize = 20;

#[derive(Debug, Args)]
#[command(next_help_heading = "Pictures")]
pub(super) struct PictureOptions {
    /// Draw each direction that carried data, as SVG, PNG and PDF files in this directory
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Write xplot files into this directory
    #[arg(long, value_name = "DIR")]
    xplot: Option<PathBuf>,
    /// Start time: draw nothing earlier; times count from the capture's first packet
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "plot")]
    from: Option<Duration>,
    /// End time: draw nothing later
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "plot")]
    to: Option<Duration>,
    /// Cut out idle periods; a break in the axis shows where they are, and how long
    #[arg(long, requires = "plot")]
    fold: bool,
    /// Also draw queues and drops, from the file of `airlink run --events`
    #[arg(long, value_name = "FILE", requires = "plot")]
    events: Option<PathBuf>,
    /// Also draw the transmissions of the radio link, from the file of `airlink --radio-pcap` of the same run
    #[arg(long, value_name = "FILE", requires = "plot")]
    radio_pcap: Option<PathBuf>,
}

pub(super) struct Pictures {
    plot: Option<Gallery>,
    xplot: Option<Gallery>,
    link: EmulatedPath,
    range: Range,
    traces: Traces,
    drawn: usize,
    left_out: usize,
    error: Option<WriteError>,
}

impl Pictures {
    /// Creates the output directories. With `only`, only this connection is drawn.
    pub(super) fn new(options: &PictureOptions, only: Option<u64>) -> anyhow::Result<Self> {
        let PictureOptions { plot, xplot, from, to, fold, events, radio_pcap } = options;
        let [from, to] = [from, to].map(|time| time.map(Duration::as_secs_f64));
        let range = Range { from, to, fold: *fold };
        if let (Some(from), Some(to)) = (range.from, range.to)
            && from >= to
        {
            return Err(failure::usage("--from must be before --to"));
        }
        let link = EmulatedPath {
            queues: events.as_deref().map(QueuesAndDrops::read).transpose().map_err(failed)?,
            radio: radio_pcap.as_deref().map(Radio::read).transpose().map_err(failed)?,
        };
        let traces = match (plot.is_some() || xplot.is_some(), only) {
            (false, _) => Traces::None,
            (true, Some(number)) => Traces::Of(number),
            (true, None) => Traces::All,
        };
        let gallery = |directory: &Option<PathBuf>| directory.as_deref().map(Gallery::create).transpose();
        let (plot, xplot) = (gallery(plot)?, gallery(xplot)?);
        Ok(Self { plot, xplot, link, range, traces, drawn: 0, left_out: 0, error: None })
    }

    /// Returns the connections for which the pictures need every packet.
    pub(super) fn traces(&self) -> Traces {
        self.traces.clone()
    }

    pub(super) fn take(&mut self, finished: &Finished) {
        let Some(traces) = &finished.ended.traces else { return };
        let carried = traces.iter().zip(&finished.ended.findings.directions);
        let carried: Vec<_> =
            carried.filter(|(_, findings)| findings.sent_bytes > 0).map(|(trace, _)| trace).collect();
        if carried.is_empty() || self.error.is_some() {
            return;
        }
        if self.drawn == MOST {
            self.left_out += 1;
            return;
        }
        self.drawn += 1;
        for trace in carried {
            let Self { plot, xplot, link, range, .. } = self;
            let plotted = plot.as_mut().map(|gallery| gallery.pictures(trace, &Format::ALL, link, *range));
            let written = xplot.as_mut().map(|gallery| gallery.xplot(trace));
            self.error = [plotted, written].into_iter().flatten().find_map(Result::err);
            if self.error.is_some() {
                return;
            }
        }
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        if self.left_out > 0 {
            console::print_status(format_args!(
                "airtcp: drew the first {MOST} connections; select from the other {} with --connection or --filter",
                self.left_out
            ));
        }
        Ok(())
    }
}

fn failed(error: EmulationError) -> anyhow::Error {
    failure::usage_of(error)
}
