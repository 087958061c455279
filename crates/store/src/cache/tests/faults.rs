//! Reads and writes that fail, each in turn; and those who wait for them.

use std::io::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::backend::stamp::Stamp;
use crate::base::gate::Gate;
use crate::io::{Backend, Blob, Faults, Memory};
use crate::StoreError;

fn spans() -> Vec<ByteSpan> {
    let mut random = Random(5);
    (0..60)
        .map(|_| span(random.below(70 * PAGE), random.below(6 * PAGE)))
        .collect()
}

#[test]
fn a_page_that_is_not_what_it_should_be_is_told_of_and_not_kept() {
    let io = Io::memory();
    let path = written(&io, 100 * PAGE);
    let cache = cache_of(&io, 16, options());
    let (looked, bad) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(7)));
    let (count, wrong) = (looked.clone(), bad.clone());
    let file = cache
        .open_checked(
            path,
            Box::new(move |offset, page| {
                count.fetch_add(1, SeqCst);
                assert!(page.len() == PAGE && page[3] == byte(offset as usize + 3));
                match offset as usize / PAGE == wrong.load(SeqCst) {
                    true => Err(StoreError::Invalid(format!("page at {offset}"))),
                    false => Ok(()),
                }
            }),
        )
        .unwrap();
    assert!(file.is_checked());
    let error = cache.open_checked(path, Box::new(|_, _| Ok(()))).err().unwrap();
    assert!(error.to_string().contains("open in the page cache"), "{error}");
    let (all, good) = (span(0, 16 * PAGE), span(8 * PAGE, 8 * PAGE));
    for _ in 0..2 {
        let served = &mut |_: usize, _: crate::cache::Pages<'_>| panic!("one of its pages is wrong");
        let error = file.visit(&[all], served).unwrap_err();
        assert!(error.to_string().contains(&format!("page at {}", 7 * PAGE)), "{error}");
    }
    // Those beside it were read once, and the wrong one each time.
    assert_eq!((looked.load(SeqCst), cache.counters().misses), (17, 17));
    check(&file, &[good]);
    bad.store(usize::MAX, SeqCst);
    check(&file, &[all, good]);
    assert_eq!(looked.load(SeqCst), 18);
}

#[test]
fn every_read_that_fails_is_told_and_leaves_nothing_wrong() {
    for setting in ["read", "short-read"] {
        for nth in 1.. {
            let io = Io::memory();
            let path = written(&io, 80 * PAGE);
            let cache = cache_of(&io, 3, options());
            let file = cache.open(path, Mode::Read).unwrap();
            io.set_faults(Some(Faults::parse(&format!("{setting}:{nth}")).unwrap()));
            let before = io.counters();
            let outcome = file.visit(&spans(), &mut |_, _| {});
            assert_eq!(io.counters().since(&before).bytes_read, cache.counters().bytes_read);
            if let Err(error) = &outcome {
                assert!(
                    setting == "read" && error.to_string().starts_with("pages: cannot read at byte "),
                    "{error}"
                );
            }
            let calls = io.counters().since(&before).read_calls;
            io.set_faults(None);
            check(&file, &spans());
            if outcome.is_ok() && calls < nth {
                assert!(nth > 5);
                break;
            }
        }
    }
}

#[test]
fn every_write_that_fails_is_told_and_loses_nothing() {
    for setting in ["write:#", "write:#:enospc", "torn-write:#", "short-write:#"] {
        for nth in 1.. {
            let io = Io::memory();
            let path = written(&io, 80 * PAGE);
            let cache = cache_of(&io, 3, options());
            let file = cache.open(path, Mode::Reopen).unwrap();
            let mut expected: Vec<u8> = (0..90 * PAGE).map(byte).collect();
            let mut failed = 0;
            io.set_faults(Some(Faults::parse(&setting.replace('#', &nth.to_string())).unwrap()));
            let mut random = Random(nth);
            for value in 0..100 {
                let (at, bytes) = (random.below(85 * PAGE), 1 + random.below(2 * PAGE));
                let data = vec![value; bytes];
                expected[at..at + bytes].copy_from_slice(&data);
                // What could not be written may be partly in the cache: it is written again.
                while file.write_at(&data, at as u64).is_err() {
                    failed += 1;
                }
            }
            let length = file.len() as usize;
            while file.flush().is_err() {
                failed += 1;
            }
            let calls = io.counters().write_calls;
            io.set_faults(None);
            assert!(failed <= 1 && (failed == 0 || !setting.starts_with("short")));
            let mut back = vec![0; length];
            file.read_at(&mut back, 0).unwrap();
            // What no write reached is zeros, past the old end.
            expected.truncate(length);
            let same = |at: &usize| back[*at] == expected[*at] || (*at >= 80 * PAGE && back[*at] == 0);
            assert!((0..length).all(|at| same(&at)), "{setting} {nth}");
            let on_disk = io.open(path, Mode::Read).unwrap();
            let mut stored = vec![0; length];
            io.read(&on_disk, &mut stored, 0, length).unwrap();
            assert!(stored == back, "{setting} {nth}: the file has what was written");
            if calls < nth {
                assert!(nth > 5);
                break;
            }
        }
    }
}

/// Files in memory whose reads wait, once the bytes are there, until they are let go, and can be made to fail then.
#[derive(Default, Clone)]
struct Held(Arc<HeldState>);

#[derive(Default)]
struct HeldState {
    files: Memory,
    open: Gate,
    holding: AtomicBool,
    failing: AtomicBool,
    reads: AtomicUsize,
}

struct HeldFile(Held, Arc<dyn Blob>);

impl Backend for Held {
    fn open(&self, path: &Path, mode: Mode) -> Result<Arc<dyn Blob>> {
        Ok(Arc::new(HeldFile(self.clone(), self.0.files.open(path, mode)?)))
    }
}

impl Blob for HeldFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let state = &*self.0 .0;
        let read = self.1.read_at(buffer, offset);
        state.reads.fetch_add(1, SeqCst);
        state.open.wait_for(|| (!state.holding.load(SeqCst)).then_some(()));
        if state.failing.load(SeqCst) {
            return Err(Error::other("made to fail"));
        }
        read
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        self.1.write_at(data, offset)
    }
    fn sync(&self) -> Result<()> {
        self.1.sync()
    }
    fn len(&self) -> Result<u64> {
        self.1.len()
    }
    fn stamp(&self) -> Result<Stamp> {
        self.1.stamp()
    }
    fn set_len(&self, bytes: u64) -> Result<()> {
        self.1.set_len(bytes)
    }
    fn alignment(&self) -> usize {
        1
    }
}

/// Four threads ask for one page while it is being read; it is read once, and all hear how that went.
fn join(failing: bool) -> (Vec<bool>, usize, Arc<PageCache>) {
    let held = Held::default();
    let io = Io::new(Box::new(held.clone()));
    let path = written(&io, 10 * PAGE);
    let cache = cache_of(&io, 4, options());
    let file = cache.open(path, Mode::Reopen).unwrap();
    held.0.holding.store(true, SeqCst);
    held.0.failing.store(failing, SeqCst);
    let outcomes = std::thread::scope(|scope| {
        let reader = || {
            let outcome = file.visit(&[span(3 * PAGE, 100)], &mut |_, pages| {
                assert_eq!(pages.slices()[0][0], byte(3 * PAGE));
            });
            outcome.is_ok()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(reader)).collect();
        let writer = scope.spawn(|| file.write_at(&[byte(3 * PAGE + 200)], 3 * PAGE as u64 + 200).is_ok());
        // All but one wait in the page's queue.
        while cache.joins.waiting(crate::cache::address::Name::new(0, 3)) < 4 {
            std::thread::yield_now();
        }
        held.0.holding.store(false, SeqCst);
        held.0.open.announce();
        let mut outcomes: Vec<bool> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        outcomes.push(writer.join().unwrap());
        outcomes
    });
    let reads = held.0.reads.load(SeqCst);
    held.0.failing.store(false, SeqCst);
    check(&file, &[span(3 * PAGE, 100)]);
    (outcomes, reads, cache)
}

#[test]
fn who_asks_for_a_page_under_way_waits_for_it() {
    let (outcomes, reads, cache) = join(false);
    assert_eq!((outcomes, reads), (vec![true; 5], 1));
    assert_eq!(cache.counters().misses, 1);
    assert!(cache.counters().joins >= 3);
}

#[test]
fn a_read_that_fails_fails_for_all_who_wait() {
    let (outcomes, reads, _) = join(true);
    assert_eq!((outcomes, reads), (vec![false; 5], 1));
}

#[test]
fn a_page_at_the_end_has_zeros_behind_it_though_the_file_grows_while_it_is_read() {
    let held = Held::default();
    let io = Io::new(Box::new(held.clone()));
    let path = written(&io, 20 * PAGE + 77);
    let cache = cache_of(&io, 1, options());
    let file = cache.open(path, Mode::Reopen).unwrap();
    let pages: Vec<ByteSpan> = (0..20).map(|page| span(page * PAGE, PAGE)).collect();
    check(&file, &pages); // so that every frame has had bytes
    let before = held.0.reads.load(SeqCst);
    held.0.holding.store(true, SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| check(&file, &[span(20 * PAGE, 77)]));
        while held.0.reads.load(SeqCst) == before {
            std::thread::yield_now();
        }
        file.write_at(&[9; PAGE], 21 * PAGE as u64).unwrap();
        file.flush().unwrap();
        held.0.holding.store(false, SeqCst);
        held.0.open.announce();
    });
    let mut end = [1; PAGE];
    file.read_at(&mut end, 20 * PAGE as u64).unwrap();
    assert!(end[77..].iter().all(|byte| *byte == 0), "{:?}", &end[77..]);
}
