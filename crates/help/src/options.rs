//! What the options of a program take.

use std::collections::{BTreeMap, BTreeSet};

use clap::Command;

/// The types of values that options of each name take, in this command and all below it.
pub fn value_types(command: &Command) -> BTreeMap<String, BTreeSet<String>> {
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for arg in command.get_arguments() {
        if let Some(long) = arg.get_long() {
            let of_arg = match format!("{:?}", arg.get_value_parser().type_id()).as_str() {
                // How large it may be is not what it means.
                "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number".to_owned(),
                other => other.to_owned(),
            };
            types.entry(long.to_owned()).or_default().insert(of_arg);
        }
    }
    for (long, more) in command.get_subcommands().flat_map(value_types) {
        types.entry(long).or_default().extend(more);
    }
    types
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn an_option_of_two_types_has_both() {
        let option = |long: &'static str| Arg::new(long).long(long);
        let count = option("limit").value_parser(clap::value_parser!(u32));
        let command = Command::new("tool")
            .arg(option("name"))
            .subcommand(Command::new("a").arg(option("limit")))
            .subcommand(Command::new("b").subcommand(Command::new("c").arg(count)));
        let types = value_types(&command);
        assert_eq!((types["name"].len(), types["limit"].len()), (1, 2), "{types:?}");
    }
}
