//! Memory asked for before it is read, so that the processor does not wait for it later.

/// Bytes of a line of the processor's cache.
const LINE: usize = 64;

/// Asks for `value` itself, not for what it points to. A hint: it reads nothing and changes no result.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    let (start, size) = (core::ptr::from_ref(value).cast::<u8>(), size_of_val(value));
    // As many steps whatever the alignment, so that they need no loop. The last byte may be one line further.
    for line in 0..size.div_ceil(LINE) {
        ask(start.wrapping_add(line * LINE));
    }
    ask(start.wrapping_add(size.saturating_sub(1)));
}

/// The same for its bytes from `FROM` to before `TO`, if it begins a line.
#[inline(always)]
pub fn prefetch_part<const FROM: usize, const TO: usize>(value: &impl Sized) {
    let start = core::ptr::from_ref(value).cast::<u8>();
    for line in FROM / LINE..TO.div_ceil(LINE) {
        ask(start.wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ask(line: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch of any address is allowed; where there is no memory it does nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn ask(_line: *const u8) {}
