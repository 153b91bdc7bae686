//! What the judge has found.

/// What must hold in every capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// PDUs have the size that is set and are well formed, and new ones have the next sequence number.
    Format,
    /// Nothing is sent beyond the window.
    Window,
    /// No PDU is transmitted more often than MaxDAT allows, and then a RESET or an MRW follows.
    MaxDat,
    /// Only what is reported missing is sent again, and reports say what has arrived.
    Acknowledgement,
    /// Timer_Status_Prohibit lies between two reports.
    StatusProhibit,
    /// Polls are answered, keep their distance, and are repeated without an answer.
    Polling,
    /// PDUs leave on the grid of TTIs, in a number that a transport format has.
    Tti,
    /// The share of damaged PDUs agrees with the block error rate.
    BlockErrors,
    /// RESETs have a cause, the right numbers, and an answer; both say the highest HFN used.
    Reset,
}

impl Invariant {
    /// All of them, in the order of the output.
    pub const ALL: [Self; 9] = [
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

    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Format => "sizes, no objections, new numbers ascend by 1 from 0",
            Self::Window => "nothing is sent beyond the window",
            Self::MaxDat => "at most MaxDAT - 1 transmissions, then RESET or MRW",
            Self::Acknowledgement => "re-sent as reported; reported as received",
            Self::StatusProhibit => "Timer_Status_Prohibit lies between reports",
            Self::Polling => "polls are answered, prohibited and repeated in time",
            Self::Tti => "PDUs of a TTI on its grid and in the format set",
            Self::BlockErrors => "losses within the binomial 99.9 % interval",
            Self::Reset => "RESETs: numbers alternate, HFNI is the highest used",
        }
    }
}

/// An invariant that does not hold somewhere.
#[derive(Debug)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// Number of the frame that shows it; 0 if none does.
    pub frame: u64,
    /// What is wrong.
    pub what: String,
}

/// PDUs of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// All of them.
    pub pdus: u64,
    /// Damaged by the channel.
    pub lost: u64,
    /// Data PDUs transmitted for the first time.
    pub new: u64,
    /// Data PDUs transmitted again.
    pub resent: u64,
    /// STATUS PDUs.
    pub status: u64,
    /// RESETs, without their repeats.
    pub resets: u64,
    /// How often the sequence numbers began anew at 0.
    pub laps: u64,
}

/// Everything that was found in a capture.
#[derive(Debug, Default)]
pub struct Judgement {
    /// How often each invariant was checked, in the order of [`Invariant::ALL`].
    pub checks: [u64; 9],
    /// Where one does not hold.
    pub violations: Vec<Violation>,
    /// PDUs sent to the mobile side.
    pub down: Counts,
    /// PDUs sent by the mobile side.
    pub up: Counts,
}

impl Judgement {
    /// For people: each invariant with the number of its checks, and up to `show` of its violations.
    pub fn to_text(&self, show: usize) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        for invariant in Invariant::ALL {
            let found: Vec<_> = self.violations.iter().filter(|found| found.invariant == invariant).collect();
            let number = invariant as usize;
            let verdict = match (found.is_empty(), self.checks[number]) {
                (false, _) => "VIOLATED",
                (true, 0) => "not checked",
                (true, _) => "ok",
            };
            line(format!(
                "{}  {:<55} {:>9} checks  {verdict}",
                number + 1,
                invariant.text(),
                self.checks[number]
            ));
            for Violation { frame, what, .. } in found.iter().take(show) {
                line(format!("     frame {frame}: {what}"));
            }
            if found.len() > show {
                line(format!("     and {} more", found.len() - show));
            }
        }
        let violated = |number: usize| self.violations.iter().any(|found| found.invariant as usize == number);
        let checked: Vec<_> = (0..Invariant::ALL.len()).filter(|number| self.checks[*number] > 0).collect();
        let passed = checked.iter().filter(|number| !violated(**number)).count();
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
