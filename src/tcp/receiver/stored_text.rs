//! Received text in memory.

use std::collections::VecDeque;

use airwire::text::{Known, Text};

/// Consecutive text. A part of the known stream takes no memory.
#[derive(Clone, Debug)]
pub(super) enum StoredText {
    Bytes(VecDeque<u8>),
    Known(Known),
}

impl Default for StoredText {
    fn default() -> Self {
        Self::Bytes(VecDeque::new())
    }
}

impl From<Text<'_>> for StoredText {
    fn from(text: Text<'_>) -> Self {
        match text {
            Text::Bytes(bytes) => Self::Bytes(bytes.to_vec().into()),
            Text::Known(known) => Self::Known(known),
        }
    }
}

impl StoredText {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Known(known) => known.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the allocated memory.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.capacity(),
            Self::Known(_) => 0,
        }
    }

    /// Returns whether `text` can be appended without a conversion of known text to bytes.
    pub(super) fn is_continued_by(&self, text: Text<'_>) -> bool {
        match (self, text) {
            (Self::Bytes(_), Text::Bytes(_)) => true,
            (Self::Known(known), Text::Known(next)) => known.end() == next.start(),
            _ => false,
        }
    }

    /// Appends `text`. Text that is neither bytes nor one part of the known stream is stored as bytes.
    pub(super) fn append(&mut self, text: Text<'_>) {
        match (&mut *self, text) {
            (_, Text::Bytes([])) => {}
            (stored, Text::Known(known)) if stored.is_empty() => *stored = Self::Known(known),
            (Self::Bytes(bytes), Text::Bytes(more)) => bytes.extend(more),
            (Self::Bytes(bytes), Text::Known(_)) => bytes.extend(text.to_vec()),
            (Self::Known(known), _) => {
                if let Text::Known(next) = text
                    && known.extend(next)
                {
                    return;
                }
                let mut bytes = Text::Known(*known).to_vec();
                text.copy_to(&mut bytes);
                *self = Self::Bytes(bytes.into());
            }
        }
    }

    /// Appends the text of `next`.
    pub(super) fn append_stored(&mut self, next: &Self) {
        self.append(next.first_slice());
        if let Self::Bytes(bytes) = next {
            self.append(Text::Bytes(bytes.as_slices().1));
        }
    }

    /// Returns the beginning of the text. It is the whole text if nothing was discarded.
    pub(super) fn first_slice(&self) -> Text<'_> {
        match self {
            Self::Bytes(bytes) => Text::Bytes(bytes.as_slices().0),
            Self::Known(known) => Text::Known(*known),
        }
    }

    /// Copies the first bytes to `out`, and returns their number.
    pub(super) fn copy_to(&self, out: &mut [u8]) -> usize {
        let count = out.len().min(self.len());
        let out = &mut out[..count];
        match self {
            Self::Bytes(bytes) => {
                let (head, tail) = bytes.as_slices();
                let first = count.min(head.len());
                out[..first].copy_from_slice(&head[..first]);
                out[first..].copy_from_slice(&tail[..count - first]);
            }
            Self::Known(known) => out.copy_from_slice(&Text::Known(known.slice(0..count)).to_vec()),
        }
        count
    }

    /// Keeps the first `len` bytes.
    pub(super) fn truncate(&mut self, len: usize) {
        match self {
            Self::Bytes(bytes) => bytes.truncate(len),
            Self::Known(known) => *known = known.slice(0..len.min(known.len())),
        }
    }

    /// Removes the first `count` bytes.
    pub(super) fn discard(&mut self, count: usize) {
        match self {
            Self::Bytes(bytes) => {
                bytes.drain(..count);
            }
            Self::Known(known) => *known = known.slice(count..known.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(stored: &StoredText) -> Vec<u8> {
        let mut out = vec![0; stored.len()];
        assert_eq!(stored.copy_to(&mut out), out.len());
        out
    }

    #[test]
    fn any_mixture_of_texts_keeps_its_bytes() {
        let texts = [
            Text::Bytes(b"ab"),
            Text::Known(Known::new(100..120)),
            Text::Known(Known::new(120..133)),
            Text::Known(Known::new(7..9)),
            Text::EMPTY,
        ];
        for first in texts {
            for second in texts {
                for third in texts {
                    let (mut stored, mut expected) = (StoredText::from(first), first.to_vec());
                    for next in [second, third] {
                        let kept = matches!(stored, StoredText::Known(_));
                        if stored.is_continued_by(next) {
                            stored.append(next);
                            assert_eq!(matches!(stored, StoredText::Known(_)), kept, "no conversion");
                        } else {
                            stored.append_stored(&next.into());
                        }
                        next.copy_to(&mut expected);
                        assert_eq!(bytes(&stored), expected, "{first:?} {second:?} {third:?}");
                    }
                    stored.truncate(30);
                    expected.truncate(30);
                    stored.discard(expected.len() / 2);
                    assert_eq!(bytes(&stored), expected[expected.len() / 2..]);
                }
            }
        }
    }
}
