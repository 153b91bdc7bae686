//! The central claims of each paper: five sentences that a reader of its abstract would check first.

use crate::Paper;

/// The central claims of a paper, and the figure that shows most of these claims.
#[derive(Clone, Copy, Debug)]
pub struct Central {
    /// The id of each claim's figure, and the first words of its sentence.
    pub claims: [(&'static str, &'static str); 5],
    /// The figure whose first picture is shown with the claims.
    pub picture: &'static str,
}

impl Paper {
    /// The central claims. `None` for the ranking.
    pub const fn central(self) -> Option<Central> {
        Some(match self {
            Self::Pan2004 => Central {
                claims: [
                    ("p0-fig5", "the throughput of FTP traffic, no matter transported"),
                    ("p0-fig11a", "the number of acknowledged packets is 932 for Tahoe"),
                    ("p0-reordering", "However, when *sifest* is effective"),
                    ("p0-fig12", "It is obvious that about an half of the timeouts"),
                    ("p0-fig13", "However, the ordinary Tahoe B that is competing"),
                ],
                picture: "p0-fig11a",
            },
            Self::Ni2002 => Central {
                claims: [
                    ("p1-fig4", "From the figures we notice little differences"),
                    ("p1-fig4", "TCP SACK performs best in most cases"),
                    ("p1-fig8", "The transmission time of SACK and NewReno is about 6 seconds"),
                    ("p1-fig12", "Say, RTT variation computing can be used"),
                    ("p1-fig14", "Moreover they do not work well under all kinds"),
                ],
                picture: "p1-fig14",
            },
            Self::Inamura2009 => Central {
                claims: [
                    ("p2-fig2", "small TSP causes low link utilization"),
                    ("p2-fig3", "we found that MAX DAT should be at least 5"),
                    ("p2-fig5", "Table 5 shows that Windows XP and FreeBSD are resilient"),
                    ("p2-fig7", "the Eifel improved the throughput by around 25 kbps"),
                    ("p2-fig14", "the throughput of the proposed algorithms is superior"),
                ],
                picture: "p2-fig2",
            },
            Self::Lai2013 => Central {
                claims: [
                    ("p3-fig2a", "TCP-NR+ is observed to attain significant performance improvement"),
                    ("p3-fig2b", "TCP-PR+ is observed to attain better performance"),
                    ("p3-fig2c", "TCP-PR(+) attains the best performance."),
                    ("p3-fig4", "TCP-NR+ essentially attains similar inter-flow fairness"),
                    ("p3-theorem1", "The throughput of TCP-NR+ is approximately"),
                ],
                picture: "p3-fig2a",
            },
            Self::Chandra2003 => Central {
                claims: [
                    ("p4-table3", "On average, about 22.74% more packets"),
                    ("p4-fig6", "Thus, the sender was also able to maintain its transmission rate"),
                    ("p4-fig7", "It also shows that E-TCP could provide a better goodput"),
                    ("p4-causes", "Our proposed schemes allow the transport protocol to distinguish"),
                    ("p4-window", "This scheme also allows the sender to quickly discover"),
                ],
                picture: "p4-fig6",
            },
            Self::Every => return None,
        })
    }
}
