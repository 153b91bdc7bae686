//! What the README says is what the program does.

use airtcp::recovery::catalogue;

const README: &str = include_str!("../../README.md");

#[test]
fn the_table_of_answers_is_the_catalogue() {
    let table = catalogue::markdown();
    assert!(
        README.contains(&table),
        "replace the README's table with `airtcp algorithms --markdown`:\n{table}"
    );
}

#[test]
fn every_file_and_folder_that_it_names_is_there() {
    let root = airtcp_testkit::programs::repository();
    let links = README.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let mut checked = 0;
    for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
        assert!(root.join(link).exists(), "README.md links to {link}, which is not there");
        checked += 1;
    }
    assert!(checked >= 5, "only {checked} links were found");
}

#[test]
fn every_figure_is_in_the_file_that_reproduce_makes() {
    let made = include_str!("../../docs/reproduction.md");
    for figure in airtcp_reproduce::figures() {
        let heading = format!("### `{}`: {}\n", figure.id, figure.title);
        assert!(
            made.contains(&heading),
            "make it again: airtcp reproduce --all > docs/reproduction.md: {heading}"
        );
    }
}
