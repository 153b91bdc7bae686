//! Reading the command line.

use std::io::Write;

use airfiles::Shown;
use clap::Parser;

/// The command line of this process. What is wrong with it is said, and the process ends.
///
/// clap repeats what was typed, control characters too: so it is told of the same words with escapes in their place.
pub fn parse<C: Parser>() -> C {
    C::try_parse().unwrap_or_else(|error| {
        let shown = std::env::args_os().map(|word| Shown(word.to_string_lossy()).to_string());
        if let Err(error) = C::try_parse_from(shown) {
            error.exit()
        }
        // Only without its control characters it is right. If it cannot be said, there is nobody to tell.
        let _ = write!(std::io::stderr().lock(), "{}", Shown(error.render()));
        std::process::exit(error.exit_code())
    })
}
