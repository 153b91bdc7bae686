//! What an error about an unknown name adds: the name that was probably meant.

use airtcp::recovery::catalogue::nearest_of;

/// ": did you mean `recipe`?", or all there are.
pub(super) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest_of(name, known.iter().copied()) {
        Some(nearest) => format!(": did you mean `{nearest}`?"),
        None => format!("; known are {}", known.join(", ")),
    }
}
