//! The few functions that sampling needs, made of IEEE additions, multiplications and divisions only: the same
//! bits on every machine. `f64::ln` and `f64::powf` are the platform's, and differ between platforms.

use std::f64::consts::{LN_2, SQRT_2};

const MANTISSA: u64 = (1 << 52) - 1;
const ONE: u64 = 1023 << 52;

/// Natural logarithm of a positive normal number, within a few units of the last place.
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

/// ln(1 + x), also where 1 + x would round x away. For -0.5 ≤ x ≤ 0.5.
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

/// e^x. Beyond the range of an `f64`: 0 or infinity.
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

/// e^x - 1, also where it is so small that 1 would swallow it.
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

/// base^exponent, for a positive normal base.
pub fn pow(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(ours: f64, theirs: f64) {
        assert!((ours - theirs).abs() <= 1e-13 * theirs.abs(), "{ours:e} and {theirs:e}");
    }

    #[test]
    fn they_agree_with_the_platforms_own() {
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
}
