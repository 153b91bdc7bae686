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

/// Tolerance for ACKs that a segment or a read triggers. The recorded application must first be woken, and
/// another process may run meanwhile.
const AT_ONCE: Duration = Duration::from_millis(2);
/// Tolerance for ACKs that a timer triggers. The kernel's timers have ticks of 4 ms, and the timer for ACK
/// compression may be late by its slack.
const BY_TIMER: Duration = Duration::from_millis(6);

/// Two ACKs that are further apart in time are never paired.
const APART: Duration = Duration::from_millis(30);

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
    let score = |theirs: &Ack, mine: &ModelAck| {
        let same = theirs.ack == mine.ack.ack && theirs.at.abs_diff(mine.ack.at) <= APART;
        if same { 2 + u32::from(difference(theirs, mine).is_none()) } else { 0 }
    };
    // Pair equal ACKs at both ends of the lists first: the search below takes quadratic time.
    let pair = |(theirs, mine): (&Ack, &ModelAck)| Line {
        kernel: Some(theirs.clone()),
        ours: Some(mine.clone()),
        kind: difference(theirs, mine),
    };
    let same = |(theirs, mine): &(&Ack, &ModelAck)| score(theirs, mine) == 3;
    let first = kernel.iter().zip(ours).take_while(same).count();
    let (same_kernel, kernel) = kernel.split_at(first);
    let (same_ours, ours) = ours.split_at(first);
    let last = kernel.iter().rev().zip(ours.iter().rev()).take_while(same).count();
    let (kernel, last_kernel) = kernel.split_at(kernel.len() - last);
    let (ours, last_ours) = ours.split_at(ours.len() - last);
    let mut lines: Vec<Line> = same_kernel.iter().zip(same_ours).map(pair).collect();
    // Longest common subsequence, in which pairs that agree in every field have a higher weight.
    let width = ours.len() + 1;
    let mut best = vec![0_u32; (kernel.len() + 1) * width];
    for (i, theirs) in kernel.iter().enumerate().rev() {
        for (j, mine) in ours.iter().enumerate().rev() {
            let apart = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let score = score(theirs, mine);
            let paired = if score > 0 { score + best[(i + 1) * width + j + 1] } else { 0 };
            best[i * width + j] = apart.max(paired);
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < kernel.len() || j < ours.len() {
        let here = best[i * width + j];
        if i < kernel.len() && j < ours.len() {
            let score = score(&kernel[i], &ours[j]);
            if score > 0 && here == score + best[(i + 1) * width + j + 1] {
                lines.push(pair((&kernel[i], &ours[j])));
                (i, j) = (i + 1, j + 1);
                continue;
            }
        }
        if j == ours.len() || (i < kernel.len() && here == best[(i + 1) * width + j]) {
            lines.push(Line { kernel: Some(kernel[i].clone()), ours: None, kind: Some(Kind::Missing) });
            i += 1;
        } else {
            lines.push(Line { kernel: None, ours: Some(ours[j].clone()), kind: Some(Kind::Extra) });
            j += 1;
        }
    }
    lines.extend(last_kernel.iter().zip(last_ours).map(pair));
    lines
}
