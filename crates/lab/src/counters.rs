//! The kernel counters of a namespace, as listed by `nstat -a`.

use std::collections::BTreeMap;
use std::fs;
use std::io;

/// Counters by nstat's names, which join protocol and counter: `TcpRetransSegs`, `TcpExtTCPTimeouts`.
pub type Counters = BTreeMap<String, i64>;

/// A kernel counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// `Ip`, `Tcp`, `TcpExt` and so on.
    pub protocol: String,
    /// The name without the protocol.
    pub name: String,
    /// The value since the namespace was created.
    pub value: i64,
}

/// Reads the counters of this process's namespace.
///
/// # Errors
///
/// Returns an error if /proc cannot be read.
pub fn read() -> io::Result<Vec<Counter>> {
    let mut counters = Vec::new();
    for path in ["/proc/self/net/snmp", "/proc/self/net/netstat"] {
        counters.extend(parse(&fs::read_to_string(path)?));
    }
    Ok(counters)
}

/// The counters by nstat's names.
pub(crate) fn by_name(counters: Vec<Counter>) -> Counters {
    counters.into_iter().map(|counter| (counter.protocol + &counter.name, counter.value)).collect()
}

/// The increase of each counter. Unchanged counters are left out.
pub(crate) fn growth(before: &Counters, after: &Counters) -> Counters {
    let grown = after.iter().map(|(name, value)| (name, value - before.get(name).unwrap_or(&0)));
    grown.filter(|(_, growth)| *growth != 0).map(|(name, growth)| (name.clone(), growth)).collect()
}

/// Parses pairs of lines: names, then values.
fn parse(text: &str) -> Vec<Counter> {
    let lines: Vec<_> = text.lines().collect();
    let counters = lines.chunks_exact(2).flat_map(|pair| {
        let protocol = pair[0].split(':').next().unwrap_or_default();
        let columns = pair[0].split_whitespace().zip(pair[1].split_whitespace()).skip(1);
        columns.filter_map(move |(name, value)| {
            Some(Counter { protocol: protocol.to_owned(), name: name.to_owned(), value: value.parse().ok()? })
        })
    });
    counters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_paired_with_header_names() {
        let text =
            "Ip: Forwarding\nIp: 1\nTcp: RtoMin RetransSegs\nTcp: 200 17\nTcpExt: TCPTimeouts\nTcpExt: 3\n";
        let expected =
            [("IpForwarding", 1), ("TcpExtTCPTimeouts", 3), ("TcpRetransSegs", 17), ("TcpRtoMin", 200)];
        let counters = by_name(parse(text));
        assert_eq!(counters, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn growth_keeps_only_increased_counters() {
        let counters = |values: [i64; 2]| {
            Counters::from([("TcpInSegs".to_owned(), values[0]), ("TcpRtoMin".to_owned(), values[1])])
        };
        let grown = growth(&counters([10, 200]), &counters([25, 200]));
        assert_eq!(grown, [("TcpInSegs".to_owned(), 15)].into());
    }

    #[test]
    fn kernel_provides_every_counter_lab_reads() {
        let counters = by_name(read().unwrap());
        let of_senders = [
            "TcpRetransSegs",
            "TcpExtTCPFastRetrans",
            "TcpExtTCPLossProbes",
            "TcpExtTCPSynRetrans",
            "TcpExtTCPTimeouts",
            "TcpExtTCPSpuriousRTOs",
        ];
        for name in of_senders.into_iter().chain(crate::validity::SHORTAGES) {
            assert!(counters.contains_key(name), "{name} is not in {counters:?}");
        }
    }
}
