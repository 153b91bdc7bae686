//! The command line of `airtcp`: what it refuses, with which code and which words.
//!
//! The tests of privileges need root (to give it up) and fail, saying so, without it.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use airtcp::recovery::catalogue;
use airtcp_testkit::machine::{Ended, TempFile, airtcp, namespace, run, wait_for_listener};
use airtcp_testkit::programs::program;

/// Exactly one line on stderr, with the code.
fn complaint(args: &[&str], code: i32) -> String {
    let ended = run(args);
    assert_eq!(ended.code, code, "{args:?}: {}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.is_empty(), "{args:?}: {}", ended.stdout);
    ended.stderr
}

fn one_line(args: &[&str], code: i32) -> String {
    let stderr = complaint(args, code);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("airtcp: "), "{stderr}");
    stderr
}

#[test]
fn help_names_every_command_and_gives_examples() {
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    for command in [
        "send",
        "recv",
        "serve",
        "sink",
        "source",
        "sim",
        "sweep",
        "reproduce",
        "analyze",
        "report",
        "algorithms",
        "explain",
        "script",
        "completions",
        "man",
    ] {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{command} in {}", help.stdout);
        let ended = run(&[command, "--help"]);
        assert_eq!(ended.code, 0);
        assert!(ended.stdout.contains("Example"), "{command} has no example: {}", ended.stdout);
        assert!(
            ended.stdout.lines().all(|line| line.chars().count() <= 100),
            "{command}: a line is too long"
        );
    }
    assert!(help.stdout.contains("\nExit codes:\n  0  success\n  1  the run failed\n"));
}

#[test]
fn a_recipe_that_cannot_be_is_a_usage_error_with_the_reason() {
    for (recipe, words) in [
        ("newrno", "did you mean `newreno`?"),
        ("tahoe+sack", "`tahoe` and `sack` both answer \"What to retransmit?\": choose one"),
        ("sack+no-sack", "`sack` needs SACK, which `no-sack` switches off"),
        ("iw", "`iw` needs a number between 1 and 1000 segments"),
        ("", "empty recipe"),
    ] {
        for command in [["send", "10.83.0.1:9", "--recipe"], ["recv", "9", "--recipe"]] {
            let stderr = complaint(&[&command[..], &[recipe]].concat(), 2);
            assert!(stderr.contains(words) && stderr.contains("--recipe"), "{stderr}");
        }
    }
    assert!(complaint(&["send", "10.83.0.1:9", "--profile", "solaris"], 2).contains("freebsd"));
}

#[test]
fn two_profiles_for_one_host_are_a_usage_error() {
    for command in [
        &["send", "10.83.0.1:9", "--bytes=1k"][..],
        &["recv", "9"],
        &["serve", "--listen=80", "--forward=127.0.0.1:80"],
        &["script", "tests/scripts/handshake/none.pkt"],
        &["explain"],
    ] {
        let recipe = if command[0] == "explain" { "sack@linux" } else { "--recipe=sack@linux" };
        let stderr = complaint(&[command, &[recipe, "--profile=ns2"]].concat(), 2);
        assert!(
            stderr.contains("sack@linux and --profile ns2 name two profiles: leave one of them out"),
            "{stderr}"
        );
        let recipe = recipe.replace("linux", "linus");
        let stderr = complaint(&[command, &[&recipe]].concat(), 2);
        assert!(stderr.contains("did you mean `linux`?"), "{stderr}");
    }
}

#[test]
fn what_is_explained_of_a_sender_is_with_its_profile() {
    for (sender, words) in [
        (&["newreno"][..], &["Profile default", "no SACK, timestamps offered"][..]),
        (&["newreno@linux"], &["Profile linux", "SACK offered, timestamps offered"]),
        (&["newreno", "--profile", "ns2"], &["Profile ns2", "no SACK, no timestamps"]),
    ] {
        let said = run(&[&["explain"], sender].concat()).stdout;
        let profile = said.lines().find(|line| line.starts_with("Profile")).expect("it says which");
        assert!(profile.chars().count() <= 100, "{profile}");
        assert!(said.starts_with("newreno\n") && words.iter().all(|words| said.contains(words)), "{said}");
    }
}

#[test]
fn an_impossible_address_is_a_usage_error() {
    for (target, words) in [
        ("10.83.0.1", "is not an address and port: use for example 10.83.0.1:9000 or [fd83::1]:9000"),
        ("example.org:9000", "is not an address and port"),
        ("10.83.0.1:70000", "is not an address and port"),
        ("10.83.0.1:0", "a port other than 0"),
        ("224.0.0.1:9000", "a unicast address"),
        ("0.0.0.0:9000", "a unicast address"),
        ("[ff02::1]:9000", "a unicast address"),
        ("10.83.0.2:9000", "the userspace host's own address"),
        ("[fd83::2]:9000", "the userspace host's own address"),
    ] {
        let stderr = one_line(&["send", "--bytes=1", target], 2);
        assert!(stderr.contains(words), "{target}: {stderr}");
    }
    let same = one_line(&["send", "--bytes=1", "10.83.0.9:9", "--addr=10.83.0.1"], 2);
    assert!(same.contains("is the kernel's address on the device"), "{same}");
    let small = one_line(&["send", "--bytes=1", "[fd83::1]:9", "--mtu=1000"], 2);
    assert!(small.contains("IPv6 needs an MTU of at least 1280"), "{small}");
}

#[test]
fn numbers_without_sense_are_usage_errors_that_say_what_is_wanted() {
    let stderr = complaint(&["send", "--bytes=ten", "10.83.0.1:9"], 2);
    assert!(stderr.contains("`ten` is not a size: write a number and k, M, G, Ki, Mi or Gi"), "{stderr}");
    let stderr = complaint(&["send", "--timeout=5x", "10.83.0.1:9"], 2);
    assert!(
        stderr.contains("`5x` is not a length of time: write a number and ns, us, ms, s, m, min or h"),
        "{stderr}"
    );
    let stderr = one_line(&["send", "--bytes=1", "file", "10.83.0.1:9"], 2);
    assert!(stderr.contains("cannot be combined"), "{stderr}");
    let stderr = complaint(&["send", "--r2=soon", "10.83.0.1:9"], 2);
    assert!(stderr.contains("`soon` is neither a count such as 7 nor a time such as 90s or 3m"), "{stderr}");
    complaint(&["serve", "--listen=80", "--forward=a:1", "--opening-errors=some"], 2);
    complaint(&["send", "10.83.0.1:9", "--verify", "--no-digest"], 2);
    complaint(&["recv", "0"], 2);
    complaint(&[], 2);
    for command in ["recv", "sink"] {
        let stderr = one_line(&[command, "9", "--json", "--output=-"], 2);
        assert!(stderr.contains("both write to stdout"), "{stderr}");
    }
}

#[test]
fn a_sink_writes_what_it_receives_to_stdout_and_what_it_says_of_it_beside() {
    let namespace = namespace();
    let up = Command::new("ip").args(["-n", namespace.name(), "link", "set", "lo", "up"]).status().unwrap();
    assert!(up.success());
    let mut sink = airtcp(&["sink", "9000", "--output", "-"]);
    let sink = namespace.spawn(sink.stdout(Stdio::piped()).stderr(Stdio::piped())).unwrap();
    wait_for_listener(&namespace, 9000);
    let connect = || TcpStream::connect(("127.0.0.1", 9000)).unwrap();
    namespace.enter(connect).unwrap().write_all(b"one line, and no end of it").unwrap();
    let ended = Ended::of(sink.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "one line, and no end of it"), "{}", ended.stderr);
    assert!(ended.stderr.contains("received      26 bytes"), "{}", ended.stderr);
}

#[test]
fn files_that_are_not_there_are_named_before_anything_is_made() {
    let stderr = one_line(&["send", "/nonexistent/file", "10.83.0.1:9"], 2);
    assert!(stderr.contains("cannot read /nonexistent/file: No such file"), "{stderr}");
    let stderr = one_line(&["recv", "9", "--output=/nonexistent/file"], 1);
    assert!(stderr.contains("cannot write /nonexistent/file: No such file"), "{stderr}");
}

#[test]
fn a_missing_namespace_is_an_error_of_the_environment() {
    for args in [
        &["send", "--bytes=1", "10.83.0.1:9", "--netns=no-such-namespace"][..],
        &["recv", "9", "--netns=no-such-namespace"],
        &["sink", "9", "--netns=no-such-namespace"],
    ] {
        let stderr = one_line(args, 3);
        assert!(stderr.contains("no-such-namespace") && stderr.contains("ip netns add"), "{stderr}");
    }
}

/// A copy of the program that everybody may run.
fn public_copy() -> TempFile {
    let copy = TempFile::new("program");
    std::fs::copy(program("airtcp"), copy.path()).unwrap();
    std::fs::set_permissions(copy.path(), PermissionsExt::from_mode(0o755)).unwrap();
    copy
}

#[test]
fn without_privileges_it_says_how_to_get_them() {
    const NOBODY: u32 = 65_534;
    assert!(nix::unistd::geteuid().is_root(), "this test gives up root's privileges: run it as root");
    let program = public_copy();
    let output = Command::new(program.path())
        .args(["send", "--bytes=1", "10.83.0.1:9", "--json"])
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let ended = Ended::of(output);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("run as root"), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn without_the_tun_driver_it_says_how_to_get_it() {
    assert!(nix::unistd::geteuid().is_root(), "this test hides /dev/net: run it as root");
    // In a mount namespace of its own.
    let hide = "mount -t tmpfs tmpfs /dev/net && exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "--net", "sh", "-c", hide])
        .arg(program("airtcp"))
        .args(["send", "--bytes=1", "10.83.0.1:9"])
        .output()
        .unwrap();
    let ended = Ended::of(output);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("there is no /dev/net/tun") && ended.stderr.contains("modprobe tun"));
}

#[test]
fn a_bad_device_name_is_told() {
    let namespace = namespace();
    let stderr = one_line(&["send", "--bytes=1", "10.83.0.1:9", "--netns", namespace.name(), "--tun=a/b"], 3);
    assert!(stderr.contains("`a/b` is not an interface name"), "{stderr}");
    let stderr = one_line(
        &["send", "--bytes=1", "10.83.0.1:9", "--netns", namespace.name(), "--pcap=/nonexistent/x.pcap"],
        1,
    );
    assert!(stderr.contains("/nonexistent/x.pcap"), "{stderr}");
}

#[test]
fn a_port_in_use_is_told() {
    let namespace = namespace();
    let _holder = namespace.enter(|| std::net::TcpListener::bind("[::]:9000").unwrap()).unwrap();
    let stderr = one_line(&["sink", "9000", "--netns", namespace.name()], 1);
    assert!(
        stderr.contains("port 9000 is in use: stop the other program, or choose another port"),
        "{stderr}"
    );
}

#[test]
fn the_table_of_algorithms_is_the_catalogue() {
    let table = run(&["algorithms"]).stdout;
    let json = run(&["algorithms", "--json"]);
    assert_eq!(json.lines.len(), catalogue::rows().count());
    for (row, line) in catalogue::rows().zip(&json.lines) {
        assert_eq!(line["name"], row.name);
        assert!(table.contains(&format!("{} ({})\n", row.summary, row.citation)), "{}", row.name);
    }
    assert!(table.starts_with("What to retransmit?\n  tahoe"), "{table}");
    assert!(table.contains("\n* newreno ") && table.contains("\n  iw=N "), "{table}");
}

#[test]
fn explain_tells_what_moves_a_sender_from_one_state_to_another() {
    let text = run(&["explain", "tahoe"]).stdout;
    let (_, states) = text.split_once("\nRecovery states").expect("it has a part about states");
    assert!(
        states.contains("    → restarted  a loss detected without a timeout, with a repair that restarts\n")
    );
    assert!(!states.contains("recovery   ") && !states.contains("reduced"), "{states}");

    let text = run(&["explain", "sack+rack+eifel+ecn"]);
    let (_, states) = text.stdout.split_once("\nRecovery states").expect("it has a part about states");
    assert!(states.lines().all(|line| line.chars().count() <= 100), "{states}");
    let states = run(&["explain", "sack+rack+eifel+ecn", "--json"]);
    let states: Vec<_> = states.lines.iter().filter(|line| line["state"].is_string()).collect();
    let names: Vec<_> = states.iter().map(|state| state["state"].as_str().unwrap()).collect();
    assert_eq!(names, ["open", "reduced", "recovery", "restarted"]);
    let moves = states[0]["moves"].as_array().unwrap();
    let moves: Vec<_> =
        moves.iter().map(|it| (it["cue"].as_str().unwrap(), it["to"].as_str().unwrap())).collect();
    let expected = [
        ("ecn-echo", "reduced"),
        ("repaired-by-probe", "reduced"),
        ("loss", "recovery"),
        ("timeout", "restarted"),
    ];
    assert_eq!(moves, expected);
}

#[test]
fn scripts_pass_fail_and_are_usage_errors() {
    let script = TempFile::new("script.pkt");
    let play = |text: &str, more: &[&str]| {
        std::fs::write(script.path(), text).unwrap();
        run(&[&["script", script.path()], more].concat())
    };
    let handshake = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
                     +0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                     +0 < S 0:0(0) win 32792 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n";
    let passed = play(handshake, &[]);
    assert_eq!(passed.code, 0, "{}", passed.stderr);
    assert!(passed.stdout.contains("1 packets as expected"), "{}", passed.stdout);
    assert_eq!(play(handshake, &["--quiet"]).stdout, "");
    let failed = play(&handshake.replace("ack 1", "ack 2"), &[]);
    assert_eq!(failed.code, 1);
    assert!(
        failed.stderr.contains("script.pkt:5: ")
            && failed.stderr.ends_with("airtcp: 1 of 1 scripts failed\n")
    );
    assert_eq!(play(handshake, &["--recipe", "newrno"]).code, 2);
    // packetdrill's options, as packetdrill spells them.
    let late = handshake.replace("+0 > S.", "+.003 > S.").replace("IPPROTO_TCP", "PROTO");
    let defined = ["-D", "PROTO=IPPROTO_TCP", "--mss=1000"];
    let noted = play(&late, &defined);
    assert!(noted.stdout.contains("note: --mss has no effect"), "{}", noted.stderr);
    assert_eq!(play(&late, &[&defined[..], &["--tolerance", "0"]].concat()).code, 1);
    assert_eq!(play(&late, &[&defined[..], &["--tolerance_usecs=1000"]].concat()).code, 1);
    let wrong = play(handshake, &["--mss=0"]);
    assert_eq!((wrong.code, wrong.stderr.as_str()), (2, "airtcp: `--mss=0`: expected a number from 1\n"));
    let missing = run(&["script", "/nonexistent.pkt"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("/nonexistent.pkt"), "{}", missing.stderr);
}

#[test]
fn completions_offer_the_algorithms_and_are_accepted_by_the_shell() {
    for (shell, name) in [("bash", "airtcp"), ("zsh", "airtcp"), ("fish", "airtcp"), ("bash", "airlink")] {
        let ended = Ended::of(Command::new(program(name)).args(["completions", shell]).output().unwrap());
        assert_eq!(ended.code, 0);
        let wanted = if name == "airtcp" { "airtcp values" } else { "mobile-netns" };
        assert!(ended.stdout.contains(wanted), "{shell} {name}");
        if shell == "bash" {
            let mut child = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(ended.stdout.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success(), "bash finds a mistake");
        }
    }
}

/// What the shells ask for a word that has begun.
#[test]
fn recipes_and_profiles_are_completed_behind_a_plus_and_an_at() {
    let values = |word: &str| run(&["values", "recipe", word]).stdout;
    assert!(values("sack+limited").contains("sack+limited-transmit"), "{}", values("sack+limited"));
    assert!(values("newreno@fr").contains("newreno@freebsd"), "{}", values("newreno@fr"));
    assert!(!values("sack+limited").contains("tahoe"));
}

#[test]
fn manual_pages_of_both_programs_have_the_examples() {
    let dir = TempFile::new("man");
    for name in ["airtcp", "airlink"] {
        assert!(Command::new(program(name)).args(["man", dir.path()]).status().unwrap().success());
    }
    for (page, words) in [
        ("airtcp.1", "Exit codes"),
        ("airtcp-send.1", "verify"),
        ("airtcp-sink.1", "SO_RCVBUF"),
        ("airlink.1", "Exit codes"),
        ("airlink-run.1", "scenario"),
    ] {
        let text = std::fs::read_to_string(format!("{}/{page}", dir.path())).unwrap();
        assert!(text.contains(".TH ") && text.contains(words), "{page}: {text}");
    }
    std::fs::remove_dir_all(dir.path()).unwrap();
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = airtcp(&["completions", "bash"]).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
