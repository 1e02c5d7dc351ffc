//! The objects compiled with this crate.

use crate::KernelccError;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Names of the controls that were compiled for eBPF, in alphabetical order; none when there was no compiler.
pub fn names() -> impl Iterator<Item = &'static str> {
    OBJECTS.iter().map(|(name, _)| *name)
}

/// The object of the control called `name`, with or without `tl_`; `bbr` is `bbr1`.
pub(crate) fn find(name: &str) -> Result<&'static [u8], KernelccError> {
    built()?;
    let wanted = name.strip_prefix("tl_").unwrap_or(name);
    let wanted = if wanted == "bbr" { "bbr1" } else { wanted };
    let found = OBJECTS.iter().find(|(known, _)| *known == wanted);
    let unknown =
        || KernelccError::Unknown { name: name.to_owned(), known: names().collect::<Vec<_>>().join(", ") };
    found.map(|(_, object)| *object).ok_or_else(unknown)
}

/// Whether objects were compiled at all.
pub fn built() -> Result<(), KernelccError> {
    MISSING.map_or(Ok(()), |why| Err(KernelccError::NotBuilt(why)))
}
