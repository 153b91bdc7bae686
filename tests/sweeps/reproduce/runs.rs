//! The files of `airtcp reproduce --runs` repeat the runs of the figures bit for bit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use airtcp_reproduce::lai2013::{self, setting::Extent};
use airtcp_reproduce::{Effort, Runs, Watcher, figures};
use airtcp_sim::run::{Report, Run, run};
use airtcp_testkit::sample::sample;
use airwire::time::Instant;

/// The reports of a figure, by run.
#[derive(Debug, Default)]
struct Reports(Mutex<BTreeMap<String, Report>>);

impl Watcher for Reports {
    fn ran(&self, run: &Run, report: &Report) {
        self.0.lock().unwrap().insert(run.to_json(), report.clone());
    }

    fn expects(&self, _: u64) {}
}

/// Runs a figure with one seed, and repeats `count` of its runs from their files.
fn check_files(id: &str, count: usize, figure: impl FnOnce(&Effort)) {
    let (reports, runs) = (Arc::<Reports>::default(), Arc::<Runs>::default());
    let first_seed = airtcp_testkit::sample::seed();
    figure(&Effort::watched(1, reports.clone()).starting_at(first_seed).recording(runs.clone()));
    let files = runs.files();
    assert!(!files.is_empty(), "{id}");
    let reports = reports.0.lock().unwrap();
    for (number, file) in sample(id, (1..).zip(files), count) {
        let again = run(&Run::from_json(&file).unwrap()).unwrap();
        assert_eq!(Some(&again), reports.get(&file), "{id}-{number}.json");
    }
}

fn check_figure(id: &str, count: usize) {
    let figure = figures().into_iter().find(|figure| figure.id == id).unwrap();
    check_files(id, count, |effort| drop(figure.run(effort).unwrap()));
}

#[test]
fn files_repeat_runs_of_pan2004() {
    check_figure("p0-fig6", 4);
}

#[test]
fn files_repeat_runs_of_ni2002() {
    check_figure("p1-fig8", 4);
}

#[test]
fn files_repeat_runs_of_inamura2009() {
    check_figure("p2-fig13", 2);
    check_figure("p2-fig7", 2);
}

#[test]
fn files_repeat_runs_of_lai2013() {
    let short = Extent { error_rates: &[2], from: Instant::from_secs(5), until: Instant::from_secs(20) };
    check_files("p3-fig2c", 4, |effort| drop(lai2013::out_of_order(effort, &short).unwrap()));
    check_files("p3-theorem1", 2, |effort| drop(lai2013::overlay(effort, &short).unwrap()));
}

#[test]
fn files_repeat_runs_of_chandra2003() {
    check_figure("p4-table3", 2);
}

#[test]
#[ignore = "nightly: simulates all figures with one seed"]
fn files_repeat_runs_of_all_figures() {
    // The search for a ranking has too many points.
    for figure in figures().into_iter().filter(|figure| figure.id != "ranking") {
        check_files(figure.id, 10, |effort| drop(figure.run(effort).unwrap()));
    }
}
