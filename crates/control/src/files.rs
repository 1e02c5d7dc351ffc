//! The C files of `cc/` as they were when this was built, so that wherever tcplab is, a control can be compiled
//! and read.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The headers, as (name, text). A control includes `tcplab_cc.h`, which includes the others.
pub fn headers() -> &'static [(&'static str, &'static str)] {
    &HEADERS
}

/// The C file of the control called `name`.
pub fn source(name: &str) -> Option<&'static str> {
    SOURCES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
