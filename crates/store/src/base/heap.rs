//! The allocator's own pages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(target_env = "gnu")]
extern "C" {
    fn malloc_trim(pad: usize) -> i32;
    fn mallopt(parameter: i32, value: i32) -> i32;
    fn malloc(bytes: usize) -> *mut std::ffi::c_void;
    fn free(pointer: *mut std::ffi::c_void);
}

const TRIM_THRESHOLD: i32 = -1;
/// Whether what arenas keep free at their ends is as here, and not as the environment has it.
static IS_SET: AtomicBool = AtomicBool::new(false);

/// Gives the pages that the allocator keeps free back to the system: it would hold on to most of what a large plan took.
pub fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        if IS_SET.load(Ordering::Relaxed) {
            trim_ends();
        }
        // SAFETY: glibc's own function; it takes no pointers and may be called from any thread at any time.
        unsafe { malloc_trim(0) };
    }
}

/// Gives back what is free at the ends of arenas, which `malloc_trim` leaves of all but the first. New threads that live at once
/// have arenas without threads, and then all of them in turn: threads of other libraries may have begun some.
#[cfg(target_env = "gnu")]
fn trim_ends() {
    /// Of glibc, by core.
    const ARENAS: usize = 8;
    /// Less at the end stays, and what is freed beside more has the end looked at.
    const LEAST_BYTES: usize = 128 << 10;
    fn touch(bytes: usize) {
        // SAFETY: glibc's own functions; `free` has what `malloc` gave, or null, and nobody else has seen it.
        unsafe { free(std::hint::black_box(malloc(bytes))) };
    }
    let all = Arc::new(Mutex::new(()));
    let begun = all.lock().unwrap_or_else(PoisonError::into_inner);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let trimmer = || {
        let all = all.clone();
        std::thread::Builder::new()
            .name("outcore-trim".into())
            .stack_size(64 << 10)
            .spawn(move || {
                touch(1);
                drop(all.lock());
                touch(LEAST_BYTES);
            })
    };
    let trimmers: Vec<_> = (0..ARENAS * cores.min(4)).map_while(|_| trimmer().ok()).collect();
    // SAFETY: glibc's own function; it takes no pointers and may be called from any thread at any time.
    let idle = |bytes: i32| unsafe { mallopt(TRIM_THRESHOLD, bytes) };
    idle(LEAST_BYTES as i32);
    drop(begun);
    trimmers.into_iter().for_each(|trimmer| drop(trimmer.join()));
    idle(IDLE_BYTES);
}

/// Lists of so many bytes and more are mappings of their own, which the kernel has back as soon as they are freed. Left to
/// itself, glibc takes ever larger ones, up to 32 MiB, from its arenas: what is freed there stays resident.
const MAPPED_BYTES: i32 = 4 << 20;
/// Bytes that may be free at the end of an arena: with less, what is freed and allocated again is touched anew each time.
const IDLE_BYTES: i32 = 8 << 20;

/// Has the allocator keep little of what is freed, unless the environment says otherwise, for that counts as the process's own.
/// All threads share two arenas: with eight a core it is tens of megabytes more or less, as threads happen to meet. Large lists are mappings.
pub fn keep_little_freed() {
    #[cfg(target_env = "gnu")]
    {
        const ARENA_MAX: (i32, i32) = (-8, 2);
        const MMAP_THRESHOLD: (i32, i32) = (-3, MAPPED_BYTES);
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
                set((TRIM_THRESHOLD, IDLE_BYTES));
                IS_SET.store(true, Ordering::Relaxed);
            }
        });
    }
}
