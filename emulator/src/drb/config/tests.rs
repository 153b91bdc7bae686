//! Tests of the settings: sizes of transport blocks, and refused values.

use super::*;
use crate::scenario::{Scenario, StageConfig};

/// Parses the settings of one stage. The error is the message.
fn parse(kind: &str, settings: &str) -> Result<StageConfig, String> {
    let text = format!("schema = 1\n[[stage]]\nkind = \"{kind}\"\n{settings}");
    let scenario = Scenario::parse(&text, "test.toml").map_err(|error| error.to_string())?;
    Ok(scenario.stages[0].config.clone())
}

/// Size and number of the transport blocks in a downlink slot.
fn blocks(kind: &str, settings: &str) -> (usize, usize) {
    let settings = match parse(kind, settings).unwrap() {
        StageConfig::Nr(config) => config.settings(),
        StageConfig::Lte(config) => config.settings(),
        other => panic!("{other:?}"),
    };
    let Blocks { per_slot, states } = &settings.cells[0].blocks.down;
    (states[0].octets, *per_slot)
}

#[test]
fn coding_determines_size_of_transport_blocks() {
    assert_eq!(blocks("nr", ""), (50_205, 1));
    assert_eq!(blocks("nr", "down = { prb = 273, mcs = 19, layers = 2 }"), (50_205, 1));
    assert_eq!(
        blocks("nr", "down = { prb = 66, mcs = 17, layers = 2, mcs_table = 1, blocks = 4 }"),
        (6_147, 4)
    );
    assert_eq!(blocks("nr", "down.tbs = '1000B'"), (1_000, 1));
    assert_eq!(blocks("nr", "down.states = [{ tbs = '7B', mean = '1s' }]"), (7, 1));
    assert_eq!(blocks("lte", ""), (5_861, 2));
    assert_eq!(blocks("lte", "down = { prb = 50, i_tbs = 26 }"), (4_587, 1));
}

#[test]
fn contradictory_settings_are_refused_with_advice() {
    for (kind, settings, message) in [
        ("nr", "down = { tbs = '1kB', prb = 1, mcs = 1 }", "`tbs` also sets the size"),
        ("nr", "down = { tbs = '1kB', states = [{ tbs = '7B', mean = '1s' }] }", "remove one of them"),
        ("nr", "down.mcs = 1", "needs both `prb` and `mcs`"),
        ("nr", "down = { prb = 1, mcs = 28 }", "28 is not in MCS table 2: write 0 to 27"),
        ("nr", "down = { prb = 300, mcs = 1 }", "write 1 to 275"),
        ("nr", "down = { prb = 100, i_tbs = 1 }", "valid only with the kind \"lte\""),
        ("lte", "down = { prb = 100, mcs = 1 }", "valid only with the kind \"nr\""),
        ("lte", "down = { prb = 25, i_tbs = 1 }", "write 50 or 100"),
        ("lte", "slot = '500us'", "an LTE subframe has 1.000ms"),
        ("nr", "slot = '2ms'", "is not the length of a slot"),
        ("nr", "pattern = 'DDS'", "is not a TDD pattern"),
        ("nr", "down.grant = {}", "move it to `up`"),
        ("nr", "up.rlc.sn = 12", "so write `both`"),
        ("nr", "both.rlc.sn = 16", "cannot have 16 bits: write 12 or 18"),
        ("nr", "both.rlc = { mode = 'um', sn = 18 }", "cannot have 18 bits: write 6 or 12"),
        ("lte", "both.rlc = { mode = 'um', sn = 16 }", "write 5 or 10"),
        ("nr", "up.rlc.mode = 'um'", "`down` has another mode: write `both`"),
        ("nr", "both.rlc.mode = 'um'\nboth.pdcp.t_reordering = 'off'", "would wait forever"),
        ("lte", "both.rlc.mode = 'um'\nboth.pdcp.sn = 18", "need acknowledged mode: write 12"),
        ("nr", "dedicated.dscp = []", "no packet would use the bearer"),
        ("nr", "dedicated.dscp = [64]", "64 is not a DSCP: write 0 to 63"),
        ("nr", "dedicated.rlc.sn = 10", "write 12 or 18"),
        ("lte", "both.pdcp.sn = 16", "write 12 or 15 or 18"),
        ("nr", "both.harq.processes = 0", "write 1 to 32"),
        ("nr", "drx = { inactivity = '1s', cycle = '10ms', on = '10ms' }", "is not shorter than the cycle"),
        ("nr", "handover = { every = '1s', interruption = '2s' }", "must be shorter"),
        ("lte", "both.pdcp.t_reordering = '10ms'", "unknown key"),
    ] {
        let error = parse(kind, settings).expect_err(settings);
        assert!(error.contains(message), "{settings}: {error}");
    }
}

#[test]
fn mode_determines_length_of_sequence_numbers() {
    for (kind, mode, sn) in [("nr", "am", 18), ("nr", "um", 12), ("lte", "am", 10), ("lte", "um", 10)] {
        let config = parse(kind, &format!("both.rlc.mode = '{mode}'\ndedicated = {{}}")).unwrap();
        let settings = match config {
            StageConfig::Nr(config) => config.settings(),
            StageConfig::Lte(config) => config.settings(),
            other => panic!("{other:?}"),
        };
        let [dedicated, default] = &settings.bearers[..] else { panic!("two bearers") };
        assert_eq!(default.directions.up.rlc.sn, sn, "{kind} {mode}");
        assert_eq!(dedicated.mode(), RlcMode::Am);
    }
}

#[test]
fn settings_of_acknowledged_mode_cause_warnings_in_um() {
    let settings = "both.rlc = { mode = 'um', poll_pdu = 8, t_reassembly = '20ms' }";
    let StageConfig::Nr(config) = parse("nr", settings).unwrap() else { panic!() };
    let warning =
        |direction| format!("{direction}.rlc.poll_pdu: has no effect in unacknowledged mode: remove it");
    assert_eq!(config.warnings(), ["down", "up"].map(warning));
}

#[test]
fn strict_refuses_values_that_rrc_cannot_configure() {
    for (settings, key) in [
        ("both.rlc.t_reassembly = '7ms'", "rlc.t_reassembly"),
        ("both.rlc.poll_byte = '125B'", "rlc.poll_byte"),
        ("both.pdcp.t_reordering = '70ms'", "pdcp.t_reordering"),
    ] {
        let StageConfig::Nr(config) = parse("nr", settings).unwrap() else { panic!() };
        let warnings = config.warnings();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with(&format!("down.{key}: ")), "{warnings:?}");
        let error = parse("nr", &format!("{settings}\nup.strict = true")).unwrap_err();
        assert!(error.contains("the nearest is"), "{error}");
        let settings = settings.replace("both", "dedicated");
        let StageConfig::Nr(config) = parse("nr", &settings).unwrap() else { panic!() };
        assert!(config.warnings()[0].starts_with(&format!("dedicated.{key}: ")), "{:?}", config.warnings());
        assert!(parse("nr", &format!("{settings}\nup.strict = true")).is_err());
    }
    assert_eq!(NrConfig::default().warnings(), [""; 0]);
    assert_eq!(LteConfig::default().warnings(), [""; 0]);
}
