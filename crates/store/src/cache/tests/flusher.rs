//! Dirty pages that a thread of the cache's own writes.

use std::sync::atomic::Ordering::SeqCst;

use super::*;
use crate::base::locked::locked as lock;
use crate::io::Faults;

/// No writer writes pages of its own accord: as many of a set may be dirty as there are.
fn patient(flush_percent: usize) -> CacheOptions {
    CacheOptions {
        dirty_most: 12,
        flush_percent,
        ..options()
    }
}

fn stored(io: &Io, path: &Path, bytes: usize) -> Vec<u8> {
    let mut found = vec![0; bytes];
    io.read(&io.open(path, Mode::Read).unwrap(), &mut found, 0, bytes)
        .unwrap();
    found
}

/// Writes pages in an odd order, each with its number.
fn fill(file: &CachedFile, pages: usize) -> Vec<u8> {
    for number in 0..pages {
        let page = number * 7 % pages;
        file.write_at(&[page as u8; PAGE], (page * PAGE) as u64).unwrap();
    }
    (0..pages * PAGE).map(|at| (at / PAGE) as u8).collect()
}

fn wait_until(ready: impl Fn() -> bool) {
    while !ready() {
        std::thread::yield_now();
    }
}

#[test]
fn pages_are_written_ahead_neighbours_together() {
    let io = Io::memory();
    let path = written(&io, PAGE);
    let cache = cache_of(&io, 64, patient(25));
    let file = cache.open(path, Mode::Reopen).unwrap();
    let mark = cache.pages() / 4;
    let before = io.counters();
    let mut all = fill(&file, mark);
    assert_eq!(io.counters().since(&before).write_calls, 0, "as many may wait");
    file.write_at(&[99; PAGE], all.len() as u64).unwrap();
    all.extend([99; PAGE]);
    wait_until(|| cache.flusher.dirty.load(SeqCst) == 0);
    wait_until(|| io.counters().since(&before).bytes_written == all.len() as u64);
    assert_eq!(io.counters().since(&before).write_calls, 1, "neighbours are one call");
    assert_eq!(stored(&io, path, all.len()), all);
    let evictions = cache.counters().evictions;
    file.flush().unwrap();
    assert_eq!(io.counters().since(&before).write_calls, 1, "nothing was dirty");
    assert_eq!(cache.counters().evictions, evictions);
}

/// A cache whose flusher could not write.
fn failed(io: &Io, fault: &str) -> (CachedFile, Vec<u8>) {
    let path = written(io, PAGE);
    let cache = cache_of(io, 64, patient(25));
    let file = cache.open(path, Mode::Reopen).unwrap();
    io.set_faults(Some(Faults::parse(fault).unwrap()));
    let all = fill(&file, cache.pages() / 4 + 1);
    wait_until(|| lock(&file.file.untold).is_some());
    (file, all)
}

#[test]
fn who_writes_flushes_or_closes_next_hears_of_its_errors() {
    for fault in ["write:1", "write:1:enospc", "torn-write:1"] {
        type Call = fn(&CachedFile) -> Result<(), crate::StoreError>;
        let calls: [Call; 3] = [
            |file| file.write_at(&[9; 3], 5),
            CachedFile::flush,
            |file| file.clone().close(),
        ];
        for call in calls {
            let io = Io::memory();
            let (file, all) = failed(&io, fault);
            let error = call(&file).unwrap_err().to_string();
            assert!(error.starts_with("pages: cannot write at byte "), "{error}");
            call(&file).expect("it is told once");
            let mut found = vec![0; all.len()];
            file.read_at(&mut found, 0).unwrap();
            file.flush().unwrap();
            assert!(
                stored(&io, Path::new("pages"), all.len()) == found,
                "it is written later"
            );
            found[5..8].copy_from_slice(&all[5..8]);
            assert!(found == all, "nothing is lost");
        }
    }
}

#[test]
fn what_it_could_not_write_is_not_tried_again_untold() {
    let io = Io::memory();
    let (file, _) = failed(&io, "write:1");
    let calls = io.counters().write_calls;
    for _ in 0..3 {
        file.cache().flush_if_due();
        std::thread::yield_now();
    }
    assert_eq!(io.counters().write_calls, calls);
    file.flush().unwrap_err();
    assert!(io.counters().write_calls > calls, "flush tries");
}

#[test]
fn it_ends_with_its_cache() {
    let io = Io::memory();
    let path = written(&io, PAGE);
    for pages in [1, 400] {
        let cache = cache_of(&io, 64, patient(0));
        let file = cache.open(path, Mode::Reopen).unwrap();
        let all = fill(&file, pages);
        let last = Arc::downgrade(&cache);
        drop((file, cache));
        wait_until(|| last.upgrade().is_none());
        assert_eq!(stored(&io, path, all.len()), all);
    }
}
