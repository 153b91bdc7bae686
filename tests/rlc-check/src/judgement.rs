//! What the judge has found.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    Format,
    Window,
    MaxDat,
    Acknowledgement,
    StatusProhibit,
    Polling,
    Tti,
    BlockErrors,
    Reset,
}

impl Invariant {
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
            Self::Reset => "RESETs: numbers alternate, repeats are identical",
        }
    }
}

#[derive(Debug)]
pub struct Violation {
    pub invariant: Invariant,
    pub frame: u64,
    pub what: String,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub pdus: u64,
    pub lost: u64,
    pub new: u64,
    pub resent: u64,
    pub status: u64,
    pub resets: u64,
    pub laps: u64,
}

#[derive(Debug, Default)]
pub struct Judgement {
    pub checks: [u64; 9],
    pub violations: Vec<Violation>,
    pub down: Counts,
    pub up: Counts,
}

impl Judgement {
    /// Each invariant with the checks that were made, and up to `show` of its violations.
    pub fn to_text(&self, show: usize) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        for invariant in Invariant::ALL {
            let found: Vec<_> = self.violations.iter().filter(|found| found.invariant == invariant).collect();
            let number = invariant as usize;
            let verdict = if found.is_empty() { "ok" } else { "VIOLATED" };
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
