//! The logs of `airtcp` and `airlink`: their options, which levels they show, and how a line is written.
//!
//! Machines know nothing of logs. Drivers hear what machines have to say and make events of the crate `tracing` of it;
//! here such events become lines. Three fields of an event mean something to this crate:
//!
//! * `at`: nanoseconds since 1970, the driver's own time of what happened. Without it the line has the time at which
//!   it is written.
//! * `line`: the whole of what the text format says, in place of spans, message and fields. JSON leaves it out.
//! * `message`, as everywhere with `tracing`.

pub mod apart;
mod fields;
mod lines;
pub mod stderr;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use apart::Apart;
use clap::{ArgAction, Args, ValueEnum};
use lines::{Lines, LogFile};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{FilterExt, Targets, filter_fn};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

/// What to log, and how: the same options in every command.
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

/// How a log is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Format {
    #[default]
    Text,
    Json,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the log {}: {source}", path.display())]
pub struct LogError {
    path: PathBuf,
    source: io::Error,
}

/// The log's file, if it has one.
static FILE: OnceLock<Arc<LogFile>> = OnceLock::new();

/// From now on neither stderr nor the log's file is waited for: threads of their own write them.
///
/// # Errors
/// If there can be no threads.
pub fn write_apart() -> io::Result<()> {
    stderr::write_apart()?;
    FILE.get().map_or(Ok(()), |file| file.write_apart())
}

/// Waits until these threads have written everything, but no longer than this.
pub fn finish(limit: Duration) {
    let file = FILE.get().and_then(|file| file.apart());
    for apart in file.iter().chain(&stderr::apart()) {
        apart.finish(limit);
    }
}

/// Lines that these threads have left out so far: of the log, and of stderr.
pub fn left_out() -> u64 {
    let file = FILE.get().and_then(|file| file.apart());
    file.iter().chain(&stderr::apart()).map(Apart::left_out).sum()
}

/// A log that has begun.
pub struct Log(Option<Arc<LogFile>>);

impl Log {
    /// Whether its file has everything so far. What is missing was told on stderr when it could not be written.
    pub fn is_whole(&self) -> bool {
        self.0.as_ref().is_none_or(|file| file.is_whole())
    }
}

/// The levels, from nothing to everything.
const LEVELS: [LevelFilter; 6] = [
    LevelFilter::OFF,
    LevelFilter::ERROR,
    LevelFilter::WARN,
    LevelFilter::INFO,
    LevelFilter::DEBUG,
    LevelFilter::TRACE,
];

impl LogArgs {
    /// From now on this process, which is called `program`, logs. `usual` is the level without `-v` and `-q`.
    ///
    /// # Panics
    /// If it is called twice.
    pub fn start(&self, program: &'static str, usual: LevelFilter) -> Result<Log, LogError> {
        let asked = std::env::var("RUST_LOG").unwrap_or_default();
        let (targets, misread) = targets(self.level(usual), &asked);
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
        tracing_subscriber::registry().with(shown(lines, targets)).init();
        if let Some(why) = misread {
            // With -q as well: what is shown now is not what was asked for.
            tracing::error!(
                "invalid RUST_LOG={asked} ({why}): use for example debug, or airtcp::recovery=debug"
            );
        }
        Ok(Log(file))
    }

    fn level(&self, usual: LevelFilter) -> LevelFilter {
        let usual = LEVELS.iter().position(|level| *level == usual).unwrap_or(0);
        let level = match self.quiet {
            true => usual.saturating_sub(1),
            false => usual + usize::from(self.verbose),
        };
        LEVELS[level.min(LEVELS.len() - 1)]
    }
}

/// The library that draws: it warns of letters without an outline, which no person has asked for.
const DRAWING: &str = "tiny_skia";

/// The one rule: what RUST_LOG names goes by RUST_LOG, everything else by `-v` and `-q`. A level alone names everything.
fn targets(level: LevelFilter, asked: &str) -> (Targets, Option<String>) {
    let usual = Targets::new().with_default(level).with_target(DRAWING, LevelFilter::OFF);
    if asked.trim().is_empty() {
        return (usual, None);
    }
    match asked.parse::<Targets>() {
        Ok(named) => match named.default_level() {
            Some(_) => (named, None),
            None if asked.contains(DRAWING) => (named.with_default(level), None),
            None => (named.with_default(level).with_target(DRAWING, LevelFilter::OFF), None),
        },
        Err(why) => (usual, Some(why.to_string())),
    }
}

/// The events that `targets` let through. A span has no line of its own, it says whose an event is: every span is known.
fn shown<S>(lines: Lines, targets: Targets) -> impl tracing_subscriber::Layer<S>
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

    fn level(args: &str, usual: LevelFilter) -> LevelFilter {
        Program::try_parse_from(format!("x {args}").split_whitespace()).unwrap().log.level(usual)
    }

    #[test]
    fn each_v_shows_a_level_more_and_q_a_level_less() {
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
        assert!(Program::try_parse_from(["x", "-v", "-q"]).is_err(), "more and less at once");
    }

    #[test]
    fn what_rust_log_names_goes_by_it_and_the_rest_by_the_options() {
        let (info, warn) = (LevelFilter::INFO, LevelFilter::WARN);
        for (asked, level, target, shown) in [
            ("", info, "airtcp::recovery", Level::INFO),
            ("trace", warn, "airtcp::recovery", Level::TRACE),
            ("error", info, "airtcp::recovery", Level::ERROR),
            ("airtcp::recovery=debug", info, "airtcp::recovery", Level::DEBUG),
            ("airtcp::recovery=debug", info, "airtcp::timer", Level::INFO),
            ("airtcp=error", info, "airtcp::timer", Level::ERROR),
            ("airtcp=error", info, "airlink::packet", Level::INFO),
            ("error,airtcp::timer=trace", info, "airtcp::timer", Level::TRACE),
        ] {
            let (targets, misread) = targets(level, asked);
            assert_eq!(misread, None);
            let all = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];
            let last = all.into_iter().rfind(|level| targets.would_enable(target, level));
            assert_eq!(last, Some(shown), "RUST_LOG={asked}: {target}");
        }
    }

    #[test]
    fn the_drawing_library_is_heard_only_if_it_is_named() {
        for (asked, shown) in [
            ("", false),
            ("airtcp=debug", false),
            ("warn", true),
            ("tiny_skia=warn", true),
            ("airtcp=debug,tiny_skia::painter=warn", true),
        ] {
            let (targets, misread) = targets(LevelFilter::TRACE, asked);
            assert_eq!(misread, None);
            assert_eq!(targets.would_enable("tiny_skia::painter", &Level::WARN), shown, "RUST_LOG={asked}");
        }
    }

    /// A log in a file, of what `events` does, as far as this RUST_LOG lets it through.
    fn logged(name: &str, asked: &str, events: impl FnOnce()) -> String {
        let path = std::env::temp_dir().join(format!("airlogs-{}-{name}", std::process::id()));
        let file = Arc::new(LogFile::new("x", path.clone(), File::create(&path).unwrap()));
        let (targets, _) = targets(LevelFilter::WARN, asked);
        let log = tracing_subscriber::registry().with(shown(Lines::to_file(file, false), targets));
        tracing::subscriber::with_default(log, events);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        text
    }

    #[test]
    fn an_event_says_whose_it_is_whatever_else_is_off() {
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
    fn a_file_that_is_full_is_no_whole_log() {
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let file = Arc::new(LogFile::new("x", "/dev/full".into(), full()));
        let log = Log(Some(file.clone()));
        assert!(log.is_whole());
        let shown = shown(Lines::to_file(file, false), Targets::new().with_default(LevelFilter::WARN));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(shown), || {
            tracing::warn!("one line");
        });
        assert!(!log.is_whole());
    }

    #[test]
    fn a_rust_log_that_says_nothing_sensible_is_told_and_changes_nothing() {
        let (targets, misread) = targets(LevelFilter::INFO, "airtcp=loud");
        assert!(misread.is_some());
        assert!(
            targets.would_enable("airtcp", &Level::INFO) && !targets.would_enable("airtcp", &Level::DEBUG)
        );
    }
}
