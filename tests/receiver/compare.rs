//! Compares the kernel's ACKs with the model's.

use airwire::time::Duration;

use crate::ours::ModelAck;
use crate::recording::Ack;

/// The difference between an ACK of the kernel and one of the model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// Only the kernel sent this ACK.
    Missing,
    /// Only the model sent this ACK.
    Extra,
    /// The windows differ.
    Window,
    /// The SACK blocks differ.
    Sack,
    /// The times differ.
    Late,
    /// Another field differs.
    Other,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Window => "window",
            Self::Sack => "sack",
            Self::Late => "late",
            Self::Other => "other",
        }
    }
}

/// One line of the comparison.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub kernel: Option<Ack>,
    pub ours: Option<ModelAck>,
    pub kind: Option<Kind>,
}

impl Line {
    fn pair((theirs, mine): (&Ack, &ModelAck)) -> Self {
        let kind = difference(theirs, mine);
        Self { kernel: Some(theirs.clone()), ours: Some(mine.clone()), kind }
    }
}

/// Tolerance for ACKs that a segment or a read triggers. The recorded application must first be woken, and
/// another process may run meanwhile.
const AT_ONCE: Duration = Duration::from_millis(2);
/// Tolerance for ACKs that a timer triggers. The kernel's timers have ticks of 4 ms, and the timer for ACK
/// compression may be late by its slack.
const BY_TIMER: Duration = Duration::from_millis(6);

/// Two ACKs that are further apart in time are never paired.
const APART: Duration = Duration::from_millis(30);

/// The score of two ACKs that agree in every field.
const EQUAL: u32 = 3;

fn close(kernel: &Ack, ours: &ModelAck) -> bool {
    let most = if ours.by_timer { BY_TIMER } else { AT_ONCE };
    kernel.at.abs_diff(ours.ack.at) <= most
}

fn difference(kernel: &Ack, mine: &ModelAck) -> Option<Kind> {
    let ours = &mine.ack;
    match () {
        () if kernel.flags != ours.flags || kernel.echo != ours.echo || kernel.scale != ours.scale => {
            Some(Kind::Other)
        }
        () if kernel.blocks != ours.blocks => Some(Kind::Sack),
        () if kernel.window != ours.window => Some(Kind::Window),
        () if !close(kernel, mine) => Some(Kind::Late),
        () => None,
    }
}

/// Pairs the ACKs in order. Two ACKs can be a pair if their numbers are equal and their times are close. The
/// number of pairs is maximized.
pub(crate) fn compare(kernel: &[Ack], ours: &[ModelAck]) -> Vec<Line> {
    // Pair equal ACKs at both ends of the lists first: `align` takes quadratic time.
    let same = |(theirs, mine): &(&Ack, &ModelAck)| score(theirs, mine) == EQUAL;
    let first = kernel.iter().zip(ours).take_while(same).count();
    let (first_kernel, kernel) = kernel.split_at(first);
    let (first_ours, ours) = ours.split_at(first);
    let last = kernel.iter().rev().zip(ours.iter().rev()).take_while(same).count();
    let (kernel, last_kernel) = kernel.split_at(kernel.len() - last);
    let (ours, last_ours) = ours.split_at(ours.len() - last);
    let mut lines: Vec<Line> = first_kernel.iter().zip(first_ours).map(Line::pair).collect();
    lines.extend(align(kernel, ours));
    lines.extend(last_kernel.iter().zip(last_ours).map(Line::pair));
    lines
}

/// Returns the score of a pair, or 0 if the two ACKs cannot be a pair.
fn score(theirs: &Ack, mine: &ModelAck) -> u32 {
    let can_pair = theirs.ack == mine.ack.ack && theirs.at.abs_diff(mine.ack.at) <= APART;
    if !can_pair {
        return 0;
    }
    if difference(theirs, mine).is_none() { EQUAL } else { EQUAL - 1 }
}

/// Pairs the ACKs so that the sum of the scores is maximal.
fn align(kernel: &[Ack], ours: &[ModelAck]) -> Vec<Line> {
    let best = best_scores(kernel, ours);
    let mut lines = Vec::new();
    let (mut i, mut j) = (0, 0);
    loop {
        let (theirs, mine) = (kernel.get(i), ours.get(j));
        if let (Some(theirs), Some(mine)) = (theirs, mine) {
            let score = score(theirs, mine);
            if score > 0 && best[i][j] == score + best[i + 1][j + 1] {
                lines.push(Line::pair((theirs, mine)));
                (i, j) = (i + 1, j + 1);
                continue;
            }
        }
        match (theirs, mine) {
            (None, None) => return lines,
            (Some(theirs), mine) if mine.is_none() || best[i][j] == best[i + 1][j] => {
                lines.push(Line { kernel: Some(theirs.clone()), ours: None, kind: Some(Kind::Missing) });
                i += 1;
            }
            (_, mine) => {
                lines.push(Line { kernel: None, ours: mine.cloned(), kind: Some(Kind::Extra) });
                j += 1;
            }
        }
    }
}

/// Returns the maximum sum of scores for the ACKs from number `i` and `j` on, at `[i][j]`: a longest common
/// subsequence in which pairs that agree in every field have a higher weight.
fn best_scores(kernel: &[Ack], ours: &[ModelAck]) -> Vec<Vec<u32>> {
    let mut best = vec![vec![0; ours.len() + 1]; kernel.len() + 1];
    for (i, theirs) in kernel.iter().enumerate().rev() {
        for (j, mine) in ours.iter().enumerate().rev() {
            let apart = best[i + 1][j].max(best[i][j + 1]);
            let score = score(theirs, mine);
            let paired = if score > 0 { score + best[i + 1][j + 1] } else { 0 };
            best[i][j] = apart.max(paired);
        }
    }
    best
}
