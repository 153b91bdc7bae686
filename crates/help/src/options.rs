//! Values of a program's options.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use clap::Command;

/// Returns the value types of each option name, in this command and all its subcommands.
pub fn value_types(command: &Command) -> BTreeMap<String, BTreeSet<String>> {
    let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for arg in command.get_arguments() {
        if let Some(long) = arg.get_long() {
            let id = arg.get_value_parser().type_id();
            // Integer types differ in their range, but not in their meaning.
            let is_integer = [
                TypeId::of::<u8>(),
                TypeId::of::<u16>(),
                TypeId::of::<u32>(),
                TypeId::of::<u64>(),
                TypeId::of::<usize>(),
            ]
            .iter()
            .any(|integer| id == *integer);
            let of_arg = if is_integer { "a whole number".to_owned() } else { format!("{id:?}") };
            types.entry(long.to_owned()).or_default().insert(of_arg);
        }
    }
    for (long, more) in command.get_subcommands().flat_map(value_types) {
        types.entry(long).or_default().extend(more);
    }
    types
}

/// Returns a parser of whole numbers in a range. clap's own parser writes the range as in Rust.
pub fn number<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match *range.end() {
            most if most >= u32::MAX.into() => format!("write a whole number from {} on", range.start()),
            most => format!("write a whole number from {} to {most}", range.start()),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn number_outside_range_is_refused_with_the_range() {
        let parse = number::<u16>(2..=100);
        assert_eq!(parse("2"), Ok(2));
        for text in ["1", "101", "-5", "x", ""] {
            assert_eq!(parse(text), Err("write a whole number from 2 to 100".to_owned()), "{text}");
        }
        let least = number::<u32>(1..=u32::MAX.into());
        assert_eq!(least("0"), Err("write a whole number from 1 on".to_owned()));
        assert!(least("4294967296").is_err());
    }

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
