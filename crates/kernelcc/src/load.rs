//! Loading a control and registering it with TCP.

use std::ops::Range;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Var};
use libbpf_rs::{
    AsRawLibbpf as _, ErrorKind, Link, MapCore as _, MapType, Object, ObjectBuilder, OpenObject,
};
use tcplab_control::{Control, ControlError};

use crate::name::{candidates, taken};
use crate::{KernelccError, log, machine, objects};

/// The name that `tcplab_cc_bpf.h` gives the map of the connections' state.
const STATE: &str = "tl_state";
/// The name that it gives the parameters.
const PARAMETERS: &str = "tl_parameters";
/// `BPF_F_LINK` of the kernel's UAPI: the map is registered by a link instead of by itself.
const BPF_F_LINK: u32 = 1 << 13;
/// Size of the name in `struct tcp_congestion_ops` (TCP_CA_NAME_MAX).
const NAME: usize = 16;

/// A control that TCP offers; dropping it takes it away.
#[derive(Debug)]
pub struct Loaded {
    // Dropped first: what is registered needs what is loaded.
    _link: Link,
    _object: Object,
    registered: String,
    state: u32,
    phases: Vec<&'static str>,
}

impl Loaded {
    /// Loads the control called `name`, with the parameters that differ from their defaults, and registers it as
    /// [`registered`](Loaded::registered) says.
    pub fn load<'a>(
        name: &str,
        params: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<Loaded, KernelccError> {
        // The simulator's half knows the parameters' ranges and the phases' names.
        let control = Control::new(name, params).map_err(|error| match error {
            ControlError::Unknown(name) => objects::unknown(&name),
            error => error.into(),
        })?;
        if let Some(obstacle) = machine::obstacle() {
            return Err(obstacle);
        }
        let object = objects::find(control.name())?;
        let names: Vec<String> = candidates(control.name()).collect();
        let taken = taken();
        for name in names.iter().filter(|name| !taken.contains(name)) {
            match register(&control, object, name) {
                // Another process was quicker.
                Err(KernelccError::Failed { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {}
                result => return result,
            }
        }
        Err(KernelccError::Taken {
            name: control.name().to_owned(),
            first: names[0].clone(),
            last: names[names.len() - 1].clone(),
        })
    }

    /// The name to choose it by (TCP_CONGESTION): `tl_NAME`, or `tl_NAME_1` and so on when that is taken.
    pub fn registered(&self) -> &str {
        &self.registered
    }

    /// The number of the map that holds the state of each connection (`bpf_map_info.id`), telemetry first.
    pub fn state(&self) -> u32 {
        self.state
    }

    /// Names of the phases, by number.
    pub fn phases(&self) -> &[&'static str] {
        &self.phases
    }
}

fn register(control: &Control, object: &[u8], registered: &str) -> Result<Loaded, KernelccError> {
    let name = control.name();
    let failed =
        |step| move |(source, log)| KernelccError::Failed { step, name: name.to_owned(), source, log };
    let mut open =
        attempt(|| ObjectBuilder::default().name(registered)?.open_memory(object)).map_err(failed("open"))?;
    prepare(&mut open, control, registered)?;
    let mut object = attempt(|| open.load()).map_err(|(source, log)| {
        // The verifier answers EACCES or EINVAL and says why in its log; EPERM is about the process.
        match source.kind() {
            ErrorKind::PermissionDenied if log.contains("-EPERM") => KernelccError::NotPermitted("CAP_BPF"),
            _ if log.contains("PROG LOAD LOG") => KernelccError::Refused { name: name.to_owned(), log },
            _ => KernelccError::Failed { step: "load", name: name.to_owned(), source, log },
        }
    })?;
    let malformed = |what| KernelccError::Malformed { name: name.to_owned(), what };
    let state = object.maps().find(|map| map.name() == STATE).ok_or_else(|| malformed("tl_state"))?;
    let state = state.info().map_err(|source| failed("inspect")((source, String::new())))?.info.id;
    let mut operations = object.maps_mut().find(|map| map.map_type() == MapType::StructOps);
    let operations = operations.as_mut().ok_or_else(|| malformed("CONGESTION_CONTROL"))?;
    let link = attempt(|| operations.attach_struct_ops()).map_err(failed("register"))?;
    Ok(Loaded {
        _link: link,
        _object: object,
        registered: registered.to_owned(),
        state,
        phases: control.phases().to_vec(),
    })
}

fn attempt<T>(action: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, (libbpf_rs::Error, String)> {
    let (result, log) = log::listening(action);
    result.map_err(|error| (error, log))
}

/// Sets name and parameters of an object that is not loaded yet.
fn prepare(open: &mut OpenObject, control: &Control, registered: &str) -> Result<(), KernelccError> {
    let name = control.name();
    let malformed = |what| KernelccError::Malformed { name: name.to_owned(), what };
    let failed =
        |source| KernelccError::Failed { step: "prepare", name: name.to_owned(), source, log: String::new() };
    let parameters = parameters(open);
    let mut named = false;
    let mut set = control.parameters().is_empty();
    for mut map in open.maps_mut() {
        if map.map_type() == MapType::StructOps {
            map.set_map_flags(BPF_F_LINK).map_err(failed)?;
            named = map.initial_value_mut().is_some_and(|value| rename(value, name, registered));
        } else if map.name().to_string_lossy().ends_with(".rodata")
            && let Some(value) = map.initial_value_mut()
        {
            let value = parameters.clone().and_then(|place| value.get_mut(place)).unwrap_or_default();
            let (values, _) = value.as_chunks_mut::<4>();
            set = values.len() == control.parameters().len();
            for (value, parameter) in values.iter_mut().zip(control.parameters()) {
                *value = parameter.to_ne_bytes();
            }
        }
    }
    match (named, set) {
        (true, true) => Ok(()),
        (false, _) => Err(malformed("CONGESTION_CONTROL")),
        (_, false) => Err(malformed("PARAMETERS as the simulator has them")),
    }
}

/// Where the parameters are in the read-only data, which holds the control's constant tables too.
fn parameters(open: &OpenObject) -> Option<Range<usize>> {
    // SAFETY: the object is open for as long as it is borrowed, and so is what is read of it here.
    let btf = Btf::from_bpf_object(unsafe { open.as_libbpf_object().as_ref() }).ok()??;
    let data = btf.type_by_name::<DataSec<'_>>(".rodata")?;
    let place = data.iter().find(|variable| {
        let declared = btf.type_by_id::<Var<'_>>(variable.ty);
        declared.is_some_and(|declared| declared.name().is_some_and(|name| name == PARAMETERS))
    })?;
    let begin = place.offset as usize;
    Some(begin..begin + place.size)
}

/// Overwrites the name in the operations with which they were compiled; false if it is not there.
fn rename(operations: &mut [u8], name: &str, registered: &str) -> bool {
    let compiled = format!("tl_{name}\0");
    let found = operations.windows(compiled.len()).position(|bytes| bytes == compiled.as_bytes());
    let Some(field) = found.and_then(|at| operations.get_mut(at..at + NAME)) else { return false };
    field.fill(0);
    field[..registered.len()].copy_from_slice(registered.as_bytes());
    true
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_new_name_replaces_the_old_one_whole() {
        let mut operations = *b"........tl_cubic\0\0\0\0\0\0\0\0....";
        assert!(rename(&mut operations, "cubic", "tl_c_1"));
        assert_eq!(&operations, b"........tl_c_1\0\0\0\0\0\0\0\0\0\0....");
        assert!(!rename(&mut operations, "cubic", "tl_c_2"), "the old name is gone");
    }

    /// The object of reno with more at the beginning of its file and of its INIT; none without a compiler.
    fn reno_with(head: &str, statement: &str) -> Option<Vec<u8>> {
        let cc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cc");
        let source = std::fs::read_to_string(cc.join("reno.c")).unwrap();
        let begin = "INIT(sk, tp, ca)\n{";
        assert!(source.contains(begin));
        let source = head.to_owned() + &source.replace(begin, &format!("{begin}\n\t{statement}"));
        let mut clang = Command::new("clang")
            .args([
                "-target",
                "bpf",
                "-O2",
                "-g",
                "-std=gnu11",
                "-x",
                "c",
                "-c",
                "-",
                "-o",
                "/dev/stdout",
                "-I",
            ])
            .arg(cc.join("include"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        clang.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
        let output = clang.wait_with_output().unwrap();
        assert!(output.status.success());
        Some(output.stdout)
    }

    #[test]
    fn parameters_are_found_beside_constant_tables() {
        let Some(object) = reno_with("const unsigned table[3] = {1, 2, 3};\n", "") else {
            return eprintln!("skipped: no clang");
        };
        let mut open = ObjectBuilder::default().open_memory(&object).unwrap();
        let place = parameters(&open).unwrap();
        assert_eq!(place.len(), 4, "reno has one parameter");
        prepare(&mut open, &Control::new("reno", [("beta", 0.75)]).unwrap(), "tl_reno_7").unwrap();
        let data = open.maps().find(|map| map.name().to_string_lossy().ends_with(".rodata")).unwrap();
        let value = data.initial_value().unwrap();
        assert_eq!(value.len(), 16);
        assert_eq!(value[place], 768u32.to_ne_bytes());
    }

    #[test]
    fn what_the_verifier_refuses_comes_with_its_verdict() {
        if let Some(why) = machine::obstacle() {
            return eprintln!("skipped: {why}");
        }
        let Some(object) = reno_with("", "*((volatile u32 *)sk + 100000) = 1;") else {
            return eprintln!("skipped: no clang");
        };
        let error = register(&Control::new("reno", []).unwrap(), &object, "tl_faulty").unwrap_err();
        let KernelccError::Refused { name, log } = &error else { panic!("{error}") };
        assert_eq!(name, "reno");
        assert!(log.contains("400000") && log.contains("reno_init"), "{log}");
        assert!(!taken().contains(&"tl_faulty".to_owned()));
    }
}
