//! Stages that damage, copy, reorder or police packets. The tests compare the captures with the stages'
//! counters.

use super::*;

fn scenario_with(stage: &str) -> String {
    format!(
        "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\nboth = {{ rate = \"5Mbit\", delay = \"30ms\" }}\n\
         [[stage]]\nname = \"change\"\n{stage}\n"
    )
}

/// Returns a counter of the stage for both directions, `down` first.
fn counted(run: &mut Run, what: &str) -> [u64; 2] {
    ["down", "up"].map(|direction| run.world.path().stats()["change"][direction][what].as_u64().unwrap())
}

#[test]
fn damaged_packets_are_lost_without_inventing_connections() {
    for stage in [
        "kind = \"corrupt\"\nboth = { chance = \"3%\" }",
        "kind = \"corrupt\"\nboth = { chance = \"3%\", where = \"header\", bits = 3 }",
        "kind = \"corrupt\"\nboth = { chance = \"3%\", where = \"payload\" }",
        "kind = \"truncate\"\nboth = { chance = \"3%\" }",
        "kind = \"truncate\"\nboth = { chance = \"3%\", to = \"60B\" }",
    ] {
        for recipe in ["newreno", "sack"] {
            let mut run = run(&scenario_with(stage), recipe, 2_000_000);
            let report = read(&run.files(), Keep::Findings).unwrap().0;
            assert_eq!(report.connections.len(), 1, "{stage}: {report}");
            let what = if stage.contains("truncate") { "truncated" } else { "corrupted" };
            let [data, acks] = flows(&report);
            for (flow, damaged) in [&data, &acks].into_iter().zip(counted(&mut run, what)) {
                let [lost, undetermined, invented] = [
                    flow.data.lost + flow.acks.lost,
                    flow.data.undetermined + flow.acks.undetermined,
                    flow.data.unmatched_arrivals + flow.acks.unmatched_arrivals,
                ];
                // The last ACK is still in transit at the end.
                assert!(
                    (lost..=lost + undetermined).contains(&damaged),
                    "{recipe}, {stage}: {damaged}; {report}"
                );
                assert!(undetermined <= 2 && invented == 0, "{recipe}, {stage}: {report}");
            }
            assert!(data.data.lost > 20, "{report}");
            let resent = run.world.result(0).counters.resent();
            assert_eq!(data.retransmitted, resent, "{recipe}, {stage}");
            // The capture at the sender contains damaged ACKs. They must not explain a retransmission.
            let mut alone = Vec::new();
            let mut capture = Capture::open(&run.files().captures[0], None).unwrap();
            survey::read(&mut capture, Traces::None, &mut |finished| alone.push(finished.ended.findings));
            assert_eq!(alone.len(), 1, "{recipe}, {stage}");
            let counters = &run.world.result(0).counters;
            let found = &alone[0].directions[0].retransmissions;
            assert_eq!(
                (found.packets, found.timeouts, found.unexplained),
                (resent, counters.timeouts, 0),
                "{recipe}, {stage}: {found:?}"
            );
        }
    }
}

#[test]
fn duplicate_count_matches_path_counter() {
    for gap in ["0ms", "5ms"] {
        let stage =
            format!("kind = \"duplicate\"\nboth = {{ chance = \"3%\", copies = 2, gap = \"{gap}\" }}");
        let mut run = run(&scenario_with(&stage), "newreno", 2_000_000);
        let [data, acks] = on_path(&run.files());
        let copies = [data, acks].map(|flow| {
            assert_eq!((flow.data.lost, flow.acks.lost), (0, 0));
            flow.data.duplicated + flow.acks.duplicated
        });
        assert_eq!(copies, counted(&mut run, "copied"), "{gap}");
        assert!(copies[0] > 50);
    }
}

#[test]
fn reordered_count_matches_path_counter() {
    for how in ["distance = 3", "time = \"20ms\""] {
        let stage = format!("kind = \"reorder\"\nboth = {{ chance = \"3%\", {how} }}");
        let mut run = run(&scenario_with(&stage), "sack", 2_000_000);
        let [data, acks] = on_path(&run.files());
        let overtaken = [data, acks].map(|flow| {
            assert_eq!((flow.data.lost, flow.acks.lost, flow.data.duplicated), (0, 0, 0));
            flow.data.reordered + flow.acks.reordered
        });
        assert_eq!(overtaken, counted(&mut run, "overtaken"), "{how}");
        assert!(overtaken[0] > 20);
    }
}

#[test]
fn policer_drops_count_as_lost() {
    let stage = "kind = \"policer\"\nboth = { rate = \"2Mbit\", burst = \"30kB\" }";
    let mut run = run(&scenario_with(stage), "sack", 2_000_000);
    let [data, acks] = on_path(&run.files());
    assert_eq!([data.data.lost, acks.acks.lost], counted(&mut run, "dropped"));
    assert!(data.data.lost > 20);
}
