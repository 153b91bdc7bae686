//! Manual pages: one for each command, with the values of its options in the synopsis, and its examples line by line.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::{Arg, Command};
use clap_mangen::Man;
use roff::{Inline, Roff, bold, italic, roman};

/// Does not end a line.
const NO_BREAK: &str = "\u{a0}";

/// Writes the pages of `command` and all its subcommands into a directory, which is made if it is not there.
///
/// # Errors
/// If one of them cannot be written.
pub fn write(command: Command, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_built(&command, directory)
}

fn write_built(command: &Command, directory: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_built(subcommand, directory)?;
    }
    let man = Man::new(command.clone());
    let mut file = io::BufWriter::new(airfiles::create(directory.join(man.get_filename()))?);
    page(&man, command, &mut file)?;
    file.flush()
}

fn page(man: &Man, command: &Command, page: &mut impl Write) -> io::Result<()> {
    man.render_title(page)?;
    man.render_name_section(page)?;
    synopsis(command).to_writer(page)?;
    man.render_description_section(page)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(page)?;
    }
    if command.get_subcommands().any(|subcommand| !subcommand.is_hide_set()) {
        man.render_subcommands_section(page)?;
    }
    if let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        as_written(&text.to_string()).to_writer(page)?;
    }
    Ok(())
}

fn synopsis(command: &Command) -> Roff {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut roff = Roff::default();
    roff.control("SH", ["SYNOPSIS"]);
    if let Some(usage) = command.get_overridden_usage() {
        for (index, form) in usage.to_string().lines().map(str::trim).enumerate() {
            if index > 0 {
                roff.control("br", []);
            }
            let rest = form.strip_prefix(name);
            roff.text(match rest {
                Some(rest) => vec![bold(name), roman(rest)],
                None => vec![roman(form)],
            });
        }
        return roff;
    }
    let shown = || command.get_arguments().filter(|arg| !arg.is_hide_set());
    let mut line = vec![bold(name)];
    for arg in shown().filter(|arg| !arg.is_positional()).chain(shown().filter(|arg| arg.is_positional())) {
        line.push(roman(" "));
        line.extend(argument(arg));
    }
    if command.has_subcommands() {
        line.extend([roman(" "), italic("COMMAND")]);
    }
    roff.text(line);
    roff
}

/// `[--bytes SIZE]`, `[-q]`, `FILE...`
fn argument(arg: &Arg) -> Vec<Inline> {
    let values = match arg.get_action().takes_values() {
        true => arg.get_value_names().map_or_else(
            || arg.get_id().as_str().to_uppercase(),
            |names| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(NO_BREAK),
        ),
        false => String::new(),
    };
    let values = values.replace(' ', NO_BREAK);
    let option = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => vec![bold(format!("-{short}")), roman("|"), bold(format!("--{long}"))],
        (Some(short), None) => vec![bold(format!("-{short}"))],
        (None, Some(long)) => vec![bold(format!("--{long}"))],
        (None, None) => Vec::new(),
    };
    let gap = if option.is_empty() || values.is_empty() { "" } else { NO_BREAK };
    let more = if arg.get_num_args().is_some_and(|range| range.max_values() > 1) { "..." } else { "" };
    let (open, close) = if arg.is_required_set() { ("", "") } else { ("[", "]") };
    let end = [roman(gap), italic(values), roman(more), roman(close)];
    std::iter::once(roman(open)).chain(option).chain(end).collect()
}

/// Not filled: examples are to be typed as they stand.
fn as_written(text: &str) -> Roff {
    let mut roff = Roff::default();
    roff.control("SH", ["NOTES AND EXAMPLES"]);
    roff.control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command::new("tool").subcommand(Command::new("hidden").hide(true)).subcommand(
            Command::new("send")
                .about("Send something")
                .arg(Arg::new("bytes").long("bytes").value_name("SIZE"))
                .arg(Arg::new("quiet").long("quiet").short('q').action(clap::ArgAction::SetTrue))
                .arg(Arg::new("file").required(true).num_args(1..).value_name("FILE"))
                .after_help("Examples:\n  tool send a \\\n    b\n\n  tool send --bytes 1M c"),
        )
    }

    #[test]
    fn a_page_has_values_in_its_synopsis_and_examples_line_by_line() {
        let directory = std::env::temp_dir().join(format!("airhelp-{}", std::process::id()));
        write(command(), &directory).unwrap();
        let mut files: Vec<_> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let page = fs::read_to_string(directory.join("tool-send.1")).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(files, ["tool-send.1", "tool.1"]);
        assert!(page.contains("[\\fB\\-\\-bytes\\fR\u{a0}\\fISIZE\\fR]"), "{page}");
        assert!(page.contains("[\\fB\\-q\\fR|\\fB\\-\\-quiet\\fR"), "{page}");
        assert!(page.contains("\\fIFILE\\fR..."), "{page}");
        let examples = page.split_once(".nf\n").unwrap().1.split_once("\n.fi").unwrap().0;
        assert_eq!(examples, "Examples:\n  tool send a \\\\\n    b\n\n  tool send \\-\\-bytes 1M c",);
    }
}
