//! Mistakes about congestion controls stand among all the others, with their line and the nearest name.

use tcplab_scenario::{Document, Known, Parameter, Surroundings, Unreadable, plan};

/// Knows CUBIC with one parameter, Reno without any, and a control of the kernel's.
struct Few;

impl Surroundings for Few {
    fn file(&self, name: &str, _: usize) -> Result<Vec<u8>, Unreadable> {
        match name {
            "broken.c" => Ok(b"not C".to_vec()),
            _ => {
                Err(Unreadable { reason: "cannot be read: No such file or directory".into(), missing: true })
            }
        }
    }

    fn beside(&self, _: &str) -> Vec<String> {
        vec!["broken.c".into()]
    }

    fn resolved(&self, name: &str) -> String {
        format!("/somewhere/{name}")
    }

    fn control(&self, name: &str) -> Known {
        let beta = Parameter { range: (0.1, 0.9), shown: "0.1 to 0.9".into() };
        let described = |parameters| Known::Described { name: name.to_owned(), parameters };
        match name {
            "cubic" => described(vec![("beta".into(), beta)]),
            "reno" => described(vec![]),
            "htcp" => Known::Opaque,
            "broken.c" => Known::Broken("does not compile".into()),
            _ => Known::Unknown,
        }
    }

    fn controls(&self) -> Vec<String> {
        vec!["cubic".into(), "reno".into()]
    }
}

fn said(flows: &str) -> String {
    let text = format!(
        "tcplab: 1\nname: test\nnetwork: {{path: {{rate: 10 Mbit/s, rtt: 40 ms}}}}\nflows:\n{flows}duration: 10\n"
    );
    let read = Document::parse(text.as_bytes(), "f.yaml").expect("YAML");
    plan(read, &[], &Few).expect_err("mistakes").to_string()
}

#[test]
fn an_unknown_control_is_reported_with_every_other_mistake_of_the_file() {
    let said = said("  - {name: a, kind: tcp, cc: cubi}\n  - {name: b, kind: tcp, cc: htcp, form: left}\n");
    assert!(
        said.starts_with(
            "f.yaml:5:30: flows.a.cc: unknown congestion control `cubi`: `tcplab cc list` shows the available ones\n  \
             5 |   - {name: a, kind: tcp, cc: cubi}\n    |                              ^^^^\n  did you mean `cubic`?"
        ),
        "{said}"
    );
    assert!(said.contains("flows.b.form: unknown key `form`") && said.contains("duration: `10` has no unit"));
}

#[test]
fn parameters_are_checked_by_name_and_range() {
    let said = said(
        "  - {name: a, kind: tcp, cc: {name: cubic, bta: 0.5}}\n  - {name: b, kind: tcp, cc: {name: cubic, beta: 2}}\n  \
         - {name: c, kind: tcp, cc: {name: reno, beta: 0.5}}\n",
    );
    assert!(said.contains("flows.a.cc.bta: cubic has no parameter `bta`\n"), "{said}");
    assert!(said.contains("did you mean `beta`?"), "{said}");
    assert!(said.contains("flows.b.cc.beta: 2 is outside 0.1 to 0.9"), "{said}");
    assert!(said.contains("flows.c.cc.beta: reno has no parameter `beta`; it has none"), "{said}");
}

#[test]
fn a_file_that_is_missing_or_not_a_control_is_the_flows_mistake() {
    let said = said("  - {name: a, kind: tcp, cc: brokn.c}\n  - {name: b, kind: tcp, cc: broken.c}\n");
    assert!(said.contains("there is no file `brokn.c` beside the scenario"), "{said}");
    assert!(said.contains("did you mean `broken.c`?"), "{said}");
    assert!(said.contains("flows.b.cc: broken.c does not compile"), "{said}");
}
