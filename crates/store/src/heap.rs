//! The allocator's own pages.

/// Gives the pages that the allocator keeps free back to the system: it would hold on to most of what a large plan took.
pub fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: glibc's own function; it takes no pointers and may be called from any thread at any time.
        unsafe { malloc_trim(0) };
    }
}
