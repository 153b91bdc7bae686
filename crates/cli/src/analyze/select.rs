//! `--host`, `--port`, `--between`: select the connections to show. All packets are still analysed, so the
//! connections keep Wireshark's numbers and their results do not change.

use std::net::IpAddr;

use airtcp_analyze::ConnectionFindings;
use clap::Args;
use jiff::tz::TimeZone;

use super::moment::Moment;
use crate::shared::failure;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connections")]
pub(super) struct Selection {
    /// Only connections of this host (repeatable): an address, or the name by which the client calls the server
    #[arg(long, value_name = "HOST", value_parser = Host::parse)]
    host: Vec<Host>,
    /// Only connections with this port at either end (repeatable)
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
    /// Only connections that are open between these two times
    ///
    /// A time is a time of day (14:03:05), a date and time (2024-05-01T14:03:05), seconds since 1970, or a time since the first
    /// packet (90s).
    #[arg(long, num_args = 2, value_names = ["TIME", "TIME"], value_parser = Moment::parse, conflicts_with = "interface")]
    between: Vec<Moment>,
}

#[derive(Clone, Debug, PartialEq)]
enum Host {
    Address(IpAddr),
    Name(String),
}

impl Host {
    fn parse(text: &str) -> Result<Self, String> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        match bare.parse() {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) if text.is_empty() || text.contains([':', '/', ' ']) => {
                Err("expected an address or a name without a port (--filter selects networks)".to_owned())
            }
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }

    fn is_of(&self, findings: &ConnectionFindings) -> bool {
        match self {
            Self::Address(address) => {
                findings.ends.iter().any(|end| end.ip().to_canonical() == address.to_canonical())
            }
            Self::Name(wanted) => findings.name.as_ref().is_some_and(|name| {
                let host = name.name.rsplit_once(':').map_or(&*name.name, |(host, _)| host);
                host.eq_ignore_ascii_case(wanted) || name.name.eq_ignore_ascii_case(wanted)
            }),
        }
    }
}

impl Selection {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        // Only two times of the same kind can be compared without knowing the time of the capture.
        match self.between[..] {
            [Moment::OfDay(from), Moment::OfDay(to)] if from > to => {}
            [from, to]
                if from.resolve(0, &TimeZone::UTC) > to.resolve(0, &TimeZone::UTC) && same_kind(from, to) =>
            {
                return Err(failure::usage(
                    "--between: the second time is before the first; give the earlier time first",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns true if the connection is selected. `first` is the time of the capture's first packet.
    pub(super) fn wants(&self, findings: &ConnectionFindings, first: i64, zone: &TimeZone) -> bool {
        let any = |empty: bool, some: bool| empty || some;
        any(self.host.is_empty(), self.host.iter().any(|host| host.is_of(findings)))
            && any(self.port.is_empty(), findings.ends.iter().any(|end| self.port.contains(&end.port())))
            && self.is_alive(findings, first, zone)
    }

    fn is_alive(&self, findings: &ConnectionFindings, first: i64, zone: &TimeZone) -> bool {
        const DAY: i64 = 86_400_000_000_000;
        let [from, to] = self.between[..] else { return true };
        let [from, mut to] = [from, to].map(|moment| moment.resolve(first, zone));
        if to < from && matches!(self.between[..], [_, Moment::OfDay(_)]) {
            // The period extends past midnight.
            to += DAY;
        }
        let end = findings.begin_unix_ns.saturating_add((findings.seconds * 1e9) as i64);
        findings.begin_unix_ns <= to && end >= from
    }
}

fn same_kind(one: Moment, other: Moment) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}
