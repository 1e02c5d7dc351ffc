//! Controls in the running kernel. Where it does not allow that, each test says why and does nothing.

use std::process::Command;

use tcplab_kernelcc::{KernelccError, Loaded, names, obstacle};

/// Ends the test, with the reason, where controls cannot be loaded.
macro_rules! skip_if_unable {
    () => {
        if let Some(why) = obstacle() {
            eprintln!("skipped: {why}; {}", why.mend());
            return;
        }
    };
}

fn offered(name: &str) -> bool {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    text.split_whitespace().any(|offered| offered == name)
}

#[test]
fn every_control_loads_and_goes_with_its_owner() {
    skip_if_unable!();
    assert!(names().count() >= 4);
    for name in names() {
        let loaded = Loaded::load(name, []).unwrap_or_else(|error| panic!("{name}: {error}"));
        let registered = loaded.registered().to_owned();
        assert!(registered.starts_with(&format!("tl_{name}")) && offered(&registered), "{registered}");
        drop(loaded);
        assert!(!offered(&registered), "{registered} is still offered");
    }
}
