//! Elementary functions for sampling, built only from IEEE additions, multiplications and divisions, so that
//! results are bit-identical on every machine. Each platform has its own `f64::ln` and `f64::powf`, with
//! different results.
//!
//! `libm` would be as portable, but rounds a third of the logarithms and three quarters of the exponentials
//! differently, which would change all recorded results.

use std::f64::consts::{LN_2, PI, SQRT_2};

use airwire::rng::Stream;

const MANTISSA: u64 = (1 << 52) - 1;
const ONE: u64 = 1023 << 52;

/// Natural logarithm of a positive normal number, accurate to a few units in the last place.
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits(bits & MANTISSA | ONE);
    if m > SQRT_2 {
        m /= 2.0;
        exponent += 1;
    }
    exponent as f64 * LN_2 + ln_1p(m - 1.0)
}

/// ln(1 + x), accurate even where 1 + x rounds x away. For -0.5 ≤ x ≤ 0.5.
pub fn ln_1p(x: f64) -> f64 {
    // ln(1 + x) = 2 artanh(x / (2 + x))
    let s = x / (2.0 + x);
    let square = s * s;
    let mut sum = 0.0;
    for k in (0..18).rev() {
        sum = sum * square + 1.0 / f64::from(2 * k + 1);
    }
    2.0 * s * sum
}

/// e^x. Outside the range of an `f64`, the result is 0 or infinity.
pub fn exp(x: f64) -> f64 {
    let halvings = (x / LN_2).round();
    if halvings > 1023.0 {
        return f64::INFINITY;
    }
    if halvings < -1022.0 {
        return 0.0;
    }
    let power = f64::from_bits(((halvings as i64 + 1023) as u64) << 52);
    (1.0 + exp_m1_near_zero(x - halvings * LN_2)) * power
}

/// e^x - 1, accurate even for tiny x.
pub fn exp_m1(x: f64) -> f64 {
    if x.abs() < 0.35 { exp_m1_near_zero(x) } else { exp(x) - 1.0 }
}

fn exp_m1_near_zero(x: f64) -> f64 {
    let mut sum = 1.0;
    for k in (2..18).rev() {
        sum = 1.0 + x / f64::from(k) * sum;
    }
    x * sum
}

/// cos(2π · turns). The argument reduction is exact, so the accuracy does not depend on the size of the
/// argument.
pub fn cos_turns(turns: f64) -> f64 {
    // Distance from the nearest whole turn, in [0, 0.5], then from the nearest half turn, in [0, 0.25].
    let rest = (turns - (turns + 0.5).floor()).abs();
    let (rest, sign) = if rest > 0.25 { (0.5 - rest, -1.0) } else { (rest, 1.0) };
    let square = (2.0 * PI * rest) * (2.0 * PI * rest);
    let mut sum = 1.0;
    for k in (1..12).rev() {
        sum = 1.0 - square / f64::from((2 * k - 1) * (2 * k)) * sum;
    }
    sign * sum
}

/// A sample of the standard normal distribution (Box-Muller). Draws twice.
pub fn normal(stream: &mut Stream) -> f64 {
    // In (0, 1].
    let u = 1.0 - stream.unit();
    (-2.0 * ln(u)).sqrt() * cos_turns(stream.unit())
}

/// Q(x): the probability that a standard normal variable exceeds x. The relative error is at most 1e-12.
pub fn upper_tail(x: f64) -> f64 {
    if x < 0.0 {
        return 1.0 - upper_tail(-x);
    }
    let density = exp(-x * x / 2.0) / (2.0 * PI).sqrt();
    if x < 3.0 {
        // 1/2 − φ(x) (x + x³/3 + x⁵/15 + …)
        let (mut term, mut sum) = (x, x);
        for k in 1..60 {
            term *= x * x / f64::from(2 * k + 1);
            sum += term;
        }
        return 0.5 - density * sum;
    }
    // φ(x) / (x + 1/(x + 2/(x + 3/(x + …))))
    let fraction = (1..60).rev().fold(x, |rest, k| x + f64::from(k) / rest);
    density / fraction
}

/// base^exponent, for a positive normal base.
pub fn pow(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

/// x^n by repeated squaring.
pub fn powi(mut x: f64, mut n: u64) -> f64 {
    let mut result = 1.0;
    while n > 0 {
        if n % 2 == 1 {
            result *= x;
        }
        x *= x;
        n /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(ours: f64, theirs: f64) {
        assert!((ours - theirs).abs() <= 1e-13 * theirs.abs(), "{ours:e} and {theirs:e}");
    }

    #[test]
    fn exponentials_and_logarithms_agree_with_platform() {
        for x in [1e-300, 1e-16, 0.1, 0.5, 0.999_999, 1.000_001, 2.0, 1e10, 1e300] {
            close(ln(x), x.ln());
        }
        for x in [1e-18, 1e-9, -1e-9, 0.3, -0.5, 0.5] {
            close(ln_1p(x), x.ln_1p());
        }
        for x in [-700.0, -20.0, -1.0, -1e-9, 0.3, 1.0, 50.0, 700.0] {
            close(exp(x), x.exp());
            close(exp_m1(x), x.exp_m1());
        }
        assert_eq!((exp(800.0), exp(-800.0), exp_m1(0.0)), (f64::INFINITY, 0.0, 0.0));
        close(pow(1e-9, -1.0 / 1.5), 1e6);
    }

    #[test]
    fn cosine_agrees_with_platform_and_is_periodic() {
        for n in -100..=100 {
            let turns = f64::from(n) / 64.0;
            let theirs = (2.0 * PI * turns).cos();
            assert!((cos_turns(turns) - theirs).abs() < 2e-14, "{turns}");
            assert_eq!(cos_turns(turns).to_bits(), cos_turns(turns + 65_536.0).to_bits());
        }
        assert_eq!([cos_turns(0.0), cos_turns(0.5), cos_turns(7.0)], [1.0, -1.0, 1.0]);
        assert_eq!(cos_turns(0.25).abs(), cos_turns(-0.25).abs());
        assert!(cos_turns(0.25).abs() < 1e-16);
    }

    #[test]
    fn normal_tail_agrees_with_tables() {
        for (x, q) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457_05),
            (2.0, 0.022_750_131_948_179_21),
            (3.0, 0.001_349_898_031_630_094_5),
            (5.0, 2.866_515_718_791_939e-7),
            (-1.0, 0.841_344_746_068_542_9),
        ] {
            assert!((upper_tail(x) / q - 1.0).abs() < 1e-11, "{x}: {:e}", upper_tail(x));
        }
        assert!((upper_tail(2.999_999_9) / upper_tail(3.000_000_1) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn normal_samples_match_tail_probabilities() {
        let mut stream = Stream::new(1, "test");
        let n = 200_000;
        let numbers: Vec<f64> = (0..n).map(|_| normal(&mut stream)).collect();
        for bound in [-2.0, -0.5, 0.0, 1.0, 2.0, 3.0] {
            let (count, p) =
                (numbers.iter().filter(|number| **number > bound).count() as f64, upper_tail(bound));
            let allowed = 3.2905 * (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((count - f64::from(n) * p).abs() <= allowed, "{bound}: {count}");
        }
    }
}
