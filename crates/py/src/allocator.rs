//! The allocator of the module.
//!
//! A simulation of ten thousand connections consists of small allocations in as much memory as the processor's cache of address
//! translations (TLB) does not cover. For these mimalloc asks Linux for huge pages. The system's allocator is better at large
//! ones, such as the columns of tables: it grows them without a copy, and gives them back at once.

use std::alloc::{GlobalAlloc, Layout, System};

use mimalloc::MiMalloc;

/// Allocations of so many bytes and more are left to the system.
const LARGE: usize = 1 << 20;

pub(crate) struct BySize;

impl BySize {
    #[inline]
    fn is_large(size: usize) -> bool {
        size >= LARGE
    }
}

// SAFETY: each allocation is left to one of two allocators, which its size says as long as it lives.
unsafe impl GlobalAlloc for BySize {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if BySize::is_large(layout.size()) {
            // SAFETY: the caller's.
            in_huge_pages(unsafe { System.alloc(layout) }, layout.size())
        } else {
            // SAFETY: the caller's.
            unsafe { MiMalloc.alloc(layout) }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if BySize::is_large(layout.size()) {
            // SAFETY: the caller's.
            in_huge_pages(unsafe { System.alloc_zeroed(layout) }, layout.size())
        } else {
            // SAFETY: the caller's.
            unsafe { MiMalloc.alloc_zeroed(layout) }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if BySize::is_large(layout.size()) {
            // SAFETY: the caller's.
            unsafe { System.dealloc(pointer, layout) }
        } else {
            // SAFETY: the caller's.
            unsafe { MiMalloc.dealloc(pointer, layout) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match (BySize::is_large(layout.size()), BySize::is_large(size)) {
            // SAFETY: the caller's.
            (true, true) => in_huge_pages(unsafe { System.realloc(pointer, layout, size) }, size),
            // SAFETY: the caller's.
            (false, false) => unsafe { MiMalloc.realloc(pointer, layout, size) },
            // SAFETY: the caller's. The bytes that both have room for are copied.
            (true, false) | (false, true) => unsafe {
                let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !new.is_null() {
                    new.copy_from_nonoverlapping(pointer, layout.size().min(size));
                    self.dealloc(pointer, layout);
                }
                new
            },
        }
    }
}

/// `pointer`, after the huge pages that lie wholly in its `size` bytes were asked for.
fn in_huge_pages(pointer: *mut u8, size: usize) -> *mut u8 {
    #[cfg(target_os = "linux")]
    {
        const HUGE: usize = 2 << 20;
        let before = pointer.align_offset(HUGE);
        let pages = size.saturating_sub(before) / HUGE;
        if !pointer.is_null() && pages > 0 {
            // SAFETY: advice about memory of this allocation, of which no content changes. Without it nothing is different but
            // the speed.
            unsafe { libc::madvise(pointer.wrapping_add(before).cast(), pages * HUGE, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = size;
    pointer
}
