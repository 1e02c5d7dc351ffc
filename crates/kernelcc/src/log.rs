//! Log of libbpf and the verifier while a control is loaded.

use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

/// Lines kept of a log: the verifier's verdict is at its end.
const LINES: usize = 25;

static SAID: Mutex<String> = Mutex::new(String::new());
static LISTENING: Mutex<()> = Mutex::new(());

fn said() -> MutexGuard<'static, String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `action` and returns with its result what was said meanwhile. libbpf has one listener a
/// process, so one action runs at a time.
pub(crate) fn listening<T>(action: impl FnOnce() -> T) -> (T, String) {
    let _one = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
    said().clear();
    let before = set_print(Some((PrintLevel::Warn, |_, text| said().push_str(&text))));
    let result = action();
    set_print(before);
    (result, std::mem::take(&mut *said()))
}

/// The last lines of what was said.
pub(crate) fn tail(text: &str) -> &str {
    let text = text.trim_end();
    let begin = text.rmatch_indices('\n').nth(LINES - 1).map_or(0, |(at, _)| at + 1);
    &text[begin..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_log_is_kept() {
        let ((), log) = listening(|| (0..100).for_each(|n| said().push_str(&format!("line {n}\n"))));
        let end = tail(&log);
        assert!(end.starts_with("line 75") && end.ends_with("line 99"), "{end}");
        assert_eq!(tail("one\ntwo\n"), "one\ntwo");
        assert_eq!(listening(|| ()).1, "", "what was said is forgotten");
    }
}
