//! Parsing of the command line.

use std::ffi::OsString;
use std::io::Write;

use airfiles::Escaped;
use clap::{Command, Error, Parser};

/// Parses the command line of this process. If it is invalid, prints a message and exits. `adapt` changes the
/// derived definition.
///
/// clap repeats the user's input in its messages, including control characters. An invalid command line is
/// therefore parsed again with these characters escaped.
pub fn parse<C: Parser>(adapt: impl Fn(Command) -> Command) -> C {
    let read = |words: &mut dyn Iterator<Item = OsString>| -> Result<C, Error> {
        let mut command = adapt(C::command());
        let mut matches = command.try_get_matches_from_mut(words)?;
        C::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    };
    read(&mut std::env::args_os()).unwrap_or_else(|error| {
        let shown =
            std::env::args_os().map(|word| OsString::from(Escaped(word.to_string_lossy()).to_string()));
        if let Err(error) = read(&mut shown.into_iter()) {
            error.exit()
        }
        // The escaped words are valid, so the error is due to the control characters. Errors of writing are
        // ignored.
        let _ = write!(std::io::stderr().lock(), "{}", Escaped(error.render()));
        std::process::exit(error.exit_code())
    })
}
