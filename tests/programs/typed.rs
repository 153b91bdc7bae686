//! Names that the user types are found, and printed in the typed form.

use std::fs;
use std::process::Command;

use airtcp_testkit::machine::{Ended, TempDir, airtcp, run};
use airtcp_testkit::programs::repository;

#[test]
fn recipe_is_printed_as_typed() {
    for typed in ["linux", "etcp", "sack+limited-transmit+liw", "liw+sack", "newreno+min-rto=200@linux"] {
        let recipe = typed.split('@').next().unwrap();
        let text = run(&["explain", typed]).stdout;
        assert_eq!(text.lines().next(), Some(recipe), "{text}");
        let line = ["sim", "-s", "lossless", "--bytes", "10k", "--recipe", typed];
        let text = run(&line).stdout;
        assert!(text.split_whitespace().any(|word| word == recipe), "{typed}: {text}");
        let json = run(&[&line[..], &["--json"]].concat());
        assert_eq!(json.lines[0]["report"]["flows"][0]["recipe"], recipe);
        let command = json.lines[0]["command"].as_str().unwrap().to_owned();
        assert!(command.contains(&format!("--recipe {typed}")), "{command}");
    }
}

/// `interop/receivers/setup.sh` and the program agree on the directory of the stacks.
#[test]
fn lab_receivers_finds_stacks_built_by_setup() {
    let directory = TempDir::new("stacks");
    let receivers = directory.join("interop/receivers");
    fs::create_dir_all(receivers.join("mine")).unwrap();
    let script = "interop/receivers/setup.sh";
    fs::copy(repository().join(script), directory.join(script)).unwrap();
    let build =
        "set -eu\nmkdir -p \"$1\"\nprintf '#!/bin/sh\\n' > \"$1/start\"\necho 'mine 1.0' > \"$1/version\"\n";
    fs::write(receivers.join("mine/setup.sh"), build).unwrap();
    let elsewhere = directory.join("elsewhere");
    for stacks in [None, Some(&elsewhere)] {
        let mut setup = Command::new("sh");
        setup.arg(directory.join(script)).arg("mine").env_remove("AIRTCP_RECEIVERS");
        let mut listed = airtcp(&["lab", "receivers"]);
        listed.env_remove("AIRTCP_RECEIVERS");
        match stacks {
            // The default directory is found from any directory of the source tree.
            None => drop(listed.current_dir(&receivers)),
            Some(stacks) => {
                setup.env("AIRTCP_RECEIVERS", stacks);
                listed.arg("--stacks").arg(stacks);
            }
        }
        let built = Ended::of(setup.output().unwrap());
        assert_eq!(built.code, 0, "{}", built.stderr);
        let listed = Ended::of(listed.output().unwrap()).stdout;
        let mine: Vec<&str> = listed.lines().filter(|line| line.starts_with("mine ")).collect();
        assert_eq!(mine.len(), 1, "{listed}");
        assert!(mine[0].ends_with(" mine 1.0"), "{listed}");
    }
    let by_variable =
        Ended::of(airtcp(&["lab", "receivers"]).env("AIRTCP_RECEIVERS", &elsewhere).output().unwrap());
    assert!(by_variable.stdout.contains("\nmine "), "{}", by_variable.stdout);
}
