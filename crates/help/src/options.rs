//! Value types of a program's options.

use std::collections::{BTreeMap, BTreeSet};

use clap::Command;

/// Returns the value types of each option name, in this command and all its subcommands.
pub fn value_types(command: &Command) -> BTreeMap<String, BTreeSet<String>> {
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for arg in command.get_arguments() {
        if let Some(long) = arg.get_long() {
            let of_arg = match format!("{:?}", arg.get_value_parser().type_id()).as_str() {
                // Integer types differ in their range, but not in their meaning.
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
    fn option_with_two_value_types_lists_both() {
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
