//! Comparison of two scenarios.

use serde::Serialize;

use super::{Scenario, StageSettings, names, write};

/// A setting in which two scenarios differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Key of the setting as in [`Scenario::set`] (`radio.down.delay`), or a top-level key. `stages` is the
    /// order of stages.
    pub key: String,
    /// Value in the first scenario, as written in a file. `None`: it does not have this setting or stage.
    pub first: Option<String>,
    /// Value in the second scenario.
    pub second: Option<String>,
}

impl Scenario {
    /// Returns all settings, including defaults, that differ from `other`, in the order of the files. Stages
    /// are matched by name. A stage that only one scenario has counts as one difference, without its
    /// settings. Descriptions are not compared.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        different(&mut differences, "seed", Some(self.seed.to_string()), Some(other.seed.to_string()));
        different(&mut differences, "mtu", Some(self.mtu.to_string()), Some(other.mtu.to_string()));
        let prefixes = |scenario: &Self| {
            let addresses = scenario.addresses.as_ref();
            let [fixed, mobile] = [addresses.map(|it| &it.fixed), addresses.map(|it| &it.mobile)];
            [fixed, mobile].map(|side| side.map(|side| write::prefixes(side)))
        };
        let ([fixed, mobile], [other_fixed, other_mobile]) = (prefixes(self), prefixes(other));
        different(&mut differences, "addresses.fixed", fixed, other_fixed);
        different(&mut differences, "addresses.mobile", mobile, other_mobile);
        let common_stages = |scenario: &Self, other: &Self| {
            let mut names = names(&scenario.stages);
            names.retain(|name| other.stage(name).is_some());
            Some(names.join(", "))
        };
        different(&mut differences, "stages", common_stages(self, other), common_stages(other, self));
        for stage in &self.stages {
            match other.stage(&stage.name) {
                Some(second) => stages(&mut differences, stage, second),
                None => different(&mut differences, &stage.name, Some(kind_of(stage)), None),
            }
        }
        for stage in other.stages.iter().filter(|stage| self.stage(&stage.name).is_none()) {
            different(&mut differences, &stage.name, None, Some(kind_of(stage)));
        }
        differences
    }

    fn stage(&self, name: &str) -> Option<&StageSettings> {
        self.stages.iter().find(|stage| stage.name == name)
    }
}

fn kind_of(stage: &StageSettings) -> String {
    format!("stage `{}`", stage.config.kind_name())
}

fn different(all: &mut Vec<Difference>, key: &str, first: Option<String>, second: Option<String>) {
    if first != second {
        all.push(Difference { key: key.to_owned(), first, second });
    }
}

/// Compares two stages of the same name.
fn stages(differences: &mut Vec<Difference>, first: &StageSettings, second: &StageSettings) {
    if first.config.kind_name() != second.config.kind_name() {
        different(differences, &first.name, Some(kind_of(first)), Some(kind_of(second)));
        return;
    }
    let [first, second] = [first, second].map(|StageSettings { name, config }| {
        let mut leaves = Vec::new();
        write::leaves(&config.to_table(), &format!("{name}."), &mut |key, value| leaves.push((key, value)));
        leaves
    });
    let find = |leaves: &[(String, String)], key: &str| {
        leaves.iter().find(|(other, _)| other == key).map(|(_, value)| value.clone())
    };
    for (key, value) in &first {
        different(differences, key, Some(value.clone()), find(&second, key));
    }
    for (key, value) in second.iter().filter(|(key, _)| find(&first, key).is_none()) {
        different(differences, key, None, Some(value.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(first: &str, second: &str) -> Vec<(String, Option<String>, Option<String>)> {
        let parse = |text: &str| Scenario::parse(&format!("schema = 1\n{text}"), "test").unwrap();
        let all = parse(first).differences(&parse(second));
        all.into_iter().map(|difference| (difference.key, difference.first, difference.second)).collect()
    }

    fn row(key: &str, first: Option<&str>, second: Option<&str>) -> (String, Option<String>, Option<String>) {
        (key.to_owned(), first.map(str::to_owned), second.map(str::to_owned))
    }

    const LINK: &str = "[[stage]]\nkind = \"link\"\nname = \"wire\"\n";

    #[test]
    fn explicit_defaults_are_not_differences() {
        assert_eq!(differences(LINK, LINK), []);
        let by_default = format!("{LINK}down = {{ rate = \"1Mbit\" }}");
        let in_full = format!(
            "description = \"in full\"\nseed = 1\n{LINK}down = {{ rate = \"1000kbit\", delay = \"0s\" }}"
        );
        assert_eq!(differences(&by_default, &in_full), []);
    }

    #[test]
    fn differences_are_named_like_ctl_settings() {
        let first = format!("seed = 2\n{LINK}down = {{ rate = \"1Mbit\", delay = \"10ms\" }}");
        let second = format!(
            "mtu = 1400\n{LINK}down = {{ rate = \"1Mbit\", delay = \"20ms\", queue = {{ packets = 5 }} }}"
        );
        assert_eq!(
            differences(&first, &second),
            [
                row("seed", Some("2"), Some("1")),
                row("mtu", Some("1500"), Some("1400")),
                row("wire.down.delay", Some("\"10ms\""), Some("\"20ms\"")),
                row("wire.down.queue", Some("{}"), None),
                row("wire.down.queue.packets", None, Some("5")),
            ]
        );
    }

    #[test]
    fn stages_are_compared_by_name_and_order() {
        let loss = "[[stage]]\nkind = \"loss\"\nname = \"air\"\n";
        let outage = "[[stage]]\nkind = \"outage\"\nname = \"air\"\n";
        let other = "[[stage]]\nkind = \"link\"\nname = \"other\"\n";
        assert_eq!(
            differences(&format!("{LINK}{loss}"), &format!("{loss}{LINK}")),
            [row("stages", Some("wire, air"), Some("air, wire"))]
        );
        assert_eq!(
            differences(&format!("{LINK}{loss}"), &format!("{LINK}{outage}{other}")),
            [
                row("air", Some("stage `loss`"), Some("stage `outage`")),
                row("other", None, Some("stage `link`")),
            ]
        );
    }
}
