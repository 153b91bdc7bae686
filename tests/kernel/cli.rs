//! The command line of `airtcp`: rejected input, with the exit code and the message.
//!
//! The tests of privileges must start as root, because they drop its privileges. Otherwise they fail.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use airtcp::recovery::catalogue;
use airtcp_testkit::machine::{Ended, TempDir, TempFile, airtcp, namespace, run, wait_for_listener};
use airtcp_testkit::programs::program;

/// Runs the command and checks the exit code and that stdout is empty. Returns stderr.
fn error_output(args: &[&str], code: i32) -> String {
    let ended = run(args);
    assert_eq!(ended.code, code, "{args:?}: {}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.is_empty(), "{args:?}: {}", ended.stdout);
    ended.stderr
}

fn one_line_error(args: &[&str], code: i32) -> String {
    let stderr = error_output(args, code);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("airtcp: "), "{stderr}");
    stderr
}

#[test]
fn help_lists_every_command_with_examples() {
    let help = run(&["--help"]).success();
    let commands = "send recv serve sink source sim sweep reproduce analyze report algorithms explain script \
                    completions man";
    for command in commands.split_whitespace() {
        let listed = help.stdout.contains(&format!("\n  {command} "));
        assert!(listed, "`{command}` is missing in {}", help.stdout);
        let stdout = run(&[command, "--help"]).success().stdout;
        assert!(stdout.contains("Example"), "{command} has no example: {stdout}");
        assert!(stdout.lines().all(|line| line.chars().count() <= 100), "{command}: a line is too long");
    }
    assert!(help.stdout.contains("\nExit codes:\n  0  success\n  1  the run failed\n"));
}

#[test]
fn invalid_recipe_is_usage_error_with_reason() {
    for (recipe, words) in [
        ("newrno", "did you mean `newreno`?"),
        ("linux:cubic", "use its model `linux`, or `airtcp lab run --sender linux:cubic`"),
        ("tahoe+sack", "`tahoe` and `sack` both answer \"What to retransmit?\": choose one"),
        ("sack+no-sack", "`sack` needs SACK, which `no-sack` switches off"),
        ("iw", "`iw` needs a number between 1 and 1000 segments"),
        ("", "empty recipe"),
    ] {
        for command in [["send", "10.83.0.1:9", "--recipe"], ["recv", "9", "--recipe"]] {
            let stderr = error_output(&[&command[..], &[recipe]].concat(), 2);
            assert!(stderr.contains(words) && stderr.contains("--recipe"), "{stderr}");
        }
    }
    assert!(error_output(&["send", "10.83.0.1:9", "--profile", "solaris"], 2).contains("freebsd"));
}

#[test]
fn conflicting_profiles_are_usage_error() {
    for command in [
        &["send", "10.83.0.1:9", "--bytes=1k"][..],
        &["recv", "9"],
        &["serve", "--listen=80", "--forward=127.0.0.1:80"],
        &["script", "tests/scripts/handshake/none.pkt"],
        &["explain"],
    ] {
        let recipe = if command[0] == "explain" { "sack@linux" } else { "--recipe=sack@linux" };
        let stderr = error_output(&[command, &[recipe, "--profile=ns2"]].concat(), 2);
        let words = "sack@linux and --profile ns2 name two profiles: leave one of them out";
        assert!(stderr.contains(words), "{stderr}");
        let recipe = recipe.replace("linux", "linus");
        let stderr = error_output(&[command, &[&recipe]].concat(), 2);
        assert!(stderr.contains("did you mean `linux`?"), "{stderr}");
    }
}

#[test]
fn explain_shows_profile_of_sender() {
    for (sender, words) in [
        (&["newreno"][..], &["Profile default", "no SACK, timestamps offered"][..]),
        (&["newreno@linux"], &["Profile linux", "SACK offered, timestamps offered"]),
        (&["newreno", "--profile", "ns2"], &["Profile ns2", "no SACK, no timestamps"]),
    ] {
        let text = run(&[&["explain"], sender].concat()).stdout;
        let profile = text.lines().find(|line| line.starts_with("Profile")).expect("no line `Profile`");
        assert!(profile.chars().count() <= 100, "{profile}");
        assert!(text.starts_with("newreno\n") && words.iter().all(|words| text.contains(words)), "{text}");
    }
}

#[test]
fn impossible_address_is_usage_error() {
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
        let stderr = one_line_error(&["send", "--bytes=1", target], 2);
        assert!(stderr.contains(words), "{target}: {stderr}");
    }
    let same = one_line_error(&["send", "--bytes=1", "10.83.0.9:9", "--addr=10.83.0.1"], 2);
    assert!(same.contains("is the kernel's address on the device"), "{same}");
    let small = one_line_error(&["send", "--bytes=1", "[fd83::1]:9", "--mtu=1000"], 2);
    assert!(small.contains("IPv6 needs an MTU of at least 1280"), "{small}");
}

#[test]
fn invalid_option_values_are_usage_errors() {
    for (option, words) in [
        ("--bytes=ten", "`ten` is not a size: write a number and k, M, G, Ki, Mi or Gi"),
        ("--timeout=5x", "`5x` is not a length of time: write a number and ns, us, ms, s, m, min or h"),
        ("--r2=soon", "`soon` is neither a count such as 7 nor a time such as 90s or 3m"),
    ] {
        let stderr = error_output(&["send", option, "10.83.0.1:9"], 2);
        assert!(stderr.contains(words), "{stderr}");
    }
    let stderr = one_line_error(&["send", "--bytes=1", "file", "10.83.0.1:9"], 2);
    assert!(stderr.contains("cannot be combined"), "{stderr}");
    error_output(&["serve", "--listen=80", "--forward=a:1", "--opening-errors=some"], 2);
    error_output(&["send", "10.83.0.1:9", "--verify", "--no-digest"], 2);
    error_output(&["recv", "0"], 2);
    error_output(&[], 2);
    for command in ["recv", "sink"] {
        let stderr = one_line_error(&[command, "9", "--json", "--output=-"], 2);
        assert!(stderr.contains("both write to stdout"), "{stderr}");
    }
}

#[test]
fn sink_separates_data_on_stdout_from_summary() {
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

/// The namespace does not exist either. It would be reported if the device were opened before the file.
#[test]
fn missing_files_are_reported_before_device_is_opened() {
    let netns = "--netns=no-such-namespace";
    let stderr = one_line_error(&["send", "/nonexistent/file", "10.83.0.1:9", netns], 2);
    assert!(stderr.contains("cannot read /nonexistent/file: No such file"), "{stderr}");
    let stderr = one_line_error(&["recv", "9", "--output=/nonexistent/file", netns], 1);
    assert!(stderr.contains("cannot write /nonexistent/file: No such file"), "{stderr}");
}

#[test]
fn missing_namespace_is_environment_error() {
    for args in [
        &["send", "--bytes=1", "10.83.0.1:9", "--netns=no-such-namespace"][..],
        &["recv", "9", "--netns=no-such-namespace"],
        &["sink", "9", "--netns=no-such-namespace"],
    ] {
        let stderr = one_line_error(args, 3);
        assert!(stderr.contains("no-such-namespace") && stderr.contains("ip netns add"), "{stderr}");
    }
}

/// A copy of the program that every user may execute.
fn public_copy() -> TempFile {
    let copy = TempFile::new("program");
    std::fs::copy(program("airtcp"), copy.path()).unwrap();
    std::fs::set_permissions(copy.path(), PermissionsExt::from_mode(0o755)).unwrap();
    copy
}

#[test]
fn missing_privileges_error_suggests_root() {
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
fn missing_tun_driver_error_suggests_modprobe() {
    assert!(nix::unistd::geteuid().is_root(), "this test hides /dev/net: run it as root");
    // In a separate mount namespace.
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
fn invalid_device_name_and_pcap_path_are_reported() {
    let namespace = namespace();
    for (option, code, words) in [
        ("--tun=a/b", 3, "`a/b` is not an interface name"),
        ("--pcap=/nonexistent/x.pcap", 1, "/nonexistent/x.pcap"),
    ] {
        let send = ["send", "--bytes=1", "10.83.0.1:9", "--netns", namespace.name(), option];
        let stderr = one_line_error(&send, code);
        assert!(stderr.contains(words), "{stderr}");
    }
}

#[test]
fn port_in_use_is_reported() {
    let namespace = namespace();
    let _holder = namespace.enter(|| std::net::TcpListener::bind("[::]:9000").unwrap()).unwrap();
    let stderr = one_line_error(&["sink", "9000", "--netns", namespace.name()], 1);
    let words = "port 9000 is in use: stop the other program, or choose another port";
    assert!(stderr.contains(words), "{stderr}");
}

#[test]
fn algorithms_command_lists_whole_catalogue() {
    let table = run(&["algorithms"]).stdout;
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    let json = run(&["algorithms", "--json"]);
    assert_eq!(json.lines.len(), catalogue::rows().count());
    for (row, line) in catalogue::rows().zip(&json.lines) {
        assert_eq!(line["name"], row.name);
        assert!(words.contains(&format!("{} ({})", row.summary, row.citation)), "{}", row.name);
    }
    assert!(table.starts_with("What to retransmit?\n  tahoe"), "{table}");
    assert!(table.contains("\n* newreno ") && table.contains("\n  iw=N "), "{table}");
}

#[test]
fn explain_lists_recovery_state_transitions() {
    let text = run(&["explain", "tahoe"]).stdout;
    let (_, states) = text.split_once("\nRecovery states").expect("no section about recovery states");
    assert!(
        states.contains("    → restarted  a loss detected without a timeout, with a repair that restarts\n")
    );
    assert!(!states.contains("recovery   ") && !states.contains("reduced"), "{states}");

    let text = run(&["explain", "sack+rack+eifel+ecn"]);
    let (_, states) = text.stdout.split_once("\nRecovery states").expect("no section about recovery states");
    assert!(states.lines().all(|line| line.chars().count() <= 100), "{states}");
    let states = run(&["explain", "sack+rack+eifel+ecn", "--json"]);
    let states: Vec<_> = states.lines.iter().filter(|line| line["state"].is_string()).collect();
    let names: Vec<_> = states.iter().map(|state| state["state"].as_str().unwrap()).collect();
    assert_eq!(names, ["open", "reduced", "recovery", "restarted"]);
    let moves = states[0]["moves"].as_array().unwrap();
    let moves: Vec<_> =
        moves.iter().map(|it| (it["condition"].as_str().unwrap(), it["to"].as_str().unwrap())).collect();
    let expected = [
        ("ecn-echo", "reduced"),
        ("repaired-by-probe", "reduced"),
        ("loss", "recovery"),
        ("timeout", "restarted"),
    ];
    assert_eq!(moves, expected);
}

#[test]
fn script_exit_codes_distinguish_failure_from_usage_error() {
    let script = TempFile::new("script.pkt");
    let play = |text: &str, more: &[&str]| {
        std::fs::write(script.path(), text).unwrap();
        run(&[&["script", script.path()], more].concat())
    };
    let handshake = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
                     +0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                     +0 < S 0:0(0) win 32792 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n";
    let passed = play(handshake, &[]).success();
    assert!(passed.stdout.contains("1 packets as expected"), "{}", passed.stdout);
    assert_eq!(play(handshake, &["--quiet"]).stdout, "");
    let failed = play(&handshake.replace("ack 1", "ack 2"), &[]);
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("script.pkt:5: "), "{}", failed.stderr);
    assert!(failed.stderr.ends_with("airtcp: 1 of 1 scripts failed\n"), "{}", failed.stderr);
    assert_eq!(play(handshake, &["--recipe", "newrno"]).code, 2);
    // The options of packetdrill, in packetdrill's spelling.
    let late = handshake.replace("+0 > S.", "+.003 > S.").replace("IPPROTO_TCP", "PROTO");
    let defined = ["-D", "PROTO=IPPROTO_TCP", "--mss=1000"];
    let noted = play(&late, &defined);
    assert!(noted.stdout.contains("note: command line: --mss has no effect"), "{}", noted.stderr);
    assert_eq!(play(&late, &[&defined[..], &["--tolerance", "0"]].concat()).code, 1);
    assert_eq!(play(&late, &[&defined[..], &["--tolerance_usecs=1000"]].concat()).code, 1);
    let wrong = play(handshake, &["--mss=0"]);
    assert_eq!((wrong.code, wrong.stderr.as_str()), (2, "airtcp: `--mss=0`: expected a number from 1\n"));
    let missing = run(&["script", "/nonexistent.pkt"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("/nonexistent.pkt"), "{}", missing.stderr);
}

#[test]
fn completion_scripts_offer_values_and_parse_in_bash() {
    for (shell, name) in [
        ("bash", "airtcp"),
        ("zsh", "airtcp"),
        ("fish", "airtcp"),
        ("bash", "airtcp-serve"),
        ("bash", "airlink"),
    ] {
        let output = Command::new(program(name)).args(["completions", shell]).output().unwrap();
        let ended = Ended::of(output).success();
        let expected = if name == "airlink" { "mobile-netns".to_owned() } else { format!("{name} values") };
        assert!(ended.stdout.contains(&expected), "{shell} {name}");
        if shell == "bash" {
            let mut child = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(ended.stdout.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success(), "bash rejects the script");
        }
    }
}

/// The words that shells offer as completions.
#[test]
fn recipe_completion_continues_after_plus_and_at() {
    let values = |word: &str| run(&["values", "recipe", word]).stdout;
    assert!(values("sack+limited").contains("sack+limited-transmit"), "{}", values("sack+limited"));
    assert!(values("newreno@fr").contains("newreno@freebsd"), "{}", values("newreno@fr"));
    assert!(!values("sack+limited").contains("tahoe"));
}

#[test]
fn manual_pages_cover_all_programs() {
    let dir = TempFile::new("man");
    for name in ["airtcp", "airtcp-serve", "airlink"] {
        assert!(Command::new(program(name)).args(["man", dir.path()]).status().unwrap().success());
    }
    for (page, words) in [
        ("airtcp.1", "EXIT STATUS"),
        ("airtcp-send.1", "verify"),
        ("airtcp-sink.1", "SO_RCVBUF"),
        ("airtcp-serve.1", "forward"),
        ("airlink.1", "EXIT STATUS"),
        ("airlink-run.1", "scenario"),
    ] {
        let text = std::fs::read_to_string(format!("{}/{page}", dir.path())).unwrap();
        assert!(text.contains(".TH ") && text.contains(words), "{page}: {text}");
    }
    std::fs::remove_dir_all(dir.path()).unwrap();
}

#[test]
fn serve_starts_airtcp_serve_from_same_directory() {
    assert!(run(&["serve", "--version"]).stdout.starts_with("airtcp-serve "));
    let directory = TempDir::new("alone");
    std::fs::copy(program("airtcp"), directory.path("airtcp")).unwrap();
    let alone = Command::new(directory.path("airtcp")).args(["serve", "--listen", "80"]).output().unwrap();
    let alone = Ended::of(alone);
    assert_eq!(alone.code, 3, "{}", alone.stderr);
    assert!(alone.stderr.contains("install airtcp-serve in this directory"), "{}", alone.stderr);
}

#[test]
fn closed_stdout_pipe_succeeds_silently() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = airtcp(&["completions", "bash"]).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
