//! What stands in a page: its commands, what it shows of their output, and the commands it mentions.

/// A page, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) commands: Vec<Command>,
    /// Blocks that are files, with their names.
    pub(crate) files: Vec<(String, String)>,
    /// Code between backticks, with its line.
    pub(crate) mentioned: Vec<(usize, String)>,
    /// What a page must not have, with the line and what to do.
    pub(crate) wrong: Vec<String>,
}

/// A command as it is typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) line: usize,
    pub(crate) text: String,
    /// What the page shows below it.
    pub(crate) shown: Vec<String>,
    pub(crate) role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It succeeds, and prints what is shown, if anything is.
    Run,
    /// It succeeds. What it prints is another thing each time.
    Differs,
    /// It is not run.
    Illustration,
}

/// The words that a fence may have.
const KINDS: [&str; 8] = ["sh", "console", "text", "toml", "json", "rust", "c", "pkt"];

/// What a line begins with that is typed. In a drawing, too, something stands before.
const PROGRAMS: [&str; 11] =
    ["$ ", "airtcp ", "airlink ", "cargo ", "make ", "tshark ", "tcpdump ", "jq ", "interop/", "./", "sudo "];

impl Page {
    pub(crate) fn read(text: &str) -> Self {
        let mut page = Self::default();
        let lines: Vec<&str> = text.lines().collect();
        let (mut at, mut before) = (0, "");
        while at < lines.len() {
            let line = lines[at];
            if let Some(kind) = line.trim_start().strip_prefix("```") {
                let end = (at + 1..lines.len()).find(|end| lines[*end].trim_start() == "```");
                let end = end.unwrap_or(lines.len());
                page.block(kind.trim(), before, at + 1, &lines[at + 1..end]);
                (at, before) = (end + 1, "");
                continue;
            }
            let in_a_list = before.starts_with([' ', '-', '*', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
            if line.starts_with("    ") && at > 0 && lines[at - 1].is_empty() && !in_a_list {
                page.wrong.push(format!("{}: put this block between fences, and say what it is", at + 1));
            }
            for code in line.split('`').skip(1).step_by(2) {
                page.mentioned.push((at + 1, code.to_owned()));
            }
            if !line.is_empty() {
                before = line;
            }
            at += 1;
        }
        page
    }

    pub(crate) fn run(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| command.role != Role::Illustration)
    }

    pub(crate) fn illustrations(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| command.role == Role::Illustration)
    }

    /// A block whose fence is in the line of this number, counted from one.
    fn block(&mut self, kind: &str, before: &str, fence: usize, lines: &[&str]) {
        let role = self.role(before, fence);
        let files = self.files.len();
        if let Some(name) = before.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->")) {
            self.files.push((name.to_owned(), lines.join("\n") + "\n"));
        }
        match kind {
            // What stands in a file is not typed.
            "sh" if self.files.len() > files => {}
            "sh" | "console" => {
                let first = self.commands.len();
                let mut rest = lines.iter().enumerate();
                while let Some((index, line)) = rest.next() {
                    let typed = match kind {
                        "sh" => Some(*line).filter(|line| !line.is_empty() && !line.starts_with('#')),
                        _ => line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")),
                    };
                    let Some(typed) = typed else {
                        self.show(kind, first, fence + 1 + index, line);
                        continue;
                    };
                    let mut text = typed.to_owned();
                    while text.ends_with('\\') {
                        let Some((_, more)) = rest.next() else { break };
                        text = format!("{text}\n{more}");
                    }
                    let line = fence + 1 + index;
                    self.commands.push(Command { line, text, shown: Vec::new(), role: role.clone() });
                }
            }
            _ if !KINDS.contains(&kind) => self.wrong.push(format!(
                "{fence}: the fence says `{kind}`: say what the block is, one of {}",
                KINDS.join(", ")
            )),
            "text" => {
                let typed = |line: &&&str| PROGRAMS.iter().any(|program| line.starts_with(program));
                if let Some(line) = lines.iter().find(typed) {
                    self.wrong.push(format!(
                        "{fence}: `{line}` looks like a command: make it a block of sh or console, so that it is run"
                    ));
                }
            }
            _ => {}
        }
    }

    fn role(&mut self, before: &str, fence: usize) -> Role {
        let comment = before.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        let (word, reason) =
            comment.map_or(("", ""), |comment| comment.split_once(':').unwrap_or((comment, "")));
        let role = match word {
            "illustration" => Role::Illustration,
            "differs" => Role::Differs,
            _ => return Role::Run,
        };
        // "no" is no reason.
        if reason.split_whitespace().count() < 2 {
            self.wrong.push(format!("{}: the comment gives no reason", fence - 1));
        }
        role
    }

    /// A line of a block that is no command.
    fn show(&mut self, kind: &str, first: usize, number: usize, line: &str) {
        match self.commands[first..].last_mut() {
            Some(command) if kind == "console" => command.shown.push(line.trim_end().to_owned()),
            None if kind == "console" && !line.is_empty() => {
                self.wrong.push(format!("{number}: output without a command above it"));
            }
            _ => {}
        }
    }
}

/// Tests of this file. A test program without libtest lists them itself.
pub(crate) mod tests {
    use libtest_mimic::{Failed, Trial};

    use super::{Page, Role};

    pub(crate) fn trials() -> Vec<Trial> {
        vec![
            Trial::test("markdown: commands and what is shown", commands_have_what_is_shown_below_them),
            Trial::test("markdown: an illustration has a reason", an_illustration_without_a_reason_is_wrong),
            Trial::test("markdown: no command hides", a_command_cannot_hide_in_a_block_of_text),
        ]
    }

    fn commands_have_what_is_shown_below_them() -> Result<(), Failed> {
        let page = Page::read(
            "Look `here`:\n\n```console\n$ one \\\n  two\nout\n# three\n```\n\n<!-- differs: by the clock -->\n```sh\n# why\nfour  # so\n```\n",
        );
        assert!(page.wrong.is_empty(), "{:?}", page.wrong);
        let found: Vec<_> = page
            .commands
            .iter()
            .map(|command| (command.line, &*command.text, command.shown.join("|"), command.role.clone()))
            .collect();
        assert_eq!(
            found,
            [
                (4, "one \\\n  two", "out".to_owned(), Role::Run),
                (7, "three", String::new(), Role::Run),
                (13, "four  # so", String::new(), Role::Differs)
            ]
        );
        assert_eq!(page.mentioned, [(1, "here".to_owned())]);
        Ok(())
    }

    fn an_illustration_without_a_reason_is_wrong() -> Result<(), Failed> {
        for comment in ["<!-- illustration -->", "<!-- illustration: -->", "<!-- illustration: no -->"] {
            let page = Page::read(&format!("{comment}\n```sh\nmake demo\n```\n"));
            assert_eq!(page.wrong.len(), 1, "{comment}: {:?}", page.wrong);
        }
        let page = Page::read("<!-- illustration: takes an hour -->\n```sh\nmake pairs\n```\n");
        assert!(page.wrong.is_empty() && page.run().next().is_none() && page.illustrations().count() == 1);
        Ok(())
    }

    fn a_command_cannot_hide_in_a_block_of_text() -> Result<(), Failed> {
        for block in [
            "```text\nairtcp sim\n```",
            "```\nanything\n```",
            "```bash\nairtcp sim\n```",
            "\n    airtcp sim",
            "```console\nairtcp sim\n```",
        ] {
            let page = Page::read(&format!("So:\n{block}\n"));
            assert_eq!(page.wrong.len(), 1, "{block}");
        }
        Ok(())
    }
}
