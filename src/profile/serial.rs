//! Deserialization of the fields that refer to static values.

use serde::de::{Deserialize, Deserializer, Error};

use super::{Profile, ProfileName};

/// Reads the name of a profile.
pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static str, D::Error> {
    let name = String::deserialize(deserializer)?;
    let known = Profile::NAMES.into_iter().find(|known| *known == name);
    known.ok_or_else(|| D::Error::unknown_variant(&name, &Profile::NAMES))
}

/// Reads the parameters of a profile. Other values belong in the recipe, which overrides these.
pub(super) fn parameters<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<&'static [(&'static str, f64)], D::Error> {
    let read = Vec::<(String, f64)>::deserialize(deserializer)?;
    let is_read = |known: &&[(&'static str, f64)]| {
        known.iter().copied().eq(read.iter().map(|(name, value)| (name.as_str(), *value)))
    };
    let mut known = ProfileName::ALL.into_iter().map(|name| name.profile().parameters);
    let unknown = || D::Error::custom("no profile has these parameters; set other values in the recipe");
    known.find(is_read).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_survive_json_round_trip() {
        for profile in ProfileName::ALL.map(ProfileName::profile) {
            let text = serde_json::to_string(&profile).unwrap();
            assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile, "{text}");
        }
    }

    #[test]
    fn unknown_fields_and_values_are_rejected() {
        let error_with = |key: &str, value: serde_json::Value| {
            let mut json = serde_json::to_value(Profile::ns2()).unwrap();
            json[key] = value;
            serde_json::from_value::<Profile>(json).unwrap_err().to_string()
        };
        assert!(error_with("spelling", 1.into()).starts_with("unknown field `spelling`"));
        let name = error_with("name", "windows".into());
        assert!(name.starts_with("unknown variant `windows`, expected one of `default`, `linux`"), "{name}");
        let parameters = error_with("parameters", serde_json::json!([["frto-window", 3.0]]));
        assert!(parameters.starts_with("no profile has these parameters"), "{parameters}");
    }
}
