//! Suggestions for unknown words.

/// The message "did you mean `delay`? known keys: …", with the nearest word first and then all known words.
pub(crate) fn suggest(word: &str, what: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|name| (distance(word, name), *name))
        .filter(|(distance, name)| *distance <= (name.len().max(word.len()) / 3).max(1))
        .min();
    let list = known.join(", ");
    let all = if known.is_empty() { String::new() } else { format!("known {what}: {list}") };
    match nearest {
        Some((_, name)) => format!("did you mean `{name}`? {all}"),
        None => all,
    }
}

/// Number of letters to change, insert, delete or swap with their neighbour (case-insensitive).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(!a[i - 1].eq_ignore_ascii_case(&b[j - 1]));
            let mut best = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_word_is_suggested_and_dissimilar_is_not() {
        let known = ["rate", "delay", "jitter"];
        assert_eq!(suggest("dealy", "keys", &known), "did you mean `delay`? known keys: rate, delay, jitter");
        assert_eq!(suggest("colour", "keys", &known), "known keys: rate, delay, jitter");
    }
}
