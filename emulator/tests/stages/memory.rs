//! The memory limit of a path.

use airlink::scenario::Scenario;

use super::*;

const LIMIT: u64 = 1_000_000;

/// A path with this limit. `stages` is the text of its scenario.
fn limited(stages: &str) -> Path {
    let scenario = Scenario::parse(&format!("schema = 1\n{stages}"), "test").unwrap();
    let mut path = scenario.build(Some(1), Recording::Off, false).unwrap();
    path.limit_memory(LIMIT);
    path
}

/// Sends 2000 packets of 1500 bytes down, one every 100 µs. Returns the most memory that they took.
fn flood(path: &mut Path) -> u64 {
    let send = |n| {
        let now = at(us(100) * n as u64);
        catch_up(path, now, |_, _, _| {});
        path.handle_packet(now, FIXED, numbered(n, 1500));
        drain(path, now, |_, _, _| {});
        path.memory()
    };
    (0..2000).map(send).max().unwrap_or_default()
}

#[test]
fn every_stage_that_holds_packets_is_limited() {
    let stores = [
        "kind = \"link\"\ndown = { rate = \"64kbit\" }",
        "kind = \"link\"\ndown = { rate = \"64kbit\", queue = { discipline = \"fq-codel\", interval = \"1h\" } }",
        "kind = \"link\"\ndown = { delay = \"1h\" }",
        "kind = \"rlc\"",
        "kind = \"rlc\"\ndown.channel.delay = \"1h\"",
        "kind = \"rlc\"\ndown.queue = { discipline = \"codel\", interval = \"1h\" }",
        "kind = \"arq\"\ndown = { per = \"0%\", retries = 3, rate = \"64kbit\" }",
        "kind = \"outage\"\ndown = { at = [\"0ms\"], lasts = \"1h\", packets = \"requeued\" }",
        "kind = \"reorder\"\ndown = { chance = 1, time = \"1h\" }",
        "kind = \"duplicate\"\ndown = { chance = 1, copies = 10, gap = \"1min\" }",
    ];
    for stage in stores {
        let mut path = limited(&format!("[[stage]]\nname = \"store\"\n{stage}\n"));
        let peak = flood(&mut path);
        assert!((LIMIT / 2..LIMIT + LIMIT / 10).contains(&peak), "{stage}: {peak} bytes");
        let error = path.check_memory().expect_err(stage);
        let place = (error.stage.as_str(), error.direction, error.limit);
        assert_eq!(place, ("store", Direction::Down, LIMIT), "{stage}");
        let totals = &path.totals().down;
        assert!(totals.dropped_for(DropReason::QueueFull) > 0, "{stage}: {totals:?}");
        assert_eq!(totals.inside(), path.held() as u64, "{stage}: {totals:?}");
        catch_up(&mut path, at(Duration::from_secs(4 * 3600)), |_, _, _| {});
        assert_eq!((path.held(), path.memory()), (0, 0), "{stage}");
    }
}

/// A PDU in flight is a copy of data whose packet stays in the ledger until it is delivered.
#[test]
fn radio_blocks_in_flight_are_counted() {
    for shared in ["", "hsdpa.snr = \"20dB\"\n"] {
        let mut path = limited(&format!(
            "[[stage]]\nkind = \"rlc\"\nname = \"radio\"\n{shared}down.channel.delay = \"10s\"\n"
        ));
        for n in 0..40 {
            path.handle_packet(Instant::ZERO, FIXED, numbered(n, 1000));
        }
        let packets = 40 * (1000 + 128);
        assert!(path.memory() > packets + 40 * 1000, "{shared}before: {}", path.memory());
        catch_up(&mut path, at(ms(5000)), |_, _, _| {});
        assert_eq!(path.held(), 40, "{shared}");
        assert!(path.memory() > packets + 40 * 1000, "{shared}in flight: {}", path.memory());
        catch_up(&mut path, at(Duration::from_secs(3600)), |_, _, _| {});
        assert_eq!((path.held(), path.memory()), (0, 0), "{shared}");
    }
}

#[test]
fn background_traffic_is_limited() {
    let mut path = limited(
        "[[stage]]\nkind = \"traffic\"\nname = \"voice\"\n\
         down = { source = \"cbr\", rate = \"1000Gbit\", packet = \"512B\", leaves_after = \"wire\" }\n\
         [[stage]]\nkind = \"link\"\nname = \"wire\"\ndown.rate = \"1Mbit\"\n",
    );
    catch_up(&mut path, at(us(100)), |_, _, _| {});
    assert!(path.memory() <= LIMIT, "{}", path.memory());
    let error = path.check_memory().unwrap_err();
    assert_eq!((error.stage.as_str(), error.direction), ("wire", Direction::Down));
    assert_eq!(
        error.to_string().split_once("s: ").unwrap().1,
        "the packets in stage `wire` (down) take 0.9 MB, and all packets in a path may take 1.0 MB; \
         bound the queue (wire.down.queue.packets) or shorten the delay"
    );
}

/// A link that cannot keep up with background traffic does not look ahead, whether or not the source does.
#[test]
fn lazy_path_limits_background_traffic() {
    let sources = [
        ("source = \"cbr\", rate = \"20Mbit\"", ""),
        (
            "source = \"cbr\", sources = 20, rate = \"1Mbit\"",
            "kind = \"loss\"\ndown = { model = \"uniform\", per = \"0%\" }\n",
        ),
        (
            "source = \"pareto-on-off\", shape = 1.5, mean_on = \"1h\", mean_off = \"1ms\", rate = \"20Mbit\"",
            "",
        ),
        (
            "source = \"cbr\", rate = \"800kbit\"",
            "kind = \"duplicate\"\ndown = { chance = 1, copies = 30 }\n",
        ),
    ];
    for (source, between) in sources {
        let between = if between.is_empty() { String::new() } else { format!("[[stage]]\n{between}") };
        let mut path = limited(&format!(
            "[[stage]]\nkind = \"traffic\"\n\
             down = {{ {source}, packet = \"512B\", leaves_after = \"end\" }}\n{between}\
             [[stage]]\nkind = \"link\"\nname = \"wire\"\ndown.rate = \"1Mbit\"\n\
             [[stage]]\nkind = \"link\"\nname = \"end\"\ndown = {{ delay = \"1ms\" }}\n"
        ));
        path.be_lazy(true);
        path.look_ahead(0);
        for millis in 0..2000 {
            catch_up(&mut path, at(ms(millis)), |_, _, _| {});
            assert!(path.memory() <= LIMIT, "{source}: {} bytes", path.memory());
        }
        let error = path.check_memory().expect_err(source);
        assert_eq!((error.stage.as_str(), error.direction), ("wire", Direction::Down), "{source}");
    }
}

/// The queues of mobiles outside the path count, too.
#[test]
fn traffic_of_other_mobiles_is_limited() {
    let mut path = limited(
        "[[stage]]\nkind = \"rlc\"\nname = \"radio\"\n\
         hsdpa.others = { mobiles = 20, source = \"cbr\", rate = \"100Mbit\" }\n",
    );
    for millis in 0..200 {
        catch_up(&mut path, at(ms(millis)), |_, _, _| {});
        assert!(path.memory() <= LIMIT + LIMIT / 10, "{}", path.memory());
    }
    let error = path.check_memory().unwrap_err();
    assert_eq!((error.stage.as_str(), error.direction), ("radio", Direction::Down));
}

#[test]
fn full_queue_leaves_room_for_other_stages() {
    let mut path = limited(
        "[[stage]]\nkind = \"link\"\nname = \"wire\"\nboth = { rate = \"1Gbit\", delay = \"5ms\" }\n\
         [[stage]]\nkind = \"link\"\nname = \"radio\"\ndown.rate = \"64kbit\"\nup = { rate = \"1Mbit\", delay = \"10ms\" }\n",
    );
    flood(&mut path);
    let (wire, before) = (path.stats()["wire"]["down"]["packets_in"].clone(), path.totals().down.entered);
    assert_eq!(wire, before, "the fast link before the full queue takes every packet");
    for n in 0..100 {
        let now = at(ms(300 + 10 * n as u64));
        for (port, length) in [(FIXED, 1500), (MOBILE, 40)] {
            catch_up(&mut path, now, |_, _, _| {});
            path.handle_packet(now, port, numbered(n, length));
            drain(&mut path, now, |_, _, _| {});
        }
    }
    catch_up(&mut path, at(ms(2000)), |_, _, _| {});
    assert_eq!(path.totals().up.left, 100);
}

/// Five stages that make 100 copies each would turn one packet into ten billion.
#[test]
fn chain_of_duplicating_stages_is_limited() {
    let mut path =
        limited(&"[[stage]]\nkind = \"duplicate\"\ndown = { chance = 1, copies = 100 }\n".repeat(5));
    path.handle_packet(Instant::ZERO, FIXED, numbered(1, 1500));
    let mut left = 0;
    drain(&mut path, Instant::ZERO, |_, _, _| left += 1);
    assert!((1..LIMIT / 1000).contains(&left), "{left} packets");
    assert!(path.check_memory().is_err());
    assert_eq!((path.held(), path.memory()), (0, 0));
}
