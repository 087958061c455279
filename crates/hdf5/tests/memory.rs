//! No more memory than was asked for: every allocation of this process is counted, for whole files and for damaged
//! ones.
#![allow(clippy::unwrap_used)] // who runs it sees where it fails

mod changes;
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use changes::{checked_blocks, Numbers};
use outcore_hdf5::{chunks, Hdf5Error, Hdf5File, Hdf5Object};
use support::{fixtures, CountingFile};

struct CountingAllocator;

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let now = CURRENT.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged; counters are all that is added.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CURRENT.fetch_sub(layout.size(), Ordering::Relaxed);
        System.dealloc(pointer, layout);
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// More than any fixture needs.
const MEMORY: usize = 8 << 20;
/// Blocks of at most 64 KiB that are in memory at a time, messages of errors, and heads of lists.
const SLACK: usize = 192 << 10;

/// Bytes in use at most while `work` runs, beside those before.
fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = CURRENT.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (PEAK.load(Ordering::Relaxed) - before, result)
}

/// Runs a call and holds the memory that it took against the memory that it asked for.
fn held<T>(file: &CountingFile, work: impl FnOnce() -> Result<T, Hdf5Error>) -> Option<T> {
    file.kept.set(0);
    let (peak, result) = peak_of(work);
    assert!(
        peak <= file.kept.get() + SLACK,
        "{peak} bytes, {} asked for",
        file.kept.get()
    );
    result.ok()
}

/// Goes through the objects of a file. Damaged files have groups within themselves.
fn walk(bytes: Vec<u8>) {
    let file = CountingFile::new(bytes, MEMORY);
    let Some(opened) = held(&file, || Hdf5File::open(&file)) else {
        return;
    };
    let mut paths = vec![String::new()];
    for place in 0..150 {
        let Some(path) = paths.get(place).cloned() else {
            return;
        };
        match held(&file, || opened.object(&path)) {
            Some(Hdf5Object::Group(group)) => {
                let inner = group.members.iter().take(200);
                paths.extend(inner.map(|member| format!("{path}/{}", member.name)));
            }
            Some(Hdf5Object::Dataset(facts)) => drop(held(&file, || chunks(&facts, &file, &mut |_| Ok(())))),
            _ => {}
        }
    }
}

#[test]
fn memory_is_asked_for_before_it_is_taken() {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    for path in fixtures() {
        let whole = std::fs::read(&path).unwrap();
        walk(whole.clone());
        let blocks = checked_blocks(&whole);
        for _ in 0..support::runs() {
            let mut bytes = whole.clone();
            numbers.change(&mut bytes, &blocks);
            walk(bytes);
        }
    }
}
