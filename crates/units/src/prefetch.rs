//! Memory asked for before it is read, so that the processor does not wait for it later.

/// Bytes of a line of the processor's cache.
const LINE: usize = 64;

/// Asks for `value` itself, not for what it points to. A hint: it reads nothing and changes no result.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    let (start, size) = (core::ptr::from_ref(value).cast::<u8>(), size_of_val(value));
    // As many steps whatever the alignment, so that they need no loop. The last byte may be one line further.
    for line in 0..size.div_ceil(LINE) {
        ask::<1>(start.wrapping_add(line * LINE));
    }
    ask::<1>(start.wrapping_add(size.saturating_sub(1)));
}

/// The same for the line in which `value` begins.
#[inline(always)]
pub fn prefetch_start<T: ?Sized>(value: &T) {
    ask::<1>(core::ptr::from_ref(value).cast());
}

/// The same for many lines: the bytes of `value` from `FROM` to before `TO`, if it begins a line.
///
/// They are asked for in the second level of the cache. In the first they would drive out what is read before them.
#[inline(always)]
pub fn prefetch_part<const FROM: usize, const TO: usize>(value: &impl Sized) {
    let start = core::ptr::from_ref(value).cast::<u8>();
    for line in FROM / LINE..TO.div_ceil(LINE) {
        ask::<2>(start.wrapping_add(line * LINE));
    }
}

/// Asks for a line in that level of the cache: the first or the second.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ask<const LEVEL: u8>(line: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
    // SAFETY: a prefetch of any address is allowed; where there is no memory it does nothing.
    unsafe {
        if LEVEL == 1 {
            _mm_prefetch::<_MM_HINT_T0>(line.cast());
        } else {
            _mm_prefetch::<_MM_HINT_T1>(line.cast());
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn ask<const LEVEL: u8>(_line: *const u8) {}
