//! Compares the output that a page shows with the output of the command.

/// Returns a description of the difference, if there is one. A line `…` matches any number of lines, and `…`
/// in a line matches any text.
pub(crate) fn differs(shown: &[String], printed: &str) -> Option<String> {
    // Approximately as a terminal displays it.
    let printed = printed.replace('\t', "  ");
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    (!fits(shown, &printed))
        .then(|| format!("shown:\n{}\nprinted:\n{}", shown.join("\n"), printed.join("\n")))
}

fn fits(shown: &[String], printed: &[&str]) -> bool {
    match shown.split_first() {
        // Empty lines at the end do not count.
        None => printed.iter().all(|line| line.is_empty()),
        Some((line, rest)) if line.trim() == "…" => {
            (0..=printed.len()).any(|from| fits(rest, &printed[from..]))
        }
        Some((line, rest)) => match printed.split_first() {
            Some((first, others)) => like(line, first) && fits(rest, others),
            None => line.is_empty() && fits(rest, printed),
        },
    }
}

fn like(shown: &str, printed: &str) -> bool {
    let Some((head, rest)) = shown.split_once('…') else { return shown == printed };
    let Some(printed) = printed.strip_prefix(head) else { return false };
    let mut starts = printed.char_indices().map(|(at, _)| at).chain([printed.len()]);
    starts.any(|at| like(rest, &printed[at..]))
}

/// Tests of this file.
pub(crate) mod tests {
    use libtest_mimic::{Failed, Trial};

    use super::differs;

    pub(crate) fn trials() -> Vec<Trial> {
        vec![Trial::test("shown: ellipsis matches any text", ellipsis_matches_any_text)]
    }

    fn ellipsis_matches_any_text() -> Result<(), Failed> {
        let fits = |shown: &str, printed: &str| {
            let shown: Vec<_> = shown.lines().map(str::to_owned).collect();
            differs(&shown, printed).is_none()
        };
        assert!(fits("a\nb", "a\nb\n"));
        assert!(fits("a\n…", "a\nb\nc\n") && fits("…\nc", "a\nb\nc\n") && fits("a\n…\nc", "a\nc\n"));
        assert!(fits("took … s, done", "took 1.5 s, done\n"));
        assert!(!fits("a", "a\nb\n") && !fits("a\nb", "a\n") && !fits("b\n…", "a\nb\n"));
        assert!(!fits("took … s", "took 1.5 m\n") && !fits("…\nc", "a\nb\n"));
        assert!(!fits("a", "") && !fits("a  b", "a b\n") && fits("a  b", "a\tb\n"));
        Ok(())
    }
}
