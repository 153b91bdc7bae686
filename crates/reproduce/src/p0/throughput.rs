//! How many packets are acknowledged within 100 s: Figs. 5, 6, 11a and 11b.

use airtcp_numbers::statistics::{Mean, differences};
use airtcp_sim::world::WorldError;

use super::super::{Claim, Counts, Effort, Finding, Judged, Table, mean, shown};
use super::judging::{Measured, acked, across, deviation, gain, gain_claim, line, signed};
use super::setting::{self, Channel, Setting};
use super::{Curve, grid, overall_rates, seeded};

pub(super) fn figure_5(effort: &Effort) -> Result<Finding, WorldError> {
    const CURVES: [Curve; 6] = [
        Curve::new("Tahoe", "tahoe"),
        Curve::new("Reno", "reno"),
        Curve::new("NewReno", "newreno"),
        Curve::new("SACK", "sack"),
        Curve::undelayed("Tahoe ND", "tahoe"),
        Curve::undelayed("Reno ND", "reno"),
    ];
    let rates = overall_rates();
    let channels: Vec<_> = rates.iter().map(|z| Channel::overall(*z)).collect();
    let outcomes = grid(effort, &CURVES, &channels)?;
    let packets: Vec<Vec<Vec<f64>>> =
        outcomes.iter().map(|curve| curve.iter().map(|samples| acked(samples)).collect()).collect();
    let voice = voice(effort, &channels)?;

    let mut table = Table::new(
        "Packets acknowledged after 100 s, and voice packets that arrived:",
        &["z", "Tahoe", "Reno", "NewReno", "SACK", "Tahoe ND", "Reno ND", "voice"],
    );
    for (point, z) in rates.iter().enumerate() {
        let curves = packets.iter().map(|curve| shown(&mean(&curve[point]), 0));
        let cells = [format!("{:.1} %", 100.0 * z)].into_iter().chain(curves);
        table.row(cells.chain([shown(&mean(&voice[point]), 0)]));
    }

    let [tahoe, reno, newreno, sack, tahoe_nd, reno_nd] = &packets[..] else { return Ok(Finding::default()) };
    let claims = vec![
        exponential(&rates, &packets[..4]),
        proportional(&rates, &voice),
        without_delay(tahoe_nd, tahoe),
        better("in most cases SACK outperforms NewReno (§3.3.1)", "SACK − NewReno", sack, newreno),
        better("Tahoe is more robust than Reno (§3.3.1)", "Tahoe − Reno", tahoe, reno),
        better(
            "the same, without delayed ACKs (the paper does not say for which)",
            "Tahoe ND − Reno ND",
            tahoe_nd,
            reno_nd,
        ),
    ];
    let mut choices = setting::choices();
    choices.push("exponential means: a straight line explains more of the variance of the logarithm of the packets than of the packets.".to_owned());
    Ok(Finding { charts: Vec::new(), tables: vec![table], claims, choices, remarks: Vec::new() })
}

/// Voice packets that arrive, by channel and seed.
fn voice(effort: &Effort, channels: &[Channel]) -> Result<Vec<Vec<f64>>, WorldError> {
    let plan = |channel: &Channel| Setting { recipes: Vec::new(), ..Setting::new("tahoe", *channel) }.plan();
    let plans = channels.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    effort.sample(&plans, seeded, |_, report| setting::voice(report))
}

fn exponential(rates: &[f64], curves: &[Vec<Vec<f64>>]) -> Claim {
    let fits: Vec<(f64, f64, f64)> = curves
        .iter()
        .map(|curve| {
            let means: Vec<f64> = curve.iter().map(|samples| mean(samples).mean).collect();
            let points = |value: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
                rates.iter().zip(&means).map(|(z, packets)| (*z, value(*packets))).collect()
            };
            let (rate, of_logarithm) = line(&points(&f64::ln));
            (rate, of_logarithm, line(&points(&|packets| packets)).1)
        })
        .collect();
    let fit = |(_, of_logarithm, of_packets): &(f64, f64, f64)| of_logarithm > of_packets;
    let judged = match fits.iter().filter(|one| fit(one)).count() {
        0 => Judged::DoesNotHold,
        all if all == fits.len() => Judged::Holds,
        _ => Judged::HoldsInPart,
    };
    let (rate, of_logarithm, of_packets) = fits[0];
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "FTP degrades dramatically in a negative-exponential manner, by whichever variant".to_owned(),
        ours: format!(
            "an exponential fits better for {} of {} variants; Tahoe goes as exp({rate:.1} z), which explains {:.1} % of the logarithm's variance, a straight line {:.1} % of the packets'",
            fits.iter().filter(|one| fit(one)).count(),
            fits.len(),
            100.0 * of_logarithm,
            100.0 * of_packets
        ),
        judged,
    }
}

fn proportional(rates: &[f64], voice: &[Vec<f64>]) -> Claim {
    let points: Vec<(f64, f64)> =
        rates.iter().zip(voice).map(|(z, samples)| (*z, mean(samples).mean)).collect();
    let (slope, explained) = line(&points);
    // Losses in proportion to z make a line through (0, sent) of the slope −sent.
    let mean_z = rates.iter().sum::<f64>() / rates.len() as f64;
    let sent = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64 - slope * mean_z;
    let relative = -slope / sent;
    let judged = if explained > 0.98 && (0.9..=1.1).contains(&relative) {
        Judged::Holds
    } else if slope < 0.0 {
        Judged::HoldsInPart
    } else {
        Judged::DoesNotHold
    };
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "CBR degrades in proportion to z".to_owned(),
        ours: format!(
            "a straight line explains {:.1} %; {relative:.2} of what is sent is lost per unit of z",
            100.0 * explained
        ),
        judged,
    }
}

fn without_delay(undelayed: &[Vec<f64>], delayed: &[Vec<f64>]) -> Claim {
    let gains: Vec<Vec<f64>> = undelayed.iter().zip(delayed).map(|(nd, d)| gain(nd, d)).collect();
    let judged: Vec<_> = gains.iter().map(|gain| Judged::above_zero(&mean(gain))).collect();
    let (first, last) = (mean(&gains[0]), mean(&gains[gains.len() - 1]));
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "without delayed ACKs throughput is relatively higher".to_owned(),
        ours: format!(
            "Tahoe: {} % at the smallest z, {} % at the largest",
            signed(&first, 1),
            signed(&last, 1)
        ),
        judged: Judged::all(judged),
    }
}

/// Whether `more` is above `less`, on average over z.
fn better(paper: &str, what: &str, more: &[Vec<f64>], less: &[Vec<f64>]) -> Claim {
    let points: Vec<Vec<f64>> = more.iter().zip(less).map(|(more, less)| differences(more, less)).collect();
    let count = |wanted| points.iter().filter(|point| Judged::above_zero(&mean(point)) == wanted).count();
    let whole = mean(&across(&points));
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: paper.to_owned(),
        ours: format!(
            "{what} is {} packets on average over z; clearly above zero at {} of {} points, clearly below at {}",
            signed(&whole, 1),
            count(Judged::Holds),
            points.len(),
            count(Judged::DoesNotHold)
        ),
        judged: Judged::above_zero(&whole),
    }
}

pub(super) fn figure_6(effort: &Effort) -> Result<Finding, WorldError> {
    const CHANGES: [f64; 5] = [0.3, 0.1, 0.03, 0.01, 0.003];
    const TAHOE: [Curve; 1] = [Curve::new("Tahoe", "tahoe")];
    let random = Channel::new(0.03, 0.03);
    let clustered = CHANGES.map(|change| Channel { change, ..Channel::new(0.0, 0.06) });
    let channels: Vec<_> = [random].into_iter().chain(clustered).collect();
    let packets: Vec<Vec<f64>> = grid(effort, &TAHOE, &channels)?[0].iter().map(|s| acked(s)).collect();

    let mut table = Table::new(
        "Tahoe's packets acknowledged after 100 s, at z = 3 % everywhere:",
        &["errors", "the paper", "here", "against random", "SD of one run"],
    );
    let row = |errors: String, paper: &str, samples: &[f64], against: String| {
        [errors, paper.to_owned(), shown(&mean(samples), 0), against, format!("{:.0}", deviation(samples))]
    };
    table.row(row("random, x = y = 0.03".to_owned(), "1443", &packets[0], String::new()));
    let against: Vec<Mean> = packets[1..].iter().map(|samples| mean(&gain(samples, &packets[0]))).collect();
    for (index, change) in CHANGES.iter().enumerate() {
        let paper = if index == 0 { "1262 (−12.5 %)" } else { "" };
        let errors = format!("clustered, x = 0, y = 0.06, α = β = {change}");
        table.row(row(errors, paper, &packets[index + 1], format!("{} %", signed(&against[index], 1))));
    }

    let loss = |gain: &Mean| Mean { mean: -gain.mean, ..*gain };
    let claims = vec![
        gain_claim("over the clustered link about 12.5 % less (1262 for 1443)", 12.5, &loss(&against[0])),
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "the more a link clusters its errors, the more TCP degrades".to_owned(),
            ours: format!(
                "{} % with states of 3 packets, {} % with states of 333",
                signed(&against[0], 1),
                signed(&against[4], 1)
            ),
            judged: Judged::above_zero(&mean(&differences(&packets[1], &packets[5]))),
        },
    ];
    let noise = deviation(&packets[0]).hypot(deviation(&packets[1]));
    let remarks = vec![format!(
        "The difference of two independent single runs, one over each link, has a standard deviation of {noise:.0} packets here; the paper's, of two single runs, is 181, {:.1} times that. With α = β = 0.3 a state lasts three packets on average, and x = 0, y = 0.06 is hardly more clustered than chance: two packets in a row are lost with a probability of {:.2} %, at random {:.2} %.",
        181.0 / noise,
        100.0 * 0.03 * 0.7 * 0.06,
        100.0 * 0.03 * 0.03
    )];
    let mut choices = setting::choices();
    choices.push("α = β is 0.3 as in Fig. 5; the smaller ones are ours, to see where a penalty begins. The penalty's judgement is that of a gain with its sign turned.".to_owned());
    Ok(Finding { charts: Vec::new(), tables: vec![table], claims, choices, remarks })
}

pub(super) fn figure_11a(effort: &Effort) -> Result<Finding, WorldError> {
    const CURVES: [Curve; 8] = [
        Curve::new("Tahoe", "tahoe"),
        Curve::new("Tahoe, sifest", "tahoe+sifest"),
        Curve::new("Tahoe, sifest, LIW", "tahoe+sifest+liw"),
        Curve::new("Tahoe, Limited Transmit", "tahoe+limited-transmit"),
        Curve::new("Tahoe, Limited Transmit, LIW", "tahoe+limited-transmit+liw"),
        Curve::new("Reno", "reno"),
        Curve::new("Reno, sifest", "reno+sifest"),
        Curve::new("Reno, Limited Transmit", "reno+limited-transmit"),
    ];
    const PAPER: [&str; 8] = ["932", "1111 (+19.2 %)", "1245 (+33.6 %)", "", "", "831", "1059 (+27.4 %)", ""];
    let outcomes = grid(effort, &CURVES, &[Channel::new(0.01, 0.15)])?;
    let packets: Vec<Vec<f64>> = outcomes.iter().map(|curve| acked(&curve[0])).collect();
    let plain = |index: usize| if index < 5 { 0 } else { 5 };

    let mut table = Table::new(
        "Packets acknowledged after 100 s, x = 0.01, y = 0.15:",
        &["sender", "the paper", "here", "gain", "SD of one run", "timeouts", "fast retransmits"],
    );
    for (index, Curve { name, .. }) in CURVES.iter().enumerate() {
        let samples = &packets[index];
        let over = mean(&gain(samples, &packets[plain(index)]));
        let count = |value: fn(&Measured) -> f64| {
            let values: Vec<f64> = outcomes[index][0].iter().map(value).collect();
            format!("{:.1}", mean(&values).mean)
        };
        table.row([
            (*name).to_owned(),
            PAPER[index].to_owned(),
            shown(&mean(samples), 0),
            if index == plain(index) { String::new() } else { format!("{} %", signed(&over, 1)) },
            format!("{:.0}", deviation(samples)),
            count(|outcome| outcome.timeouts),
            count(|outcome| outcome.succeeded),
        ]);
    }

    let [tahoe, sifest, liw, limited, limited_liw, reno, reno_sifest, reno_limited] = &packets[..] else {
        return Ok(Finding::default());
    };
    let over = |with: &[f64], without: &[f64]| mean(&gain(with, without));
    let more = |what: &str, with: &[f64], without: &[f64]| {
        let mean = mean(&differences(with, without));
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!("{what}: Limited Transmit only alleviates what sifest avoids (§5)"),
            ours: format!("sifest − Limited Transmit is {} packets", signed(&mean, 0)),
            judged: Judged::above_zero(&mean),
        }
    };
    let claims = vec![
        gain_claim("sifest gives Tahoe 19.2 % more", 19.2, &over(sifest, tahoe)),
        gain_claim("with LIW 33.6 % more than Tahoe", 33.6, &over(liw, tahoe)),
        gain_claim("with LIW 12.1 % more than with sifest alone", 12.1, &over(liw, sifest)),
        gain_claim("sifest gives Reno 27.4 % more (1059 for 831)", 27.4, &over(reno_sifest, reno)),
        more("Tahoe", sifest, limited),
        more("Tahoe with LIW", liw, limited_liw),
        more("Reno", reno_sifest, reno_limited),
    ];
    let noise = deviation(sifest).hypot(deviation(tahoe));
    let remarks = vec![
        format!(
            "Limited Transmit (RFC 3042), which the paper cites and does not run, gives Tahoe {} % and Reno {} % alone; sifest {} % and {} %.",
            signed(&over(limited, tahoe), 1),
            signed(&over(reno_limited, reno), 1),
            signed(&over(sifest, tahoe), 1),
            signed(&over(reno_sifest, reno), 1)
        ),
        format!(
            "The difference of two independent single runs, Tahoe with and without sifest, has a standard deviation of {noise:.0} packets; the paper's +19.2 % are 179 packets, {:.1} times that.",
            179.0 / noise
        ),
    ];
    let choices = setting::choices();
    Ok(Finding { charts: Vec::new(), tables: vec![table], claims, choices, remarks })
}

pub(super) fn figure_11b(effort: &Effort) -> Result<Finding, WorldError> {
    const CURVES: [Curve; 4] = [
        Curve::new("Tahoe", "tahoe"),
        Curve::new("sifest", "tahoe+sifest"),
        Curve::new("sifest, LIW", "tahoe+sifest+liw"),
        Curve::new("Limited Transmit", "tahoe+limited-transmit"),
    ];
    let rates = overall_rates();
    let channels: Vec<_> = rates.iter().map(|z| Channel::overall(*z)).collect();
    let outcomes = grid(effort, &CURVES, &channels)?;
    let packets = |curve: usize, point: usize| acked(&outcomes[curve][point]);

    let mut table = Table::new(
        "Tahoe's packets acknowledged after 100 s:",
        &["z", "Tahoe", "sifest", "sifest, LIW", "Limited Transmit", "sifest's gain", "Limited Transmit's"],
    );
    let of = |curve: usize, point: usize| gain(&packets(curve, point), &packets(0, point));
    for (point, z) in rates.iter().enumerate() {
        let curves = (0..4).map(|curve| shown(&mean(&packets(curve, point)), 0));
        let gains = [1, 3].map(|curve| format!("{} %", signed(&mean(&of(curve, point)), 1)));
        table.row([format!("{:.1} %", 100.0 * z)].into_iter().chain(curves).chain(gains));
    }

    let points = |from: f64, to: f64| -> Vec<usize> {
        (0..rates.len()).filter(|point| (from - 1e-9..=to + 1e-9).contains(&rates[*point])).collect()
    };
    let average = |points: &[usize], curve: usize| {
        mean(&across(&points.iter().map(|point| of(curve, *point)).collect::<Vec<_>>()))
    };
    let (few, many) = (points(0.0, 0.03), points(0.07, 1.0));
    let (low, high) = (average(&few, 1), average(&many, 1));
    let trivial = match low.half_width {
        Some(width) if low.mean + width < high.mean / 3.0 => Judged::Holds,
        Some(width) if low.mean - width > high.mean / 3.0 => Judged::DoesNotHold,
        _ => Judged::Undecided,
    };
    let obvious: Vec<_> = many.iter().map(|point| Judged::above_zero(&mean(&of(1, *point)))).collect();
    let over_limited: Vec<Vec<f64>> =
        many.iter().map(|point| differences(&packets(1, *point), &packets(3, *point))).collect();
    let over_limited = mean(&across(&over_limited));
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "for z ≤ 3 % the difference is quite trivial".to_owned(),
            ours: format!(
                "sifest's gain is {} % up to there, and {} % from 7 % on",
                signed(&low, 1),
                signed(&high, 1)
            ),
            judged: trivial,
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "for z ≥ 7 % the enhancement is quite obvious".to_owned(),
            ours: format!("{} % on average over these z", signed(&high, 1)),
            judged: Judged::all(obvious),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "Limited Transmit only alleviates what sifest avoids (§5)".to_owned(),
            ours: format!(
                "for z ≥ 7 % sifest − Limited Transmit is {} packets; Limited Transmit's gain is {} %",
                signed(&over_limited, 0),
                signed(&average(&many, 3), 1)
            ),
            judged: Judged::above_zero(&over_limited),
        },
    ];
    let mut choices = setting::choices();
    choices.push("trivial means: less than a third of the gain from 7 % on.".to_owned());
    Ok(Finding { charts: Vec::new(), tables: vec![table], claims, choices, remarks: Vec::new() })
}
