//! Loading a control and registering it with TCP.

use std::ops::Range;
use std::os::fd::AsFd as _;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Var};
use libbpf_rs::{
    AsRawLibbpf as _, ErrorKind, Link, MapCore as _, MapType, Object, ObjectBuilder, OpenObject,
};

use tcplab_control::Gauge;

use crate::elf_metadata::ElfMetadata;
use crate::explain::Refusal;
use crate::guardian::Guardian;
use crate::kernel::Kernel;
use crate::name::{candidates, taken};
use crate::{KernelccError, log, objects, requirements};

/// The name that `tcplab_cc_bpf.h` gives the map of the connections' state.
const STATE: &str = "tl_state";
/// The name that it gives the parameters.
const PARAMETERS: &str = "tl_parameters";
/// The name that it gives the number of arguments of `cong_control`.
const ARGUMENTS: &str = "tl_cong_control_arguments";
/// The name that it gives the question whether a control may write `app_limited`.
const APP_LIMITED: &str = "tl_app_limited_access";
/// `BPF_F_LINK` of the kernel's UAPI: the map is registered by a link instead of by itself.
const BPF_F_LINK: u32 = 1 << 13;
/// Size of the name in `struct tcp_congestion_ops` (TCP_CA_NAME_MAX).
const NAME: usize = 16;

/// A control that TCP offers; dropping it takes it away.
#[derive(Debug)]
pub struct Loaded {
    // Dropped first: what is registered needs what is loaded. Without a real link, dropping this one deletes the
    // map's element, and the guardian comes after that.
    _link: Link,
    _guardian: Option<Guardian>,
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
        let metadata = ElfMetadata::read(object, file)?;
        let values = metadata.set(params)?;
        if let Some(obstacle) = requirements::obstacle() {
            return Err(obstacle);
        }
        let kernel = Kernel::running();
        let names: Vec<String> = candidates(&metadata.name).collect();
        let taken = taken();
        for name in names.iter().filter(|name| !taken.contains(name)) {
            match register(&metadata, &values, object, name, kernel) {
                // Another process was quicker.
                Err(KernelccError::Failed { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {}
                result => return result,
            }
        }
        Err(KernelccError::Taken {
            name: metadata.name,
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

    /// Gauges of each connection's state.
    pub fn gauges(&self) -> &[Gauge] {
        &self.gauges
    }
}

fn register(
    metadata: &ElfMetadata,
    values: &[u32],
    object: &[u8],
    registered: &str,
    kernel: Option<Kernel>,
) -> Result<Loaded, KernelccError> {
    let name = metadata.name.as_str();
    let failed = |step| {
        move |(source, log): (_, String)| {
            let log = log::tail(&log).to_owned();
            KernelccError::Failed { step, name: name.to_owned(), source, log }
        }
    };
    let mut open =
        attempt(|| ObjectBuilder::default().name(registered)?.open_memory(object)).map_err(failed("open"))?;
    prepare(&mut open, name, values, registered, kernel)?;
    let mut object = attempt(|| open.load()).map_err(|(source, log)| {
        // The verifier answers EACCES or EINVAL and says why in its log; EPERM is metadata the process.
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
    let guardian = match kernel {
        Some(Kernel { links: false, .. }) => {
            let number =
                operations.info().map_err(|source| failed("inspect")((source, String::new())))?.info.id;
            let started = Guardian::start(operations.as_fd(), number);
            Some(started.map_err(|source| KernelccError::NoGuardian { name: name.to_owned(), source })?)
        }
        _ => None,
    };
    let link = attempt(|| operations.attach_struct_ops()).map_err(failed("register"))?;
    Ok(Loaded {
        _link: link,
        _guardian: guardian,
        _object: object,
        registered: registered.to_owned(),
        wanted: candidates(name).next().unwrap_or_default(),
        state,
        phases: metadata.phases.clone(),
        gauges: metadata.gauges.clone(),
    })
}

fn attempt<T>(action: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, (libbpf_rs::Error, String)> {
    let (result, log) = log::listening(action);
    result.map_err(|error| (error, log))
}

/// Sets name and parameters of an object that is not loaded yet, and how the kernel calls `cong_control`.
fn prepare(
    open: &mut OpenObject,
    name: &str,
    wanted: &[u32],
    registered: &str,
    kernel: Option<Kernel>,
) -> Result<(), KernelccError> {
    let malformed = |what| KernelccError::Malformed { name: name.to_owned(), what };
    let failed =
        |source| KernelccError::Failed { step: "prepare", name: name.to_owned(), source, log: String::new() };
    let parameters = place(open, PARAMETERS);
    // The kernel's properties, as the programs read them; 0 where one is not known.
    let facts = [
        (place(open, ARGUMENTS), kernel.and_then(|kernel| kernel.cong_control_arguments)),
        (place(open, APP_LIMITED), kernel.map(|kernel| 1 + u32::from(kernel.writes_app_limited))),
    ];
    let mut named = false;
    let mut set = wanted.is_empty();
    for mut map in open.maps_mut() {
        if map.map_type() == MapType::StructOps {
            if kernel.is_none_or(|kernel| kernel.links) {
                map.set_map_flags(BPF_F_LINK).map_err(failed)?;
            }
            named = map.initial_value_mut().is_some_and(|value| rename(value, name, registered));
        } else if map.name().to_string_lossy().ends_with(".rodata")
            && let Some(data) = map.initial_value_mut()
        {
            if let Some(place) = &parameters {
                set = write(data, place, wanted);
            }
            for (place, fact) in &facts {
                if let (Some(place), Some(fact)) = (place, fact) {
                    write(data, place, &[*fact]);
                }
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

    /// A control of `cc/` registered as on a kernel without links, and its guardian's process.
    pub(crate) fn guarded(name: &str, registered: &str) -> Result<(Loaded, i32), KernelccError> {
        let object = objects::find(name)?;
        let metadata = ElfMetadata::read(object, name)?;
        let kernel =
            Kernel::running().map(|kernel| Kernel { links: false, writes_app_limited: false, ..kernel });
        let loaded = register(&metadata, &metadata.set([])?, object, registered, kernel)?;
        let process = loaded._guardian.as_ref().map(Guardian::process);
        Ok((loaded, process.unwrap_or_default()))
    }

    /// The kernel's information metadata it, or why it cannot be read.
    pub(crate) fn refusal(trial: Trial<'_>) -> Result<Refusal, String> {
        if let Some(why) = requirements::obstacle() {
            return Err(why.to_string());
        }
        let object = trial.object().ok_or("no clang")?;
        let metadata = ElfMetadata::read(&object, "reno.o").unwrap();
        let values = metadata.set([]).unwrap();
        let error = register(&metadata, &values, &object, "tl_faulty", Kernel::running()).unwrap_err();
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
        let (Some(object), None) = (trial.object(), requirements::obstacle()) else {
            return eprintln!("skipped");
        };
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
        assert_eq!(place.len(), 8, "reno has two parameters");
        prepare(&mut open, "reno", &[768, 900], "tl_reno_7", None).unwrap();
        let data = open.maps().find(|map| map.name().to_string_lossy().ends_with(".rodata")).unwrap();
        let value = data.initial_value().unwrap();
        assert_eq!(value.len(), 28);
        assert_eq!(value[place], [768u32.to_ne_bytes(), 900u32.to_ne_bytes()].concat());
    }
}
