//! Lines of a scenario's FRR files that no daemon takes, found before the daemons start.
//!
//! vtysh(1) knows which lines there are. Only a daemon knows whether one has a meaning where it stands: a second
//! `router bgp` with another number, a neighbor without `remote-as`. FRR itself logs such a line and goes on without it.

use std::collections::BTreeMap;
use std::fs;

use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::File;
use super::daemons::Node;
use crate::LabError;

/// How a daemon names a line that it does not take: `No such command on config line 4: ...`, and where it knows the
/// line but cannot act on it, `Command returned Warning Config Failed on config line 4: ...`.
const REFUSED: &str = " on config line ";
/// The status of a line that it takes with a remark.
const TAKEN: &str = "Command returned Warning";
/// Lines for vtysh(1) itself.
const CONSOLE: [&str; 3] =
    ["service integrated-vtysh-config", "no service integrated-vtysh-config", "username "];
const HINT: &str = "its language: https://docs.frrouting.org";

/// Has the daemons of every router that has a file read its configuration. The first line that all of them refuse is
/// the error.
pub(super) fn check(nodes: &[Node<'_>]) -> Result<(), LabError> {
    let mut running = Vec::new();
    for node in nodes {
        let Some(file) = &node.router.file else { continue };
        for daemon in ["zebra"].into_iter().chain(node.router.daemons()) {
            let log = format!("{daemon}.check");
            running.push((node, file, node.run(daemon, &["--dryrun"], &log)?, log));
        }
    }
    let mut said: BTreeMap<&str, (&File, Vec<String>)> = BTreeMap::new();
    for (node, file, pid, log) in running {
        wait(pid)?;
        let text = fs::read_to_string(node.path(&log)).unwrap_or_default();
        said.entry(&node.router.node).or_insert((file, Vec::new())).1.push(text);
    }
    said.into_iter().try_for_each(|(node, (file, said))| match refused(file, &said) {
        None => Ok(()),
        Some(refused) => {
            let message = format!("{node}: {}: {refused}", file.name);
            Err(LabError::Input { message, hint: HINT.to_owned() })
        }
    })
}

fn wait(pid: Pid) -> Result<(), LabError> {
    waitpid(pid, None).map_err(|error| LabError::Kernel(error.into()))?;
    Ok(())
}

/// The lines of a file that all daemons refuse, with what they said of them.
fn refused(file: &File, said: &[String]) -> Option<String> {
    let mut count: BTreeMap<usize, (usize, &str)> = BTreeMap::new();
    for text in said {
        let lines: BTreeMap<usize, &str> = text.lines().filter_map(refusal).collect();
        for (number, line) in lines {
            count.entry(number).or_insert((0, line)).0 += 1;
        }
    }
    let by_all = count.into_iter().filter(|(number, (times, line))| {
        *times == said.len() && *number > file.offset && !CONSOLE.iter().any(|own| line.starts_with(own))
    });
    let lines: Vec<String> = by_all
        .map(|(number, (_, line))| format!("line {}: no daemon takes `{line}`", number - file.offset))
        .collect();
    let reasons = said
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| !line.starts_with(|c: char| c.is_ascii_digit()));
    let mut reasons: Vec<&str> = reasons.map(|line| line.trim_start_matches("% ").trim()).collect();
    reasons.dedup();
    let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
    (!lines.is_empty()).then(|| format!("{}{why}", lines.join("; ")))
}

/// The number of a line that a daemon does not take, and the line.
fn refusal(said: &str) -> Option<(usize, &str)> {
    let (status, rest) = said.split_once(REFUSED)?;
    let (number, line) = rest.split_once(": ")?;
    (!status.ends_with(TAKEN)).then_some((number.parse().ok()?, line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_file_that_no_daemon_takes_is_named_with_their_words() {
        let zebra = "2026/11/25 07:29:46 ZEBRA: [A][EC 1] No such command on config line 4: router bgp 300\n\
                     2026/11/25 07:29:46 ZEBRA: [A][EC 1] No such command on config line 6: router ospf\n";
        let bgpd = "BGP is already running; AS is 100\n\
                    2026/11/25 07:29:46 BGP: [A][EC 1] No such command on config line 2: ip forwarding\n\
                    2026/11/25 07:29:46 BGP: [A][EC 1] Command returned Warning Config Failed on config line 4: router bgp 300\n\
                    2026/11/25 07:29:46 BGP: [A][EC 1] Command returned Warning Config Failed on config line 4: router bgp 300\n";
        let file = File { name: "r1.conf".to_owned(), offset: 3 };
        let said = [zebra.to_owned(), bgpd.to_owned()];
        let found = refused(&file, &said).unwrap();
        assert_eq!(found, "line 1: no daemon takes `router bgp 300`: BGP is already running; AS is 100");
        // The configuration by the settings of the scenario is before the file.
        assert_eq!(refused(&File { offset: 4, ..file.clone() }, &said), None);
        let remark = "Command returned Warning on config line 4: router bgp 300\n".to_owned();
        assert_eq!(refused(&file, &[zebra.to_owned(), remark]), None);
        let console = "No such command on config line 4: service integrated-vtysh-config\n".to_owned();
        assert_eq!(refused(&file, &[console]), None);
    }
}
