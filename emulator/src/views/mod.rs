//! Views of a path: event log, captures, live line, summary. `docs/reference/link-views.md` describes the
//! files.
//!
//! A driver calls [`Views::after`] after each step, when the packets have left. Views do not influence the
//! path.

mod comments;
mod events;
mod live;
pub mod pcapng;
pub mod radio;
pub mod summary;

use std::path::PathBuf;
use std::time::SystemTime;

use airwire::time::{Duration, Instant};
use comments::CommentedCapture;
use events::EventLog;
use live::Live;
use radio::RadioCapture;

use crate::output::OutputError;
use crate::path::Path;
use crate::stage::{Incident, RadioLayer, Record, Recording};

/// Maximum length of lines that people read in a terminal, in characters.
pub const TERMINAL_WIDTH: usize = 80;

/// The requested files, as options of a command.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "program", derive(clap::Args))]
pub struct Files {
    /// Write the events of every packet as JSON lines
    #[cfg_attr(feature = "program", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub events: Option<PathBuf>,
    /// Write the packets at both ends and at each drop to a pcapng file, with their fate as comments
    #[cfg_attr(feature = "program", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub pcapng: Option<PathBuf>,
    /// Write every radio PDU in transmit order to a pcap file; read it with `tshark --enable-heuristic
    /// rlc_udp`
    #[cfg_attr(feature = "program", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub radio_pcap: Option<PathBuf>,
    /// Layer of LTE and NR whose PDUs --radio-pcap writes
    #[cfg_attr(
        feature = "program",
        arg(
            long,
            value_name = "LAYER",
            value_enum,
            default_value_t,
            requires = "radio_pcap",
            help_heading = "Output"
        )
    )]
    pub radio_layer: RadioLayer,
}

/// Information about a run, for the start of each file.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Names of the stages in the order of the path. A record identifies a stage by its index.
    pub stages: Vec<String>,
    /// Wall-clock time at `Instant::ZERO`. In virtual time this is `SystemTime::UNIX_EPOCH`, so that a
    /// repeated run writes identical files.
    pub wall_zero: SystemTime,
}

/// A listener to the records of a path, such as a log.
pub trait Listener {
    /// Called for each event of a packet.
    fn record(&mut self, record: &Record);
    /// Called for each incident of a stage.
    fn incident(&mut self, incident: &Incident);
}

/// The requested views of one run.
#[derive(Default)]
pub struct Views {
    events: Option<EventLog>,
    pcapng: Option<CommentedCapture>,
    radio: Option<RadioCapture>,
    live: Option<Live>,
    listener: Option<Box<dyn Listener>>,
}

impl Files {
    /// The recording that these files require.
    pub fn recording(&self) -> Recording {
        if self.pcapng.is_some() {
            Recording::Bytes
        } else if self.events.is_some() {
            Recording::Events
        } else {
            Recording::Off
        }
    }

    /// The layers whose radio PDUs these files require.
    pub fn radio(&self) -> impl Iterator<Item = RadioLayer> {
        let capture = self.radio_pcap.as_ref().map(|_| self.radio_layer);
        let comments = self.pcapng.as_ref().map(|_| RadioLayer::Rlc);
        capture.into_iter().chain(comments)
    }
}

impl Views {
    /// Creates the files and writes their headers.
    pub fn create(files: &Files, run: &RunInfo) -> Result<Self, OutputError> {
        Ok(Self {
            events: files.events.as_deref().map(|path| EventLog::create(path, run)).transpose()?,
            pcapng: files.pcapng.as_deref().map(|path| CommentedCapture::create(path, run)).transpose()?,
            radio: files
                .radio_pcap
                .as_deref()
                .map(|path| RadioCapture::create(path, files.radio_layer, run))
                .transpose()?,
            ..Self::default()
        })
    }

    /// Adds the live line on stderr, if stderr is a terminal.
    #[must_use]
    pub fn with_live_line(mut self) -> Self {
        self.live = Live::on_terminal();
        self
    }

    /// Adds a listener to everything that the path records.
    #[must_use]
    pub fn with_listener(mut self, listener: Option<Box<dyn Listener>>) -> Self {
        self.listener = listener;
        self
    }

    /// Time of the next update of the live line. `None`: it is not shown.
    pub fn next_tick(&self) -> Option<Instant> {
        self.live.as_ref().map(Live::next_tick)
    }

    /// Draws the live line if it is due, and calls `lateness_p99` only in this case.
    pub fn draw_live_line(
        &mut self,
        now: Instant,
        path: &Path,
        lateness_p99: impl FnOnce() -> Option<Duration>,
    ) {
        if let Some(live) = self.live.as_mut().filter(|live| live.next_tick() <= now) {
            live.draw(now, path, lateness_p99());
        }
    }

    /// Writes the records since the last call.
    pub fn after(&mut self, path: &mut Path) -> Result<(), OutputError> {
        let incidents = path.take_incidents();
        if let Some(listener) = &mut self.listener {
            incidents.iter().for_each(|incident| listener.incident(incident));
        }
        let mut records = path.take_records().into_iter().peekable();
        for pdu in path.take_pdus() {
            // Merge in order of time, since a PDU's packets entered before the PDU.
            while let Some(record) = records.next_if(|record| record.at <= pdu.at) {
                self.record(record)?;
            }
            if let Some(radio) = &mut self.radio {
                radio.pdu(&pdu)?;
            }
            if let Some(pcapng) = &mut self.pcapng {
                pcapng.pdu(&pdu);
            }
        }
        for record in records {
            self.record(record)?;
        }
        Ok(())
    }

    fn record(&mut self, record: Record) -> Result<(), OutputError> {
        if let Some(listener) = &mut self.listener {
            listener.record(&record);
        }
        if let Some(events) = &mut self.events {
            events.record(&record)?;
        }
        if let Some(pcapng) = &mut self.pcapng {
            pcapng.record(record)?;
        }
        Ok(())
    }

    /// Clears the live line, and completes all files.
    pub fn finish(mut self, path: &mut Path, now: Instant) -> Result<(), OutputError> {
        self.after(path)?;
        if let Some(live) = self.live {
            live.clear();
        }
        if let Some(events) = self.events {
            events.finish(path, now)?;
        }
        if let Some(pcapng) = self.pcapng {
            pcapng.finish()?;
        }
        if let Some(radio) = self.radio {
            radio.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
