//! Runs the scripts that `completions` prints in the shells they are for, and checks how each shell completes
//! a word.

use std::fs;
use std::path::Path;
use std::process::Command;

use airtcp_testkit::machine::{Ended, TempDir};
use airtcp_testkit::programs::{program, repository};

/// A command line, and the completion of its last word: recipes after `+` and `@`, scenarios, receivers,
/// figures, settings of a scenario, metrics, axes of a sweep.
const COMPLETIONS: &[(&str, &str)] = &[
    ("airtcp send --recipe newreno+eif", "newreno+eifel"),
    ("airtcp send --recipe=newreno+eif", "newreno+eifel"),
    ("airtcp sim --recipe sack@fr", "sack@freebsd"),
    ("airtcp-serve --recipe newreno+eif", "newreno+eifel"),
    ("airtcp sim --scenario wcdma-384-ji", "wcdma-384-jitter"),
    ("airtcp sim -s wcdma-384-ji", "wcdma-384-jitter"),
    ("airtcp lab run --receiver linux-qu", "linux-quickack"),
    ("airtcp reproduce rank", "ranking"),
    ("airtcp explain sack+early-re", "sack+early-retransmit"),
    ("airlink sim --scenario hsd", "hsdpa-like"),
    ("airlink show hsd", "hsdpa-like"),
    ("airlink sim -s wcdma-384 --set radio.down.channel.errors.bl", "radio.down.channel.errors.bler="),
    ("airlink run --scenario=leo --set satellite.rem", "satellite.remove="),
    ("airtcp sim -s wcdma-384 --set radio.down.channel.errors.bler=", "radio.down.channel.errors.bler=1%"),
    ("airtcp sweep plot loss.results --y good", "goodput"),
    ("airtcp sweep summary loss.results --metric timeouts,goodput-l", "timeouts,goodput-least"),
    ("airtcp sweep plot ../../docs/examples/loss.toml --x rec", "recipe"),
    ("airtcp sweep plot ../../docs/examples/loss.toml --only recipe=newreno+f", "recipe=newreno+frto"),
];

struct Scripts(TempDir);

impl Scripts {
    /// Writes the scripts of all programs for a shell into files with these names.
    fn new(shell: &str, name: fn(&str) -> String) -> Self {
        let directory = TempDir::new(shell);
        for program_name in ["airtcp", "airtcp-serve", "airlink"] {
            let output = Command::new(program(program_name)).args(["completions", shell]).output().unwrap();
            fs::write(directory.join(name(program_name)), output.stdout).unwrap();
        }
        Self(directory)
    }
}

/// Starts a shell with all programs on its PATH, in a directory without file names that resemble a value.
fn shell(name: &str, scripts: &Scripts) -> Command {
    let programs = program("airtcp").parent().unwrap().display().to_string();
    let mut command = Command::new(name);
    command.env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap_or_default()));
    command.env("HOME", scripts.0.as_os_str()).current_dir(repository().join("tests/programs"));
    command
}

fn shell_output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{}: {error}: sh interop/setup.sh test", Path::new(command.get_program()).display())
    });
    Ended::of(output).stdout
}

#[test]
fn bash_completes_program_values() {
    let scripts = Scripts::new("bash", str::to_owned);
    for (line, completion) in COMPLETIONS {
        let program = line.split(' ').next().unwrap();
        let script = format!(
            "source '{}'; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; \
             _{}_words {program} '' '' 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            scripts.0.join(program).display(),
            program.replace('-', "__")
        );
        let output = shell_output(shell("bash", &scripts).args(["--norc", "-c", &script]));
        // bash replaces only the part of the typed word after the last `=`, `:` or `@`.
        let separators = ['=', ':', '@'];
        let replaced = match line.rsplit(' ').next().unwrap().contains(separators) {
            true => completion.rsplit(separators).next().unwrap(),
            false => completion,
        };
        assert!(output.lines().any(|reply| reply == replaced), "{line}: {output}");
    }
}

#[test]
fn fish_completes_program_values() {
    let scripts = Scripts::new("fish", |program| format!("{program}.fish"));
    for (line, completion) in COMPLETIONS {
        let program = line.split(' ').next().unwrap();
        let script =
            format!("source '{}'; complete -C '{line}'", scripts.0.join(format!("{program}.fish")).display());
        let output = shell_output(shell("fish", &scripts).args(["--no-config", "-c", &script]));
        let replies: Vec<&str> = output.lines().map(|reply| reply.split('\t').next().unwrap()).collect();
        let option = line
            .rsplit(' ')
            .next()
            .unwrap()
            .split_once('=')
            .map(|(option, _)| format!("{option}={completion}"));
        assert!(
            replies.contains(completion) || option.is_some_and(|option| replies.contains(&&*option)),
            "{line}: {output}"
        );
    }
}

/// Runs zsh in its own pseudoterminal: the test sends Tab, then a key that writes the line to a file.
#[test]
fn zsh_completes_program_values() {
    let scripts = Scripts::new("zsh", |program| format!("_{program}"));
    // One shell completes all lines, because `compinit` takes most of the time. ^U empties the line.
    let script = r#"
        directory=$1; shift
        zmodload zsh/zpty
        zpty z zsh -f -i
        zpty -w z "fpath=($directory \$fpath); autoload -Uz compinit; compinit -u -D; \
            show() { print -r -- \"\$BUFFER\" > $directory/new; mv $directory/new $directory/line }; \
            zle -N show; bindkey '^X' show; bindkey '^I' complete-word; bindkey '^U' kill-whole-line; \
            print ready > $directory/ready"
        repeat 3000 { [[ -s $directory/ready ]] && break; sleep 0.01 }
        for line; do
            rm -f $directory/line
            zpty -w -n z $'\x15'"$line"$'\t\x18'
            repeat 1000 { [[ -s $directory/line ]] && break; sleep 0.01 }
            # Without an answer the line is missing in the output, and the test says which.
            [[ -s $directory/line ]] && print -r -- "$(<$directory/line)" || print
        done
        zpty -d z
    "#;
    let directory = scripts.0.to_str().unwrap();
    let lines = COMPLETIONS.iter().map(|(line, _)| *line);
    let output =
        shell_output(shell("zsh", &scripts).args(["-f", "-c", script, "zsh", directory]).args(lines));
    let output: Vec<&str> = output.lines().collect();
    assert_eq!(output.len(), COMPLETIONS.len(), "{output:?}");
    for ((line, completion), output) in COMPLETIONS.iter().zip(output) {
        // If several completions match, zsh inserts only their common prefix.
        let word = line.rsplit(' ').next().unwrap();
        let option = word.strip_prefix("--").and_then(|option| option.split_once('='));
        let value = option.map_or(word, |(_, value)| value);
        let typed = output.trim_end().get(line.len() - value.len()..).unwrap_or_default();
        assert!(!typed.is_empty() && completion.starts_with(typed.trim_end()), "{line}: {output}");
        assert!(output.trim_end().len() > line.len(), "{line}: {output}");
    }
}
