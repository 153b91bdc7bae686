use airwire::units::Probability;

use super::*;
use crate::rlc::umts::config::{Discard, WindowAt};
use crate::scenario::{settings, to_text};

fn read(text: &str) -> RlcConfig {
    settings(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn missing_settings_take_defaults_for_their_direction() {
    assert_eq!(read(""), RlcConfig::wcdma_384());
    let config = read("up.channel.delay = \"7ms\"\ndown.sender.window = 256");
    assert_eq!(config.up.channel.delay, Duration::from_millis(7));
    assert_eq!((config.up.channel.tti, config.up.channel.max_blocks()), (Duration::from_millis(20), 4));
    assert_eq!((config.down.channel.tti, config.down.channel.max_blocks()), (Duration::from_millis(10), 12));
    assert_eq!((config.down.sender.window, config.up.sender.window), (256, 512));
}

#[test]
fn off_and_zero_disable_optional_settings() {
    let config = read(
        "down.sender.poll = { timer_poll = \"off\", poll_window = \"off\", poll_pdu = 64, \
         timer_poll_periodic = \"300ms\" }\ndown.receiver.timer_status_prohibit = \"off\"",
    );
    let poll = config.down.sender.poll;
    assert_eq!((poll.timer_poll, poll.poll_window, poll.poll_pdu), (None, None, Some(64)));
    assert_eq!(poll.timer_poll_periodic, Some(Duration::from_millis(300)));
    assert_eq!(config.down.receiver.timer_status_prohibit, None);
    let never = read(
        "down.sender.poll = { timer_poll = \"0ms\", timer_poll_periodic = \"0ms\", timer_poll_prohibit = \"0ms\" }\n\
         down.sender.ignore_nack_within = \"0ms\"\n\
         down.receiver = { timer_status_prohibit = \"0ms\", status_delay = \"0ms\", timer_epc = \"0ms\", \
         timer_status_periodic = \"0ms\" }",
    );
    never.validate().unwrap();
    let (poll, receiver) = (never.down.sender.poll, &never.down.receiver);
    assert_eq!([poll.timer_poll, poll.timer_poll_periodic, poll.timer_poll_prohibit], [None; 3]);
    assert_eq!([receiver.timer_epc, receiver.timer_status_periodic, receiver.status_delay], [None; 3]);
    assert_eq!((receiver.prohibits(), never.down.sender.ignore_nack_within), (None, None));
    assert!(settings::<RlcConfig>("down.sender.poll.poll_pdu = \"many\"").is_err());
    let error = settings::<RlcConfig>("down.sender.poll.timer_poll = \"200\"").unwrap_err();
    assert!(error.to_string().contains("\"150ms\""), "{error}");
}

#[test]
fn config_round_trips_through_toml() {
    let flexible = read("hsdpa = {}\ndown.format.flexible = { most = \"126B\", indicators = \"7bit\" }");
    let mut config = RlcConfig::wcdma_64();
    config.down.sender.discard = Discard::Timer {
        timer_discard: Duration::from_secs(2),
        timer_mrw: Duration::from_millis(100),
        max_mrw: 4,
    };
    let [bad, leave_good, leave_bad] = [0.5, 0.01, 0.1].map(Probability::new);
    config.down.channel.errors = BlockErrors::gilbert_elliott(Probability::ZERO, bad, leave_good, leave_bad);
    config.up.channel.errors = BlockErrors::Listed { lost: vec![0, 7] };
    config.up.channel.counts = Counts::Any;
    config.up.queue.bounds.packets = Some(50);
    config.up.receiver.windows = vec![WindowAt { at: Duration::from_secs(1), window: 8 }];
    config.up.receiver.advertise_window = Some(3);
    for config in [config, RlcConfig::wcdma_384(), flexible] {
        let text = to_text(&config);
        assert_eq!(read(&text), config, "{text}");
        config.validate().unwrap();
    }
}

#[test]
fn unknown_keys_are_refused_in_both_directions() {
    for text in ["down.chanel = {}", "up.channel.ttl = \"1ms\"", "up.sender.windows = 1", "sideways = 1"] {
        assert!(settings::<RlcConfig>(text).is_err(), "{text}");
    }
}

#[test]
fn invalid_settings_are_rejected_naming_key_and_remedy() {
    for (text, key, wanted) in [
        ("down.sender.window = 500", "down.sender.window", "] is 512"),
        ("up.receiver.window = 0", "up.receiver.window", "] is 1"),
        (
            "down.sender.discard = { mode = \"reset-after-max-dat\", max_dat = 0 }",
            "down.sender.discard.max_dat",
            "at most MaxDAT − 1 times",
        ),
        (
            "up.sender.discard = { mode = \"timer\", timer_discard = \"1s\", timer_mrw = \"1s\", max_mrw = 0 }",
            "up.sender.discard.max_mrw",
            "at least 1",
        ),
        ("down.sender.poll.poll_window = 101", "down.sender.poll.poll_window", "1 to 100"),
        ("down.sender.poll.poll_pdu = 0", "down.sender.poll.poll_pdu", "at least 1"),
        ("down.sender.max_rst = 0", "down.sender.max_rst", "at least 1"),
        ("down.receiver.advertise_window = 0", "down.receiver.advertise_window", "at least 1"),
        ("down.receiver.windows = [{ at = \"1s\", window = 5000 }]", "down.receiver.windows", "1 to 4095"),
        (
            "down.receiver.windows = [{ at = \"2s\", window = 9 }, { at = \"2s\", window = 8 }]",
            "down.receiver.windows",
            "ascending order",
        ),
        ("up.strict = true\nup.sender.max_rst = 5", "up.sender.max_rst", "the nearest is 4"),
        (
            "down.strict = true\ndown.receiver.timer_status_prohibit = \"1500ms\"",
            "down.receiver.timer_status_prohibit",
            "the nearest is 1.000s",
        ),
        ("down.sender.timer_rst = \"0ms\"", "down.sender.timer_rst", "above 0"),
        ("up.channel.blocks = []", "up.channel.blocks", "the list is empty"),
        ("up.channel.blocks = [4, 2]", "up.channel.blocks", "not in ascending order"),
        ("up.channel.blocks = [0, 2]", "up.channel.blocks", "not in ascending order"),
        ("up.channel.tti = \"0ms\"", "up.channel.tti", "above 0"),
        ("up.channel.phase = \"20ms\"", "up.channel.phase", "not shorter than the TTI"),
        ("up.format.pdu = \"4B\"", "up.format.pdu", "\"16B\" to \"1503B\""),
        ("up.queue.packets = 0", "up.queue.packets", "queue of 0 packets"),
        ("hsdpa.processes = 0", "hsdpa.processes", "1 to 8"),
        ("hsdpa = {}\ndown.channel.blocks = [7]", "down.channel.blocks", "HS-DSCH"),
        ("hsdpa = {}\ndown.channel.dch = \"64kbit\"", "down.channel.dch", "HS-DSCH"),
        ("hsdpa = {}\ndown.format.pdu = \"1503B\"", "hsdpa.category", "smaller `format.pdu`"),
        ("down.format.flexible = {}", "down.format.flexible", "add `hsdpa = {}`"),
        ("hsdpa = {}\nup.format.flexible = {}", "up.format.flexible", "the uplink is a DCH"),
        (
            "hsdpa = {}\ndown.format = { pdu = \"82B\", flexible = {} }",
            "down.format.pdu",
            "given by `flexible.most`",
        ),
        (
            "hsdpa = {}\ndown.format.flexible.most = \"1506B\"",
            "down.format.flexible.most",
            "\"16B\" to \"1505B\"",
        ),
        ("hsdpa = {}\ndown.format.flexible.most = \"15B\"", "down.format.flexible.most", "15 bytes"),
        (
            "hsdpa = {}\ndown.format.flexible = { most = \"127B\", indicators = \"7bit\" }",
            "down.format.flexible.indicators",
            "`most = \"126B\"`",
        ),
    ] {
        let invalid = read(text).validate().unwrap_err();
        assert_eq!(invalid.key, key, "{text}: {invalid}");
        assert!(invalid.message.contains(wanted), "{text}: {invalid}");
    }
}
