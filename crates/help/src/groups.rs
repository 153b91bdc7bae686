//! Help texts that list subcommands in groups. clap would list them all under one heading.

use std::fmt::Write;

use clap::Command;
use clap::builder::StyledStr;

/// A heading and the subcommands under it.
pub type Group<'a> = (&'a str, &'a [&'a str]);

/// Lists the subcommands in these groups in the help of `command`. Subcommands that are not in a group follow
/// under `Other`.
pub fn grouped(command: Command, groups: &[Group<'_>]) -> Command {
    let known: Vec<&Command> =
        command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).collect();
    let is_grouped = |name: &str| groups.iter().any(|(_, names)| names.contains(&name));
    let rest: Vec<&str> = known.iter().map(|it| it.get_name()).filter(|name| !is_grouped(name)).collect();
    let widest = known.iter().map(|it| it.get_name().len()).max().unwrap_or(0);
    let style = command.get_styles().get_header();
    let mut list = String::new();
    for (heading, names) in groups.iter().copied().chain([("Other", &rest[..])]) {
        let its = names.iter().filter_map(|name| known.iter().find(|it| it.get_name() == *name));
        let mut lines = String::new();
        for subcommand in its {
            let (name, about) = (subcommand.get_name(), subcommand.get_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            // Writing into a string does not fail.
            let _ = writeln!(lines, "  {name:widest$}  {about}");
        }
        if !lines.is_empty() {
            let _ = write!(list, "{}{heading}:{}\n{lines}\n", style.render(), style.render_reset());
        }
    }
    let options = format!("{}Options:{}\n{{options}}", style.render(), style.render_reset());
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{options}{{after-help}}");
    command.help_template(StyledStr::from(template))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_subcommands_under_their_headings() {
        let subcommand = |name: &'static str| Command::new(name).about(format!("To {name}"));
        let command = Command::new("tool")
            .subcommands(["send", "list", "man"].map(subcommand))
            .subcommand(Command::new("secret").hide(true))
            .after_help("Notes.");
        let help = grouped(command, &[("Run", &["send"]), ("Look up", &["list"])]).render_help().to_string();
        let wanted =
            "Run:\n  send  To send\n\nLook up:\n  list  To list\n\nOther:\n  man   To man\n\nOptions:\n";
        assert!(help.contains(wanted), "{help}");
        assert!(help.ends_with("\n\nNotes.\n") && !help.contains("secret"), "{help}");
    }
}
