use super::*;
use crate::ast::{Call, Expect, Form, Inbound, Value};

fn events(text: &str) -> Vec<ScriptEvent> {
    parse(text).unwrap_or_else(|error| panic!("{error}")).events
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

/// Parses a one-line script and prints its packet.
fn printed(text: &str) -> String {
    match &events(text)[0].action {
        Action::Outbound(addressing, segment) => format!("> {addressing}{segment}"),
        Action::Inbound(addressing, Inbound::Tcp(segment)) => format!("< {addressing}{segment}"),
        Action::Inbound(addressing, Inbound::Icmp(icmp)) => format!("< {addressing}{icmp}"),
        other => panic!("not a packet: {other:?}"),
    }
}

fn call(text: &str) -> Call {
    match events(text).remove(0).action {
        Action::Call(call) => call,
        other => panic!("not a call: {other:?}"),
    }
}

#[test]
fn packets_print_as_written() {
    for line in [
        "> S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8>",
        "< S. 0:0(0) ack 1 win 32792 <mss 1000,nop,nop,sackOK,nop,wscale 7>",
        "> . 1:1461(1460) ack 1",
        "< . 1:1(0) win 100",
        "> . 1:1(0)",
        "> R 1:1(0) ack 0",
        "< . 1:1(0) win 1 urg 7",
        "< . 1:1(0) ack 1 win 257 <nop,nop,sack 1001:2001 3001:4001>",
        "> FP. 1:11(10) ack 1 <...>",
        "< R 1:1(0) win 0",
        "< - 5:5(0) win 100",
        "< [new] SEW 0:0(0) win 100 <mss 1460,nop,wscale 5>",
        "< S 0:0(0) win 100 <mss 1460,FO 00ab12cd,nop,nop>",
        "> S 0:0(0) <FO,nop,nop>",
        "> S. 0:0(0) ack 1 <FOEXP 1234,nop,nop>",
        "> S 0:0(0) <md5 00112233445566778899aabbccddeeff,nop,nop>",
        "> [ect01] . 1:2(1) ack 1",
        "> [ect0] PE. 1:2(1) ack 1",
        "< [fd 4] [tos 0x12] (ttl 1) U. 1:1(0) ack 1 win 5 urg 3",
        "> . 1:1(0) ack 1 <nop,nop,TS ecr 7>",
        "< icmp unreachable frag_needed mtu 1000 [1:1461(1460)]",
        "< icmp packet_too_big mtu 1280 [1:1461(1460)]",
        "< icmp time_exceeded [1:1001(1000)]",
        "< icmp unreachable frag_needed mtu 1200",
        "< icmp unreachable",
        "< icmp type_3 code_4 mtu 1200",
        "< icmp time_exceeded exceeded_hop_limit [0:0(0)]",
    ] {
        assert_eq!(printed(&format!("+0 {line}")), line);
    }
}

#[test]
fn alternative_packet_notations_print_canonical_form() {
    assert_eq!(printed("+0 > P. 1(100) ack 1"), "> P. 1:101(100) ack 1");
    assert_eq!(printed("+0 < SEC 0:0(0) win 5"), "< SEW 0:0(0) win 5");
    assert_eq!(printed("+0 > .5 1:1(0) ack 1"), "> EA. 1:1(0) ack 1");
    assert_eq!(printed("+0 > P.3 1:1(0) ack 1"), "> PEW. 1:1(0) ack 1");
    assert_eq!(printed("+0 > SP6 1:1(0)"), "> SPWA 1:1(0)");
    assert_eq!(printed("+0 > (ect0) . 1:1(0) ack 1"), "> [ect0] . 1:1(0) ack 1");
    assert_eq!(printed("+0 > [ttl 9] . 1:1(0) ack 1"), "> (ttl 9) . 1:1(0) ack 1");
    assert_eq!(printed("+0 > (ttl 0) . 1:1(0) ack 1"), "> . 1:1(0) ack 1");
}

#[test]
fn all_time_notations_are_parsed() {
    let ms = Duration::from_millis;
    let whens: Vec<When> = events(
        "0 close(1) = 0\n+.1 close(1) = 0\n* > . 1:1(0) ack 1\n.1...0.2 close(1) = 0\n+0...+0.3 close(1) = 0\n+.1~+.25 > . 1:1(0) ack 1\n%{ assert 1 }%",
    )
    .into_iter()
    .map(|event| event.when)
    .collect();
    assert_eq!(
        whens,
        [
            When::At(TimeBase::Start, Duration::ZERO),
            When::At(TimeBase::Previous, ms(100)),
            When::Any,
            When::Blocking(TimeBase::Start, ms(100), ms(200)),
            When::Blocking(TimeBase::Previous, ms(0), ms(300)),
            When::Window(TimeBase::Previous, ms(100), ms(250)),
            When::Immediately,
        ]
    );
    assert_eq!(seconds("0.123456789"), Some(Duration::from_nanos(123_456_789)));
}

#[test]
fn all_call_argument_kinds_are_parsed() {
    let symbols = |names: &[&str]| Value::Symbols(names.iter().map(|name| (*name).to_owned()).collect());
    let accept = call("+0 accept(3, ..., ...) = 4");
    assert_eq!(accept.args, [Value::Int(3), Value::Ellipsis, Value::Ellipsis]);
    assert_eq!(accept.expect, Expect::Value(Value::Int(4)));

    let linger = call("+0 setsockopt(4, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0");
    let member = |name: &str, value| (Some(name.to_owned()), Value::Int(value));
    assert_eq!(linger.args[3], Value::Struct(vec![member("onoff", 1), member("linger", 0)]));

    let fcntl = call("+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = -1 EBADF (Bad file descriptor)");
    assert_eq!(fcntl.args[2], symbols(&["O_RDWR", "O_NONBLOCK"]));
    assert_eq!(fcntl.expect, Expect::Error("EBADF".to_owned()));

    let bind = call(
        "0 bind(3, {sa_family = AF_INET, sin_port = htons(8080), sin_addr = inet_addr(\"192.0.2.1\")}, ...) = 0",
    );
    let Value::Struct(members) = &bind.args[1] else { panic!() };
    assert_eq!(members[1], (Some("sin_port".into()), Value::Apply("htons".into(), vec![Value::Int(8080)])));

    assert_eq!(call("+0 close(9) = -1").expect, Expect::Value(Value::Int(-1)));

    let poll = call("+0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLOUT}], 1, -1) = 1");
    assert_eq!(poll.args[2], Value::Int(-1));
}

#[test]
fn short_call_form_ends_at_line_end() {
    let events = events("+0 write 4000\n0.5 close\n+1 shutdown\n");
    let calls: Vec<(&str, Form, usize)> = events
        .iter()
        .map(|event| match &event.action {
            Action::Call(call) => (call.name.as_str(), call.form, call.args.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(calls, [("write", Form::Short, 1), ("close", Form::Short, 0), ("shutdown", Form::Short, 0)]);
}

#[test]
fn script_settings_and_multiline_events_are_parsed() {
    let script = parse("recipe sack+eifel // why\nprofile linux\n--mtu=1400 --ip_version=ipv6\n`sysctl -q net.ipv4.tcp_sack=0`\n+0 socket(...,\n   SOCK_STREAM, IPPROTO_TCP) = 3 // first\n").unwrap();
    assert_eq!(script.settings.recipe.unwrap().name, "sack+eifel");
    assert_eq!(script.settings.profile.unwrap().name, "linux");
    let flags: Vec<_> = script
        .settings
        .flags
        .iter()
        .map(|flag| (flag.name.as_str(), flag.value.as_deref().unwrap()))
        .collect();
    assert_eq!(flags, [("mtu", "1400"), ("ip_version", "ipv6")]);
    assert!(
        matches!(&script.events[0].action, Action::Shell(command) if command == "sysctl -q net.ipv4.tcp_sack=0")
    );
    assert_eq!(script.events[1].text, "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
}

#[test]
fn parse_errors_name_place_expected_and_found() {
    for (text, message) in [
        ("\nfoo bar", "2:1: expected a time such as +0 or 0.100, found `foo`"),
        ("< S 0:0(0) win 5", "1: expected a time such as +0 or 0.100 before this"),
        (
            "+0 < X 0:0(0)",
            "1:6: `X` is not a TCP flag; the flags are F S R P U E W A . and -, and 0 to 7 for A W E",
        ),
        ("+0 < E.3 0:0(0)", "1:7: E, W and A are the bits of this number; use one form or the other"),
        (
            "+0 < 80 > 90 S 0:0(0) win 5",
            "1:6: expected TCP flags such as S. or P., found `80` (ports cannot be chosen; use `[fd N]` to select a connection)",
        ),
        ("+0 > . 1:1001(999) ack 1", "1:8: 1:1001 has 1000 bytes, not 999"),
        ("+0 > . 1:70001(70000)", "1:16: `70000` is not a payload length from 0 to 65535"),
        (
            "+0 < . 1:65501(65500) ack 1 win 5",
            "1:6: with its headers, this packet is longer than the 65535 bytes that IP can carry",
        ),
        ("+0 < . 1:1(0) ack 1 win 70000", "1:25: `70000` is not a window from 0 to 65535"),
        ("+0 < . 1:1(0) ack 1 win 5 <...>", "1:6: `<...>` is only for packets that the host sends"),
        (
            "+0 < . 1:1(0) ack 1",
            "1:6: a packet that the script sends needs a window; add `win N` after the ack",
        ),
        (
            "+0 < [ect01] . 1:1(0) ack 1",
            "1:7: `ect01` is only for packets that the host sends; use ect0 or ect1",
        ),
        ("+0 > (flowlabel 0x1) . 1:1(0)", "1:7: airtcp does not support IPv6 flow labels"),
        (
            "+0 > S 0:0(0) <mss 1460,what>",
            "1:25: expected an option: mss, wscale, sackOK, sack, TS, nop, eol, md5, FO or FOEXP, found `what`",
        ),
        (
            "+0 > S 0:0(0) <mss 1460,sackOK>",
            "1:16: these options take 6 bytes, but their length must be a multiple of 4; pad with `nop` or `eol`",
        ),
        ("+0 > S 0:0(0) <sack>", "1:20: expected the left edge of a block, found `>`"),
        ("+0 > S 0:0(0) <FO abc>", "1:19: `abc` is not a cookie in hexadecimal, with two digits per byte"),
        ("+0 > udp (100)", "1:6: airtcp does not support UDP, only TCP and ICMP errors about TCP"),
        (
            "+0 < gre: S 0:0(0)",
            "1:6: airtcp supports a single IP header, followed by TCP flags such as `S` or `.`",
        ),
        ("+0 close(3)", "1:12: `close` needs a result: `= 0`, `= -1 EAGAIN`, or `= ...` for any result"),
        ("+.2...0.1 close(3) = 0", "1:11: the end of this range is before its start"),
        (
            "+0...0.1 > . 1:1(0) ack 1",
            "1: `...` between two times is only for calls that block, `~` only for packets that the host sends",
        ),
        ("* close(3) = 0", "1: `*` is only for packets that the host sends; give a time"),
        ("+0 > icmp unreachable [1:1(0)]", "1:11: a TCP socket never sends ICMP; use `<`"),
        (
            "+0 < icmp unreachable what",
            "1:11: `unreachable what` is not an ICMP type and code such as `unreachable frag_needed`, `time_exceeded`, `packet_too_big` or `type_3 code_4`",
        ),
        (
            "+0 < icmp source_quench mtu 9",
            "1:25: only `unreachable frag_needed` and `packet_too_big` have an MTU, not `source_quench`",
        ),
        (
            "+0 < icmp echo_request id 1",
            "1:11: `echo_request` is not an ICMP type and code such as `unreachable frag_needed`, `time_exceeded`, `packet_too_big` or `type_3 code_4`",
        ),
        (
            "+0 < icmp unreachable [udp (8)]",
            "1:24: expected the segment that the error quotes, such as [1:1001(1000)], found `udp`",
        ),
        ("--define=x", "1:1: `--define=x`: expected NAME=VALUE"),
        ("recipe tahoe\nrecipe reno", "2:1: `recipe` was already given at test.pkt:1:1"),
        (
            "include nowhere.pkt",
            "1:1: `nowhere.pkt` found neither in . nor in an `include` directory there or above",
        ),
        ("+0 %{\nassert 1\nassert (}%", "3: expected a value, found the end of the code"),
    ] {
        assert_eq!(error(text), format!("test.pkt:{message}"), "{text}");
    }
}

#[test]
fn defines_are_substituted_once_in_later_lines() {
    let script = parse(
        "--define=PROTO=IPPROTO_TCP --define=CC=\"reno\" --define=FLAGS=S --define=NEXT=PROTO\n+0 > FLAGS 0:0(0)\n+0 setsockopt(3, SOL_TCP, NEXT, CC, PROTO) = 0\n",
    )
    .unwrap();
    assert_eq!(script.events[0].text, "+0 > FLAGS 0:0(0)");
    let Action::Outbound(_, segment) = &script.events[0].action else { panic!() };
    assert_eq!(segment.flags.to_string(), "S");
    let Action::Call(call) = &script.events[1].action else { panic!() };
    let symbol = |name: &str| Value::Symbols(vec![name.to_owned()]);
    // Replacement values are not replaced again.
    assert_eq!(call.args[2..], [symbol("PROTO"), Value::Text("reno".into()), symbol("IPPROTO_TCP")]);
}

#[test]
fn fast_open_cookie_may_be_a_name() {
    let line = "+0 < S 0:0(0) win 5 <mss 1460,FO TFO_COOKIE,nop,nop>\n";
    assert_eq!(printed(line), "< S 0:0(0) win 5 <mss 1460,FO 3021b9d889017eeb,nop,nop>");
    let defined = printed(&format!("--define=TFO_COOKIE=0123456789abcdef\n{line}"));
    assert_eq!(defined, "< S 0:0(0) win 5 <mss 1460,FO 0123456789abcdef,nop,nop>");
    let wrong = error(&format!("--define=TFO_COOKIE=xyz\n{line}"));
    assert_eq!(wrong, "test.pkt:2:34: `xyz` is not a cookie in hexadecimal, with two digits per byte");
}

#[test]
fn including_file_overrides_included_settings() {
    let dir = std::env::temp_dir().join(format!("airtcp-script-include-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("include")).unwrap();
    std::fs::write(dir.join("include/base.pkt"), "recipe reno\nprofile linux\n--mtu=1500\n+0 close(9) = 0\n")
        .unwrap();
    std::fs::write(dir.join("outer.pkt"), "recipe sack\n--mtu=1000\ninclude base.pkt\n+1 close(9) = 0\n")
        .unwrap();
    let script = load(&dir.join("outer.pkt"), Defines::new());
    std::fs::remove_dir_all(&dir).unwrap();
    let script = script.unwrap();
    assert_eq!(script.settings.recipe.unwrap().name, "sack");
    assert_eq!(script.settings.profile.unwrap().name, "linux");
    assert_eq!(script.settings.flags.last().unwrap().value.as_deref(), Some("1000"));
    assert_eq!(script.events.len(), 2);
    assert!(script.events[0].position.to_string().ends_with("include/base.pkt:4"));
}

/// A script may include any file, and its author may see the error.
#[test]
fn errors_do_not_quote_included_non_scripts() {
    let dir = std::env::temp_dir().join(format!("airtcp-script-foreign-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("shadow"), "root:secret:19000\n").unwrap();
    std::fs::write(dir.join("base.pkt"), "+0 bogus bogus\n").unwrap();
    // A link whose name ends in `.pkt` does not make its target a script.
    std::os::unix::fs::symlink("shadow", dir.join("link.pkt")).unwrap();
    let error = |included: &str| {
        let text = format!("include {included}\n+1 close(9) = 0\n");
        super::text(&dir.join("outer.pkt"), &text, Defines::new()).unwrap_err().to_string()
    };
    let (shadow, link, base) = (error("shadow"), error("link.pkt"), error("base.pkt"));
    std::fs::remove_dir_all(&dir).unwrap();
    for (message, position) in [(&shadow, "shadow:1"), (&link, "link.pkt:1")] {
        assert!(message.contains(position) && message.contains("not a line of a packet script"), "{message}");
        assert!(!message.contains("root") && !message.contains("secret"), "{message}");
    }
    assert!(base.contains("base.pkt:1") && base.contains("bogus"), "{base}");
}
