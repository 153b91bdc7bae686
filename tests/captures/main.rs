//! What captures say: the analysis, its pictures and pages, and the plug-in for Wireshark, held against other tools.

mod analyze;
mod page;
mod page_graphs;
mod page_layout;
mod pcaps;
mod wireshark;
