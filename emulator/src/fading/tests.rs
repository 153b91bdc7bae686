use airwire::time::Duration;

use super::*;
use crate::stages::testing::within_binomial;

fn config(margin: &str, carrier: Option<&str>, slow: Option<(&str, &str)>) -> FadingConfig {
    FadingConfig {
        speed: "36km/h".parse().unwrap(),
        margin: margin.parse().unwrap(),
        carrier: carrier.map(|carrier| carrier.parse().unwrap()),
        slow: slow.map(|(deviation, distance)| (deviation.parse().unwrap(), distance.parse().unwrap())),
    }
}

fn fading(config: &FadingConfig, seed: u64) -> Fading {
    config.validate().unwrap();
    Fading::new(config, &mut Stream::new(seed, "fading"))
}

/// Number of seeds, out of `n`, with which a transmission at a fixed time is lost.
fn lost(config: &FadingConfig, n: u64) -> usize {
    (0..n).filter(|seed| fading(config, *seed).loses(Instant::from_millis(1_234))).count()
}

#[test]
fn fast_and_slow_fading_lose_expected_share() {
    let n = 20_000;
    for margin in ["0dB", "3dB", "10dB", "-3dB"] {
        let ratio = 10_f64.powf(margin.trim_end_matches("dB").parse::<f64>().unwrap() / 10.0);
        let fast = config(margin, Some("2GHz"), None);
        within_binomial(lost(&fast, n), n as usize, 1.0 - (-1.0 / ratio).exp());
        let slow = config(margin, None, Some(("8dB", "20m")));
        let sigmas = margin.trim_end_matches("dB").parse::<f64>().unwrap() / 8.0;
        within_binomial(lost(&slow, n), n as usize, maths::upper_tail(sigmas));
    }
}

/// P = ∫ (1 − exp(−10^(−(margin + x)/10))) φ(x/σ)/σ dx.
#[test]
fn combined_fading_loses_expected_share() {
    let n = 20_000;
    let sum: f64 = (-6_000..=6_000)
        .map(|step| f64::from(step) / 1_000.0)
        .map(|x| {
            let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
            (1.0 - (-(10_f64.powf(-(10.0 + 8.0 * x) / 10.0))).exp()) * density * 1e-3
        })
        .sum();
    within_binomial(lost(&config("10dB", Some("2GHz"), Some(("8dB", "20m"))), n), n as usize, sum);
}

#[test]
fn doppler_shift_follows_from_speed_and_carrier() {
    // 10 m/s divided by the wavelength of 0.149896229 m.
    let fast = config("10dB", Some("2GHz"), None);
    assert!((fast.doppler().unwrap() - 66.712_819).abs() < 1e-6);
    let remark = fast.remark("packets");
    assert!(remark.starts_with("9.52 % of the packets are lost on average"), "{remark}");
    // √(2π) · 66.7128 · 0.316228 · e^−0.1.
    assert!(
        remark.contains("47.849 fades per second, each 0.0020 s long on average (Doppler shift 66.71 Hz)"),
        "{remark}"
    );
    let slow = config("8dB", None, Some(("8dB", "20m"))).remark("blocks");
    assert!(slow.starts_with("15.87 % of the blocks are lost on average"), "{slow}");
}

#[test]
fn losses_depend_only_on_seed_and_time() {
    let both = config("3dB", Some("900MHz"), Some(("6dB", "50m")));
    let losses = |seed| {
        let mut fading = fading(&both, seed);
        (0..500).map(|n| fading.loses(Instant::ZERO + Duration::from_millis(7) * n)).collect::<Vec<_>>()
    };
    assert_eq!(losses(1), losses(1));
    assert_ne!(losses(1), losses(2));
    // Queries do not change the state of fast fading.
    let fast = config("3dB", Some("900MHz"), None);
    let mut often = fading(&fast, 1);
    let often: Vec<bool> = (0..500).map(|n| often.loses(Instant::from_millis(n))).collect();
    let mut seldom = fading(&fast, 1);
    for n in (0..500).step_by(50) {
        assert_eq!(seldom.loses(Instant::from_millis(n)), often[n as usize]);
    }
    // A larger margin keeps the same propagation paths, so it only removes losses.
    let mut stronger = fading(&FadingConfig { margin: "9dB".parse().unwrap(), ..fast }, 1);
    let lost: Vec<bool> = (0..500).map(|n| stronger.loses(Instant::from_millis(n))).collect();
    assert!(lost.iter().any(|lost| *lost) && lost.iter().zip(&often).all(|(now, before)| !now || *before));
}

#[test]
fn new_settings_keep_position_in_fading_pattern() {
    let slow = config("8dB", None, Some(("8dB", "20m")));
    let mut changed = fading(&slow, 1);
    let before = changed.power(Instant::from_secs(1));
    // Half the deviation in dB is the square root of the power.
    changed.set(&config("3dB", None, Some(("4dB", "20m"))));
    assert!((changed.power(Instant::from_secs(1)) - before.sqrt()).abs() < 1e-9);
    let fast = config("8dB", Some("2GHz"), None);
    let mut changed = fading(&fast, 1);
    changed.set(&FadingConfig { margin: "1dB".parse().unwrap(), ..fast });
    assert_eq!(changed.power(Instant::from_secs(9)), fading(&fast, 1).power(Instant::from_secs(9)));
    assert!((changed.threshold - 10_f64.powf(-0.1)).abs() < 1e-12);
}

#[test]
fn out_of_range_setting_error_names_key() {
    let fast = config("10dB", Some("2GHz"), None);
    let key = |config: FadingConfig| config.validate().unwrap_err().key;
    for speed in ["0m/s", "-1m/s", "100000m/s"] {
        assert_eq!(key(FadingConfig { speed: speed.parse().unwrap(), ..fast }), "speed");
    }
    assert_eq!(key(config("10dB", Some("1kHz"), None)), "carrier");
    assert_eq!(key(config("61dB", Some("2GHz"), None)), "margin");
    assert_eq!(key(config("10dB", None, Some(("0dB", "20m")))), "deviation");
    assert_eq!(key(config("10dB", None, Some(("8dB", "0m")))), "decorrelation");
}
