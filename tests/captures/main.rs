//! Captures: tests of the analysis, its plots and pages, and the Wireshark plug-in, compared with other
//! tools.

mod analyze;
mod page;
mod page_graphs;
mod page_layout;
mod pcaps;
mod tools;
mod wireshark;
