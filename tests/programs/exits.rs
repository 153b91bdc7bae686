//! The exit codes that all programs print under `--help`: 0 done, 1 the run did not succeed, 2 usage, 3
//! environment. Every failure is reported in one place, once.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use airtcp_testkit::machine::Ended;
use airtcp_testkit::programs::program;

use crate::options::pages;
use crate::workspace::Workspace;

const USAGE: i32 = 2;

/// Returns a directory with inputs that cause failures.
fn workspace(name: &str) -> Workspace {
    let workspace = Workspace::new(name);
    fs::create_dir(workspace.0.join("full")).unwrap();
    workspace.write("full/file", "x");
    workspace.write("fails.pkt", "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 close(3) = -1\n");
    for (name, scenario, recipe) in [
        ("sweep", "lossless", "newreno"),
        ("scenario", "lossles", "newreno"),
        ("recipe", "lossless", "newrno"),
    ] {
        let sweep = format!(
            "schema = 1\nseeds = 2\n[fixed]\nscenario = \"{scenario}\"\nbytes = \"20k\"\n[axes]\nrecipe = [\"{recipe}\"]\n"
        );
        workspace.write(&format!("{name}.toml"), sweep);
    }
    workspace.add_capture();
    workspace
}

/// A kind of failure, its exit code, words that its message must contain, and commands that cause it.
const FAILURES: &[(&str, i32, &str, &[&str])] = &[
    (
        "a missing file",
        USAGE,
        "none",
        &[
            "airtcp send none.bin 10.83.0.1:9",
            "airtcp sim -s none.toml",
            "airtcp lab run -s none.toml --recipe sack",
            "airtcp lab matrix --expected none.toml",
            "airtcp lab show none",
            "airtcp sweep plan none.toml",
            "airtcp sweep run none.toml",
            "airtcp sweep summary none.results",
            "airtcp sweep merge none.results -o -",
            "airtcp sweep slurm none.toml --tasks 2",
            "airtcp sweep status none.toml",
            "airtcp sweep status none.results",
            "airtcp analyze none.pcap",
            "airtcp analyze run.pcap --sender-log none.jsonl",
            "airtcp analyze run.pcap --comments out.pcapng --decisions none.jsonl",
            "airtcp analyze --path run.pcap run.pcap --truth none.jsonl",
            "airtcp analyze run.pcap --plot pictures --events none.jsonl",
            "airtcp report none",
            "airtcp script none.pkt",
            "airlink check none.toml",
            "airlink show none.toml",
            "airlink sim -s none.toml",
            "airlink run -s none.toml -- true",
            "airlink up --name none --foreground -s none.toml",
        ],
    ),
    (
        "a directory that is not empty",
        USAGE,
        "full",
        &[
            "airtcp lab run -s lossless --recipe sack --runs 1 --output full",
            "airtcp lab matrix --receiver linux --recipe sack --output full",
            "airtcp demo --scene tiny-window --seeds 2 --output full",
        ],
    ),
    (
        "an invalid recipe",
        USAGE,
        "did you mean `newreno`?",
        &[
            "airtcp send --bytes 1 10.83.0.1:9 --recipe newrno",
            "airtcp recv 9 --recipe newrno",
            "airtcp-serve --listen 80 --forward 127.0.0.1:80 --recipe newrno",
            "airtcp sim -s lossless --recipe newrno",
            "airtcp lab run -s lossless --recipe newrno",
            "airtcp lab matrix --recipe newrno",
            "airtcp sweep run recipe.toml",
            "airtcp sweep plan recipe.toml",
            "airtcp explain newrno",
            "airtcp script fails.pkt --recipe newrno",
        ],
    ),
    (
        "an unknown scenario",
        USAGE,
        "did you mean `lossless`?",
        &[
            "airtcp sim -s lossles",
            "airtcp lab run -s lossles --recipe sack",
            "airtcp lab shell mobile -s lossles",
            "airtcp sweep run scenario.toml",
            "airtcp sweep plan scenario.toml",
            "airlink check lossles",
            "airlink show lossles",
            "airlink sim -s lossles",
            "airlink run -s lossles -- true",
            "airlink up --name none --foreground -s lossles",
        ],
    ),
    (
        "a recipe for virtual time only",
        USAGE,
        "which a real network does not report",
        &[
            "airtcp lab run -s lossless --recipe oracle",
            "airtcp lab run -s lossless --recipe sack --competitor rebate-ideal",
            "airtcp lab matrix --recipe oracle",
        ],
    ),
    (
        "the same address on both sides",
        USAGE,
        "both sides have the address 10.9.9.1: use different addresses",
        &[
            "airlink bridge --fixed-addr 10.9.9.1/24 --mobile-addr 10.9.9.2/24 --mobile-addr 10.9.9.1/32",
            "airlink up --name none --foreground -s lossless --fixed-addr 10.9.9.1/24 --mobile-addr 10.9.9.1/24",
        ],
    ),
    (
        "a run that does not succeed",
        1,
        "",
        &[
            "airtcp script fails.pkt",
            "airtcp analyze run.pcap --connection 4",
            "airlink down nobody-has-this-name",
            "airlink run -s lossless -- false",
        ],
    ),
    (
        "a queue that grows without limit",
        1,
        " (down) take 0.9 MB, and all packets in a path may take 1.0 MB; ",
        &[
            "airtcp sim -s sifest-resent --set voice.down.rate=1Gbit --bytes 1 --for 60s --memory 1M",
            "airtcp sim -s sifest-resent --set voice.down.rate=1000Gbit --bytes 1 --for 60s --memory 1M",
            "airlink sim -s lossless --set wire.down.rate=64kbit --for 60s --down cbr:1Gbit --memory 1M",
            "airlink sim -s lossless --set wire.down.rate=64kbit --down cbr:1000Gbit --size 20 --memory 1M",
        ],
    ),
    (
        "a file that cannot be written",
        1,
        "cannot write",
        &[
            "airtcp sim -s lossless --bytes 20k --decisions no/where",
            "airtcp sim -s lossless --bytes 20k --trace no/where",
            "airtcp sim -s lossless --bytes 20k --pcap no/where",
            "airtcp analyze run.pcap --comments no/where",
            "airlink sim -s lossless --for 1s --events no/where",
            "airlink sim -s lossless --for 1s --pcap-fixed no/where",
        ],
    ),
];

#[test]
fn failures_have_same_exit_code_in_every_command() {
    let workspace = workspace("codes");
    let mut wrong = String::new();
    for (kind, code, words, lines) in FAILURES {
        for line in *lines {
            let Ended { code: actual, stderr, .. } = workspace.run(line);
            if actual != *code || !stderr.contains(words) || stderr.contains("panicked") {
                wrong += &format!("{kind}: `{line}` ends with {actual}, not {code}: {stderr}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Takes the list of commands from the manual pages: each command has one.
#[test]
fn every_command_refuses_unknown_option() {
    let workspace = workspace("options");
    let directory = workspace.0.join("pages");
    let mut commands: Vec<_> =
        pages(&directory).into_iter().map(|(name, _)| name.replace('-', " ")).collect();
    commands.sort();
    for known in ["airtcp", "airtcp demo", "airtcp lab show", "airlink bridge"] {
        assert!(commands.iter().any(|command| command == known), "{known} is not among {commands:?}");
    }
    for command in commands {
        let Ended { code, stderr, .. } = workspace.run(&format!("{command} --nonesuch"));
        assert_eq!(code, USAGE, "{command}: {stderr}");
        assert!(stderr.contains("--nonesuch") && !stderr.contains("panicked"), "{command}: {stderr}");
    }
}

/// Commands that print more than one line.
const WITH_OUTPUT: &[&str] = &[
    "airtcp sim -s lossless --bytes 20k",
    "airtcp sim -s lossless --bytes 20k --json",
    "airtcp sweep plan sweep.toml",
    "airtcp sweep metrics",
    "airtcp reproduce",
    "airtcp analyze run.pcap",
    "airtcp analyze run.pcap --json",
    "airtcp algorithms",
    "airtcp explain sack",
    "airtcp completions bash",
    "airtcp lab receivers",
    "airtcp values recipe",
    "airlink sim -s lossless --for 1s",
    "airlink show",
    "airlink show lossless",
    "airlink check lossless",
    "airlink completions zsh",
];

#[test]
fn closed_stdout_pipe_succeeds_silently() {
    let workspace = workspace("pipe");
    for line in WITH_OUTPUT {
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        let mut command = workspace.command(line.split_whitespace());
        let ended = Ended::of(command.stdout(write).output().unwrap());
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{line}");
    }
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn full_disk_is_reported_once_with_file_name() {
    let workspace = workspace("full");
    let files = [
        ("airtcp sim -s lossless --bytes 20k --decisions /dev/full", "/dev/full"),
        ("airtcp sim -s lossless --bytes 20k --trace /dev/full", "/dev/full"),
        ("airtcp sim -s lossless --bytes 20k --pcap /dev/full", "/dev/full"),
        ("airtcp sim -s lossless --bytes 20k -vvv --log-file /dev/full", "/dev/full"),
        ("airtcp analyze run.pcap --comments /dev/full", "/dev/full"),
        ("airlink sim -s lossless --for 1s -vv --log-file /dev/full", "/dev/full"),
        ("airlink sim -s lossless --for 1s --events /dev/full", "/dev/full"),
    ];
    let files = files.into_iter().map(|(line, name)| (line, name, workspace.run(line)));
    let stdout = WITH_OUTPUT.iter().map(|line| {
        let output = workspace.command(line.split_whitespace()).stdout(full()).output().unwrap();
        (*line, "stdout", Ended::of(output))
    });
    for (line, name, Ended { code, stderr, .. }) in files.chain(stdout) {
        assert_eq!(code, 1, "{line}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{line}: {stderr}");
        for words in ["cannot write", name, "No space left on device"] {
            assert_eq!(stderr.matches(words).count(), 1, "{line}: {words} in {stderr}");
        }
    }
}

/// A merge normally writes a temporary file next to the output and renames it. This does not work for a
/// device or a pipe.
#[test]
fn merge_to_fifo_keeps_fifo() {
    let workspace = workspace("fifo");
    assert_eq!(workspace.run("airtcp sweep run sweep.toml --quiet").code, 0);
    let fifo = workspace.0.join("fifo");
    workspace.make_fifo("fifo");
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).unwrap()
    });
    let ended = workspace.run("airtcp sweep merge sweep.results --output fifo");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(reader.join().unwrap(), workspace.run("airtcp sweep merge sweep.results --output -").stdout);
    assert!(!fs::metadata(&fifo).unwrap().is_file());
}

/// stderr is only for observers. If it is full or closed, exit code and stdout must stay the same.
#[test]
fn unwritable_stderr_does_not_change_result() {
    let workspace = workspace("stderr");
    for line in [
        "airtcp script fails.pkt",
        "airtcp sweep run sweep.toml",
        "airtcp reproduce p2-fig13 --seeds 2 --most-seeds 2",
        "airtcp sim -s lossless --bytes 20k -vvv",
        "airtcp analyze none.pcap",
        "airtcp send none.bin 10.83.0.1:9",
        "airtcp sim --nonesuch",
        "airlink sim -s lossless --for 1s -vv",
        "airlink check none.toml",
        "airlink run -s lossless -- true",
        "airlink run -s lossless -- none",
    ] {
        let expected = workspace.run(line);
        let (read, broken_pipe) = std::io::pipe().unwrap();
        drop(read);
        let mut closed = Command::new("sh");
        closed.args(["-c", "exec \"$@\" 2>&-", "sh"]).arg(program(line.split(' ').next().unwrap()));
        closed.args(line.split(' ').skip(1)).current_dir(&workspace.0).stdin(Stdio::null());
        let [mut to_full_disk, mut to_pipe] = [(); 2].map(|()| workspace.command(line.split_whitespace()));
        for command in [to_full_disk.stderr(full()), to_pipe.stderr(broken_pipe), &mut closed] {
            let _ = fs::remove_dir_all(workspace.0.join("sweep.results"));
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(expected.code), "{line}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected.stdout, "{line}");
        }
    }
}
