//! Views of a path for people and programs: events, captures, the live line, the summary. `docs/reference/link-views.md` describes the
//! files.
//!
//! A driver calls [`Views::after`] when a step is done and its packets are on their way. Views never change what
//! happens.

mod events;
mod live;
mod notes;
pub mod pcapng;
pub mod radio;
pub mod summary;

use std::path::PathBuf;
use std::time::SystemTime;

use airwire::time::{Duration, Instant};
use events::EventLog;
use live::Live;
use notes::Notes;
use radio::RadioCapture;

use crate::output::OutputError;
use crate::path::Path;
use crate::stage::{Incident, Record, Recording};

/// The files that somebody asked for, as options of a command.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "program", derive(clap::Args))]
pub struct Files {
    /// Write the events of every packet as JSON lines
    #[cfg_attr(feature = "program", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub events: Option<PathBuf>,
    /// Write the packets at both ends and at each drop to a pcapng file, with their fate as comments
    #[cfg_attr(feature = "program", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub pcapng: Option<PathBuf>,
    /// Write every radio PDU in transmit order to a pcap file; read it with `tshark --enable-heuristic rlc_udp`
    #[cfg_attr(feature = "program", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub radio_pcap: Option<PathBuf>,
}

/// What was run, for the beginnings of files.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// The scenario's name.
    pub scenario: String,
    /// The seed of all random streams.
    pub seed: u64,
    /// The names of the stages, in the order of the path: a record names a stage by its index.
    pub stages: Vec<String>,
    /// Wall time at `Instant::ZERO`. In virtual time that is `SystemTime::UNIX_EPOCH`: then a repeated run writes the
    /// same files, byte for byte.
    pub wall_zero: SystemTime,
}

/// Hears what happens as views are told of it; a log, for example.
pub trait Listener {
    /// Something happened to a packet.
    fn record(&mut self, record: &Record);
    /// Something befell a stage.
    fn incident(&mut self, incident: &Incident);
}

/// The views of one run: those that were asked for.
#[derive(Default)]
pub struct Views {
    events: Option<EventLog>,
    notes: Option<Notes>,
    radio: Option<RadioCapture>,
    live: Option<Live>,
    listener: Option<Box<dyn Listener>>,
}

impl Files {
    /// What a path has to record for these files.
    pub fn recording(&self) -> Recording {
        if self.pcapng.is_some() {
            Recording::Bytes
        } else if self.events.is_some() {
            Recording::Events
        } else {
            Recording::Off
        }
    }

    /// Whether a path has to hand out its radio PDUs.
    pub fn radio(&self) -> bool {
        self.radio_pcap.is_some() || self.pcapng.is_some()
    }
}

impl Views {
    /// Creates the files, with their beginnings.
    pub fn create(files: &Files, run: &RunInfo) -> Result<Self, OutputError> {
        Ok(Self {
            events: files.events.as_deref().map(|path| EventLog::create(path, run)).transpose()?,
            notes: files.pcapng.as_deref().map(|path| Notes::create(path, run)).transpose()?,
            radio: files
                .radio_pcap
                .as_deref()
                .map(|path| RadioCapture::create(path, run.wall_zero))
                .transpose()?,
            live: None,
            listener: None,
        })
    }

    /// With the live line on stderr, if that is a terminal.
    #[must_use]
    pub fn with_live_line(mut self) -> Self {
        self.live = Live::on_terminal();
        self
    }

    /// With somebody who hears all that the path records.
    #[must_use]
    pub fn with_listener(mut self, listener: Option<Box<dyn Listener>>) -> Self {
        self.listener = listener;
        self
    }

    /// When the live line is to be drawn next. `None`: there is none.
    pub fn next_tick(&self) -> Option<Instant> {
        self.live.as_ref().map(Live::next_tick)
    }

    /// Draws the live line, if there is one and it is time to. Only then asks for the 99th percentile of the lateness.
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

    /// Writes what the path has recorded since the last call.
    pub fn after(&mut self, path: &mut Path) -> Result<(), OutputError> {
        let incidents = path.take_incidents();
        if let Some(listener) = &mut self.listener {
            incidents.iter().for_each(|incident| listener.incident(incident));
        }
        let mut records = path.take_records().into_iter().peekable();
        for pdu in path.take_pdus() {
            // In the order of time: a PDU carries packets that entered before it.
            while let Some(record) = records.next_if(|record| record.at <= pdu.at) {
                self.record(record)?;
            }
            if let Some(radio) = &mut self.radio {
                radio.pdu(&pdu)?;
            }
            if let Some(notes) = &mut self.notes {
                notes.pdu(&pdu);
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
        if let Some(notes) = &mut self.notes {
            notes.record(record)?;
        }
        Ok(())
    }

    /// Clears the live line, and writes what is held back and the ends of the files.
    pub fn finish(mut self, path: &mut Path, now: Instant) -> Result<(), OutputError> {
        self.after(path)?;
        if let Some(live) = self.live {
            live.clear();
        }
        if let Some(events) = self.events {
            events.finish(path, now)?;
        }
        if let Some(notes) = self.notes {
            notes.finish()?;
        }
        if let Some(radio) = self.radio {
            radio.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
