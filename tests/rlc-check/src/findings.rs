//! The findings of a check.

/// A rule that must hold in every capture. Some rules exist only for UMTS, others only for LTE and NR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// PDUs have the configured size and are well formed. New PDUs have consecutive sequence numbers.
    Format,
    /// No PDU is sent beyond the window.
    Window,
    /// No PDU is transmitted more often than MaxDAT allows, and a RESET or an MRW follows when MaxDAT is
    /// reached.
    MaxDat,
    /// Only PDUs that are reported missing are retransmitted, and reports agree with the arrivals.
    Acknowledgement,
    /// Two reports are at least Timer_Status_Prohibit apart.
    StatusProhibit,
    /// Polls are answered, are at least Timer_Poll_Prohibit apart, and are repeated if unanswered.
    Polling,
    /// PDUs are sent on the TTI grid, and a transport format exists for their number in each TTI.
    Tti,
    /// The fraction of damaged PDUs agrees with the block error rate.
    BlockErrors,
    /// RESETs have a cause and the right sequence numbers, and are acknowledged. RESET and RESET ACK carry
    /// the highest HFN used.
    Reset,
    /// LTE and NR: segments continue each other, and retransmissions have the octets of the first
    /// transmission.
    Segmentation,
    /// LTE and NR: only missing octets are retransmitted, and retransmissions precede new data.
    Retransmission,
    /// LTE and NR: RETX_COUNT is right, and a re-establishment follows when it reaches maxRetxThreshold.
    RetxCount,
    /// LTE and NR: a report follows each poll and each expiry of the timer, at the first opportunity.
    Reporting,
    /// LTE and NR: nothing is reported before t-Reassembly or t-Reordering allows it.
    Reassembly,
}

impl Invariant {
    /// The invariants of UMTS, in the order of the output.
    pub const UMTS: [Self; 9] = [
        Self::Format,
        Self::Window,
        Self::MaxDat,
        Self::Acknowledgement,
        Self::StatusProhibit,
        Self::Polling,
        Self::Tti,
        Self::BlockErrors,
        Self::Reset,
    ];

    /// The invariants of LTE and NR, in the order of the output.
    pub const LTE_NR: [Self; 10] = [
        Self::Format,
        Self::Segmentation,
        Self::Window,
        Self::Retransmission,
        Self::RetxCount,
        Self::Polling,
        Self::Reporting,
        Self::StatusProhibit,
        Self::Reassembly,
        Self::Acknowledgement,
    ];

    /// The invariants of LTE and NR in unacknowledged mode.
    pub const UM: [Self; 3] = [Self::Format, Self::Segmentation, Self::Retransmission];

    /// Returns the description of the invariant.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Format => "sizes, no objections, new numbers ascend by 1 from 0",
            Self::Window => "nothing is sent beyond the window",
            Self::MaxDat => "at most MaxDAT - 1 transmissions, then RESET or MRW",
            Self::Acknowledgement => "re-sent as reported; reported as received",
            Self::StatusProhibit => "the status prohibit timer lies between reports",
            Self::Polling => "polls are answered, prohibited and repeated in time",
            Self::Tti => "PDUs of a TTI on its grid and in the format set",
            Self::BlockErrors => "losses within the binomial 99.9 % interval",
            Self::Reset => "RESETs: numbers alternate, HFNI is the highest used",
            Self::Segmentation => "segments continue, copies equal the original",
            Self::Retransmission => "re-sent if missing, and before new data",
            Self::RetxCount => "RETX_COUNT, and radio link failure at its limit",
            Self::Reporting => "reports follow polls and timers without delay",
            Self::Reassembly => "no gap is reported before the timer expires",
        }
    }
}

/// A violation of an invariant.
#[derive(Debug)]
pub struct Violation {
    /// The violated invariant.
    pub invariant: Invariant,
    /// Number of the frame that shows the violation; 0 if no frame does.
    pub frame: u64,
    /// Description of the violation.
    pub what: String,
}

/// Numbers of PDUs in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// All PDUs.
    pub pdus: u64,
    /// PDUs damaged by the channel.
    pub lost: u64,
    /// Data PDUs transmitted for the first time.
    pub new: u64,
    /// Retransmissions of data PDUs.
    pub resent: u64,
    /// STATUS PDUs.
    pub status: u64,
    /// RESETs, not counting repetitions. LTE and NR: re-establishments.
    pub resets: u64,
    /// Wraps of the sequence numbers.
    pub laps: u64,
}

/// The findings of a check of one capture.
#[derive(Debug)]
pub struct Findings {
    /// The invariants that exist for this generation, in the order of the output.
    pub invariants: &'static [Invariant],
    /// Number of checks of each invariant.
    pub checks: [u64; 14],
    /// All violations.
    pub violations: Vec<Violation>,
    /// Counts of the PDUs sent to the mobile side.
    pub down: Counts,
    /// Counts of the PDUs sent by the mobile side.
    pub up: Counts,
}

impl Default for Findings {
    fn default() -> Self {
        Self::new(&Invariant::UMTS)
    }
}

impl Findings {
    /// Creates findings without checks.
    pub fn new(invariants: &'static [Invariant]) -> Self {
        Self {
            invariants,
            checks: [0; 14],
            violations: Vec::new(),
            down: Counts::default(),
            up: Counts::default(),
        }
    }

    /// Formats the result as text: each invariant with the number of its checks, and at most `show` of its
    /// violations.
    pub fn to_text(&self, show: usize) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        for (position, &invariant) in self.invariants.iter().enumerate() {
            let found: Vec<_> = self.violations.iter().filter(|found| found.invariant == invariant).collect();
            let checks = self.checks[invariant as usize];
            let verdict = match (found.is_empty(), checks) {
                (false, _) => "VIOLATED",
                (true, 0) => "not checked",
                (true, _) => "ok",
            };
            line(format!("{}  {:<55} {checks:>9} checks  {verdict}", position + 1, invariant.text(),));
            for Violation { frame, what, .. } in found.iter().take(show) {
                line(format!("     frame {frame}: {what}"));
            }
            if found.len() > show {
                line(format!("     and {} more", found.len() - show));
            }
        }
        let is_violated =
            |invariant: Invariant| self.violations.iter().any(|found| found.invariant == invariant);
        let checked = self.invariants.iter().filter(|invariant| self.checks[**invariant as usize] > 0);
        let checked: Vec<_> = checked.collect();
        let passed = checked.iter().filter(|invariant| !is_violated(***invariant)).count();
        line(format!("passed {passed} of {}", checked.len()));
        for (name, Counts { pdus, lost, new, resent, status, resets, laps }) in
            [("down", self.down), ("up", self.up)]
        {
            line(format!(
                "{name}: {pdus} PDUs, {lost} lost, {new} new, {resent} re-sent, {status} status, \
                 {resets} resets, {laps} laps"
            ));
        }
        text
    }

    pub(crate) fn expect(
        &mut self,
        invariant: Invariant,
        frame: u64,
        holds: bool,
        what: impl FnOnce() -> String,
    ) {
        self.checks[invariant as usize] += 1;
        if !holds {
            self.violations.push(Violation { invariant, frame, what: what() });
        }
    }
}
