//! §2.1: the size of the PDUs that RLC retransmits.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::setting::{Buffers, Point, Sample, percent, sample};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::judge::pooled_gains;
use crate::{At, Effort, Finding, Judged, Table, claim, column, mean, shown};

/// "a 2 octet header and 40 octet payload"
const SMALL: u32 = 42;
/// Sizes in bytes. Each size divides the 504 bytes of a transmission time interval of the bearer.
const SIZES: [u32; 5] = [SMALL, 84, 168, 252, 504];
const TTI: u32 = 504;
/// Block error rates in percent for PDUs of 42 bytes (§5.1).
const BLER: [u32; 4] = [1, 2, 5, 10];
/// A timer that never fires, so that spurious timeouts do not hide the effect of the size.
const SENDER: &str = "timer-bsd+min-rto=60000";
/// "The traffic is a 2 Mbyte TCP stream" (§5.1).
const FILE: u64 = 2_000_000;

/// The block error rate of PDUs of this size, if independent bit errors damage `bler` percent of the small ones.
fn damaged(size: u32, bler: u32) -> f64 {
    1.0 - (1.0 - f64::from(bler) / 100.0).powf(f64::from(size) / f64::from(SMALL))
}

fn point(size: u32, bler: u32) -> Result<Point, WorldError> {
    let prohibit = ("receiver.timer_status_prohibit", "300ms".to_owned());
    let mut point = Point::new("wcdma-384-tsp", &[prohibit], SENDER, FILE, Buffers::Unlimited)?;
    let settings = [
        ("down.format.pdu", format!("{size}B")),
        ("down.channel.blocks", format!("[{}]", TTI / size)),
        ("down.channel.counts", "any".to_owned()),
        ("down.channel.errors.bler", format!("{:.4}%", 100.0 * damaged(size, bler))),
        ("up.channel.errors.bler", format!("{bler}%")),
    ];
    for (key, value) in settings {
        point.set(key, &value)?;
    }
    Ok(point)
}

/// Samples of one size, by block error rate.
fn of(samples: &[Sample], size: u32) -> &[Sample] {
    let index = SIZES.iter().position(|known| *known == size).expect("a size that was run");
    &samples[index * BLER.len()..][..BLER.len()]
}

fn throughputs(samples: &[Sample]) -> Vec<Vec<f64>> {
    samples.iter().map(Sample::throughputs).collect()
}

/// Cost: 20 transfers for each seed.
pub(super) fn sizes(effort: &Effort) -> Result<Finding, WorldError> {
    let points = SIZES.iter().flat_map(|size| BLER.map(|bler| point(*size, bler)));
    let samples = sample(effort, &points.collect::<Result<Vec<_>, _>>()?)?;
    let larger = &SIZES[1..];
    let gain = |size: &u32| -> Mean {
        mean(&pooled_gains(&throughputs(of(&samples, SMALL)), &throughputs(of(&samples, *size))))
    };
    let gains: Vec<Mean> = larger.iter().map(gain).collect();
    let shown_gains = larger.iter().zip(&gains).map(|(size, gain)| format!("{} over {size}", percent(gain)));
    let claims = vec![claim(
        At("§2.1"),
        "“The small PDU size (42 octets) used in RLC makes retransmission more efficient.” (Here: over all \
         block error rates, the throughput is higher than with larger PDUs on a channel with the same bit \
         errors.)",
        format!("throughput with 42 bytes: {}", shown_gains.collect::<Vec<_>>().join(", ")),
        Judged::all(gains.iter().map(Judged::better)),
    )];
    let columns = [column("PDU", |size: &u32| format!("{size} bytes"))].into_iter();
    let columns = columns.chain(BLER.iter().enumerate().map(|(index, bler)| {
        let samples = &samples;
        column(format!("BLER {bler} %"), move |size: &u32| {
            let sample = &of(samples, *size)[index];
            format!("{} ({:.2})", shown(&sample.mean(|t| t.kbit_per_s), 1), sample.mean(|t| t.repeated).mean)
        })
    }));
    let table = Table::of(
        "Throughput of 2 MB in kbit/s by the size of a PDU, and PDUs sent again per new one in parentheses. \
         BLER is the block error rate of PDUs of 42 bytes:",
        columns,
        SIZES,
    );
    let curves = SIZES.map(|size| {
        let values = throughputs(of(&samples, size));
        Curve::line(
            format!("{size} bytes"),
            BLER.map(f64::from).into_iter().zip(values.iter().map(Vec::as_slice)),
        )
    });
    let chart = Chart {
        title: "Size of a PDU (not a figure of the paper)".to_owned(),
        x: Axis::new("block error rate of PDUs of 42 bytes, %", Scale::FromZero),
        y: Axis::new("throughput, kbit/s", Scale::FromZero),
        curves: curves.to_vec(),
    };
    Ok(Finding { tables: vec![table], charts: vec![chart], claims, ..Finding::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 1 − 0.9¹² = 0.7176.
    #[test]
    fn larger_pdus_are_damaged_more_often() {
        assert!((damaged(SMALL, 10) - 0.1).abs() < 1e-12);
        assert!((damaged(TTI, 10) - 0.7176).abs() < 5e-5);
        assert!(SIZES.iter().all(|size| TTI.is_multiple_of(*size)));
    }
}
