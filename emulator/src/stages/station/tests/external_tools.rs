//! The marks and the option in other programs.

use std::process::Command;
use std::time::SystemTime;

use super::*;

/// Runs the commands of `docs/reference/header-extensions.md`.
#[test]
fn tshark_and_tcpdump_show_bits_and_option() {
    let path = std::env::temp_dir().join(format!("airlink-{}-wire-extensions.pcap", std::process::id()));
    let mut net = Net::of(vec![
        named("station", Station::new(&StationConfig { transit_marks: true, ..reports(Side::Mobile) })),
        named("radio", hole(FIXED, &[seq(1)], DropReason::Loss)),
    ]);
    let data = |index| Tcp::data(FIXED, index);
    let ack = Tcp::new(Ip::V4, MOBILE, ACK, PEER + 1, seq(1)).options(&TIMESTAMPS);
    let packets = [
        Tcp::new(Ip::V4, FIXED, SYN, ISN, 0),
        Tcp::new(Ip::V4, MOBILE, SYN | ACK, PEER, seq(0)),
        data(0),
        data(1),
        data(2),
        ack,
    ];
    let mut capture = Capture::create(&path, SystemTime::UNIX_EPOCH).unwrap();
    for packet in packets {
        if let Some(arrived) = net.send(packet.from, &packet.packet()) {
            capture.packet(Instant::ZERO, &arrived);
        }
    }
    drop(capture);
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).arg("-r").arg(&path).output();
        let output =
            output.unwrap_or_else(|_| panic!("this test needs {program}: apt-get install {program}"));
        String::from_utf8(output.stdout).unwrap()
    };
    let tshark = |filter: &str, field: &str| {
        let checked = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
        run("tshark", &[&checked[..], &["-Y", filter, "-T", "fields", "-e", field]].concat())
    };
    let reserved = tshark("tcp.flags.res == 1", "tcp.flags");
    let ob = tshark("tcp.flags & 0x800 && tcp.flags.syn == 0", "tcp.flags");
    let db = tshark("tcp.flags & 0x400", "tcp.flags");
    let rate = tshark(
        "tcp.options.experimental.exid == 0x7177 && ip.src == 10.2.0.1",
        "tcp.options.experimental.data",
    );
    let good = tshark("tcp.checksum.status == 1 && ip.checksum.status == 1", "frame.number");
    let dumped_ob = run("tcpdump", &["-n", "-t", "-v", "tcp[12] & 0x08 != 0 and tcp[13] & 0x02 = 0"]);
    let dumped_db = run("tcpdump", &["-n", "-t", "-v", "tcp[12] & 0x04 != 0"]);
    std::fs::remove_file(&path).unwrap();
    // SYN: a station serves the mobile that reads it. SYN-ACK: a station serves the mobile that sent it.
    assert_eq!(reserved.lines().collect::<Vec<_>>(), ["0x0802", "0x0412", "0x0810"]);
    assert_eq!(ob.lines().last(), Some("0x0810"), "the lost segment passed the station");
    assert_eq!(db, "0x0412\n");
    assert_eq!(rate, "4000\n", "one of four segments was lost");
    assert_eq!(good.lines().count(), 5);
    assert!(dumped_ob.contains("exp-7177") && dumped_ob.contains("(correct)"), "{dumped_ob}");
    assert!(dumped_db.contains("Flags [S.]"), "{dumped_db}");
}
