//! Captures: tests of the analysis, its plots and pages, and the Wireshark plug-in, compared with other
//! tools.

mod analyze;
mod causes;
mod congestion;
mod pcaps;
mod tools;
mod wireshark;
