//! Suggestions in errors about unknown names.

use airtcp::recovery::catalogue::nearest_of;

/// Returns `: did you mean …?` with the most similar name. Without a similar name, returns a list of all
/// known names.
pub(super) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest_of(name, known.iter().copied()) {
        Some(nearest) => format!(": did you mean `{nearest}`?"),
        None => format!("; known are {}", known.join(", ")),
    }
}
