//! Completions and explanations for the page's sender fields.

use airtcp::profile::ProfileName;
use airtcp::{SenderSpec, explain, sender};
use serde_json::{Value, json};

use crate::Trouble;

pub(crate) fn completions(word: &str) -> Value {
    let fits = sender::completions(word).into_iter().filter(|(value, _)| value.starts_with(word));
    fits.map(|(value, summary)| json!({ "value": value, "summary": summary })).collect()
}

pub(crate) fn explain(typed: &str) -> Result<Value, Trouble> {
    let spec: SenderSpec = typed.parse().map_err(|error| Trouble::new("senders", 0, error))?;
    let profile = spec.profile_or(ProfileName::Default);
    let tuned = spec.recipe.tune(&profile.profile());
    Ok(json!({
        "sender": spec.to_string(),
        "parts": explain::parts(&spec.recipe),
        "states": explain::states(&spec.recipe, &tuned),
        "profile": { "name": profile.as_str(), "summary": profile.summary() },
        "wire": explain::on_the_wire(&spec.recipe, &tuned),
    }))
}
