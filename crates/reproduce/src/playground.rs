//! Set-ups for the playground: the path of a figure and some of its senders, with the nearest options of the page.

use std::fmt::Write;

use crate::Figure;

/// The fields of the playground's page. Empty fields keep the page's defaults.
#[derive(Clone, Copy, Debug)]
pub struct PlaygroundSetup {
    /// Name of a preset.
    pub preset: &'static str,
    /// Changes to the preset: `STAGE.KEY=VALUE`.
    pub set: &'static [&'static str],
    /// Recipes.
    pub senders: &'static [&'static str],
    /// Recipe options of the receivers.
    pub receiver: &'static str,
    /// Receive buffer in bytes.
    pub buffer: &'static str,
    /// Length of a run.
    pub time: &'static str,
    /// Size of a transfer.
    pub bytes: &'static str,
    /// `down` or `up`.
    pub direction: &'static str,
    /// Whether all senders share the path.
    pub shared: bool,
}

const fn on(preset: &'static str, senders: &'static [&'static str]) -> PlaygroundSetup {
    PlaygroundSetup {
        preset,
        set: &[],
        senders,
        receiver: "",
        buffer: "",
        time: "60s",
        bytes: "",
        direction: "",
        shared: false,
    }
}

/// The hosts of Pan et al., as in the description of the preset `sifest-random`. `senders` have its timer.
const fn pan(preset: &'static str, senders: &'static [&'static str]) -> PlaygroundSetup {
    PlaygroundSetup {
        receiver: "mss=472+delack-time=200",
        buffer: "7552",
        time: "100s",
        ..on(preset, senders)
    }
}

/// The hosts of Ni et al.: 20 segments of 960 bytes.
const fn ni(preset: &'static str, senders: &'static [&'static str]) -> PlaygroundSetup {
    PlaygroundSetup { receiver: "mss=960+no-delack", buffer: "19200", ..on(preset, senders) }
}

/// The file of Inamura et al.
const fn inamura(preset: &'static str, senders: &'static [&'static str]) -> PlaygroundSetup {
    PlaygroundSetup { time: "", bytes: "1048576", receiver: "delack-time=200", ..on(preset, senders) }
}

const fn lai(preset: &'static str, senders: &'static [&'static str]) -> PlaygroundSetup {
    PlaygroundSetup { receiver: "mss=1000+no-delack", buffer: "1000000", ..on(preset, senders) }
}

/// The hosts of Chandra et al.: 94 segments of 64 bytes.
const fn chandra(preset: &'static str, senders: &'static [&'static str]) -> PlaygroundSetup {
    PlaygroundSetup { receiver: "mss=64+no-delack+no-timestamps", buffer: "6016", ..on(preset, senders) }
}

const VARIANTS: &[&str] = &[
    "tahoe+timer-ns2=100@ns2",
    "reno+timer-ns2=100@ns2",
    "newreno+timer-ns2=100@ns2",
    "sack+timer-ns2=100@ns2",
];
const TAHOE: &[&str] = &["tahoe+timer-ns2=100@ns2"];
const SIFEST: &[&str] = &["tahoe+timer-ns2=100@ns2", "tahoe+sifest+timer-ns2=100@ns2"];
const LIW: &[&str] =
    &["tahoe+timer-ns2=100@ns2", "tahoe+sifest+timer-ns2=100@ns2", "tahoe+sifest+liw+timer-ns2=100@ns2"];
const LIMITED: &[&str] = &[
    "tahoe+timer-ns2=100@ns2",
    "tahoe+limited-transmit+timer-ns2=100@ns2",
    "tahoe+sifest+timer-ns2=100@ns2",
];
const LETTERS: &[&str] = &[
    "tahoe+timer-ns2=100@ns2",
    "tahoe+sifest+timer-ns2=100@ns2",
    "tahoe+sifest+sifest-any-ack+timer-ns2=100@ns2",
    "tahoe+sifest-literal+timer-ns2=100@ns2",
];
const NS2: &[&str] = &["tahoe@ns2", "reno@ns2", "newreno@ns2", "sack@ns2"];
const JUDGES: &[&str] = &["newreno+vegas@ns2", "newreno+ntg@ns2", "newreno+ndg@ns2", "newreno+ncpld@ns2"];
const TIMERS: &[&str] = &[
    "newreno+iw=2+timer-freebsd22",
    "newreno+iw=2+timer-freebsd45",
    "newreno+iw=2+timer-linux24",
    "newreno+iw=2+timer-solaris",
    "newreno+iw=2+timer-linux22",
];
const EIFEL: &[&str] = &["newreno+iw=2+timer-linux24", "newreno+iw=2+timer-linux24+eifel-linux"];
const ETCP: &[&str] = &["reno+min-ssthresh=1", "etcp+min-ssthresh=1"];

/// A set-up for each of these figures.
const SETUPS: &[(&[&str], PlaygroundSetup)] = &[
    (&["p0-fig5", "p0-fig7"], pan("sifest-tiny-window", VARIANTS)),
    (&["p0-fig6"], pan("sifest-clustered", TAHOE)),
    (&["p0-fig8", "p0-fig10"], pan("sifest-tiny-window", TAHOE)),
    (&["p0-fig9"], pan("sifest-resent", TAHOE)),
    (&["p0-fig11a"], pan("sifest-resent", LIW)),
    (&["p0-fig11b", "p0-fig12"], pan("sifest-resent", SIFEST)),
    (&["p0-fig13"], PlaygroundSetup { shared: true, ..pan("sifest-fairness", SIFEST) }),
    // Four segments.
    (&["p0-limits"], PlaygroundSetup { buffer: "1888", ..pan("sifest-resent", LIMITED) }),
    (&["p0-text"], pan("sifest-resent", LETTERS)),
    (&["p1-fig4"], ni("rtt-last-hop-markov", NS2)),
    (&["p1-fig8"], PlaygroundSetup { time: "", bytes: "100000", ..ni("rtt-last-hop-congestion", NS2) }),
    (&["p1-fig12", "p1-judges-congestion"], ni("rtt-last-hop-congestion", JUDGES)),
    (&["p1-fig14", "p1-judges-small-queue"], ni("rtt-broad-backbone-short", JUDGES)),
    (&["p1-judges-last-hop"], ni("rtt-last-hop", JUDGES)),
    (&["p1-judges-long-queue"], ni("rtt-broad-backbone-long", JUDGES)),
    (&["p1-judges-narrow"], ni("rtt-narrow-backbone", JUDGES)),
    (
        &["p2-pdu"],
        PlaygroundSetup {
            set: &[
                "radio.down.format.pdu=84B",
                "radio.down.channel.blocks=[6]",
                "radio.down.channel.errors.bler=19%",
            ],
            ..inamura("wcdma-384-tsp", &["newreno+iw=2+timer-bsd"])
        },
    ),
    (&["p2-fig2"], inamura("wcdma-384-tsp", &["newreno+iw=2+timer-bsd", "newreno+iw=2+timer-bsd+eifel"])),
    (&["p2-fig3"], inamura("wcdma-384-maxdat", &["newreno+iw=2+timer-bsd"])),
    (&["p2-fig5", "p2-fig6"], PlaygroundSetup { buffer: "65535", ..inamura("wcdma-384-jitter", TIMERS) }),
    (&["p2-fig7"], PlaygroundSetup { buffer: "65535", ..inamura("wcdma-384-jitter", EIFEL) }),
    (
        &["p3-fig2a", "p3-underestimation", "p3-rules"],
        lai("tax-rebate", &["newreno@ns2", "newreno+westwood@ns2", "newreno+rebate@ns2"]),
    ),
    (
        &["p3-fig2b", "p3-approximation"],
        lai("tax-rebate", &["newreno+westwood@ns2", "sack+pr@ns2", "sack+pr+rebate@ns2"]),
    ),
    (
        &["p3-fig2c", "p3-ad-hoc"],
        lai(
            "tax-rebate-llrtx",
            &["newreno@ns2", "newreno+westwood@ns2", "newreno+rebate@ns2", "sack+pr@ns2"],
        ),
    ),
    (
        &["p3-related"],
        lai(
            "tax-rebate-llrtx",
            &["newreno@ns2", "sack+dsack@ns2", "newreno+veno@ns2", "newreno+jtcp@ns2", "newreno+tcp-fit@ns2"],
        ),
    ),
    (&["p3-rr-dcr"], lai("tax-rebate", &["sack+pr+rebate@ns2", "sack+rr+rebate@ns2", "sack+dcr+rebate@ns2"])),
    (
        &["p3-fig4", "p3-theorem1"],
        PlaygroundSetup {
            shared: true,
            ..lai(
                "tax-rebate-fairness",
                &["newreno@ns2", "newreno@ns2", "newreno+rebate@ns2", "newreno+rebate@ns2"],
            )
        },
    ),
    (&["p4-table3", "p4-fig6", "p4-causes", "p4-window"], chandra("etcp-fixed-mobile", ETCP)),
    (&["p4-fig7"], PlaygroundSetup { direction: "up", ..chandra("etcp-mobile-fixed", ETCP) }),
    (&["p4-fig8"], chandra("etcp-mobile-mobile", ETCP)),
];

impl PlaygroundSetup {
    /// The address of the set-up on the page: its part after the `#`.
    pub fn address(&self) -> String {
        let fields = [
            ("preset", self.preset),
            ("seed", "1"),
            ("bytes", self.bytes),
            ("time", self.time),
            ("direction", self.direction),
            ("receiver", self.receiver),
            ("buffer", self.buffer),
        ];
        let senders = self.senders.iter().map(|sender| ("sender", *sender));
        let set = self.set.iter().map(|set| ("set", *set));
        let shared = self.shared.then_some(("shared", "yes"));
        let all = fields.into_iter().chain(senders).chain(set).chain(shared);
        let words = all.filter(|(_, value)| !value.is_empty());
        words.map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>().join("&")
    }
}

/// Escapes characters that are not allowed after a `#`, and `&`, which separates the fields. `=` may be part
/// of a value.
fn encoded(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~+=@,/:".contains(&byte) {
            text.push(byte.into());
        } else {
            // Writing into a string does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

impl Figure {
    /// A set-up for the playground that resembles the figure's. `None` for figures without a preset.
    pub fn playground(&self) -> Option<PlaygroundSetup> {
        SETUPS.iter().find(|(ids, _)| ids.contains(&self.id)).map(|(_, setup)| *setup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;

    #[test]
    fn every_setup_belongs_to_known_figures() {
        let known: Vec<&str> = figures().iter().map(|figure| figure.id).collect();
        let named: Vec<&str> = SETUPS.iter().flat_map(|(ids, _)| ids.iter().copied()).collect();
        assert_eq!(named.iter().filter(|id| !known.contains(id)).count(), 0, "{named:?}");
        assert!(named.iter().enumerate().all(|(at, id)| !named[..at].contains(id)), "{named:?}");
    }

    #[test]
    fn address_escapes_values() {
        let setup = PlaygroundSetup {
            set: &["radio.down.channel.blocks=[6]", "a.b=19%"],
            ..on("geo", &["sack+rack@ns2"])
        };
        let address = "preset=geo&seed=1&time=60s&sender=sack+rack@ns2&set=radio.down.channel.blocks=%5B6%5D&set=a.b=19%25";
        assert_eq!(setup.address(), address);
    }
}
