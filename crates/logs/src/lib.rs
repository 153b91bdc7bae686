//! The logs of `airtcp` and `airlink`: options, levels and line formats.
//!
//! The protocol state machines do not depend on a logging library. Drivers turn their events into events of the
//! crate `tracing`, and this crate writes those as lines. Three fields of an event have a special meaning:
//!
//! * `at`: the time of the event according to the driver, in nanoseconds since 1970. Without it, a line shows the
//!   time at which it is written.
//! * `line`: the complete line of the text format, in place of spans, message and fields. JSON omits it.
//! * `message`: the message, as everywhere with `tracing`.
//!
//! ```
//! use clap::Parser;
//! use tracing::level_filters::LevelFilter;
//!
//! #[derive(Parser)]
//! struct Cli {
//!     #[command(flatten)]
//!     log: airlogs::LogArgs,
//! }
//!
//! // `-q` hides warnings.
//! let cli = Cli::parse_from(["example", "-q"]);
//! let log = cli.log.start("example", LevelFilter::WARN)?;
//! tracing::warn!("the link is down");
//! assert!(log.is_complete());
//! # Ok::<(), airlogs::LogError>(())
//! ```

#![warn(missing_docs)]

pub mod background;
mod fields;
mod lines;
pub mod stderr;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use background::BackgroundWriter;
use clap::{ArgAction, Args, ValueEnum};
use lines::{Lines, LogFile};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{FilterExt, Targets, filter_fn};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

/// Log options, which are the same in every command.
#[derive(Clone, Debug, Args)]
pub struct LogArgs {
    /// Log more (repeatable); the main --help of the program lists the levels
    #[arg(long, short, global = true, action = ArgAction::Count, conflicts_with = "quiet", help_heading = "Log")]
    verbose: u8,
    /// Print less: no progress or success messages, and one log level less
    #[arg(long, short, global = true, help_heading = "Log")]
    pub quiet: bool,
    /// Log format: text with local times as in tcpdump, or one JSON object per line
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t, help_heading = "Log")]
    log_format: Format,
    /// Write the log to this file instead of stderr
    #[arg(long, global = true, value_name = "FILE", help_heading = "Log")]
    log_file: Option<PathBuf>,
}

/// Log format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Format {
    #[default]
    Text,
    Json,
}

/// Error: the log file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the log {}: {source}", path.display())]
pub struct LogError {
    path: PathBuf,
    source: io::Error,
}

/// The log file, if there is one.
static FILE: OnceLock<Arc<LogFile>> = OnceLock::new();

/// Starts threads that write stderr and the log file, so that the caller never waits for either.
///
/// # Errors
/// If the threads cannot be started.
pub fn write_in_background() -> io::Result<()> {
    stderr::write_in_background()?;
    FILE.get().map_or(Ok(()), |file| file.write_in_background())
}

/// Waits at most `limit` for each of these threads to write all its lines.
pub fn finish(limit: Duration) {
    let file = FILE.get().and_then(|file| file.background());
    for writer in file.iter().chain(&stderr::background()) {
        writer.finish(limit);
    }
}

/// Returns the number of lines that these threads have dropped so far, in the log and on stderr.
pub fn dropped_lines() -> u64 {
    let file = FILE.get().and_then(|file| file.background());
    file.iter().chain(&stderr::background()).map(BackgroundWriter::dropped).sum()
}

/// A log that has been started.
pub struct Log(Option<Arc<LogFile>>);

impl Log {
    /// Returns whether the log file is complete so far. Write errors were already reported on
    /// stderr.
    pub fn is_complete(&self) -> bool {
        self.0.as_ref().is_none_or(|file| file.is_complete())
    }
}

/// The levels, from the least to the most verbose.
const LEVELS: [LevelFilter; 6] = [
    LevelFilter::OFF,
    LevelFilter::ERROR,
    LevelFilter::WARN,
    LevelFilter::INFO,
    LevelFilter::DEBUG,
    LevelFilter::TRACE,
];

impl LogArgs {
    /// Starts logging for this process, whose name is `program`. `default_level` is the level without `-v`
    /// and `-q`.
    ///
    /// # Panics
    /// If called twice.
    pub fn start(&self, program: &'static str, default_level: LevelFilter) -> Result<Log, LogError> {
        let rust_log = std::env::var("RUST_LOG").unwrap_or_default();
        let (targets, error) = targets(self.level(default_level), &rust_log);
        let json = self.log_format == Format::Json;
        let file = match &self.log_file {
            None => None,
            Some(path) => {
                let file =
                    airfiles::create(path).map_err(|source| LogError { path: path.clone(), source })?;
                let file = Arc::new(LogFile::new(program, path.clone(), file));
                Some(FILE.get_or_init(|| file).clone())
            }
        };
        let lines = match &file {
            None => Lines::to_stderr(json),
            Some(file) => Lines::to_file(file.clone(), json),
        };
        tracing_subscriber::registry().with(filtered(lines, targets)).init();
        if let Some(why) = error {
            // Reported even with -q, because the log differs from the user's request.
            tracing::error!(
                "invalid RUST_LOG={rust_log} ({why}): use for example debug, or airtcp::recovery=debug"
            );
        }
        Ok(Log(file))
    }

    fn level(&self, default_level: LevelFilter) -> LevelFilter {
        let default_level = LEVELS.iter().position(|level| *level == default_level).unwrap_or(0);
        let level = match self.quiet {
            true => default_level.saturating_sub(1),
            false => default_level + usize::from(self.verbose),
        };
        LEVELS[level.min(LEVELS.len() - 1)]
    }
}

/// Target of the drawing library, which warns about glyphs without an outline. These warnings are shown only if
/// RUST_LOG enables them.
const DRAWING_LIBRARY: &str = "tiny_skia";

/// Combines the options with RUST_LOG: RUST_LOG sets the level of the targets that it names, and
/// `-v` and `-q` set the rest. A bare level in RUST_LOG applies to all targets.
fn targets(level: LevelFilter, rust_log: &str) -> (Targets, Option<String>) {
    let without_rust_log = Targets::new().with_default(level).with_target(DRAWING_LIBRARY, LevelFilter::OFF);
    if rust_log.trim().is_empty() {
        return (without_rust_log, None);
    }
    match rust_log.parse::<Targets>() {
        Ok(named) => match named.default_level() {
            Some(_) => (named, None),
            None if rust_log.contains(DRAWING_LIBRARY) => (named.with_default(level), None),
            None => (named.with_default(level).with_target(DRAWING_LIBRARY, LevelFilter::OFF), None),
        },
        Err(why) => (without_rust_log, Some(why.to_string())),
    }
}

/// Filters events by `targets`. All spans pass, because they identify the connections of events.
fn filtered<S>(lines: Lines, targets: Targets) -> impl tracing_subscriber::Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let spans = filter_fn(|metadata| metadata.is_span()).with_max_level_hint(LevelFilter::ERROR);
    lines.with_filter(targets.or(spans))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use clap::Parser;
    use tracing::Level;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        log: LogArgs,
    }

    fn level(args: &str, default_level: LevelFilter) -> LevelFilter {
        Program::try_parse_from(format!("x {args}").split_whitespace()).unwrap().log.level(default_level)
    }

    #[test]
    fn verbose_and_quiet_options_change_level() {
        for (args, of_warn, of_info) in [
            ("-q", LevelFilter::ERROR, LevelFilter::WARN),
            ("", LevelFilter::WARN, LevelFilter::INFO),
            ("-v", LevelFilter::INFO, LevelFilter::DEBUG),
            ("-vv", LevelFilter::DEBUG, LevelFilter::TRACE),
            ("-vvv", LevelFilter::TRACE, LevelFilter::TRACE),
            ("-v -v --verbose", LevelFilter::TRACE, LevelFilter::TRACE),
        ] {
            assert_eq!(level(args, LevelFilter::WARN), of_warn, "{args}");
            assert_eq!(level(args, LevelFilter::INFO), of_info, "{args}");
        }
        assert!(Program::try_parse_from(["x", "-v", "-q"]).is_err(), "-v and -q exclude each other");
    }

    #[test]
    fn rust_log_overrides_level_of_named_targets() {
        let (info, warn) = (LevelFilter::INFO, LevelFilter::WARN);
        for (rust_log, level, target, expected) in [
            ("", info, "airtcp::recovery", Level::INFO),
            ("trace", warn, "airtcp::recovery", Level::TRACE),
            ("error", info, "airtcp::recovery", Level::ERROR),
            ("airtcp::recovery=debug", info, "airtcp::recovery", Level::DEBUG),
            ("airtcp::recovery=debug", info, "airtcp::timer", Level::INFO),
            ("airtcp=error", info, "airtcp::timer", Level::ERROR),
            ("airtcp=error", info, "airlink::packet", Level::INFO),
            ("error,airtcp::timer=trace", info, "airtcp::timer", Level::TRACE),
        ] {
            let (targets, error) = targets(level, rust_log);
            assert_eq!(error, None);
            let all = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];
            let last = all.into_iter().rfind(|level| targets.would_enable(target, level));
            assert_eq!(last, Some(expected), "RUST_LOG={rust_log}: {target}");
        }
    }

    #[test]
    fn drawing_library_logs_only_if_rust_log_allows() {
        for (rust_log, expected) in [
            ("", false),
            ("airtcp=debug", false),
            ("warn", true),
            ("tiny_skia=warn", true),
            ("airtcp=debug,tiny_skia::painter=warn", true),
        ] {
            let (targets, error) = targets(LevelFilter::TRACE, rust_log);
            assert_eq!(error, None);
            assert_eq!(
                targets.would_enable("tiny_skia::painter", &Level::WARN),
                expected,
                "RUST_LOG={rust_log}"
            );
        }
    }

    /// Returns the text of a log file after `events` ran with RUST_LOG set to `rust_log`.
    fn logged(name: &str, rust_log: &str, events: impl FnOnce()) -> String {
        let path = std::env::temp_dir().join(format!("airlogs-{}-{name}", std::process::id()));
        let file = Arc::new(LogFile::new("x", path.clone(), File::create(&path).unwrap()));
        let (targets, _) = targets(LevelFilter::WARN, rust_log);
        let log = tracing_subscriber::registry().with(filtered(Lines::to_file(file, false), targets));
        tracing::subscriber::with_default(log, events);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        text
    }

    #[test]
    fn event_shows_span_whose_target_is_off() {
        let log = logged("spans", "off,airtcp::connection=debug", || {
            let span = tracing::error_span!(target: "airtcp", "connection", local = 1);
            let _inside = span.enter();
            tracing::info!(target: "airtcp::connection", "established");
            tracing::error!(target: "airtcp::timer", "fired");
        });
        assert!(log.ends_with("connection{local=1}: established\n"), "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    }

    #[test]
    fn log_is_incomplete_after_write_error() {
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let file = Arc::new(LogFile::new("x", "/dev/full".into(), full()));
        let log = Log(Some(file.clone()));
        assert!(log.is_complete());
        let layer = filtered(Lines::to_file(file, false), Targets::new().with_default(LevelFilter::WARN));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!("one line");
        });
        assert!(!log.is_complete());
    }

    #[test]
    fn invalid_rust_log_is_reported_and_ignored() {
        let (targets, error) = targets(LevelFilter::INFO, "airtcp=loud");
        assert!(error.is_some());
        assert!(
            targets.would_enable("airtcp", &Level::INFO) && !targets.would_enable("airtcp", &Level::DEBUG)
        );
    }
}
