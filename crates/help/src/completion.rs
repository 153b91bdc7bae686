//! Shell completion scripts: clap's scripts, extended by values that the program itself lists.
//!
//! A script requests these values with the hidden command `PROGRAM values KIND WORD -- LINE…`, which prints one
//! value per line, followed by a tab and its meaning. LINE contains the words before the cursor.
//!
//! The dynamic engine of `clap_complete` does not replace this: its interface is unstable, in bash it gets words
//! split at `=` and `:`, which recipes and settings contain, and it passes a completer the word but not the line.

use std::io::Write;

use clap::builder::{PossibleValuesParser, Resettable};
use clap::{Arg, Command, ValueEnum};
use clap_complete::Shell;

/// A shell with a completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShellName {
    /// GNU Bash 4.4 or later.
    Bash,
    /// The Z shell.
    Zsh,
    /// fish 3 or later.
    Fish,
}

/// A possible completion, with its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The value as the user types it.
    pub value: String,
    /// Description of the value, for shells that show it.
    pub meaning: String,
}

impl Candidate {
    /// Creates a candidate from a value and its meaning.
    pub fn new(value: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self { value: value.into(), meaning: meaning.into() }
    }
}

/// Prints candidates in the output format of `PROGRAM values`.
///
/// # Errors
/// If the output cannot be written.
pub fn print(candidates: &[Candidate], out: &mut impl Write) -> std::io::Result<()> {
    candidates.iter().try_for_each(|Candidate { value, meaning }| writeln!(out, "{value}\t{meaning}"))
}

/// Returns the value in a word. fish passes an option and its value as one word, as typed.
pub fn value_of(word: &str) -> &str {
    match word.strip_prefix("--").and_then(|option| option.split_once('=')) {
        Some((_, value)) => value,
        None => word,
    }
}

/// Returns the value of an option in the words of a command line. If it is given several times, the last one
/// counts.
pub fn option_of<'a>(line: &'a [String], short: &str, long: &str) -> Option<&'a str> {
    let with_value = |(at, word): (usize, &'a String)| match word.split_once('=') {
        _ if word == short || word == long => line.get(at + 1).map(String::as_str),
        Some((option, value)) if option == long => Some(value),
        _ => None,
    };
    line.iter().enumerate().filter_map(with_value).next_back()
}

/// The arguments whose values the program lists: the value name of the argument, and the kind passed to
/// `PROGRAM values`.
pub type Kinds = [(&'static str, &'static str)];

/// Generates the script for a shell.
pub fn script(command: Command, program: &str, shell: ShellName, kinds: &Kinds) -> String {
    let mut command = marked(command, kinds);
    let mut script = Vec::new();
    let generator = match shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    clap_complete::generate(generator, &mut command, program, &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    // The name that clap gives to its function for bash.
    let function = program.replace('-', "__");
    let mut known: Vec<&str> = kinds.iter().map(|(_, kind)| *kind).collect();
    known.dedup();
    for kind in known {
        script = match shell {
            ShellName::Bash => script
                .replace(
                    &format!("COMPREPLY=($(compgen -W \"{MARK} {kind}\" -- \"${{cur}}\"))"),
                    &format!("_{function}_values {kind}"),
                )
                // clap also lists the values of positional arguments among the options.
                .replace(&format!(" {MARK} {kind}"), ""),
            ShellName::Zsh => {
                script.replace(&format!("({MARK} {kind})"), &format!("_{program}_values {kind}"))
            }
            ShellName::Fish => script.replace(
                &format!("\"{MARK}\\t''\n{kind}\\t''\""),
                &format!("\"({program} {})\"", fish_arguments(kind)),
            ),
        };
    }
    match shell {
        ShellName::Bash => {
            let cases = positionals(&command, kinds).map(|(name, kind)| {
                format!("            {name}) cur=\"$word\"; _{function}_values {kind} ;;\n")
            });
            let bash = BASH.replace("POSITIONALS\n", &cases.collect::<String>());
            script + &bash.replace("FUNCTION", &function).replace("PROGRAM", program)
        }
        // Insert after the first line, `#compdef`.
        ShellName::Zsh => script.replacen("\n", &format!("\n{}", ZSH.replace("PROGRAM", program)), 1),
        ShellName::Fish => {
            let lines = positionals(&command, kinds).map(|(name, kind)| {
                let when = format!("__fish_{program}_using_subcommand {name}");
                format!(
                    "complete -c {program} -n \"{when}\" -f -a \"({program} {})\"\n",
                    fish_arguments(kind)
                )
            });
            tolerate_missing_value(&script, program) + &lines.collect::<String>()
        }
    }
}

/// clap's script for fish offers no values of an option before the subcommand, because it fails to parse a line
/// that ends with such an option.
fn tolerate_missing_value(script: &str, program: &str) -> String {
    let specs = format!("__fish_{}_global_optspecs", program.replace('-', "_"));
    let parse = format!("argparse -s ({specs}) -- $cmd 2>/dev/null\n");
    script.replace(
        &format!("    {parse}    or return\n"),
        &format!("    {parse}    or begin\n        set -e cmd[-1]\n        {parse}    end\n    or return\n"),
    )
}

fn fish_arguments(kind: &str) -> String {
    format!("values {kind} (commandline -ct) -- (commandline -opc)")
}

/// Placeholder in clap's script, before the name of a kind and in place of the values.
const MARK: &str = "AIRHELP";

fn kind_of(arg: &Arg, kinds: &Kinds) -> Option<&'static str> {
    let names = arg.get_value_names()?;
    let named = |(name, _): &&(&str, &str)| names.iter().any(|other| other.as_str() == *name);
    kinds.iter().find(named).map(|(_, kind)| *kind)
}

fn marked(command: Command, kinds: &Kinds) -> Command {
    let command = command.mut_args(|arg| match kind_of(&arg, kinds) {
        Some(kind) => {
            let parser = PossibleValuesParser::new([MARK, kind]);
            arg.value_parser(parser).default_value(Resettable::Reset)
        }
        None => arg,
    });
    command.mut_subcommands(|subcommand| marked(subcommand, kinds))
}

/// Returns the subcommands with a positional argument of one of these kinds. clap's scripts for bash and fish
/// do not complete such arguments.
fn positionals<'a>(command: &'a Command, kinds: &'a Kinds) -> impl Iterator<Item = (&'a str, &'static str)> {
    command.get_subcommands().flat_map(move |subcommand| {
        let kinds = subcommand.get_positionals().filter_map(|arg| kind_of(arg, kinds));
        kinds.map(|kind| (subcommand.get_name(), kind))
    })
}

/// Bash splits words at `=`, `:` and `@`, and replaces only the part after the last one.
const BASH: &str = r#"
_FUNCTION_values() {
    local value
    COMPREPLY=()
    while IFS= read -r value; do
        value=$(printf %q "$value")
        # A comma needs no quotes, and would stay quoted when more of a list is typed.
        COMPREPLY+=("${value//\\,/,}")
    done < <(PROGRAM values "$1" "${cur}" -- "${COMP_WORDS[@]}" 2>/dev/null | cut -f 1)
    # A recipe, a path or a setting may continue.
    if [[ "$1" == recipe || "${COMPREPLY-}" == *[/=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

_FUNCTION_words() {
    local line="${COMP_LINE:0:COMP_POINT}" word broken
    local -a words
    read -r -a words <<< "$line"
    local cur
    if [[ "$line" == *[[:space:]] ]]; then
        words+=("")
    fi
    word="${words[-1]}"
    broken="${word%"${word##*[=:@]}"}"
    if [[ "$word" == --*=* ]]; then
        words[-1]="${word%%=*}"
        word="${word#*=}"
        words+=("$word")
    fi
    local COMP_WORDS=("${words[@]}")
    local COMP_CWORD=$(( ${#words[@]} - 1 ))
    _FUNCTION "$1" "$word" "${words[-2]}"
    if [[ -z "${COMPREPLY-}" && "$word" != -* && "${words[-2]}" != -* ]]; then
        # Options may precede the subcommand.
        local command
        for command in "${words[@]:1:COMP_CWORD-1}"; do
            case "$command" in
POSITIONALS
            *) continue ;;
            esac
            break
        done
    fi
    broken="${broken#--*=}"
    COMPREPLY=("${COMPREPLY[@]#"$broken"}")
}

complete -F _FUNCTION_words -o nosort -o bashdefault -o default PROGRAM
"#;

/// `_arguments` passes options for `compadd` before the kind.
const ZSH: &str = r#"
_PROGRAM_values() {
    local line kind="${@[-1]}"
    local -a values meanings options
    options=("${@[1,-2]}")
    for line in "${(@f)$(PROGRAM values "$kind" "$PREFIX" -- "${words[@]}" 2>/dev/null)}"; do
        [[ -n "$line" ]] || continue
        values+=("${line%%$'\t'*}")
        meanings+=("${line%%$'\t'*}  ${line#*$'\t'}")
    done
    # A recipe, a path or a setting may continue.
    if [[ "$kind" == recipe || "${values[1]}" == *[/=] ]]; then
        compadd "${options[@]}" -Q -S '' -l -d meanings -a values
    else
        compadd "${options[@]}" -Q -l -d meanings -a values
    fi
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command::new("tool")
            .subcommand(
                Command::new("send")
                    .arg(Arg::new("recipe").long("recipe").value_name("RECIPE").default_value("x"))
                    .arg(Arg::new("side").long("side").value_parser(["fixed", "mobile"])),
            )
            .subcommand(Command::new("explain").arg(Arg::new("recipe").value_name("RECIPE")))
    }

    #[test]
    fn every_shell_script_queries_program_for_values() {
        for (shell, asks) in [
            (ShellName::Bash, "_tool_values recipe"),
            (ShellName::Zsh, ":_tool_values recipe'"),
            (
                ShellName::Fish,
                "-l recipe -r -f -a \"(tool values recipe (commandline -ct) -- (commandline -opc))\"",
            ),
        ] {
            let script = script(command(), "tool", shell, &[("RECIPE", "recipe")]);
            assert!(script.contains(asks), "{shell:?}: {script}");
            assert!(!script.contains("AIRHELP"), "{shell:?}: {script}");
            assert!(script.contains("mobile"), "{shell:?}: {script}");
        }
    }

    /// Returns bash's completions of a line, if the program lists the value `known`.
    fn bash(line: &str, known: &str) -> Vec<String> {
        let script = script(command(), "tool", ShellName::Bash, &[("RECIPE", "recipe")]);
        let ask = format!(
            "{script}\ntool() {{ printf '{known}\\tmeaning\\n'; }}\nCOMP_LINE='{line}' COMP_POINT={}\n_tool_words tool\n\
             for one in \"${{COMPREPLY[@]}}\"; do echo \"$one\"; done",
            line.len()
        );
        let output = std::process::Command::new("bash").args(["-c", &ask]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn script_for_program_with_hyphen_names_existing_functions() {
        let with_hyphen = |shell| script(command(), "tool-box", shell, &[("RECIPE", "recipe")]);
        let bash = with_hyphen(ShellName::Bash);
        assert!(bash.contains("\n_tool__box_values() {") && !bash.contains("_tool-box"), "{bash}");
        let fish = with_hyphen(ShellName::Fish);
        assert_eq!(fish.matches("argparse -s (__fish_tool_box_global_optspecs)").count(), 2, "{fish}");
    }

    #[test]
    fn bash_completes_after_options_and_quotes_spaces() {
        for line in [
            "tool explain tah",
            "tool -v explain tah",
            "tool --quiet -v explain tah",
            "tool send --recipe tah",
        ] {
            assert_eq!(bash(line, "tahoe"), ["tahoe"], "{line}");
        }
        assert_eq!(bash("tool -v send tah", "tahoe"), [""; 0], "send has no such argument");
        assert_eq!(bash("tool send --recipe my", "my links/"), ["my\\ links/"]);
    }

    #[test]
    fn last_value_of_option_is_found_in_line() {
        let of = |line: &str| {
            let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
            option_of(&line, "-s", "--scenario").map(str::to_owned)
        };
        assert_eq!(of("tool sim -s leo --set"), Some("leo".to_owned()));
        assert_eq!(of("tool sim -s leo --scenario geo"), Some("geo".to_owned()));
        assert_eq!(of("tool sim --scenario=geo --set x=1"), Some("geo".to_owned()));
        assert_eq!(of("tool sim --seed 1 -s"), None);
    }

    #[test]
    fn option_prefix_is_removed_from_value() {
        assert_eq!(value_of("--recipe=sack+iw=4"), "sack+iw=4");
        assert_eq!(value_of("sack+iw=4"), "sack+iw=4");
    }
}
