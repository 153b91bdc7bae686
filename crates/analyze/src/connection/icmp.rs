//! ICMP errors about the connection's packets.

use aircaptures::icmp::IcmpError;
use aircaptures::packet::Timestamp;

use super::findings::IcmpFindings;
use crate::compact::heap_of_vec;

/// ICMP errors, one entry per kind and sender.
#[derive(Clone, Debug, Default)]
pub(super) struct IcmpErrors(Vec<IcmpFindings>);

/// Maximum number of entries, to bound the memory.
const MAX_ENTRIES: usize = 8;

impl IcmpErrors {
    /// Adds an error. `caused_by_end` is the index of the end whose packet caused it.
    pub(super) fn add(
        &mut self,
        error: &IcmpError,
        number: u64,
        at: Timestamp,
        begin: Timestamp,
        caused_by_end: usize,
    ) {
        let same = |known: &&mut IcmpFindings| {
            (known.icmp_type, known.icmp_code, known.from, known.caused_by_end)
                == (error.icmp_type, error.code, error.from, caused_by_end)
        };
        if let Some(known) = self.0.iter_mut().find(same) {
            known.count += 1;
            known.mtu = known.mtu.into_iter().chain(error.mtu).min();
        } else if self.0.len() < MAX_ENTRIES {
            self.0.push(IcmpFindings {
                kind: error.kind,
                icmp_type: error.icmp_type,
                icmp_code: error.code,
                from: error.from,
                caused_by_end,
                count: 1,
                first_frame: number,
                first_seconds: at.since(begin),
                mtu: error.mtu,
            });
        }
    }

    pub(super) fn reports_unreachable(&self) -> bool {
        self.0.iter().any(|entry| entry.caused_by_end == 0 && entry.kind.is_unreachable())
    }

    pub(super) fn heap(&self) -> usize {
        size_of::<Self>() + heap_of_vec::<IcmpFindings>(self.0.capacity())
    }

    pub(super) fn into_findings(self) -> Vec<IcmpFindings> {
        self.0
    }
}
