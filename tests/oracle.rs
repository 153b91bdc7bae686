use airtcp::reproduce::p0::setting::*;
use airtcp::sim::run;
use airtcp::statistics::Mean;
#[test]
fn probe() {
    let t0 = std::time::Instant::now();
    for (name, c) in [
        ("tahoe", Channel::new(0.0, 0.0)),
        ("tahoe", Channel::new(0.01, 0.15)),
        ("reno", Channel::new(0.01, 0.15)),
        ("newreno", Channel::new(0.01, 0.15)),
        ("sack", Channel::new(0.01, 0.15)),
        ("tahoe+limited-transmit", Channel::new(0.01, 0.15)),
        ("tahoe+sifest", Channel::new(0.01, 0.15)),
        ("tahoe+sifest+liw", Channel::new(0.01, 0.15)),
        ("tahoe", Channel::new(0.03, 0.03)),
        ("tahoe", Channel::new(0.00, 0.06)),
        ("tahoe", Channel::overall(0.04)),
    ] {
        for acks in [Acks::Delayed, Acks::Each] {
            let mut s = Setting::new(name, c).unwrap();
            s.acks = acks;
            let mut v = vec![];
            let (mut to, mut fr) = (0., 0.);
            for seed in 1..=20 {
                let r = run::run(&s.run(seed).unwrap()).unwrap();
                if seed == 1 && c.x == 0. && c.y == 0. {
                    println!("{} {:?}", r.stages, r.flows[0].counters);
                }
                to += r.flows[0].counters.timeouts as f64 / 20.;
                fr += r.flows[0].counters.fast_retransmits as f64 / 20.;
                v.push(acknowledged(&r.flows[0]));
            }
            println!("{name} {c:?} {acks:?} {:?} to {to} fr {fr}", Mean::of(&v).unwrap());
        }
    }
    println!("{:?}", t0.elapsed());
}
