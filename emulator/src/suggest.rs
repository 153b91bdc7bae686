//! Suggestions for unknown words.

/// The message "did you mean `delay`? known keys: …", with the nearest word first and then all known words.
pub(crate) fn suggest(word: &str, what: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::osa_distance(&word.to_ascii_lowercase(), &name.to_ascii_lowercase()), *name))
        .filter(|(distance, name)| *distance <= (name.len().max(word.len()) / 3).max(1))
        .min();
    let list = known.join(", ");
    let all = if known.is_empty() { String::new() } else { format!("known {what}: {list}") };
    match nearest {
        Some((_, name)) => format!("did you mean `{name}`? {all}"),
        None => all,
    }
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
