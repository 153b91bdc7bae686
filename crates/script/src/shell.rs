//! Extracts the sysctls that a script's shell lines set, without running a shell.
//!
//! The common ways to set a sysctl are recognised: `sysctl`, `echo` into /proc/sys, and helper
//! scripts, which are parsed. Every other command is reported in a note.

mod arithmetic;
mod lex;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airfiles::{PathSource, limits};
use lex::{Joined, Simple};

/// Maximum depth of helpers that call other helpers. Deeper nesting means that a helper calls
/// itself.
const MAX_DEPTH: usize = 8;

/// An effect of a shell line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// Sets a sysctl, given by its dotted name. `position` is the position in a helper:
    /// `defaults.sh:3: `.
    Set { position: String, name: String, value: String },
    /// A command that was ignored, and the reason.
    Note(String),
}

/// Returns the effects of a shell line. Helpers are found relative to `script_dir`, the directory of the
/// script.
pub(crate) fn effects(command: &str, script_dir: &Path) -> Vec<Effect> {
    let mut shell = Shell { script_dir, found: Vec::new(), depth: 0 };
    shell.list(command, None, &[]);
    shell.found
}

/// Words that begin and end a conditional or repeated command.
const OPENING: [&str; 7] = ["if", "for", "while", "until", "case", "{", "("];
const CLOSING: [&str; 5] = ["fi", "done", "esac", "}", ")"];

struct Shell<'a> {
    script_dir: &'a Path,
    found: Vec<Effect>,
    depth: usize,
}

/// The file that contains a list of commands. `None` for a line of the script itself.
type File<'a> = Option<&'a str>;

impl Shell<'_> {
    fn list(&mut self, text: &str, file: File<'_>, args: &[String]) {
        let mut variables: BTreeMap<String, String> =
            (1..).zip(args).map(|(nth, arg): (usize, _)| (nth.to_string(), arg.clone())).collect();
        variables.insert("@".to_owned(), args.join(" "));
        let mut lexer = lex::Lexer::new(text);
        let mut blocks = 0_usize;
        // Output that `echo` writes to the next command's input.
        let mut piped: Option<String> = None;
        let mut failed = false;
        while let Some(simple) = lexer.next(&variables) {
            let input = piped.take();
            let first = simple.words.first().map_or("", String::as_str);
            let function =
                matches!(simple.words.get(1..3), Some([open, close]) if open == "(" && close == ")");
            if blocks > 0 || OPENING.contains(&first) || function {
                if blocks == 0 {
                    self.note(file, &simple, "was not followed: airtcp does not run a shell");
                }
                let words = simple.words.iter().map(String::as_str);
                blocks += words.clone().filter(|word| OPENING.contains(word)).count();
                blocks = blocks.saturating_sub(words.filter(|word| CLOSING.contains(word)).count());
                continue;
            }
            // The command after `||` runs only if the previous one fails. A sysctl that airtcp
            // supports does not fail.
            if simple.joined == Joined::Or && !std::mem::take(&mut failed) {
                continue;
            }
            let words = assign(&simple.words, &mut variables);
            if first == "exit" {
                return;
            }
            // Both change the positional parameters.
            if first == "shift" || (first == "set" && words.get(1).is_some_and(|word| word == "--")) {
                self.note(file, &simple, "was not followed: airtcp does not run a shell");
                continue;
            }
            let before = self.found.len();
            piped = self.simple(words, &simple, input, file);
            failed = self.found[before..].iter().any(|effect| matches!(effect, Effect::Note(_)));
        }
    }

    /// Evaluates a command. Returns its standard output if it is known.
    fn simple(
        &mut self,
        words: &[String],
        simple: &Simple,
        input: Option<String>,
        file: File<'_>,
    ) -> Option<String> {
        let words = match words {
            [sudo, rest @ ..] if ["sudo", "command", "exec"].contains(&sudo.as_str()) => rest,
            words => words,
        };
        let (program, args) = words.split_first()?;
        let sets = args.iter().map(|arg| proc_assignment(arg)).collect::<Option<Vec<_>>>();
        match (program.rsplit('/').next().unwrap_or(program), args) {
            ("sysctl", _) => self.sysctl(args, simple, file),
            ("echo" | "printf", _) => {
                let text = echoed(args);
                if simple.piped {
                    return Some(text);
                }
                match simple.output.as_deref().map(proc_name) {
                    Some(Some(name)) => self.set(file, simple, name, text),
                    Some(None) => self.note(file, simple, "was not run: it writes a file"),
                    // Output for the user.
                    None => {}
                }
            }
            ("tee", _) => match (args.iter().find_map(|arg| proc_name(arg)), input) {
                (Some(name), Some(text)) => self.set(file, simple, name, text),
                _ => self.note(file, simple, "was not run: airtcp only evaluates sysctl"),
            },
            ("true" | ":" | "set" | "export" | "exit" | "trap" | "umask" | "wait", _) => {}
            ("sh" | "bash" | "dash", [flag, text, ..]) if flag == "-c" => {
                self.nested(text, file, &[], simple)
            }
            ("sh" | "bash" | "dash" | "source" | ".", [path, args @ ..]) => {
                self.helper(path, args, simple, file);
            }
            // A helper of packetdrill takes any number of arguments such as
            // `/proc/sys/net/ipv4/tcp_sack=0`.
            (_, [_, ..]) if let Some(sets) = sets => {
                for (name, value) in sets {
                    self.set(file, simple, name, value);
                }
            }
            _ if program.contains('/') => self.helper(program, args, simple, file),
            _ => self.note(file, simple, "was not run: airtcp only evaluates sysctl"),
        }
        None
    }

    fn sysctl(&mut self, args: &[String], simple: &Simple, file: File<'_>) {
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.strip_prefix('-') {
                // `-p FILE` reads assignments from a file, one per line.
                Some(flags) if !flags.starts_with('-') && flags.ends_with(['p', 'f']) => match args.next() {
                    Some(path) => self.load(path, simple, file),
                    None => self.note(
                        file,
                        simple,
                        "was not run: airtcp does not use the settings of this machine",
                    ),
                },
                Some(flags) if ["quiet", "write", "ignore"].contains(&flags.trim_start_matches('-')) => {}
                Some(flags) if flags.chars().all(|flag| "qweNn".contains(flag)) => {}
                Some(_) => self.note(file, simple, "was not run: unknown option of sysctl"),
                None => match arg.split_once('=') {
                    Some((name, value)) => {
                        self.set(file, simple, dotted(name.trim()), value.trim().to_owned());
                    }
                    None => self.found.push(Effect::Note(format!(
                        "{}`{arg}` was not read: expected NAME=VALUE",
                        position(file, simple)
                    ))),
                },
            }
        }
    }

    fn load(&mut self, path: &str, simple: &Simple, file: File<'_>) {
        let Some(text) = self.read(path) else {
            return self.note(file, simple, "was not read: no such file");
        };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let position = format!("{path}:{number}: ");
            self.found.push(match line.split_once('=') {
                // A leading `-` makes sysctl ignore errors of this line.
                Some((name, value)) => Effect::Set {
                    position,
                    name: dotted(name.trim().trim_start_matches('-')),
                    value: value.trim().to_owned(),
                },
                None => Effect::Note(format!("{position}`{line}` was not read: expected NAME=VALUE")),
            });
        }
    }

    /// Evaluates a helper script by parsing it instead of running it.
    fn helper(&mut self, path: &str, args: &[String], simple: &Simple, file: File<'_>) {
        match self.read(path) {
            None => self.note(file, simple, "was not run: no such file"),
            Some(text) if is_shell(path, &text) => self.nested(&text, Some(path), args, simple),
            Some(_) => self.note(file, simple, "was not run: airtcp reads only shell scripts"),
        }
    }

    fn nested(&mut self, text: &str, file: File<'_>, args: &[String], simple: &Simple) {
        if self.depth == MAX_DEPTH {
            return self.note(file, simple, "was not followed: it calls itself");
        }
        self.depth += 1;
        self.list(text, file, args);
        self.depth -= 1;
    }

    /// Reads a file relative to the script's directory or to the current directory.
    fn read(&self, path: &str) -> Option<String> {
        [self.script_dir.join(path), PathBuf::from(path)]
            .iter()
            .find_map(|path| airfiles::read_text(path, PathSource::File, limits::WRITTEN_BY_HAND).ok())
    }

    fn set(&mut self, file: File<'_>, simple: &Simple, name: String, value: String) {
        // The value contains an unknown variable or the output of a command.
        if value.contains(['$', '`']) {
            return self.note(file, simple, "was not followed: airtcp does not run a shell");
        }
        self.found.push(Effect::Set { position: position(file, simple), name, value });
    }

    fn note(&mut self, file: File<'_>, simple: &Simple, why: &str) {
        self.found.push(Effect::Note(format!("{}`{}` {why}", position(file, simple), simple.text)));
    }
}

/// Returns the position in a helper. Empty for a line of the script itself.
fn position(file: File<'_>, simple: &Simple) -> String {
    file.map(|file| format!("{file}:{}: ", simple.line)).unwrap_or_default()
}

/// Handles `NAME=VALUE` before a command or alone. Returns the rest of the words, which is the
/// command.
fn assign<'w>(words: &'w [String], variables: &mut BTreeMap<String, String>) -> &'w [String] {
    let words = match words {
        [export, rest @ ..] if export == "export" => rest,
        words => words,
    };
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let names = words.iter().map_while(|word| word.split_once('=').filter(|(name, _)| is_name(name)));
    let mut assigned = 0;
    for (name, value) in names {
        variables.insert(name.to_owned(), value.to_owned());
        assigned += 1;
    }
    &words[assigned..]
}

fn echoed(args: &[String]) -> String {
    let text: Vec<&str> =
        args.iter().map(String::as_str).filter(|arg| !["-n", "-e", "%s\\n", "%s"].contains(arg)).collect();
    text.join(" ").trim_end_matches("\\n").to_owned()
}

/// Converts `/proc/sys/net/ipv4/tcp_sack` to `net.ipv4.tcp_sack`.
fn proc_name(path: &str) -> Option<String> {
    path.strip_prefix("/proc/sys/").map(dotted)
}

fn proc_assignment(arg: &str) -> Option<(String, String)> {
    let (path, value) = arg.split_once('=')?;
    Some((proc_name(path)?, value.to_owned()))
}

/// Replaces slashes by dots, as sysctl does.
fn dotted(name: &str) -> String {
    name.replace('/', ".")
}

/// Returns whether a file is a shell script. Its first line decides. A file without an interpreter line is
/// judged by its name.
fn is_shell(path: &str, text: &str) -> bool {
    match text.lines().next().and_then(|line| line.strip_prefix("#!")) {
        Some(interpreter) => interpreter.trim().ends_with("sh") || interpreter.contains("sh "),
        None => !path.ends_with(".py") && !path.ends_with(".pl"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Formats effects as `name=value` and `- note`.
    fn effect_lines_in(command: &str, script_dir: &Path) -> Vec<String> {
        let line = |effect| match effect {
            Effect::Set { position, name, value } => format!("{position}{name}={value}"),
            Effect::Note(note) => format!("- {note}"),
        };
        effects(command, script_dir).into_iter().map(line).collect()
    }

    fn effect_lines(command: &str) -> Vec<String> {
        effect_lines_in(command, Path::new(""))
    }

    #[test]
    fn sysctls_are_found_in_every_notation() {
        for (command, expected) in [
            ("sysctl -q net.ipv4.tcp_sack=0", "net.ipv4.tcp_sack=0"),
            ("/sbin/sysctl -w net/ipv4/tcp_sack=0 > /dev/null 2>&1", "net.ipv4.tcp_sack=0"),
            ("sudo sysctl -w net.ipv4.tcp_rmem=\"4096 8192 9000\"", "net.ipv4.tcp_rmem=4096 8192 9000"),
            ("echo 1 > /proc/sys/net/ipv4/tcp_sack", "net.ipv4.tcp_sack=1"),
            ("echo -n '4096 8192 9000' >/proc/sys/net/ipv4/tcp_rmem", "net.ipv4.tcp_rmem=4096 8192 9000"),
            ("printf '1\\n' >> /proc/sys/net/ipv4/tcp_sack", "net.ipv4.tcp_sack=1"),
            ("echo 0 | sudo tee /proc/sys/net/ipv4/tcp_sack >/dev/null", "net.ipv4.tcp_sack=0"),
            ("../common/set.py /proc/sys/net/ipv4/tcp_sack=0", "net.ipv4.tcp_sack=0"),
            ("sh -c 'sysctl net.ipv4.tcp_sack=0'", "net.ipv4.tcp_sack=0"),
            ("SACK=0; sysctl -q net.ipv4.tcp_sack=${SACK}", "net.ipv4.tcp_sack=0"),
            (
                "sysctl net.ipv4.tcp_rmem=\"4096 540000 $((15*1024*1024))\"",
                "net.ipv4.tcp_rmem=4096 540000 15728640",
            ),
            ("MB=1048576; sysctl net.core.rmem_max=$(( (1 + 1) * MB ))", "net.core.rmem_max=2097152"),
            (
                "../set.py /proc/sys/net/ipv4/tcp_wmem=\"4096 $((1 << 18)) 4194304\"",
                "net.ipv4.tcp_wmem=4096 262144 4194304",
            ),
            ("sysctl -q \\\n  net.ipv4.tcp_sack=0 # why", "net.ipv4.tcp_sack=0"),
            ("sysctl -q net.ipv4.tcp_sack=0 || sysctl -q net.ipv4.tcp_sack=1", "net.ipv4.tcp_sack=0"),
        ] {
            assert_eq!(effect_lines(command), [expected], "{command}");
        }
        assert_eq!(
            effect_lines("sysctl -q a.b=1 c.d=2\nsysctl e=3 && sysctl f=4"),
            ["a.b=1", "c.d=2", "e=3", "f=4"]
        );
        assert_eq!(effect_lines("set -e; true && echo ready; exit 0; sysctl a=1"), Vec::<String>::new());
    }

    #[test]
    fn unsupported_shell_commands_are_noted() {
        for (command, note) in [
            ("tc qdisc add dev tun0 root fq", "was not run: airtcp only evaluates sysctl"),
            ("if true; then sysctl a=1; fi", "was not followed: airtcp does not run a shell"),
            ("./nowhere.sh 1 2", "was not run: no such file"),
            ("sysctl net.ipv4.tcp_sack=$OLD", "was not followed: airtcp does not run a shell"),
            ("sysctl net.ipv4.tcp_sack=`uname`", "was not followed: airtcp does not run a shell"),
            ("sysctl net.ipv4.tcp_sack=$((OLD + 1))", "was not followed: airtcp does not run a shell"),
            ("sysctl --system", "was not run: unknown option of sysctl"),
            ("shift 2", "was not followed: airtcp does not run a shell"),
            ("set -- 1 2", "was not followed: airtcp does not run a shell"),
            ("sysctl net.ipv4.tcp_sack", "was not read: expected NAME=VALUE"),
            ("echo 1 > /tmp/x", "was not run: it writes a file"),
        ] {
            let lines = effect_lines(command);
            assert!(lines.len() == 1 && lines[0].starts_with("- ") && lines[0].ends_with(note), "{lines:?}");
        }
        assert_eq!(
            effect_lines("for x in 1 2; do if true; then sysctl a=$x; fi; done; sysctl b=2")[1..],
            ["b=2"]
        );
        assert_eq!(
            effect_lines("defaults() {\n sysctl a=1\n}\nsysctl b=2"),
            ["- `defaults() {` was not followed: airtcp does not run a shell", "b=2"]
        );
    }

    #[test]
    fn helper_scripts_and_sysctl_files_are_followed() {
        let home = std::env::temp_dir().join(format!("airtcp-script-shell-{}", std::process::id()));
        fs::create_dir_all(home.join("common")).unwrap();
        fs::write(
            home.join("common/defaults.sh"),
            "#!/bin/sh\n# Defaults.\nsysctl -q net.ipv4.tcp_sack=$1\n./common/more.sh\nsysctl -q -p common/file.conf\n",
        )
        .unwrap();
        fs::write(home.join("common/more.sh"), "echo 1 > /proc/sys/net/ipv4/tcp_dsack\n./common/more.sh\n")
            .unwrap();
        let conf = "# A comment = 1\n\nnet.ipv4.tcp_ecn = 2\nnet.ipv4.tcp_sack 0\n";
        fs::write(home.join("common/file.conf"), conf).unwrap();
        fs::write(home.join("common/helper.py"), "#!/usr/bin/env python3\nimport os\n").unwrap();
        let found = effect_lines_in("./common/defaults.sh 0 && common/helper.py", &home);
        fs::remove_dir_all(&home).unwrap();
        assert_eq!(found.first().unwrap(), "./common/defaults.sh:3: net.ipv4.tcp_sack=0");
        assert_eq!(found[1], "./common/more.sh:1: net.ipv4.tcp_dsack=1");
        assert!(found.iter().any(|line| line.ends_with("was not followed: it calls itself")));
        let last = &found[found.len() - 3..];
        assert_eq!(
            last,
            [
                "common/file.conf:3: net.ipv4.tcp_ecn=2",
                "- common/file.conf:4: `net.ipv4.tcp_sack 0` was not read: expected NAME=VALUE",
                "- `common/helper.py` was not run: airtcp reads only shell scripts"
            ]
        );
    }
}
