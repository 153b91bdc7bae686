//! Untrusted input: files written by others must not control the terminal, exhaust memory or block the
//! program. Packets are stored with private permissions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::workspace::Workspace;

/// Clears the screen and sets the title of the window.
const CLEARS: &str = "a\u{1b}[2J\u{1b}]0;title\u{7}b";
/// Clears the screen of a terminal that interprets 8-bit control characters.
const CLEARS_IN_LATIN: &str = "a\u{9b}2Jb";

/// Returns everything that was printed.
fn printed(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap()
}

#[test]
fn control_characters_do_not_reach_terminal() {
    let workspace = Workspace::new("terminal");
    let escaped = "\\u001b";
    let toml = |text: &str| format!("\"{}\"", text.replace(CLEARS, "a\\u001b[2J\\u001b]0;title\\u0007b"));
    let file = |extension: &str| format!("{CLEARS}.{extension}");
    let scenario = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"1Mbit\", delay = \"10ms\" }\n";
    let text = toml(CLEARS);
    let described = scenario.replacen('\n', &format!("\ndescription = {text}\n"), 1);
    let sweep =
        format!("schema = 1\nseeds = 1\n[fixed]\nscenario = \"lossless\"\n[axes]\nrecipe = [{text}]\n");
    for (name, content) in [
        (file("toml").as_str(), scenario.to_owned()),
        ("described.toml", format!("{described}\n")),
        ("named.toml", format!("{scenario}name = {text}\n")),
        ("key.toml", format!("{scenario}{text} = 1\n")),
        ("trace.toml", format!("schema = 1\n[[stage]]\nkind = \"link\"\nboth.trace = {text}\n")),
        ("extends.toml", format!("schema = 1\nextends = {text}\n")),
        ("sweep.toml", sweep),
        ("script.pkt", format!("+0 {CLEARS}(3) = 0\n")),
        ("log.jsonl", format!("{CLEARS}\n")),
    ] {
        workspace.write(name, content);
    }
    workspace.add_capture();
    workspace.write(&file("pcapng"), pcapng(CLEARS));

    let (scenario, capture, nothing) = (file("toml"), file("pcapng"), file("none"));
    for words in [
        &["airlink", "check", &scenario][..],
        &["airlink", "show", "described.toml"],
        &["airlink", "check", "named.toml"],
        &["airlink", "check", "key.toml"],
        &["airlink", "check", "trace.toml"],
        &["airlink", "check", "extends.toml"],
        &["airlink", "show", &nothing],
        &["airlink", "sim", "-s", &scenario, "--for", "1s"],
        &["airlink", CLEARS],
        &["airlink", "sim", "-s", "lossless", "--set", CLEARS],
        &["airlink", "ctl", CLEARS, "stats"],
        &["airtcp", "sim", "-s", &scenario, "--for", "1s"],
        &["airtcp", "sim", "-s", "named.toml"],
        &["airtcp", "sim", "-s", "lossless", "--recipe", CLEARS],
        &["airtcp", "sim", "-s", "leo", "--for", "1s", "--pcap", "none/\u{1b}]0;x"],
        &["airtcp", "explain", CLEARS],
        &["airtcp", "sweep", "plan", "sweep.toml"],
        &["airtcp", "script", "script.pkt"],
        &["airtcp", "analyze", &capture],
        &["airtcp", "analyze", "run.pcap", CLEARS],
        &["airtcp", "analyze", &nothing],
        &["airtcp", "report", CLEARS],
    ] {
        let text = printed(&workspace.output(words));
        let harmful = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(harmful, None, "{words:?}: {text:?}");
        // TOML and JSON differ in the case of the hexadecimal digits.
        assert!(text.to_lowercase().contains(escaped), "{words:?}: {text}");
    }
    let text = printed(&workspace.output(&["airlink", "show", CLEARS_IN_LATIN]));
    assert!(text.contains("a\\u009b2Jb"), "{text}");
}

/// A pcapng file of raw IP whose interface, software name and comments contain `text`, and which ends within
/// a packet.
fn pcapng(text: &str) -> Vec<u8> {
    let option = |code: u16| {
        let mut bytes = [code.to_le_bytes(), (text.len() as u16).to_le_bytes()].concat();
        bytes.extend_from_slice(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes(), &length, body, &length].concat()
    };
    let section =
        [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8], &option(1), &option(4)].concat();
    // LINKTYPE_RAW, and the options opt_comment, if_name and if_description.
    let interface = [&[101, 0, 0, 0, 0, 0, 4, 0][..], &option(1), &option(2), &option(3)].concat();
    [block(0x0a0d_0d0a, &section), block(1, &interface), vec![6, 0, 0, 0, 200, 0, 0, 0, 1]].concat()
}

/// Without a check, each of these inputs would exhaust the memory or block forever.
#[test]
fn endless_files_and_pipes_are_refused() {
    let workspace = Workspace::new("endless");
    workspace.make_fifo("pipe");
    workspace.write("sweep.toml", "schema = 1\nseeds = 1\n[fixed]\nscenario = \"pipe\"\n");
    workspace.write("script.pkt", "include pipe\n+0 close(3) = 0\n");
    fs::create_dir(workspace.0.join("lab")).unwrap();
    workspace.make_fifo("lab/lab.json");
    workspace.add_capture();
    for (words, why) in [
        (&["airlink", "check", "/dev/zero"][..], "longer than 4 MiB"),
        (&["airtcp", "sim", "-s", "/dev/zero"], "longer than 4 MiB"),
        (&["airtcp", "sweep", "plan", "/dev/zero"], "longer than 4 MiB"),
        (&["airtcp", "script", "/dev/zero"], "longer than 4 MiB"),
        (&["airtcp", "lab", "matrix", "--expected", "/dev/zero"], "longer than 4 MiB"),
        (&["airtcp", "sweep", "plan", "sweep.toml"], "it is a pipe"),
        (&["airtcp", "script", "script.pkt"], "`pipe` found neither"),
        (&["airtcp", "lab", "show", "lab"], "it is a pipe"),
        (&["airtcp", "report", "lab"], "is not a lab directory"),
        (&["airtcp", "sim", "-s", "lossless", "--flows", "1000000000"], "the maximum is 1000000"),
    ] {
        let output = workspace.output(words);
        let text = printed(&output);
        assert!(!output.status.success() && text.contains(why), "{words:?}: {text}");
    }
}

#[test]
fn captures_are_readable_only_by_owner() {
    let workspace = Workspace::new("private");
    let mode = |name: &str| fs::metadata(workspace.0.join(name)).unwrap().permissions().mode() & 0o077;
    let sim = "airtcp sim -s leo --for 1s --pcap sim.pcap --decisions sim.jsonl";
    for line in [
        sim,
        "airlink sim -s wcdma-384 --for 1s --radio-pcap radio.pcap --pcapng notes.pcapng",
        "airtcp analyze sim.pcap --decisions sim.jsonl --comments comments.pcapng",
    ] {
        assert_eq!(workspace.run(line).code, 0, "{line}");
    }
    for name in ["sim.pcap", "radio.pcap", "notes.pcapng", "comments.pcapng"] {
        assert_eq!(mode(name), 0, "{name}");
    }
    // An existing file keeps the permissions that its owner gave it.
    fs::set_permissions(workspace.0.join("sim.pcap"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(workspace.run(sim).code, 0);
    assert_eq!(mode("sim.pcap"), 0o044);
}
