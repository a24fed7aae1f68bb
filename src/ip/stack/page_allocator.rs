//! The allocator of the stack: large blocks are pages of their own from the host, which become memory when they are
//! written to. The C library takes them from its heap once one has been freed, and clears all of each: a socket whose
//! buffers are hardly used would take 280 KiB instead of 13.
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr;

unsafe extern "C" {
    fn mmap(address: *mut c_void, bytes: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut c_void;
    fn munmap(address: *mut c_void, bytes: usize) -> i32;
}

const LEAST_BYTES: usize = 64 * 1024;
const LEAST_PAGE_BYTES: usize = 4096;
const READ_WRITE: i32 = 1 | 2; // PROT_READ, PROT_WRITE
const PRIVATE_ANONYMOUS: i32 = 0x02 | 0x20; // MAP_PRIVATE, MAP_ANONYMOUS

pub struct PageAllocator;

fn is_large(layout: Layout) -> bool {
    layout.size() >= LEAST_BYTES && layout.align() <= LEAST_PAGE_BYTES
}

unsafe impl GlobalAlloc for PageAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_large(layout) {
            return unsafe { System.alloc(layout) };
        }
        let pages = unsafe { mmap(ptr::null_mut(), layout.size(), READ_WRITE, PRIVATE_ANONYMOUS, -1, 0) };
        if pages as isize == -1 { ptr::null_mut() } else { pages.cast() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) { unsafe { self.alloc(layout) } } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_large(layout) {
            unsafe { munmap(block.cast(), layout.size()) };
        } else {
            unsafe { System.dealloc(block, layout) };
        }
    }
}
