//! What a visit gives, and what it costs.

use std::cell::Cell;

use super::*;
use crate::memory::process::Process;

#[test]
fn what_is_there_comes_first_and_neighbours_are_read_together() {
    let io = Io::memory();
    let path = written(&io, 100 * PAGE);
    let cache = cache_of(&io, 16, options());
    let file = cache.open(path, Mode::Read).unwrap();
    check(&file, &[span(40 * PAGE, 10)]);
    let before = io.counters();
    let order = check(
        &file,
        &[
            span(11 * PAGE, PAGE),
            span(9 * PAGE + 5, 2 * PAGE - 5),
            span(40 * PAGE + 100, 5),
            span(12 * PAGE, 0),
        ],
    );
    assert!(order[..2] == [2, 3] || order[..2] == [3, 2], "{order:?}");
    let made = io.counters().since(&before);
    assert_eq!((made.read_calls, made.bytes_read), (1, 3 * PAGE as u64));
    let counters = cache.counters();
    assert_eq!((counters.hits, counters.misses, counters.evictions), (1, 4, 0));
    assert_eq!(counters.bytes_read, 4 * PAGE as u64);
}

#[test]
fn a_page_wanted_twice_in_a_batch_is_read_once() {
    let io = Io::memory();
    let path = written(&io, 100 * PAGE);
    let cache = cache_of(&io, 16, options());
    let file = cache.open(path, Mode::Read).unwrap();
    check(
        &file,
        &[
            span(3 * PAGE, 8),
            span(3 * PAGE + 8, 8),
            span(2 * PAGE, 3 * PAGE),
            span(4 * PAGE, 7),
        ],
    );
    let counters = cache.counters();
    assert_eq!((counters.misses, counters.joins), (3, 3));
    assert_eq!(counters.bytes_read, 3 * PAGE as u64);
}

#[test]
fn pages_at_the_end_are_cut_and_nothing_lies_beyond() {
    for (io, page_bytes) in [(Io::memory(), PAGE), (Io::direct(), 4096), (Io::buffered(), 1024)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("end");
        let bytes = 3 * page_bytes + 77;
        let file = io.open(&path, Mode::CreateUnaligned).unwrap();
        io.write(&file, &(0..bytes).map(byte).collect::<Vec<u8>>(), 0).unwrap();
        let options = CacheOptions {
            page_bytes,
            request_bytes: 8 * page_bytes,
            ..options()
        };
        let cache = cache_of(&io, 4, options);
        let file = cache.open(&path, Mode::Read).unwrap();
        check(&file, &[span(bytes - 1, 1), span(3 * page_bytes, 77), span(0, bytes)]);
        let error = file
            .visit(&[span(0, 1), span(bytes - 1, 2)], &mut |_, _| panic!("served"))
            .unwrap_err();
        assert!(error.to_string().ends_with("the file ends 1 bytes early"), "{error}");
        assert_eq!(cache.counters().bytes_read, bytes as u64);
    }
}

#[test]
fn a_request_that_cannot_be_held_is_refused_with_both_numbers() {
    let io = Io::memory();
    let path = written(&io, 100 * PAGE);
    let cache = cache_of(&io, 16, options());
    let file = cache.open(path, Mode::Read).unwrap();
    let error = file.visit(&[span(0, 16 * PAGE + 1)], &mut |_, _| {}).unwrap_err();
    assert_eq!(
        error.to_string(),
        "request 0 is of 8193 bytes, and the page cache serves at most 8192 at once"
    );
    let mut all = vec![0; 100 * PAGE];
    file.read_at(&mut all, 0).unwrap();
    assert!(all.iter().enumerate().all(|(at, found)| *found == byte(at)));
}

#[test]
fn a_write_behind_the_last_page_that_has_a_name_is_refused() {
    let io = Io::memory();
    let path = written(&io, 3 * PAGE);
    let cache = cache_of(&io, 4, options());
    let file = cache.open(path, Mode::Reopen).unwrap();
    for offset in [(PAGE as u64) << 40, u64::MAX - 1] {
        let error = file.write_at(&[1; PAGE], offset).unwrap_err();
        let text = format!("pages: byte {offset} lies behind all pages of 512 bytes that can be told apart");
        assert_eq!(error.to_string(), text);
    }
    file.flush().unwrap();
    assert_eq!(file.len(), 3 * PAGE as u64);
    check(&file, &[span(0, 3 * PAGE)]);
}

#[test]
fn a_request_with_more_pages_than_a_set_is_served_aside() {
    let io = Io::memory();
    let path = written(&io, 100 * PAGE);
    let cache = cache_of(&io, 1, options());
    let file = cache.open(path, Mode::Read).unwrap();
    check(
        &file,
        &[
            span(PAGE, 16 * PAGE),
            span(7, 12 * PAGE),
            span(50 * PAGE, 16 * PAGE),
            span(3 * PAGE, PAGE),
        ],
    );
}

#[test]
fn a_task_may_not_ask_for_pages() {
    let io = Io::memory();
    let path = written(&io, 100 * PAGE);
    let cache = cache_of(&io, 16, options());
    let file = cache.open(path, Mode::Read).unwrap();
    let refused = Cell::new(0);
    let mut task = |_: usize, _: crate::cache::Pages<'_>| {
        let error = file.visit(&[span(0, 1)], &mut |_, _| {}).unwrap_err();
        assert_eq!(error.code(), "invalid");
        refused.set(refused.get() + 1);
    };
    file.visit(&[span(0, 1), span(PAGE, 1)], &mut task).unwrap();
    assert_eq!(refused.get(), 2);
}

#[test]
fn a_task_that_panics_leaves_no_page_behind() {
    let io = Io::memory();
    let path = written(&io, 100 * PAGE);
    let cache = cache_of(&io, 1, options());
    let file = cache.open(path, Mode::Read).unwrap();
    let spans: Vec<ByteSpan> = (0..30).map(|page| span(page * PAGE, PAGE)).collect();
    for stop in 0..30 {
        let mut left = stop;
        let mut task = |_: usize, _: crate::cache::Pages<'_>| {
            left -= 1;
            assert!(left >= 0, "meant to");
        };
        let visit = std::panic::AssertUnwindSafe(|| file.visit(&spans, &mut task));
        assert!(std::panic::catch_unwind(visit).is_err());
    }
    check(&file, &spans);
}

#[test]
fn memory_is_reserved_and_given_back() {
    let io = Io::memory();
    let ledger = Ledger::new(1 << 20);
    assert_eq!(
        PageCache::new(&io, &ledger, 2 << 20, options()).err().unwrap().code(),
        "memory"
    );
    let error = PageCache::new(&io, &ledger, 1000, options()).err().unwrap();
    assert!(error.to_string().contains("1000 bytes"), "{error}");
    let cache = PageCache::new(&io, &ledger, 1 << 20, options()).unwrap();
    assert!(
        ledger.used() > 900 << 10 && ledger.used() <= 1 << 20,
        "{}",
        ledger.used()
    );
    drop(cache);
    assert_eq!(ledger.used(), 0);
}

#[test]
fn other_sessions_have_the_room_of_pages() {
    let io = Io::direct();
    // Other tests of this process have ledgers too.
    let process: &'static Process = Box::leak(Box::new(Process::new()));
    let ledger = Ledger::within(process, 8 << 20);
    let options = CacheOptions {
        request_bytes: 16384,
        ..CacheOptions::default()
    };
    let cache = PageCache::new(&io, &ledger, 8 << 20, options).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let file = cache.open(&path, Mode::Create).unwrap();
    file.write_at(&vec![7; 4 << 20], 0).unwrap();
    let other = Ledger::within(process, 8 << 20);
    let held = ledger.held();
    other.shrink_others(4 << 20);
    assert!(ledger.used() <= 4 << 20, "{}", ledger.used());
    assert!(ledger.held() == held && held < 2 << 20, "{held}");
    let mut back = vec![0; 4 << 20];
    file.read_at(&mut back, 0).unwrap();
    assert!(back.iter().all(|&byte| byte == 7));
    assert_eq!(cache.bytes(), ledger.used());
    cache.resize(8 << 20).unwrap();
    assert!(ledger.used() > 7 << 20);
    file.read_at(&mut back, 0).unwrap();
    assert!(back.iter().all(|&byte| byte == 7));
}

#[test]
fn pages_lie_side_by_side_as_they_come_and_no_other_memory_is_touched() {
    let io = Io::memory();
    let path = written(&io, 4000 * PAGE);
    let cache = cache_of(&io, 64, options());
    let file = cache.open(path, Mode::Read).unwrap();
    let mut places = Vec::new();
    let read = |spans: &[ByteSpan], places: &mut Vec<usize>| {
        let mut each = |_: usize, pages: crate::cache::Pages<'_>| places.push(pages.slices[0].as_ptr() as usize);
        file.visit(spans, &mut each).unwrap();
        places.sort();
        places.dedup();
    };
    let some: Vec<ByteSpan> = (0..50).map(|page| span(77 * page * PAGE, PAGE)).collect();
    read(&some, &mut places);
    assert!(places.len() == 50 && places[49] - places[0] == 49 * PAGE);
    let whole = cache.bytes();
    cache.resize(whole / 2).unwrap();
    assert!(cache.bytes() < whole / 3 * 2, "{} of {whole}", cache.bytes());
    cache.resize(whole).unwrap();
    let more: Vec<ByteSpan> = (0..20).map(|page| span((77 * page + 1) * PAGE, PAGE)).collect();
    read(&more, &mut places);
    assert!(places[places.len() - 1] - places[0] < 70 * PAGE, "{places:?}");
}

#[test]
fn a_task_may_have_the_cache_shrink_under_it() {
    let io = Io::memory();
    let path = written(&io, 2000 * PAGE);
    let cache = cache_of(&io, 64, options());
    let file = cache.open(path, Mode::Read).unwrap();
    let spans: Vec<ByteSpan> = (0..100).map(|number| span(number * 20 * PAGE + 3, 15 * PAGE)).collect();
    check(&file, &spans);
    let whole = cache.bytes();
    let shrink = &mut |index: usize, pages: crate::cache::Pages<'_>| {
        cache.resize(whole / 3).unwrap();
        let mut scratch = Vec::new();
        let data = pages.contiguous(&mut scratch);
        let start = index * 20 * PAGE + 3;
        assert!(data.iter().enumerate().all(|(at, found)| *found == byte(start + at)));
    };
    file.visit(&spans, shrink).unwrap();
    assert!(cache.pages() < 300, "{} pages are left", cache.pages());
    check(&file, &spans);
    let error = cache.resize(1000).unwrap_err();
    assert!(error.to_string().contains("a page cache of 1000 bytes"), "{error}");
    cache.resize(whole).unwrap();
    assert!(cache.pages() > 64 * 12 - 24 && cache.bytes() <= whole);
    check(&file, &spans);
}
