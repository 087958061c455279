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

/// Has all threads but the first allocate from one arena of glibc's, unless the environment says how many there are to be.
/// What is free at the end of an arena other than the first never goes back to the kernel, and counts as the process's
/// own: with eight arenas a core that is tens of megabytes more or less, as threads happen to meet.
pub fn have_few_arenas() {
    #[cfg(target_env = "gnu")]
    {
        extern "C" {
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        const ARENA_MAX: i32 = -8;
        static ONCE: std::sync::Once = std::sync::Once::new();
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        ONCE.call_once(|| {
            if !is_set("MALLOC_ARENA_MAX") && !is_set("GLIBC_TUNABLES") {
                // SAFETY: glibc's own function; it takes no pointers and may be called from any thread at any time.
                unsafe { mallopt(ARENA_MAX, 2) };
            }
        });
    }
}
