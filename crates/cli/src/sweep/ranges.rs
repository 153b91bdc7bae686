//! Compact lists of numbers: `3,5,9-12`.

use std::fmt;

/// Combines ascending numbers into ranges, each with its first and last number.
pub(super) fn ranges(numbers: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

/// Formats ranges in Slurm's syntax.
pub(super) struct Ranges<'a>(pub(super) &'a [(usize, usize)]);

impl fmt::Display for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_form_one_range() {
        let shown = |numbers: &[usize]| Ranges(&ranges(numbers.iter().copied())).to_string();
        assert_eq!(shown(&[3, 5, 9, 10, 11, 12, 14, 15]), "3,5,9-12,14-15");
        assert_eq!(shown(&[0]), "0");
        assert_eq!(shown(&[]), "");
    }
}
