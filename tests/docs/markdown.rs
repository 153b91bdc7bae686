//! The contents of a page: its commands, the output of these commands, and the commands that the text
//! mentions.

/// A parsed page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) commands: Vec<Command>,
    /// The headings of sections whose commands run separately.
    pub(crate) separate: Vec<String>,
    /// Blocks that are files, with their names.
    pub(crate) files: Vec<(String, String)>,
    /// Code between backticks, with its line.
    pub(crate) mentioned: Vec<(usize, String)>,
    /// Errors in the page, with the line and what to do.
    pub(crate) errors: Vec<String>,
}

/// A command in its typed form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) line: usize,
    pub(crate) text: String,
    /// The output that the page shows below it.
    pub(crate) shown: Vec<String>,
    pub(crate) role: Role,
    /// The heading of its section, if the section runs separately.
    pub(crate) section: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The command must succeed and print the output that is shown, if any.
    Run,
    /// The command must succeed. Its output is different each time.
    Differs,
    /// The command is not run.
    Illustration,
}

/// The line below the heading of a section that needs no commands of other sections.
const SEPARATE: &str = "<!-- separate -->";

/// The permitted kinds of a fenced block.
const KINDS: [&str; 8] = ["sh", "console", "text", "toml", "json", "rust", "c", "pkt"];

/// The beginnings of lines that are commands. In drawings, other characters precede the name of a program.
const PROGRAMS: [&str; 11] =
    ["$ ", "airtcp ", "airlink ", "cargo ", "make ", "tshark ", "tcpdump ", "jq ", "interop/", "./", "sudo "];

impl Page {
    pub(crate) fn read(text: &str) -> Self {
        let mut page = Self::default();
        let lines: Vec<&str> = text.lines().collect();
        let (mut at, mut before, mut section) = (0, "", None);
        while at < lines.len() {
            let line = lines[at];
            if let Some(heading) = line.strip_prefix("## ") {
                let is_separate = lines.get(at + 1) == Some(&SEPARATE);
                section = is_separate.then(|| heading.to_owned());
                page.separate.extend(section.clone());
            }
            if let Some(kind) = line.trim_start().strip_prefix("```") {
                let end = (at + 1..lines.len()).find(|end| lines[*end].trim_start() == "```");
                let end = end.unwrap_or(lines.len());
                page.block(kind.trim(), before, section.as_deref(), at + 1, &lines[at + 1..end]);
                (at, before) = (end + 1, "");
                continue;
            }
            let in_a_list = before.starts_with([' ', '-', '*', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
            if line.starts_with("    ") && at > 0 && lines[at - 1].is_empty() && !in_a_list {
                page.errors.push(format!("{}: put this block between fences, and name its kind", at + 1));
            }
            if line == SEPARATE && !lines[at.saturating_sub(1)].starts_with("## ") {
                page.errors.push(format!("{}: put {SEPARATE} directly below a heading of level 2", at + 1));
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

    /// The commands of a separate section, or with `None` of all other sections.
    pub(crate) fn run_in(&self, section: Option<&str>) -> impl Iterator<Item = &Command> {
        self.run().filter(move |command| command.section.as_deref() == section)
    }

    pub(crate) fn illustrations(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| command.role == Role::Illustration)
    }

    /// Reads a block. `fence` is the line of its fence, counted from 1.
    fn block(&mut self, kind: &str, before: &str, section: Option<&str>, fence: usize, lines: &[&str]) {
        let role = self.role(before, fence);
        let files = self.files.len();
        if let Some(name) = before.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->")) {
            self.files.push((name.to_owned(), lines.join("\n") + "\n"));
        }
        match kind {
            // The contents of a file are not commands.
            "sh" if self.files.len() > files => {}
            "sh" | "console" => self.commands(kind, &role, section, fence + 1, lines),
            _ if !KINDS.contains(&kind) => self
                .errors
                .push(format!("{fence}: unknown kind of block `{kind}`; use one of {}", KINDS.join(", "))),
            "text" => {
                let typed = |line: &&&str| PROGRAMS.iter().any(|program| line.starts_with(program));
                if let Some(line) = lines.iter().find(typed) {
                    self.errors.push(format!(
                        "{fence}: `{line}` looks like a command: use the kind sh or console, so that it is run"
                    ));
                }
            }
            _ => {}
        }
    }

    /// Reads the commands of a block, and the output below them. `first` is the number of the first line.
    fn commands(&mut self, kind: &str, role: &Role, section: Option<&str>, first: usize, lines: &[&str]) {
        let known = self.commands.len();
        let mut rest = lines.iter().enumerate();
        while let Some((index, line)) = rest.next() {
            let number = first + index;
            let typed = match kind {
                "sh" => Some(*line).filter(|line| !line.is_empty() && !line.starts_with('#')),
                _ => line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")),
            };
            let Some(typed) = typed else {
                self.show(kind, known, number, line);
                continue;
            };
            let mut text = typed.to_owned();
            while text.ends_with('\\') {
                let Some((_, more)) = rest.next() else { break };
                text = format!("{text}\n{more}");
            }
            let section = section.map(str::to_owned);
            self.commands.push(Command {
                line: number,
                text,
                shown: Vec::new(),
                role: role.clone(),
                section,
            });
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
        // A single word is not a reason.
        if reason.split_whitespace().count() < 2 {
            self.errors.push(format!("{}: the comment gives no reason", fence - 1));
        }
        role
    }

    /// Reads a line that is not a command.
    fn show(&mut self, kind: &str, first: usize, number: usize, line: &str) {
        match self.commands[first..].last_mut() {
            Some(command) if kind == "console" => command.shown.push(line.trim_end().to_owned()),
            None if kind == "console" && !line.is_empty() => {
                self.errors.push(format!("{number}: output without a command above it"));
            }
            _ => {}
        }
    }
}

/// Tests of this file. The test program must list them itself, because it does not use libtest.
pub(crate) mod tests {
    use libtest_mimic::{Failed, Trial};

    use super::{Page, Role};

    pub(crate) fn trials() -> Vec<Trial> {
        vec![
            Trial::test("markdown: commands keep their expected output", commands_keep_their_expected_output),
            Trial::test(
                "markdown: illustrations without reason are rejected",
                illustration_without_reason_is_rejected,
            ),
            Trial::test(
                "markdown: separate sections end at the next heading",
                separate_section_ends_at_heading,
            ),
            Trial::test("markdown: commands in text blocks are rejected", command_in_text_block_is_rejected),
        ]
    }

    fn commands_keep_their_expected_output() -> Result<(), Failed> {
        let page = Page::read(
            "Look `here`:\n\n```console\n$ one \\\n  two\nout\n# three\n```\n\n<!-- differs: by the clock -->\n```sh\n# why\nfour  # so\n```\n",
        );
        assert!(page.errors.is_empty(), "{:?}", page.errors);
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

    fn illustration_without_reason_is_rejected() -> Result<(), Failed> {
        for comment in ["<!-- illustration -->", "<!-- illustration: -->", "<!-- illustration: no -->"] {
            let page = Page::read(&format!("{comment}\n```sh\nmake demo\n```\n"));
            assert_eq!(page.errors.len(), 1, "{comment}: {:?}", page.errors);
        }
        let page = Page::read("<!-- illustration: takes an hour -->\n```sh\nmake pairs\n```\n");
        assert!(page.errors.is_empty() && page.run().next().is_none() && page.illustrations().count() == 1);
        Ok(())
    }

    fn separate_section_ends_at_heading() -> Result<(), Failed> {
        let block = |command: &str| format!("```sh\n{command}\n```\n");
        let page = Page::read(&format!(
            "{}## Two\n<!-- separate -->\n\n{}### Still two\n{}## Three\n\n{}",
            block("one"),
            block("two"),
            block("2"),
            block("three")
        ));
        assert_eq!(page.separate, ["Two"]);
        let of = |section| page.run_in(section).map(|command| &*command.text).collect::<Vec<_>>();
        assert_eq!((of(None), of(Some("Two"))), (vec!["one", "three"], vec!["two", "2"]));
        assert!(page.errors.is_empty(), "{:?}", page.errors);
        assert_eq!(Page::read("## One\n\n<!-- separate -->\n").errors.len(), 1);
        Ok(())
    }

    fn command_in_text_block_is_rejected() -> Result<(), Failed> {
        for block in [
            "```text\nairtcp sim\n```",
            "```\nanything\n```",
            "```bash\nairtcp sim\n```",
            "\n    airtcp sim",
            "```console\nairtcp sim\n```",
        ] {
            let page = Page::read(&format!("So:\n{block}\n"));
            assert_eq!(page.errors.len(), 1, "{block}");
        }
        Ok(())
    }
}
