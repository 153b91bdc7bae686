//! The lab, with real hosts, an emulator in a separate process, and complete cleanup.

mod demo;
mod errors;
mod invalid;
mod lab;
mod lte_nr;
mod lte_nr_kernel;
mod matrix;
mod pairs;
mod processes;
mod radio;
mod report;
mod resumed;
mod scratch;
mod shown;
mod transfers;
mod virtual_real;
