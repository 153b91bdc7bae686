//! Output of events, one line each.

#![expect(clippy::disallowed_methods, reason = "an event without a time gets the time of its line")]

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use airfiles::Escaped;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::background::BackgroundWriter;
use super::fields::Fields;
use super::{LogError, stderr};

enum Sink {
    Stderr,
    File(Arc<LogFile>),
}

/// A log file. It ends at the first write error, because a log with an unmarked gap is misleading.
pub(super) struct LogFile {
    program: &'static str,
    path: PathBuf,
    state: Mutex<State>,
}

enum State {
    Open(File),
    /// Written by a separate thread.
    Background(BackgroundWriter),
    /// The file is a pipe whose reader has closed it.
    ReaderClosed,
    /// The file could not be written.
    Failed,
}

impl LogFile {
    pub(super) fn new(program: &'static str, path: PathBuf, file: File) -> Self {
        Self { program, path, state: Mutex::new(State::Open(file)) }
    }

    fn write(&self, line: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *state {
            State::Open(file) => file,
            State::Background(writer) => return writer.write(line.as_bytes()),
            State::ReaderClosed | State::Failed => return,
        };
        let Err(source) = file.write_all(line.as_bytes()) else { return };
        if source.kind() == io::ErrorKind::BrokenPipe {
            *state = State::ReaderClosed;
            return;
        }
        *state = State::Failed;
        let error = LogError { path: self.path.clone(), source };
        stderr::write(&format!("{}: {}: the log ends here\n", self.program, Escaped(error)));
    }

    pub(super) fn is_complete(&self) -> bool {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open(_) | State::ReaderClosed => true,
            State::Background(writer) => writer.dropped() == 0,
            State::Failed => false,
        }
    }

    /// Moves writing to a separate thread.
    pub(super) fn write_in_background(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Open(file) = &*state else { return Ok(()) };
        let (program, path) = (self.program, self.path.clone());
        let failed = move |source: &io::Error| {
            let why = LogError { path: path.clone(), source: source.kind().into() };
            stderr::write(&format!("{program}: {why}: lines are dropped until there is room\n"));
        };
        *state = State::Background(BackgroundWriter::start("log", file.try_clone()?, None, failed)?);
        Ok(())
    }

    /// Returns the separate thread, if there is one.
    pub(super) fn background(&self) -> Option<BackgroundWriter> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Background(writer) => Some(writer.clone()),
            _ => None,
        }
    }
}

enum Style {
    Text {
        /// The local time zone, as tcpdump prints local times.
        zone: TimeZone,
        colours: bool,
    },
    Json,
}

/// A `tracing` layer that writes events as lines.
pub(super) struct Lines {
    sink: Sink,
    style: Style,
}

impl Lines {
    pub(super) fn to_stderr(json: bool) -> Self {
        Self { sink: Sink::Stderr, style: Style::new(json, io::stderr().is_terminal()) }
    }

    pub(super) fn to_file(file: Arc<LogFile>, json: bool) -> Self {
        Self { sink: Sink::File(file), style: Style::new(json, false) }
    }

    fn write(&self, line: &str) {
        match &self.sink {
            Sink::Stderr => stderr::write(line),
            Sink::File(file) => file.write(line),
        }
    }
}

impl Style {
    fn new(json: bool, colours: bool) -> Self {
        if json { Self::Json } else { Self::Text { zone: TimeZone::system(), colours } }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let at = fields.at.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            now.as_nanos() as u64
        });
        let spans: Vec<_> =
            context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()).collect();
        let with_spans = |each: &mut dyn FnMut(&'static str, &Fields)| {
            for span in &spans {
                if let Some(fields) = span.extensions().get::<Fields>() {
                    each(span.name(), fields);
                }
            }
        };
        let metadata = event.metadata();
        let line = match &self.style {
            Style::Text { zone, colours } => {
                let mut line = String::with_capacity(200);
                write_time(&mut line, at, zone);
                write_level(&mut line, *metadata.level(), *colours);
                match &fields.line {
                    Some(complete) => line.push_str(&escaped(complete)),
                    None => {
                        let mut text = String::new();
                        with_spans(&mut |name, fields| {
                            let _ = write!(text, "{name}{{");
                            fields.write_text(&mut text);
                            text.push_str("}: ");
                        });
                        text.push_str(&fields.message);
                        if !fields.others.is_empty() && !fields.message.is_empty() {
                            text.push(' ');
                        }
                        fields.write_text(&mut text);
                        line.push_str(&escaped(&text));
                    }
                }
                line
            }
            Style::Json => {
                let mut object = Map::new();
                object.insert("level".into(), metadata.level().as_str().into());
                object.insert("target".into(), metadata.target().into());
                if !fields.message.is_empty() {
                    object.insert("message".into(), fields.message.as_str().into());
                }
                with_spans(&mut |name, fields| {
                    let mut span = Map::new();
                    fields.put_into(&mut span);
                    object.insert(name.into(), Value::Object(span));
                });
                fields.put_into(&mut object);
                let rest = Value::Object(object).to_string();
                // Insert all nine decimals as text: a 64-bit float cannot represent them.
                let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
                format!("{{\"wall\":{seconds}.{nanos:09},{}", &rest[1..])
            }
        };
        self.write(&(line + "\n"));
    }
}

/// Escapes control characters from the names of devices, files and scenarios. Most lines contain
/// none and are not copied.
fn escaped(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) { Escaped(text).to_string().into() } else { text.into() }
}

/// Writes the local time in the format of `tcpdump`, without the date.
fn write_time(line: &mut String, at: u64, zone: &TimeZone) {
    // 64 bits of nanoseconds last until 2554.
    let time = Timestamp::from_nanosecond(i128::from(at)).unwrap_or_default().to_zoned(zone.clone());
    let micros = time.subsec_nanosecond() / 1000;
    let _ = write!(line, "{:02}:{:02}:{:02}.{micros:06} ", time.hour(), time.minute(), time.second());
}

fn write_level(line: &mut String, level: Level, colours: bool) {
    let colour = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    };
    let _ = match colours {
        true => write!(line, "\x1b[{colour}m{level:>5}\x1b[0m "),
        false => write!(line, "{level:>5} "),
    };
}
