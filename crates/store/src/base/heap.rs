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

/// Lists of so many bytes and more are mappings of their own, which the kernel has back as soon as they are freed. Left to
/// itself, glibc takes ever larger ones, up to 32 MiB, from its arenas: what is freed there stays resident, and of arenas other
/// than the first no call gives the end back.
const MAPPED_BYTES: i32 = 4 << 20;
/// Bytes that may be free at the end of an arena, and count as the process's own: of 8 MiB the size of the process, and with it the
/// memory of plans, went up and down by as much from one plan to the next.
const IDLE_BYTES: i32 = 1 << 20;

/// Has the allocator keep little of what is freed, unless the environment says otherwise, for that counts as the process's own.
/// All threads but the first allocate from one arena: with eight arenas a core it is tens of megabytes more or less, as threads
/// happen to meet. Large lists are mappings.
pub fn keep_little_freed() {
    #[cfg(target_env = "gnu")]
    {
        extern "C" {
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        const ARENA_MAX: (i32, i32) = (-8, 2);
        const MMAP_THRESHOLD: (i32, i32) = (-3, MAPPED_BYTES);
        const TRIM_THRESHOLD: (i32, i32) = (-1, IDLE_BYTES);
        static ONCE: std::sync::Once = std::sync::Once::new();
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let set = |(parameter, value): (i32, i32)| {
            // SAFETY: glibc's own function; it takes no pointers and may be called from any thread at any time.
            unsafe { mallopt(parameter, value) };
        };
        ONCE.call_once(|| {
            if is_set("GLIBC_TUNABLES") {
                return;
            }
            if !is_set("MALLOC_ARENA_MAX") {
                set(ARENA_MAX);
            }
            if !is_set("MALLOC_MMAP_THRESHOLD_") && !is_set("MALLOC_TRIM_THRESHOLD_") {
                set(MMAP_THRESHOLD);
                set(TRIM_THRESHOLD);
            }
        });
    }
}
