//! The lab: real hosts, an emulator in a separate process, and complete cleanup.

mod demo;
mod lab;
mod pairs;
mod radio;
mod report;
mod scratch;
mod shown;
mod transfers;
mod virtual_real;
