//! What people and programs see of a path: events, captures, the live line, the summary.
//!
//! A driver calls `Views::after` when a step is done and its packets are on their way. Nothing here is looked at
//! by a machine.

pub mod events;
pub mod live;
pub mod notes;
pub mod pcapng;
pub mod radio;
pub mod summary;

use std::path::PathBuf;
use std::time::SystemTime;

use airwire::time::Instant;
use events::EventLog;
use live::Live;
use notes::Notes;
use radio::RadioCapture;

use crate::output::OutputError;
use crate::path::Path;
use crate::stage::{Record, Recording};

/// The files that somebody asked for, as options of a command.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "program", derive(clap::Args))]
pub struct Files {
    /// Write what happened to every packet as JSON lines
    #[cfg_attr(feature = "program", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub events: Option<PathBuf>,
    /// Write all points to one pcapng file, with a comment on each packet that tells its fate
    #[cfg_attr(feature = "program", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub pcapng: Option<PathBuf>,
    /// Write every radio PDU in transmit order; read it with `tshark --enable-heuristic rlc_udp`
    #[cfg_attr(feature = "program", arg(long, value_name = "FILE", help_heading = "Output"))]
    pub radio_pcap: Option<PathBuf>,
}

/// What a run is, for the first line of its files.
#[derive(Clone, Debug)]
pub struct RunInfo {
    pub scenario: String,
    pub seed: u64,
    pub stages: Vec<String>,
    /// Wall time at `Instant::ZERO`. In virtual time that is `SystemTime::UNIX_EPOCH`, so that files repeat to
    /// the byte.
    pub wall_zero: SystemTime,
}

/// Everything that looks at a path while it runs.
#[derive(Default)]
pub struct Views {
    events: Option<EventLog>,
    notes: Option<Notes>,
    radio: Option<RadioCapture>,
    live: Option<Live>,
}

impl Files {
    /// What a path has to put on record for these.
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
        })
    }

    /// Shows a line on the terminal, if stderr is one.
    #[must_use]
    pub fn with_live_line(mut self) -> Self {
        self.live = Live::on_terminal();
        self
    }

    /// The next moment at which the live line wants to be drawn anew, if there is one.
    pub fn next_tick(&self) -> Option<Instant> {
        self.live.as_ref().map(Live::next_tick)
    }

    pub fn live(&mut self) -> Option<&mut Live> {
        self.live.as_mut()
    }

    /// Takes from the path what it has put on record since the last call.
    pub fn after(&mut self, path: &mut Path) -> Result<(), OutputError> {
        let mut records = path.take_records().into_iter().peekable();
        for pdu in path.take_pdus() {
            // Both as they happened: a PDU carries packets that came in before it.
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
        if let Some(events) = &mut self.events {
            events.record(&record)?;
        }
        if let Some(notes) = &mut self.notes {
            notes.record(record)?;
        }
        Ok(())
    }

    /// Writes what is still held back, and the ends of the files.
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
