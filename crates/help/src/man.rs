//! Manual pages: one per command, with the values of its options in the synopsis, and with the line breaks of
//! its examples.
//!
//! The text after a command's options becomes sections: `Example…:` begins EXAMPLES, `Exit codes:` begins
//! EXIT STATUS, and everything else is NOTES. Paragraphs and lists are filled to the width of the reader's
//! terminal. Only indented text that is not a list keeps its line breaks.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::{Arg, Command};
use clap_mangen::Man;
use roff::{Inline, Roff, bold, italic, roman};

/// Section with commands, which may contain several spaces in a row.
const EXAMPLES: &str = "EXAMPLES";

/// A space at which lines are not broken.
const NO_BREAK: &str = "\u{a0}";

/// Sections that every page of a program has. Each entry is a name and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct CommonSections<'a> {
    /// Environment variables.
    pub environment: &'a [(&'a str, &'a str)],
    /// Files and directories.
    pub files: &'a [(&'a str, &'a str)],
    /// Manual pages of other programs, such as `tcpdump(8)`.
    pub see_also: &'a [&'a str],
}

/// Writes the pages of `command` and all its subcommands into a directory, which is created if it does not
/// exist.
///
/// # Errors
/// If a page cannot be written.
pub fn write(command: Command, common: CommonSections<'_>, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let exit_status = notes(&command).exit_status;
    Pages { common, exit_status: &exit_status, directory }.write(&command, None)
}

struct Pages<'a> {
    common: CommonSections<'a>,
    /// Exit codes of the program, for commands that do not list their own.
    exit_status: &'a str,
    directory: &'a Path,
}

impl Pages<'_> {
    fn write(&self, command: &Command, parent: Option<&Command>) -> io::Result<()> {
        for subcommand in shown(command) {
            self.write(subcommand, Some(command))?;
        }
        let man = Man::new(command.clone());
        let mut file = io::BufWriter::new(airfiles::create(self.directory.join(man.get_filename()))?);
        page(&man, command, &mut file)?;
        let notes = notes(command);
        section("NOTES", &notes.notes).to_writer(&mut file)?;
        let own = Some(notes.exit_status).filter(|own| !own.is_empty());
        section("EXIT STATUS", own.as_deref().unwrap_or(self.exit_status)).to_writer(&mut file)?;
        list("ENVIRONMENT", self.common.environment).to_writer(&mut file)?;
        list("FILES", self.common.files).to_writer(&mut file)?;
        section(EXAMPLES, &notes.examples).to_writer(&mut file)?;
        self.see_also(command, parent).to_writer(&mut file)?;
        file.flush()
    }

    /// Formats the section SEE ALSO, with the page of the parent, the pages next to this one or below it, and
    /// other programs.
    fn see_also(&self, command: &Command, parent: Option<&Command>) -> Roff {
        let page = |command: &Command| Man::new(command.clone()).get_filename();
        let own = page(command);
        let related =
            parent.into_iter().chain(shown(parent.unwrap_or(command))).chain(shown(command)).map(page);
        let related = related.filter(|name| *name != own).map(|name| match name.rsplit_once('.') {
            Some((name, section)) => format!("{name}({section})"),
            None => name,
        });
        let mut pages: Vec<String> = Vec::new();
        for name in related.chain(self.common.see_also.iter().map(|&name| name.to_owned())) {
            if !pages.contains(&name) {
                pages.push(name);
            }
        }
        let mut roff = Roff::default();
        roff.control("SH", ["SEE ALSO"]);
        let last = pages.len().saturating_sub(1);
        for (at, name) in pages.iter().enumerate() {
            let (name, section) = name.split_once('(').unwrap_or((name, ""));
            let comma = if at < last { "," } else { "" };
            roff.text([bold(name), roman(format!("({section}{comma}"))]);
        }
        roff
    }
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set())
}

/// The text after the options of a command, by section.
#[derive(Default)]
struct Notes {
    notes: String,
    exit_status: String,
    examples: String,
}

fn notes(command: &Command) -> Notes {
    let text = command.get_after_long_help().or_else(|| command.get_after_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    let mut notes = Notes::default();
    let mut section = &mut notes.notes;
    let mut begins_block = true;
    for line in text.lines() {
        let is_heading = begins_block && !line.starts_with(' ') && !line.is_empty();
        if is_heading {
            section = match line {
                _ if line.starts_with("Exit code") => &mut notes.exit_status,
                _ if line.starts_with("Example") => &mut notes.examples,
                _ => &mut notes.notes,
            };
        }
        begins_block = line.is_empty();
        // The section has the same title.
        if !(is_heading && ["Exit codes:", "Examples:", "Example:"].contains(&line)) {
            section.push_str(line);
            section.push('\n');
        }
    }
    notes
}

fn page(man: &Man, command: &Command, page: &mut impl Write) -> io::Result<()> {
    man.render_title(page)?;
    man.render_name_section(page)?;
    synopsis(command).to_writer(page)?;
    man.render_description_section(page)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(page)?;
    }
    if shown(command).next().is_some() {
        man.render_subcommands_section(page)?;
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
    let args = || command.get_arguments().filter(|arg| !arg.is_hide_set());
    let mut line = vec![bold(name)];
    for arg in args().filter(|arg| !arg.is_positional()).chain(args().filter(|arg| arg.is_positional())) {
        line.push(roman(" "));
        line.extend(argument(arg));
    }
    if command.has_subcommands() {
        line.extend([roman(" "), italic("COMMAND")]);
    }
    roff.text(line);
    roff
}

/// Formats an argument: `[--bytes SIZE]`, `[-q]`, `FILE...`.
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

/// Formats a section from the text of a help page. Empty without text.
fn section(title: &str, text: &str) -> Roff {
    let mut roff = Roff::default();
    let text = text.trim_end();
    if text.is_empty() {
        return roff;
    }
    roff.control("SH", [title]);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let indent = indent(line);
        if indent == 0 {
            let more =
                std::iter::from_fn(|| lines.next_if(|next| self::indent(next) == 0 && !next.is_empty()));
            let paragraph: Vec<&str> = std::iter::once(line).chain(more).collect();
            roff.control("PP", []);
            roff.text([roman(paragraph.join(" "))]);
        } else if let (Some((name, meaning)), true) = (line.trim_start().split_once("  "), title != EXAMPLES)
        {
            let more = std::iter::from_fn(|| lines.next_if(|next| self::indent(next) > indent));
            let meaning: Vec<&str> = std::iter::once(meaning).chain(more).map(str::trim).collect();
            roff.control("TP", []);
            roff.text([bold(name)]);
            roff.text([roman(meaning.join(" "))]);
        } else {
            let more =
                std::iter::from_fn(|| lines.next_if(|next| next.is_empty() || self::indent(next) >= indent));
            let code: Vec<&str> = std::iter::once(line).chain(more).collect();
            roff.control("PP", []);
            roff.control("nf", []);
            for line in code.join("\n").trim_end().lines() {
                roff.text([roman(line.get(indent..).unwrap_or_default())]);
            }
            roff.control("fi", []);
        }
    }
    roff
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Formats a section of names with their meanings. Empty without entries.
fn list(title: &str, entries: &[(&str, &str)]) -> Roff {
    let mut roff = Roff::default();
    if !entries.is_empty() {
        roff.control("SH", [title]);
    }
    for (name, meaning) in entries {
        roff.control("TP", []);
        roff.text([bold(*name)]);
        roff.text([roman(*meaning)]);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command::new("tool")
            .subcommand(Command::new("hidden").hide(true))
            .subcommand(
                Command::new("send")
                    .about("Send something")
                    .arg(Arg::new("bytes").long("bytes").value_name("SIZE"))
                    .arg(Arg::new("quiet").long("quiet").short('q').action(clap::ArgAction::SetTrue))
                    .arg(Arg::new("file").required(true).num_args(1..).value_name("FILE"))
                    .after_help(
                        "Sizes are\nbytes.\n\nExamples:\n  tool send a \\\n    b\n\n  tool send --bytes 1M c",
                    ),
            )
            .after_help("Exit codes:\n  0  success,\n     or a warning\n  1  failure\n")
    }

    #[test]
    fn man_page_has_synopsis_examples_and_environment() {
        let directory = std::env::temp_dir().join(format!("airhelp-{}", std::process::id()));
        let common = CommonSections {
            environment: &[("TOOL_LOG", "Log level.")],
            files: &[],
            see_also: &["tcpdump(8)"],
        };
        write(command(), common, &directory).unwrap();
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
        let section = |title: &str| {
            let (_, rest) = page.split_once(&format!(".SH {title}\n")).unwrap_or_else(|| panic!("{page}"));
            rest.split("\n.SH").next().unwrap().split("\n.ie ").next().unwrap().trim_end().to_owned()
        };
        let examples = section("EXAMPLES");
        assert_eq!(examples, ".PP\n.nf\ntool send a \\\\\n  b\n\ntool send \\-\\-bytes 1M c\n.fi");
        assert_eq!(section("NOTES"), ".PP\nSizes are bytes.");
        let codes = ".TP\n\\fB0\\fR\nsuccess, or a warning\n.TP\n\\fB1\\fR\nfailure";
        assert_eq!(section("\"EXIT STATUS\""), codes, "taken from the program");
        assert_eq!(section("ENVIRONMENT"), ".TP\n\\fBTOOL_LOG\\fR\nLog level.");
        assert_eq!(section("\"SEE ALSO\""), "\\fBtool\\fR(1),\n\\fBtcpdump\\fR(8)");
        assert!(!page.contains(".SH FILES"), "{page}");
    }
}
