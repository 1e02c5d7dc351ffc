//! The life of an agent: it says what is wrong, keeps what it recorded, and leaves nothing behind.

mod lab;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use lab::{Agent, Lab, MS, SECOND};
use serde_json::{Value, json};

fn bulk() -> Value {
    json!({"name": "bulk", "from": "a", "to": "b", "kind": "tcp", "cc": {"name": "cubic"}})
}

fn assert_refused(answer: &Value, word: &str) {
    assert_eq!(answer["event"], "error", "{answer}");
    assert!(answer["message"].as_str().unwrap().contains(word), "{answer}");
    assert!(!answer["hint"].as_str().unwrap().is_empty(), "{answer}");
}

#[test]
fn mistakes_are_named_with_their_hint() {
    skip_if_unable!();
    let mut lab = Lab::new("mistakes");
    let server = |flow: Value| json!({"do": "flow", "role": "server", "address": lab::B, "flow": flow});
    let mut unknown = bulk();
    unknown["cc"]["name"] = "nosuch".into();
    assert_refused(&lab.b.ask(server(unknown)), "nosuch");
    let mut elsewhere = server(bulk());
    elsewhere["address"] = "10.77.0.1".into();
    assert_refused(&lab.b.ask(elsewhere), "10.77.0.1");
    let mut taken = server(bulk());
    taken["ports"] = json!([7001]);
    lab.b.command(taken.clone());
    assert_refused(&lab.b.ask(taken), "7001");
    assert_refused(&lab.b.ask(json!({"do": "dance"})), "dance");
    assert_refused(&lab.b.ask(json!({"do": "probe", "sockets": 0})), "zero");
    assert_refused(
        &lab.b.ask(json!({"do": "configure", "node": "b", "dir": "/nonexistent"})),
        "/nonexistent",
    );
}

#[test]
fn the_clock_is_answered_while_another_command_is_served() {
    let mut agent = Agent::start(&["node"]);
    let slow = agent.send(json!({"do": "host", "sysctls": vec!["net.ipv4.tcp_rmem"; 200_000]}));
    let clock = agent.send(json!({"do": "clock"}));
    let first = agent.wait_for(|e| e["id"] == slow || e["id"] == clock);
    assert_eq!(first["id"], clock);
    assert!(agent.wait_for(|e| e["id"] == slow)["sysctls"]["net.ipv4.tcp_rmem"].is_string());
}

#[test]
fn commands_are_read_while_nobody_reads_the_answers() {
    let mut agent = Command::new(env!("CARGO_BIN_EXE_tcplab-agent"))
        .arg("node")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    let mut input = agent.stdin.take().expect("piped");
    let (sender, written) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // An answer that fills the pipe, and more commands than another holds (pipe(7): 64 KiB).
        let names: Vec<String> = (0..20_000).map(|number| format!("none.{number}")).collect();
        let wrote = writeln!(input, "{}", json!({"do": "host", "sysctls": names}))
            .and_then(|()| (0..20_000).try_for_each(|_| writeln!(input, "{}", json!({"do": "clock"}))));
        let _ = sender.send(wrote.is_ok());
        input
    });
    let read = written.recv_timeout(Duration::from_secs(60));
    agent.kill().and_then(|()| agent.wait()).expect("a process to end");
    assert_eq!(read, Ok(true));
}

#[test]
fn an_agent_that_receives_no_command_ends_and_says_why() {
    let mut agent = Command::new(env!("CARGO_BIN_EXE_tcplab-agent"))
        .args(["node", "--silence", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    let input = agent.stdin.take();
    let ended = agent.wait_with_output().expect("the agent ends");
    drop(input);
    assert_eq!(ended.status.code(), Some(4));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.starts_with("the agent received no command for "), "{said:?}");
}

#[test]
fn a_refused_connection_is_reported_by_the_flow() {
    skip_if_unable!();
    let mut lab = Lab::new("refused");
    lab.a.command(json!({"do": "flow", "role": "client", "address": lab::B, "ports": [9], "flow": bulk()}));
    lab.run(300 * MS);
    let errors = lab.a.all("error");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["flow"], "bulk");
    assert!(errors[0]["message"].as_str().unwrap().contains("10.9.0.2:9"), "{errors:?}");
    let row = &lab.rows("flows", "a")[0];
    assert_eq!((&row["complete"], &row["bytes_sent"]), (&json!(false), &json!(0)));
}

#[test]
fn the_end_of_the_input_ends_a_run_and_the_process() {
    skip_if_unable!();
    let mut lab = Lab::new("eof");
    lab.flow(bulk(), json!({"sample": 50 * MS}));
    lab.start(60 * SECOND);
    for agent in [&mut lab.a, &mut lab.b] {
        agent.wait_for(|e| e["event"] == "progress" && e["time"].as_u64() > Some(400 * MS));
    }
    for agent in [&mut lab.a, &mut lab.b] {
        agent.close_input();
        assert!(agent.wait_exit(Duration::from_secs(50)));
    }
    assert_eq!(lab.rows("flows", "b").len(), 1, "what was recorded is written");
}

#[test]
fn what_was_recorded_survives_a_kill() {
    skip_if_unable!();
    let mut lab = Lab::new("kill");
    lab.flow(bulk(), json!({"sample": 50 * MS}));
    lab.a.command(json!({"do": "probe", "sockets": 10 * MS, "hosts": 100 * MS, "machine": true}));
    lab.start(60 * SECOND);
    lab.a.wait_for(|e| e["event"] == "progress" && e["time"].as_u64() > Some(SECOND));
    std::process::Command::new("kill").args(["-9", &lab.a.pid().to_string()]).status().unwrap();
    assert!(lab.a.wait_exit(Duration::from_secs(50)));
    assert!(lab.rows("sockets", "a").len() > 50, "{}", lab.rows("sockets", "a").len());
    let hosts = lab.rows("hosts", "a");
    assert!(hosts.iter().any(|row| row["process"] == "agent" && row["node"] == "a"));
    assert!(
        hosts
            .iter()
            .any(|row| { row["process"].is_null() && row["node"] == "a" && row["cpu_softirq"].is_f64() })
    );
}

#[test]
fn progress_has_the_windows_and_times_of_flows_whose_sockets_are_sampled() {
    skip_if_unable!();
    let mut lab = Lab::new("live");
    lab.flow(bulk(), json!({"sample": 50 * MS}));
    lab.a.command(json!({"do": "probe", "sockets": 10 * MS, "hosts": null, "machine": false}));
    lab.start(60 * SECOND);
    let sampled = |e: &Value| e["event"] == "progress" && e["flows"]["bulk"]["srtt"].is_f64();
    let event = lab.a.wait_for(sampled);
    assert!(event["flows"]["bulk"]["cwnd"].as_f64() >= Some(1.0), "{event}");
    // The receiver's sockets are not sampled.
    lab.b.wait_for(|e| e["event"] == "progress" && e["flows"]["bulk"]["received"].as_u64() > Some(0));
    assert!(lab.b.all("progress").iter().all(|e| e["flows"]["bulk"].get("cwnd").is_none()));
}

#[test]
fn a_termination_signal_ends_the_run_in_order() {
    skip_if_unable!();
    let mut lab = Lab::new("term");
    lab.flow(bulk(), json!({"sample": 50 * MS}));
    lab.start(60 * SECOND);
    lab.b.wait_for(|e| e["event"] == "progress" && e["time"].as_u64() > Some(300 * MS));
    std::process::Command::new("kill").arg(lab.b.pid().to_string()).status().unwrap();
    assert!(lab.b.wait_exit(Duration::from_secs(50)));
    assert_eq!(lab.rows("flows", "b").len(), 1);
}

#[test]
fn the_death_of_the_parent_ends_the_process_though_its_input_stays_open() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    // The shell waits for the agent; both read this test's pipe, so killing the shell does not end the
    // agent's input.
    let mut shell = Command::new("sh")
        .args(["-c", "\"$0\" node; true", env!("CARGO_BIN_EXE_tcplab-agent")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let _input = shell.stdin.take();
    let mut hello = String::new();
    let mut output = BufReader::new(shell.stdout.take().unwrap());
    output.read_line(&mut hello).unwrap();
    let pid = serde_json::from_str::<Value>(&hello).unwrap()["pid"].as_u64().unwrap();
    assert_ne!(pid, u64::from(shell.id()));
    shell.kill().unwrap();
    shell.wait().unwrap();
    // The end of its output is the end of the process.
    let mut rest = String::new();
    output.read_line(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn a_second_run_needs_a_configuration_of_its_own() {
    skip_if_unable!();
    let mut lab = Lab::new("again");
    lab.run(100 * MS);
    let answer = lab.a.ask(json!({"do": "start", "at": 0, "duration": 1}));
    assert_refused(&answer, "configure");
    for (node, name) in [(&mut lab.a, "a"), (&mut lab.b, "b")] {
        node.command(json!({"do": "configure", "node": name, "dir": lab.dir}));
        node.seen.clear();
    }
    lab.flow(bulk(), json!({}));
    lab.run(SECOND);
    lab.assert_no_errors();
    assert_eq!(lab.rows("flows", "b").len(), 1);
}

#[test]
fn a_new_configuration_drops_the_flows_that_were_prepared_for_the_one_before() {
    skip_if_unable!();
    let mut lab = Lab::new("anew");
    let server = json!({"do": "flow", "role": "server", "address": lab::B, "ports": [7001], "flow": bulk()});
    lab.b.command(server.clone());
    assert_refused(&lab.b.ask(server.clone()), "7001");
    lab.b.command(json!({"do": "configure", "node": "b", "dir": lab.dir}));
    assert_eq!(lab.b.ask(server)["event"], "ok");
}
