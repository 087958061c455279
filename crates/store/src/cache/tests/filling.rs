//! Buffers that are filled with runs of pages.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::cache::PageRun;
use crate::io::Faults;
use crate::{AlignedBuffer, StoreError};

/// Pages are those of the system here.
const PAGE: usize = crate::PAGE;
const PAGES: usize = 300;

fn opened(io: &Io, sets: usize) -> (Arc<PageCache>, CachedFile) {
    let path = written(io, PAGES * PAGE);
    let options = CacheOptions {
        page_bytes: PAGE,
        request_bytes: PAGE,
        ..options()
    };
    let cache = cache_of(io, sets, options);
    let file = cache.open(path, Mode::Read).unwrap();
    (cache, file)
}

fn runs(of: &[(usize, usize)]) -> Vec<PageRun> {
    let mut place = 0;
    let run = |&(first, pages): &(usize, usize)| {
        place += pages * PAGE;
        PageRun {
            first: first as u64,
            pages: pages as u64,
            place: place - pages * PAGE,
        }
    };
    of.iter().map(run).collect()
}

/// Fills a buffer and holds every byte against the pattern; what is behind the runs stays.
fn fill(file: &CachedFile, of: &[(usize, usize)], keeps: bool) -> Result<(), StoreError> {
    let runs = runs(of);
    let bytes: usize = of.iter().map(|(_, pages)| pages * PAGE).sum();
    let mut buffer = AlignedBuffer::new(bytes + PAGE).unwrap();
    buffer[bytes..].fill(7);
    let buffer = file.fill(&runs, buffer, keeps)?;
    assert_eq!(buffer.len(), bytes + PAGE);
    for run in &runs {
        for at in 0..run.pages as usize * PAGE {
            assert_eq!(buffer[run.place + at], byte(run.first as usize * PAGE + at));
        }
    }
    assert!(buffer[bytes..].iter().all(|byte| *byte == 7));
    Ok(())
}

#[test]
fn what_is_there_is_copied_and_the_rest_read_in_few_requests() {
    let io = Io::memory();
    let (cache, file) = opened(&io, 256);
    let cost = |of: &[(usize, usize)], keeps| {
        let (before, known) = (io.counters(), cache.counters());
        fill(&file, of, keeps).unwrap();
        let (made, now) = (io.counters().since(&before), cache.counters());
        assert_eq!(now.bytes_read - known.bytes_read, made.bytes_read);
        let pages = made.bytes_read / PAGE as u64;
        (made.read_calls, pages, now.hits - known.hits, now.misses - known.misses)
    };
    assert_eq!(cost(&[(10, 20), (40, 1), (200, 50)], true), (3, 71, 0, 71));
    assert_eq!(cost(&[(10, 20), (40, 1), (200, 50)], true), (0, 0, 71, 0));
    assert_eq!(cost(&[(35, 10)], true), (1, 10, 1, 9));
    assert_eq!(cost(&[(5, 30)], true), (2, 10, 20, 10));
    assert_eq!(cost(&[(34, 12)], true), (1, 1, 11, 1));
    assert_eq!(cost(&[(100, 1), (102, 1)], true), (2, 2, 0, 2));
    assert_eq!(cost(&[(99, 6)], true), (1, 6, 2, 4));
    // Two pages that are there are read over, three are not.
    assert_eq!(cost(&[(260, 2), (270, 3)], true), (2, 5, 0, 5));
    assert_eq!(cost(&[(259, 4), (269, 5)], true), (3, 6, 5, 4));
    // What is not kept is read again.
    assert_eq!(cost(&[(110, 30)], false), (1, 30, 0, 30));
    assert_eq!(cost(&[(110, 30)], false), (1, 30, 0, 30));
    assert_eq!(cost(&[(98, 4)], false), (1, 1, 3, 1));
    assert_eq!(cost(&[], true), (0, 0, 0, 0));
}

#[test]
fn a_cache_of_few_pages_fills_large_buffers() {
    for sets in [1, 2, 5] {
        let io = Io::memory();
        let (cache, file) = opened(&io, sets);
        for keeps in [true, false, true] {
            fill(&file, &[(0, 100), (120, 3), (130, 170)], keeps).unwrap();
        }
        assert!(cache.counters().hits > 0);
        // All pages of its sets in use: what finds no room is read and not kept.
        file.visit(&[span(0, PAGE)], &mut |_, _| ()).unwrap();
    }
}

#[test]
fn what_cannot_be_filled_is_refused() {
    let io = Io::memory();
    let (cache, file) = opened(&io, 4);
    let error = fill(&file, &[(0, 3), (PAGES - 1, 2)], true).unwrap_err();
    assert!(error.to_string().contains("ends 4096 bytes early"), "{error}");
    assert_eq!(cache.counters().misses, 0);
    drop(file);
    let file = cache.open(Path::new("pages"), Mode::Reopen).unwrap();
    let error = fill(&file, &[(0, 3)], true).unwrap_err();
    assert!(error.to_string().contains("may be newer than the file"), "{error}");
    let cache = cache_of(&io, 4, options());
    let file = cache.open(Path::new("pages"), Mode::Read).unwrap();
    let error = fill(&file, &[(0, 3)], true).unwrap_err();
    assert!(error.to_string().contains("the cache's have 512"), "{error}");
}

#[test]
fn a_page_that_is_not_what_it_should_be_is_told_of_and_the_others_are_kept() {
    let io = Io::memory();
    let (cache, file) = opened(&io, 64);
    drop(file);
    let bad = Arc::new(AtomicUsize::new(7));
    let wrong = bad.clone();
    let check = move |offset: u64, _: &[u8]| match offset as usize / PAGE == wrong.load(SeqCst) {
        true => Err(StoreError::Invalid(format!("page at {offset}"))),
        false => Ok(()),
    };
    let file = cache.open_checked(Path::new("pages"), Box::new(check)).unwrap();
    for _ in 0..2 {
        let error = fill(&file, &[(0, 16), (20, 10)], true).unwrap_err();
        assert!(error.to_string().contains(&format!("page at {}", 7 * PAGE)), "{error}");
    }
    assert_eq!((cache.counters().misses, cache.counters().hits), (27, 25));
    bad.store(usize::MAX, SeqCst);
    fill(&file, &[(0, 16), (20, 10)], true).unwrap();
    assert_eq!(cache.counters().misses, 28);
}

#[test]
fn every_read_that_fails_is_told_and_leaves_nothing_wrong() {
    let of = [(0, 60), (70, 40), (200, 1)];
    let made = |faults: Option<Faults>| {
        let io = Io::memory();
        let (cache, file) = opened(&io, 16);
        fill(&file, &[(30, 5), (90, 2)], true).unwrap();
        let before = io.counters();
        io.set_faults(faults);
        let outcome = fill(&file, &of, true);
        let calls = io.counters().since(&before).read_calls;
        io.set_faults(None);
        fill(&file, &of, true).unwrap();
        assert!(cache.counters().hits > 0);
        outcome.map(|()| calls)
    };
    let calls = made(None).unwrap();
    assert!(calls >= 4);
    for nth in 1..=calls + 1 {
        let faults = |setting| Some(Faults::parse(&format!("{setting}:{nth}")).unwrap());
        let error = made(faults("read")).err().map(|error| error.to_string());
        assert_eq!(error.is_some_and(|error| error.contains("pages")), nth <= calls);
        made(faults("short-read")).unwrap();
    }
}

#[test]
fn many_threads_fill_and_visit_while_the_cache_grows_and_shrinks() {
    let folder = tempfile::tempdir().unwrap();
    for io in [Io::memory(), Io::direct()] {
        let path = folder.path().join("pages");
        let mut data = AlignedBuffer::new(PAGES * PAGE).unwrap();
        data.iter_mut().enumerate().for_each(|(at, found)| *found = byte(at));
        let file = io.open(&path, Mode::Create).unwrap();
        io.write(&file, &data, 0).unwrap();
        let options = CacheOptions {
            page_bytes: PAGE,
            request_bytes: 4 * PAGE,
            ..options()
        };
        let cache = cache_of(&io, 8, options);
        let file = cache.open(&path, Mode::Read).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let file = file.clone();
                scope.spawn(move || {
                    let mut random = Random(thread + 1);
                    for round in 0..120 {
                        let (first, pages) = (random.below(200), 1 + random.below(60));
                        match round % 4 {
                            0 => {
                                let at = random.below((PAGES - 4) * PAGE);
                                check(&file, &[span(at, 3 * PAGE), span(at + 9, 10)]);
                            }
                            way => fill(&file, &[(first, pages), (first + pages + 2, 38)], way < 3).unwrap(),
                        }
                    }
                });
            }
            for round in 0..60 {
                let _ =
                    cache.resize(if round % 2 == 0 { 3 } else { 9 } * 12 * (PAGE + super::super::core::PAGE_OVERHEAD));
                std::thread::yield_now();
            }
        });
        let counters = cache.counters();
        assert!(counters.hits > 0 && counters.evictions > 0, "{counters:?}");
    }
}
