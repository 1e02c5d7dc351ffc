//! Calls that wait in the kernel, made so that they wait together.

use std::sync::Mutex;
use std::thread;

/// Calls `work` with each of `items`, each in a thread of its own. Where threads are not to be had, those there are do more.
pub(crate) fn at_once<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let others = items.len().saturating_sub(1);
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().ok()?.next();
    let serve = || {
        while let Some(item) = next() {
            work(item);
        }
    };
    thread::scope(|scope| {
        for _ in 0..others {
            let _ = thread::Builder::new().spawn_scoped(scope, serve);
        }
        serve();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::at_once;

    #[test]
    fn each_item_has_its_turn_while_the_others_wait() {
        let (together, sum) = (Barrier::new(9), AtomicU32::new(0));
        at_once((1..10).collect(), |item| {
            together.wait();
            sum.fetch_add(item, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 45);
    }

    #[test]
    fn without_items_nothing_is_done() {
        at_once(Vec::<u32>::new(), |item| panic!("{item}"));
    }
}
