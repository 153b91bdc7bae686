//! The lab: real hosts, an emulator in a process of its own, and nothing left behind.

mod demo;
mod lab;
mod pairs;
mod radio;
mod report;
mod scratch;
mod shown;
mod transfers;
mod virtual_real;
