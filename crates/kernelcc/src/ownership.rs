//! Ownership of a control that was registered without a link, and removal of controls without an owner.
//!
//! A lease is a map without content that only the owner and the guardian of a control hold, so that it is gone when
//! both are. Its name has the number of the control's own map. Maps have the same numbers in every namespace, where
//! those of processes and the names of sockets differ.

use std::collections::HashSet;

use libbpf_rs::{ErrorKind, MapCore as _, MapFlags, MapHandle, MapType, libbpf_sys};

use crate::kernel::Kernel;

/// The only key of a struct_ops map.
pub(crate) const KEY: u32 = 0;
/// Begins the name of a lease; eight hexadecimal digits follow, which fills the 15 characters of a map's name.
const LEASE: &str = "tl_own_";
/// Begins the names of tcplab's struct_ops maps (`CONGESTION_CONTROL` of `tcplab_cc_bpf.h`) and of its controls.
const OURS: &str = "tl_";
/// `BPF_STRUCT_OPS_STATE_INUSE`: registered, and not by a link.
const IN_USE: u32 = 1;

/// Makes the control's map with this number somebody's, for as long as the handle or a copy of its descriptor is open.
pub(crate) fn take(number: u32) -> libbpf_rs::Result<MapHandle> {
    let mut options = libbpf_sys::bpf_map_create_opts::default();
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    MapHandle::create(MapType::Array, Some(format!("{LEASE}{number:08x}")), 4, 4, 1, &options)
}

/// Takes away the controls of tcplab's whose owner and guardian were both killed, and returns their names.
///
/// It does nothing where the kernel has links, for there none is left; and nothing where not all maps can be listed,
/// for which CAP_SYS_ADMIN is needed.
pub fn sweep() -> Vec<String> {
    match Kernel::running() {
        Some(Kernel { links: false, .. }) => take_away_abandoned(),
        _ => Vec::new(),
    }
}

/// Takes away what is registered without a link and has no lease.
pub(crate) fn take_away_abandoned() -> Vec<String> {
    // In this order: a lease is there before its control is registered, so what is registered in the first list and
    // has no lease in the second has lost it.
    let Ok(registered) = maps(registered) else { return Vec::new() };
    if registered.is_empty() {
        return Vec::new();
    }
    let Ok(leased) = maps(leased) else { return Vec::new() };
    let leased: HashSet<u32> = leased.into_iter().collect();
    let abandoned = registered.into_iter().filter(|(number, ..)| !leased.contains(number));
    let taken_away = abandoned.filter(|(_, map, _)| map.delete(&KEY.to_ne_bytes()).is_ok());
    taken_away.map(|(.., name)| name).collect()
}

/// A control of tcplab's that is registered without a link: the number of its map, the map, and its name.
fn registered(number: u32, map: MapHandle) -> Option<(u32, MapHandle, String)> {
    if map.map_type() != MapType::StructOps || !map.name().to_str()?.starts_with(OURS) {
        return None;
    }
    // `bpf_struct_ops_common_value`, a count and the state, and then the operations with the name.
    let value = map.lookup(&KEY.to_ne_bytes(), MapFlags::empty()).ok()??;
    let (words, _) = value.as_chunks::<4>();
    let state = u32::from_ne_bytes(*words.get(1)?);
    let at = value.windows(OURS.len()).position(|bytes| bytes == OURS.as_bytes())?;
    let name = value[at..].split(|byte| *byte == 0).next()?;
    (state == IN_USE).then(|| (number, map, String::from_utf8_lossy(name).into_owned()))
}

/// The number of the map that a lease is for.
fn leased(_: u32, map: MapHandle) -> Option<u32> {
    u32::from_str_radix(map.name().to_str()?.strip_prefix(LEASE)?, 16).ok()
}

/// Results of `of`, called with each of the kernel's maps and its number.
fn maps<T>(of: impl Fn(u32, MapHandle) -> Option<T>) -> libbpf_rs::Result<Vec<T>> {
    let mut found = Vec::new();
    let mut number = 0;
    // SAFETY: the second argument is valid for the call.
    while unsafe { libbpf_sys::bpf_map_get_next_id(number, &mut number) } == 0 {
        match MapHandle::from_map_id(number) {
            Ok(map) => found.extend(of(number, map)),
            // Gone since.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let ended = libbpf_rs::Error::from(std::io::Error::last_os_error());
    if ended.kind() == ErrorKind::NotFound { Ok(found) } else { Err(ended) }
}
