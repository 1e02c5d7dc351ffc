//! Loading a control and registering it with TCP.

use std::ops::Range;

use libbpf_rs::btf::types::{DataSec, FuncProto, Ptr, Struct, Var};
use libbpf_rs::btf::{Btf, ReferencesType as _};
use libbpf_rs::{
    AsRawLibbpf as _, ErrorKind, Link, MapCore as _, MapType, Object, ObjectBuilder, OpenObject,
};

use tcplab_control::Gauge;

use crate::about::About;
use crate::explain::Refusal;
use crate::name::{candidates, taken};
use crate::{KernelccError, log, machine, objects};

/// The name that `tcplab_cc_bpf.h` gives the map of the connections' state.
const STATE: &str = "tl_state";
/// The name that it gives the parameters.
const PARAMETERS: &str = "tl_parameters";
/// The name that it gives the number of arguments of `cong_control`.
const ARGUMENTS: &str = "tl_cong_control_arguments";
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
    wanted: String,
    state: u32,
    phases: Vec<String>,
    gauges: Vec<Gauge>,
}

impl Loaded {
    /// Loads the control of `cc/` called `name`, with the parameters that differ from their defaults, and registers
    /// it as [`registered`](Loaded::registered) says.
    pub fn load<'a>(
        name: &str,
        params: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<Loaded, KernelccError> {
        Loaded::load_object(objects::find(name)?, name, params)
    }

    /// Loads the control in an eBPF object that was compiled from a C file with `tcplab_cc.h`. Errors that come
    /// before its own name is known call it `file`.
    pub fn load_object<'a>(
        object: &[u8],
        file: &str,
        params: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<Loaded, KernelccError> {
        let about = About::read(object, file)?;
        let values = about.set(params)?;
        if let Some(obstacle) = machine::obstacle() {
            return Err(obstacle);
        }
        let names: Vec<String> = candidates(&about.name).collect();
        let taken = taken();
        for name in names.iter().filter(|name| !taken.contains(name)) {
            match register(&about, &values, object, name) {
                // Another process was quicker.
                Err(KernelccError::Failed { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {}
                result => return result,
            }
        }
        Err(KernelccError::Taken {
            name: about.name,
            first: names[0].clone(),
            last: names[names.len() - 1].clone(),
        })
    }

    /// The name to choose it by (TCP_CONGESTION): `tl_NAME`, or `tl_NAME_1` and so on when that is taken.
    pub fn registered(&self) -> &str {
        &self.registered
    }

    /// The name it has unless another process has taken that: `tl_NAME`.
    pub fn wanted(&self) -> &str {
        &self.wanted
    }

    /// The number of the map that holds the state of each connection (`bpf_map_info.id`), telemetry first.
    pub fn state(&self) -> u32 {
        self.state
    }

    /// Names of the phases, by number.
    pub fn phases(&self) -> &[String] {
        &self.phases
    }

    /// What it publishes of each connection's state.
    pub fn gauges(&self) -> &[Gauge] {
        &self.gauges
    }
}

fn register(about: &About, values: &[u32], object: &[u8], registered: &str) -> Result<Loaded, KernelccError> {
    let name = about.name.as_str();
    let failed = |step| {
        move |(source, log): (_, String)| {
            let log = log::tail(&log).to_owned();
            KernelccError::Failed { step, name: name.to_owned(), source, log }
        }
    };
    let mut open =
        attempt(|| ObjectBuilder::default().name(registered)?.open_memory(object)).map_err(failed("open"))?;
    prepare(&mut open, name, values, registered)?;
    let mut object = attempt(|| open.load()).map_err(|(source, log)| {
        // The verifier answers EACCES or EINVAL and says why in its log; EPERM is about the process.
        match source.kind() {
            ErrorKind::PermissionDenied if log.contains("-EPERM") => KernelccError::NotPermitted("CAP_BPF"),
            _ => match Refusal::read(&log) {
                Some(refusal) => KernelccError::Refused { name: name.to_owned(), refusal: Box::new(refusal) },
                None => failed("load")((source, log)),
            },
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
        wanted: candidates(name).next().unwrap_or_default(),
        state,
        phases: about.phases.clone(),
        gauges: about.gauges.clone(),
    })
}

fn attempt<T>(action: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, (libbpf_rs::Error, String)> {
    let (result, log) = log::listening(action);
    result.map_err(|error| (error, log))
}

/// Sets name and parameters of an object that is not loaded yet, and how the kernel calls `cong_control`.
fn prepare(open: &mut OpenObject, name: &str, wanted: &[u32], registered: &str) -> Result<(), KernelccError> {
    let malformed = |what| KernelccError::Malformed { name: name.to_owned(), what };
    let failed =
        |source| KernelccError::Failed { step: "prepare", name: name.to_owned(), source, log: String::new() };
    let parameters = place(open, PARAMETERS);
    let arguments = place(open, ARGUMENTS);
    let given = Btf::from_vmlinux().ok().and_then(|kernel| cong_control_arguments(&kernel)).unwrap_or(0);
    let mut named = false;
    let mut set = wanted.is_empty();
    for mut map in open.maps_mut() {
        if map.map_type() == MapType::StructOps {
            map.set_map_flags(BPF_F_LINK).map_err(failed)?;
            named = map.initial_value_mut().is_some_and(|value| rename(value, name, registered));
        } else if map.name().to_string_lossy().ends_with(".rodata")
            && let Some(data) = map.initial_value_mut()
        {
            if let Some(place) = &parameters {
                set = write(data, place, wanted);
            }
            if let Some(place) = &arguments {
                write(data, place, &[given]);
            }
        }
    }
    match (named, set) {
        (true, true) => Ok(()),
        (false, _) => Err(malformed("CONGESTION_CONTROL")),
        (_, false) => Err(malformed("room for its PARAMETERS")),
    }
}

/// Writes numbers where a variable is; false if that has another size.
fn write(data: &mut [u8], place: &Range<usize>, numbers: &[u32]) -> bool {
    let (words, _) = data.get_mut(place.clone()).unwrap_or_default().as_chunks_mut::<4>();
    for (word, number) in words.iter_mut().zip(numbers) {
        *word = number.to_ne_bytes();
    }
    words.len() == numbers.len()
}

/// Where a variable is in the read-only data, which holds the control's constant tables too.
fn place(open: &OpenObject, name: &str) -> Option<Range<usize>> {
    // SAFETY: the object is open for as long as it is borrowed, and so is what is read of it here.
    let btf = Btf::from_bpf_object(unsafe { open.as_libbpf_object().as_ref() }).ok()??;
    let data = btf.type_by_name::<DataSec<'_>>(".rodata")?;
    let place = data.iter().find(|variable| {
        let declared = btf.type_by_id::<Var<'_>>(variable.ty);
        declared.is_some_and(|declared| declared.name().is_some_and(|known| known == name))
    })?;
    let begin = place.offset as usize;
    Some(begin..begin + place.size)
}

/// How many arguments `tcp_congestion_ops.cong_control` takes by these types: 2 before Linux 6.10, 4 since.
fn cong_control_arguments(btf: &Btf<'_>) -> Option<u32> {
    let operations = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
    let member = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
    let pointer = btf.type_by_id::<Ptr<'_>>(member.ty)?;
    let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
    u32::try_from(function.len()).ok()
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

/// Reno with something more, for tests of what becomes of it.
#[cfg(test)]
pub(crate) mod trial {
    use std::path::Path;
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    pub(crate) struct Trial<'a> {
        /// Put before everything else.
        pub(crate) head: &'a str,
        /// Where the statement is put: after this.
        pub(crate) at: &'a str,
        pub(crate) statement: &'a str,
    }

    impl Trial<'_> {
        /// None without a compiler.
        pub(crate) fn object(&self) -> Option<Vec<u8>> {
            let cc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cc");
            let source = std::fs::read_to_string(cc.join("reno.c")).unwrap();
            assert!(source.contains(self.at));
            let with = format!("{}\n\t{}", self.at, self.statement);
            let body = source.replacen(self.at, &with, 1);
            let declared = body.replacen("INIT(sk", &format!("{}INIT(sk", self.head), 1);
            // A file of its own: the compiler reads it once more for the lines that the verifier quotes.
            static TRIALS: AtomicUsize = AtomicUsize::new(0);
            let number = TRIALS.fetch_add(1, Ordering::Relaxed);
            let file = std::env::temp_dir().join(format!("tcplab-trial-{}-{number}.c", std::process::id()));
            std::fs::write(&file, declared).unwrap();
            let clang = Command::new("clang")
                .args(["-target", "bpf", "-O2", "-g", "-std=gnu11", "-o", "/dev/stdout", "-I"])
                .arg(cc.join("include"))
                .arg("-c")
                .arg(&file)
                .output();
            std::fs::remove_file(&file).unwrap();
            let output = clang.ok()?;
            assert!(output.status.success());
            Some(output.stdout)
        }
    }

    /// What the kernel says of it; why it cannot be asked otherwise.
    pub(crate) fn refusal(trial: Trial<'_>) -> Result<Refusal, String> {
        if let Some(why) = machine::obstacle() {
            return Err(why.to_string());
        }
        let object = trial.object().ok_or("no clang")?;
        let about = About::read(&object, "reno.o").unwrap();
        let values = about.set([]).unwrap();
        let error = register(&about, &values, &object, "tl_faulty").unwrap_err();
        assert!(!taken().contains(&"tl_faulty".to_owned()));
        let KernelccError::Refused { name, refusal } = error else { panic!("{error}") };
        assert_eq!(name, "reno");
        Ok(*refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::trial::Trial;
    use super::*;

    #[test]
    fn a_new_name_replaces_the_old_one_whole() {
        let mut operations = *b"........tl_cubic\0\0\0\0\0\0\0\0....";
        assert!(rename(&mut operations, "cubic", "tl_c_1"));
        assert_eq!(&operations, b"........tl_c_1\0\0\0\0\0\0\0\0\0\0....");
        assert!(!rename(&mut operations, "cubic", "tl_c_2"), "the old name is gone");
    }

    #[test]
    fn a_second_one_of_the_same_name_gets_another_and_says_which_it_wanted() {
        let trial = Trial::default();
        let (Some(object), None) = (trial.object(), machine::obstacle()) else { return eprintln!("skipped") };
        let load = || Loaded::load_object(&object, "reno.o", []).unwrap();
        let (first, second) = (load(), load());
        assert_ne!(first.registered(), second.registered());
        assert!(second.registered().starts_with("tl_reno_"), "{}", second.registered());
        assert_eq!(second.wanted(), "tl_reno");
        assert!(first.gauges().is_empty(), "reno shows none");
    }

    #[test]
    fn parameters_are_found_beside_constant_tables() {
        let trial = Trial { head: "const unsigned table[3] = {1, 2, 3};\n", ..Trial::default() };
        let Some(object) = trial.object() else { return eprintln!("skipped: no clang") };
        let mut open = ObjectBuilder::default().open_memory(&object).unwrap();
        let place = place(&open, PARAMETERS).unwrap();
        assert_eq!(place.len(), 4, "reno has one parameter");
        prepare(&mut open, "reno", &[768], "tl_reno_7").unwrap();
        let data = open.maps().find(|map| map.name().to_string_lossy().ends_with(".rodata")).unwrap();
        let value = data.initial_value().unwrap();
        assert_eq!(value.len(), 20);
        assert_eq!(value[place], 768u32.to_ne_bytes());
    }

    /// The types of a C text; none without a compiler.
    fn types_of(text: &str) -> Option<Btf<'static>> {
        let object =
            std::env::temp_dir().join(format!("tcplab-types-{}-{}.o", std::process::id(), text.len()));
        let mut clang = std::process::Command::new("clang")
            .args(["-target", "bpf", "-g", "-x", "c", "-c", "-", "-o"])
            .arg(&object)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .ok()?;
        std::io::Write::write_all(&mut clang.stdin.take().unwrap(), text.as_bytes()).unwrap();
        assert!(clang.wait().unwrap().success());
        let btf = Btf::from_path(&object);
        std::fs::remove_file(&object).unwrap();
        Some(btf.unwrap())
    }

    #[test]
    fn the_kernels_types_say_how_cong_control_is_called() {
        let sources = [
            // Linux 4.9 to 6.9, and since 6.10.
            ("struct sock *sk, const struct rate_sample *rs", 2),
            ("struct sock *sk, unsigned ack, int flag, const struct rate_sample *rs", 4),
        ];
        for (arguments, count) in sources {
            let operations = format!(
                "struct sock; struct rate_sample; \
                 struct tcp_congestion_ops {{ int flags; void (*cong_control)({arguments}); }} ops;"
            );
            let Some(btf) = types_of(&operations) else { return eprintln!("skipped: no clang") };
            assert_eq!(cong_control_arguments(&btf), Some(count));
        }
        let Some(btf) = types_of("struct tcp_congestion_ops { int flags; } ops;") else { return };
        assert_eq!(cong_control_arguments(&btf), None);
    }
}
