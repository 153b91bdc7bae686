//! Runs the commands of a page as a user would after cloning the repository: in one shell, in order, as root.
//!
//! Each page has separate namespaces (network, mounts, processes), so its processes and settings end with the
//! page. A page gets the repository read-only, and a copy of `docs`, because some commands write there.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use airtcp_testkit::machine::TempDir;
use airtcp_testkit::programs::{program, repository};
use libtest_mimic::Failed;
use nix::unistd::geteuid;

use super::markdown::{Page, Role};
use super::shown;

/// Time limit in seconds, so that a page fails instead of hanging.
const TIME_LIMIT: &str = "120";

/// Prepares the namespaces of one page, with a read-only repository. Arguments: the script, the directory for
/// its results, and the repository.
const ISOLATE: &str = "set -e
    ip link set lo up
    case \"$2\" in
        # tests/isolated.sh has mounted a separate /run, which holds the files of this page.
        /run/*) ;;
        *) mount -t tmpfs tmpfs /run ;;
    esac
    mkdir -p /run/netns
    mount --bind \"$3\" \"$3\"
    mount -o remount,bind,ro \"$3\"
    exec bash \"$1\" \"$2\"";

/// Runs a separate section of the page, or with `None` all other sections.
pub(crate) fn play(page: &Page, section: Option<&str>) -> Result<(), Failed> {
    if !page.errors.is_empty() {
        return Err(page.errors.join("\n").into());
    }
    if !geteuid().is_root() {
        return Err("the commands of documents create devices: run this as root, or with `make test`".into());
    }
    let checkout = Checkout::new();
    let results = checkout.0.with_extension("results");
    fs::create_dir(&results)?;
    let script = results.join("script");
    fs::write(&script, script_of(page, section))?;
    for (name, text) in &page.files {
        fs::write(checkout.0.join(name), text)?;
    }
    let ended = run_isolated(&checkout, &script, &results)?;
    let result = check_results(page, section, &results);
    let _ = fs::remove_dir_all(&results);
    match ended.status.code() {
        Some(0) => result,
        code => Err(format!(
            "the page did not run to its end (exit code 124 is a timeout): {code:?}\n{}{}",
            String::from_utf8_lossy(&ended.stderr),
            result.err().and_then(|failed| failed.message().map(str::to_owned)).unwrap_or_default()
        )
        .into()),
    }
}

/// Runs the script of a page in its own namespaces.
fn run_isolated(checkout: &Checkout, script: &Path, results: &Path) -> io::Result<Output> {
    let programs = program("airtcp");
    let path = format!(
        "{}:{}:{}",
        repository().join("tests/docs/stand-ins").display(),
        programs.parent().map(Path::display).expect("the program is in a directory"),
        std::env::var("PATH").unwrap_or_default()
    );
    Command::new("timeout")
        .args(["--kill-after=5", TIME_LIMIT])
        .args(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["bash", "-c", ISOLATE, "bash"])
        .args([script, results, &repository().canonicalize()?])
        .current_dir(&checkout.0)
        .env("PATH", path)
        .env("HOME", results.join("home"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
}

/// Returns a shell script that runs the commands of a page or separate section. The output and exit code of each
/// command go into files with its number.
fn script_of(page: &Page, section: Option<&str>) -> String {
    let mut script = "page_results=$1; mkdir $page_results/home\n".to_owned();
    for (number, command) in page.run_in(section).enumerate() {
        let text = &command.text;
        let _ = writeln!(
            script,
            "{{ {text}\n}} >$page_results/{number}.out 2>$page_results/{number}.err; echo $? >$page_results/{number}.code"
        );
        // A user types the next command when the background command is ready: it listens, or three seconds have
        // passed. If it has ended by then, its exit code is recorded.
        if text.split(" #").next().is_some_and(|typed| typed.trim_end().ends_with('&')) {
            let _ = writeln!(
                script,
                "for page_wait in {{1..30}}; do\n\
                 kill -0 $! || {{ wait $!; echo $? >$page_results/{number}.code; break; }}\n\
                 nsenter -t $! -n ss -Hltnp | grep -q \"pid=$!,\" && break; sleep 0.1\n\
                 done 2>/dev/null"
            );
        }
    }
    script
}

/// Reports all deviations from the page.
fn check_results(page: &Page, section: Option<&str>, results: &Path) -> Result<(), Failed> {
    let mut errors = String::new();
    for (number, command) in page.run_in(section).enumerate() {
        let read = |what: &str| {
            let bytes = fs::read(results.join(format!("{number}.{what}"))).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (code, out, err) = (read("code"), read("out"), read("err"));
        // For a command that is refused, the page shows the error message.
        let refused = command.shown.first().is_some_and(|line| line.starts_with("error: "));
        let shows = command.role == Role::Run && command.shown.iter().any(|line| !line.is_empty());
        let what = match code.trim() {
            "" => Some("was not run, or did not end".to_owned()),
            "0" if refused => Some("succeeded, but the page shows an error".to_owned()),
            "0" if shows => shown::differs(&command.shown, &out),
            "0" => None,
            _ if refused => shown::differs(&command.shown, &err),
            code => Some(format!("ended with {code}")),
        };
        if let Some(what) = what {
            let tail = err.lines().rev().take(8).collect::<Vec<_>>();
            let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
            let _ = writeln!(errors, "line {}: {}\n{what}\n{tail}\n", command.line, command.text);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.into()) }
}

/// A directory that looks like the repository, in which a page may write.
struct Checkout(TempDir);

impl Checkout {
    fn new() -> Self {
        let dir = TempDir::new("docs");
        for entry in fs::read_dir(repository()).expect("the repository can be read").map(Result::unwrap) {
            let name = entry.file_name();
            let hidden = name.to_string_lossy().starts_with('.');
            if !hidden && !["docs", "target", "lab"].iter().any(|excluded| name == *excluded) {
                let from = entry.path().canonicalize().expect("it has just been listed");
                symlink(from, dir.join(name)).expect("a new directory can contain links");
            }
        }
        copy(&repository().join("docs"), &dir.join("docs"));
        Self(dir)
    }
}

/// Copies a directory without the results of commands that a user has run there.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a new directory can be made");
    for entry in fs::read_dir(from).expect("a directory of docs can be read").map(Result::unwrap) {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.extension().is_some_and(|extension| extension == "results") {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a file of the repository can be read");
        }
    }
}

/// Tests of this file. The test program must list them itself, because it does not use libtest.
pub(crate) mod tests {
    use std::process::{Command, Stdio};

    use libtest_mimic::{Failed, Trial};

    use super::{Page, TempDir, script_of};

    pub(crate) fn trials() -> Vec<Trial> {
        vec![Trial::test(
            "play: background commands keep their exit codes",
            background_commands_keep_their_exit_codes,
        )]
    }

    fn background_commands_keep_their_exit_codes() -> Result<(), Failed> {
        let page = Page::read("```sh\n(exit 7) &\nsleep 60 &\ntrue &  # is soon done\n```\n");
        let results = TempDir::new("docs-results");
        let script = script_of(&page, None) + "kill %2\n";
        let mut bash = Command::new("bash");
        let ended =
            bash.args(["-c", &script, "bash"]).arg(results.as_os_str()).stdin(Stdio::null()).output()?;
        let codes = [0, 1, 2].map(|number| std::fs::read_to_string(results.path(&format!("{number}.code"))));
        let codes = codes.map(|code| code.unwrap_or_default().trim().to_owned());
        assert_eq!(codes, ["7", "0", "0"], "{}", String::from_utf8_lossy(&ended.stderr));
        Ok(())
    }
}
