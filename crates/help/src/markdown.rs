//! The command line of a program as one Markdown page.

use std::fmt::Write;

use airtcp_numbers::table::wrapped;
use clap::{Arg, Command};

const WIDTH: usize = 100;

/// Returns the page of a program: its commands, then the options and examples of each. Global options are
/// described once.
pub fn page(command: Command) -> String {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut text = format!("# {} command line\n\n", command.get_name());
    text += &wrapped("", "This page is generated from the program's own help texts.", WIDTH);
    describe(&command, true, &mut text);
    text
}

fn describe(command: &Command, is_program: bool, text: &mut String) {
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
    for paragraph in about.iter().flat_map(|about| about.split("\n\n")) {
        *text += &format!("\n{}", wrapped("", paragraph, WIDTH));
    }
    let forms = usage(command);
    match &forms[..] {
        [form] => writeln!(text, "\nUsage: `{form}`"),
        _ => writeln!(text, "\nUsage:\n\n- `{}`", forms.join("`\n- `")),
    }
    .expect("a string can be written");
    let subcommands = || command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    if subcommands().next().is_some() {
        *text += "\n| command | purpose |\n|---|---|\n";
    }
    for subcommand in subcommands() {
        let name = subcommand.get_bin_name().unwrap_or_else(|| subcommand.get_name());
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "| [`{name}`](#{}) | {about} |", name.replace(' ', "-"));
    }
    options(command, is_program, text);
    let notes = command.get_after_long_help().or_else(|| command.get_after_help());
    if let Some(notes) = notes {
        let _ = write!(text, "\n```text\n{}\n```\n", notes.to_string().trim_end());
    }
    for subcommand in subcommands() {
        let name = subcommand.get_bin_name().unwrap_or_else(|| subcommand.get_name());
        let _ = write!(text, "\n## {name}\n");
        describe(subcommand, false, text);
    }
}

fn usage(command: &Command) -> Vec<String> {
    let usage = command.clone().render_usage().to_string();
    let lines = usage.lines().map(|line| line.trim_start_matches("Usage:").trim());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Writes the options of a command, one list per heading, positional arguments first.
fn options(command: &Command, is_program: bool, text: &mut String) {
    let own = |arg: &&Arg| {
        !arg.is_hide_set()
            && (is_program || !arg.is_global_set())
            && !["help", "version"].contains(&arg.get_id().as_str())
    };
    let args: Vec<&Arg> = command.get_arguments().filter(own).collect();
    let heading = |arg: &Arg| match (arg.is_positional(), arg.get_help_heading()) {
        (true, _) => "Arguments".to_owned(),
        (false, None) => "Options".to_owned(),
        (false, Some(heading)) => heading.to_owned(),
    };
    let mut headings: Vec<String> = Vec::new();
    for arg in args.iter().filter(|arg| arg.is_positional()).chain(&args) {
        if !headings.contains(&heading(arg)) {
            headings.push(heading(arg));
        }
    }
    for title in headings {
        let _ = write!(text, "\n{title}:\n\n");
        for arg in args.iter().filter(|arg| heading(arg) == title) {
            *text += &option(arg);
        }
    }
}

/// Formats an option: ``- `-o, --output DIR`: help [default: …]``.
fn option(arg: &Arg) -> String {
    let id = arg.get_id().as_str().to_uppercase();
    let values = match (arg.get_action().takes_values(), arg.get_value_names()) {
        (false, _) => String::new(),
        (true, None) => id,
        (true, Some(names)) => names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "),
    };
    let names =
        [arg.get_short().map(|short| format!("-{short}")), arg.get_long().map(|long| format!("--{long}"))];
    let names = names.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let name = [names, values].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut paragraphs = help.split("\n\n").map(str::to_owned).collect::<Vec<_>>();
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() && !arg.is_hide_default_value_set() {
        let _ = write!(paragraphs[0], " [default: `{}`]", defaults.join(" "));
    }
    let mut text = wrapped("- ", &format!("`{name}`: {}", paragraphs[0]), WIDTH);
    for paragraph in &paragraphs[1..] {
        text += &format!("\n{}", wrapped("  ", paragraph, WIDTH));
    }
    let possible = arg.get_possible_values();
    let possible = possible.iter().filter(|value| !value.is_hide_set());
    if arg.get_action().takes_values() && !arg.is_hide_possible_values_set() {
        for value in possible {
            let meaning = value.get_help().map(|help| format!(": {help}")).unwrap_or_default();
            text += &wrapped("  - ", &format!("`{}`{meaning}", value.get_name()), WIDTH);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_lists_subcommands_options_defaults_and_examples() {
        let rate = Arg::new("rate").long("rate").short('r').value_name("RATE").default_value("1M");
        let kind = Arg::new("kind").long("kind").value_parser(["tcp", "udp"]).help_heading("Traffic");
        let quiet =
            Arg::new("quiet").long("quiet").global(true).action(clap::ArgAction::SetTrue).help("No progress");
        let send = Command::new("send")
            .about("Send data")
            .arg(rate.help("Rate of the sender").long_help("Rate of the sender\n\nBits per second."))
            .arg(kind.help("Protocol"))
            .arg(Arg::new("file").required(true).help("File to send"))
            .after_help("Example:\n  tool send file");
        let text = page(Command::new("tool").about("Sends").arg(quiet).subcommand(send));
        assert!(text.contains("| [`tool send`](#tool-send) | Send data |"), "{text}");
        assert!(
            text.contains(
                "\n- `-r, --rate RATE`: Rate of the sender [default: `1M`]\n\n  Bits per second.\n"
            ),
            "{text}"
        );
        assert!(text.contains("\nTraffic:\n\n- `--kind KIND`: Protocol\n  - `tcp`\n  - `udp`\n"), "{text}");
        assert!(text.contains("\nArguments:\n\n- `FILE`: File to send\n"), "{text}");
        assert!(text.contains("\n```text\nExample:\n  tool send file\n```\n"), "{text}");
        assert_eq!(text.matches("--quiet").count(), 1, "{text}");
    }
}
