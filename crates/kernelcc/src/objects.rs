//! The objects compiled with this crate.

use crate::KernelccError;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Names of the controls that were compiled for eBPF, in alphabetical order; none when there was no compiler.
pub fn names() -> impl Iterator<Item = &'static str> {
    OBJECTS.iter().map(|(name, _)| *name)
}

/// The object of the control called `name`.
pub(crate) fn find(name: &str) -> Result<&'static [u8], KernelccError> {
    built()?;
    let found = OBJECTS.iter().find(|(known, _)| *known == name);
    found.map(|(_, object)| *object).ok_or_else(|| unknown(name))
}

pub(crate) fn unknown(name: &str) -> KernelccError {
    KernelccError::Unknown { name: name.to_owned(), known: names().collect::<Vec<_>>().join(", ") }
}

/// Whether objects were compiled at all.
pub(crate) fn built() -> Result<(), KernelccError> {
    MISSING.map_or(Ok(()), |why| Err(KernelccError::NotBuilt(why)))
}
