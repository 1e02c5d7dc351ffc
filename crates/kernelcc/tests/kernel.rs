//! Every control in the running kernel. Where it does not allow that, the tests say why and do nothing.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tcplab_kernelcc::{KernelccError, Loaded, names, obstacle};

/// One test at a time: names are host-wide, and another test would take one that has just been given up.
static ALONE: Mutex<()> = Mutex::new(());

/// Ends the test, with the reason, where controls cannot be loaded.
macro_rules! skip_if_unable {
    () => {
        if let Some(why) = obstacle() {
            return eprintln!("skipped: {why}; {}", why.hint());
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    };
}

fn is_registered(name: &str) -> bool {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    text.split_whitespace().any(|listed| listed == name)
}

#[test]
fn every_control_loads_and_goes_with_its_owner() {
    skip_if_unable!();
    let simulated: Vec<&str> = tcplab_control::Control::names().collect();
    assert_eq!(names().collect::<Vec<_>>(), simulated);
    for name in names() {
        let loaded = Loaded::load(name, []).unwrap_or_else(|error| panic!("{name}: {error}"));
        let registered = loaded.registered().to_owned();
        assert!(registered.starts_with("tl_") && is_registered(&registered), "{registered}");
        drop(loaded);
        assert!(!is_registered(&registered), "{registered} is still registered");
    }
}

#[test]
fn one_control_can_be_loaded_several_times() {
    skip_if_unable!();
    let loaded = [0.5, 0.6, 0.7].map(|beta| Loaded::load("tl_cubic", [("beta", beta)]).unwrap());
    let [first, second, third] = loaded.each_ref().map(Loaded::registered);
    assert!(first != second && second != third && first != third, "{first} {second} {third}");
    assert!([first, second, third].into_iter().all(is_registered));
}

#[test]
fn who_is_slower_to_register_takes_the_next_name() {
    skip_if_unable!();
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(|| Loaded::load("reno", []).unwrap())).collect();
    let loaded: Vec<Loaded> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let names: HashSet<&str> = loaded.iter().map(Loaded::registered).collect();
    assert_eq!(names.len(), loaded.len(), "{names:?}");
    assert!(names.into_iter().all(is_registered));
}

#[test]
fn mistakes_are_named() {
    skip_if_unable!();
    let error = Loaded::load("nosuch", []).unwrap_err();
    assert!(matches!(&error, KernelccError::Unknown { name, .. } if name == "nosuch"), "{error}");
    assert!(error.hint().contains("cubic"), "{}", error.hint());
    let error = Loaded::load("cubic", [("beta", 7.0)]).unwrap_err();
    assert!(matches!(error, KernelccError::Control(_)), "{error}");
}
