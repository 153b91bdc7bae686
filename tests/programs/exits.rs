//! The exit codes that all programs print under `--help`: 0 done, 1 the run did not succeed, 2 usage, 3
//! environment. Every failure is reported in one place, once.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use airtcp_testkit::machine::{Ended, TempDir};
use airtcp_testkit::programs::{program, repository};

use crate::options::pages;

const USAGE: i32 = 2;

/// A temporary directory with inputs that cause failures.
struct Place(TempDir);

impl Place {
    fn new(name: &str) -> Self {
        let path = TempDir::new(name);
        fs::create_dir(path.join("full")).unwrap();
        fs::write(path.join("full/file"), "x").unwrap();
        fs::write(path.join("fails.pkt"), "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 close(3) = -1\n")
            .unwrap();
        let sweep = |scenario: &str, recipe: &str| {
            format!(
                "schema = 1\nseeds = 2\n[fixed]\nscenario = \"{scenario}\"\nbytes = \"20k\"\n[axes]\nrecipe = [\"{recipe}\"]\n"
            )
        };
        for (name, scenario, recipe) in [
            ("sweep", "lossless", "newreno"),
            ("scenario", "lossles", "newreno"),
            ("recipe", "lossless", "newrno"),
        ] {
            fs::write(path.join(format!("{name}.toml")), sweep(scenario, recipe)).unwrap();
        }
        fs::copy(repository().join("pcaps/newreno.pcap"), path.join("run.pcap")).unwrap();
        Self(path)
    }

    /// Returns a command for the line `airtcp …` or `airlink …`, to be started in this directory.
    fn command(&self, line: &str) -> Command {
        let mut words = line.split_whitespace();
        let mut command = Command::new(program(words.next().unwrap()));
        command.args(words).current_dir(&self.0).env_remove("RUST_LOG").stdin(Stdio::null());
        command
    }

    fn ended(&self, line: &str) -> Ended {
        Ended::of(self.command(line).output().unwrap())
    }
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
    let place = Place::new("codes");
    let mut wrong = String::new();
    for (kind, code, words, lines) in FAILURES {
        for line in *lines {
            let ended = place.ended(line);
            let said = &ended.stderr;
            if ended.code != *code || !said.contains(words) || said.contains("panicked") {
                wrong += &format!("{kind}: `{line}` ends with {}, not {code}: {said}", ended.code);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Takes the list of commands from the manual pages: each command has one.
#[test]
fn every_command_refuses_unknown_option() {
    let place = Place::new("options");
    let directory = place.0.join("pages");
    let mut commands: Vec<_> =
        pages(&directory).into_iter().map(|(name, _)| name.replace('-', " ")).collect();
    commands.sort();
    for known in ["airtcp", "airtcp demo", "airtcp lab show", "airlink bridge"] {
        assert!(commands.iter().any(|command| command == known), "{known} is not among {commands:?}");
    }
    for command in commands {
        let ended = place.ended(&format!("{command} --nonesuch"));
        let said = &ended.stderr;
        assert_eq!(ended.code, USAGE, "{command}: {said}");
        assert!(said.contains("--nonesuch") && !said.contains("panicked"), "{command}: {said}");
    }
}

/// Commands that print more than one line.
const TALKATIVE: &[&str] = &[
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
    let place = Place::new("pipe");
    for line in TALKATIVE {
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        let ended = Ended::of(place.command(line).stdout(write).output().unwrap());
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{line}");
    }
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn full_disk_is_reported_once_with_file_name() {
    let place = Place::new("full");
    let files = [
        ("airtcp sim -s lossless --bytes 20k --decisions /dev/full", "/dev/full"),
        ("airtcp sim -s lossless --bytes 20k --trace /dev/full", "/dev/full"),
        ("airtcp sim -s lossless --bytes 20k --pcap /dev/full", "/dev/full"),
        ("airtcp sim -s lossless --bytes 20k -vvv --log-file /dev/full", "/dev/full"),
        ("airtcp analyze run.pcap --comments /dev/full", "/dev/full"),
        ("airlink sim -s lossless --for 1s -vv --log-file /dev/full", "/dev/full"),
        ("airlink sim -s lossless --for 1s --events /dev/full", "/dev/full"),
    ];
    let files = files.into_iter().map(|(line, name)| (line, name, place.ended(line)));
    let stdout = TALKATIVE
        .iter()
        .map(|line| (*line, "stdout", Ended::of(place.command(line).stdout(full()).output().unwrap())));
    for (line, name, ended) in files.chain(stdout) {
        let said = &ended.stderr;
        assert_eq!(ended.code, 1, "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{line}: {said}");
        for words in ["cannot write", name, "No space left on device"] {
            assert_eq!(said.matches(words).count(), 1, "{line}: {words} in {said}");
        }
    }
}

/// A merge normally writes a temporary file next to the output and renames it. This does not work for a
/// device or a pipe.
#[test]
fn merge_to_fifo_keeps_fifo() {
    let place = Place::new("fifo");
    assert_eq!(place.ended("airtcp sweep run sweep.toml --quiet").code, 0);
    let fifo = place.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).unwrap()
    });
    let ended = place.ended("airtcp sweep merge sweep.results --output fifo");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(reader.join().unwrap(), place.ended("airtcp sweep merge sweep.results --output -").stdout);
    assert!(!fs::metadata(&fifo).unwrap().is_file());
}

/// stderr is only for observers. If it is full or closed, exit code and stdout must stay the same.
#[test]
fn unwritable_stderr_does_not_change_result() {
    let place = Place::new("stderr");
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
        let usual = place.ended(line);
        let (read, gone) = std::io::pipe().unwrap();
        drop(read);
        let mut closed = Command::new("sh");
        closed.args(["-c", "exec \"$@\" 2>&-", "sh"]).arg(program(line.split(' ').next().unwrap()));
        closed.args(line.split(' ').skip(1)).current_dir(&place.0).stdin(Stdio::null());
        let [mut on_full, mut on_gone] = [(); 2].map(|()| place.command(line));
        for command in [on_full.stderr(full()), on_gone.stderr(gone), &mut closed] {
            let _ = fs::remove_dir_all(place.0.join("sweep.results"));
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(usual.code), "{line}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), usual.stdout, "{line}");
        }
    }
}
