//! Many threads at once, while the cache grows and shrinks.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};

use super::*;

const CELL: usize = 64;
const THREADS: usize = 8;

fn cell(number: usize, version: u32) -> [u8; CELL] {
    let mut bytes = [0; CELL];
    for (at, word) in bytes.chunks_exact_mut(8).enumerate() {
        word[..4].copy_from_slice(&(number as u32 ^ (at as u32) << 24).to_le_bytes());
        word[4..].copy_from_slice(&version.to_le_bytes());
    }
    bytes
}

fn version_of(bytes: &[u8], number: usize) -> u32 {
    let version = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
    assert!(bytes == cell(number, version), "cell {number} is torn or another's");
    version
}

/// A file of so many cells of version 0.
fn write_cells(io: &Io, path: &Path, cells: usize) {
    let file = io.open(path, Mode::Create).unwrap();
    let start: Vec<u8> = (0..cells).flat_map(|number| cell(number, 0)).collect();
    io.write(
        &file,
        &crate::AlignedBuffer::new(start.len())
            .map(|mut all| {
                all.copy_from_slice(&start);
                all
            })
            .unwrap(),
        0,
    )
    .unwrap();
}

/// Whether the file has the last version of each cell.
fn check_cells(io: &Io, path: &Path, versions: &[AtomicU32]) {
    let cells = versions.len();
    let stored = io.open(path, Mode::Read).unwrap();
    assert_eq!(stored.len().unwrap() as usize, cells * CELL);
    let mut all = crate::AlignedBuffer::new(cells * CELL).unwrap();
    io.read(&stored, &mut all, 0, cells * CELL).unwrap();
    for (number, bytes) in all.chunks_exact(CELL).enumerate().take(cells) {
        assert_eq!(
            version_of(bytes, number),
            versions[number].load(SeqCst),
            "cell {number}"
        );
    }
}

/// Each thread writes cells of its own and reads all; versions never go back. `meanwhile` runs until they are done.
fn storm(
    io: &Io,
    path: &Path,
    sets: usize,
    options: CacheOptions,
    rounds: usize,
    meanwhile: impl Fn(&PageCache, usize) + Sync,
) {
    let cells = 4096;
    write_cells(io, path, cells);
    let cache = cache_of(io, sets, options);
    let file = cache.open(path, Mode::Reopen).unwrap();
    let versions: Vec<AtomicU32> = (0..cells).map(|_| AtomicU32::new(0)).collect();
    let (over, step) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let worker = |thread: usize| {
            let mut random = Random(thread as u64 + 1);
            for round in 0..rounds {
                let own = random.below(cells / THREADS) * THREADS + thread;
                match random.below(8) {
                    0..3 => {
                        let version = versions[own].load(SeqCst) + 1;
                        file.write_at(&cell(own, version), (own * CELL) as u64).unwrap();
                        versions[own].store(version, SeqCst);
                    }
                    3 if round % 16 == 0 => file.flush().unwrap(),
                    _ => {
                        let wanted: Vec<(usize, usize)> = (0..20)
                            .map(|_| {
                                let first = random.below(cells);
                                (first, 1 + random.below((cells - first).min(40)))
                            })
                            .collect();
                        let least: Vec<u32> = wanted.iter().map(|(first, _)| versions[*first].load(SeqCst)).collect();
                        let spans: Vec<ByteSpan> = wanted
                            .iter()
                            .map(|(first, count)| span(first * CELL, count * CELL))
                            .collect();
                        let mut scratch = Vec::new();
                        let mut each = |index: usize, pages: crate::cache::Pages<'_>| {
                            let (first, _) = wanted[index];
                            for (at, bytes) in pages.contiguous(&mut scratch).chunks_exact(CELL).enumerate() {
                                let version = version_of(bytes, first + at);
                                assert!(at > 0 || version >= least[index], "cell {first} lost a write");
                            }
                        };
                        file.visit(&spans, &mut each).unwrap();
                    }
                }
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || worker(thread))).collect();
        let other = scope.spawn(|| {
            while !over.load(SeqCst) {
                meanwhile(&cache, step.fetch_add(1, SeqCst));
                std::thread::yield_now();
            }
        });
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        over.store(true, SeqCst);
        other.join().unwrap();
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
    file.flush().unwrap();
    check_cells(io, path, &versions);
}

#[test]
fn threads_see_what_was_written_under_every_policy() {
    for policy in POLICIES {
        storm(
            &Io::memory(),
            Path::new("f"),
            8,
            CacheOptions { policy, ..options() },
            1500,
            |_, _| {},
        );
    }
}

#[test]
fn handles_that_go_at_once_leave_nothing_unwritten() {
    let options = CacheOptions {
        flush_percent: 100,
        ..options()
    };
    for round in 0..3000 {
        let io = Io::memory();
        let path = written(&io, PAGE);
        let file = cache_of(&io, 1, options).open(path, Mode::Reopen).unwrap();
        file.write_at(&[7; PAGE], 0).unwrap();
        let (other, start) = (file.clone(), AtomicUsize::new(0));
        let leave = |file: CachedFile| {
            start.fetch_add(1, SeqCst);
            while start.load(SeqCst) < 2 {
                std::hint::spin_loop();
            }
            drop(file);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| leave(other));
            leave(file);
        });
        let mut stored = [0; PAGE];
        io.read(&io.open(path, Mode::Read).unwrap(), &mut stored, 0, PAGE)
            .unwrap();
        assert!(stored == [7; PAGE], "round {round}");
    }
}

#[test]
fn a_cache_of_one_set_is_slow_and_right() {
    storm(&Io::memory(), Path::new("f"), 1, options(), 400, |_, _| {});
}

#[test]
fn a_flusher_that_never_rests_loses_nothing() {
    for sets in [1, 8] {
        let options = CacheOptions {
            flush_percent: 0,
            ..options()
        };
        storm(&Io::memory(), Path::new("f"), sets, options, 600, |_, _| {});
    }
}

#[test]
fn resizing_loses_nothing() {
    let page = PAGE + crate::cache::core::PAGE_OVERHEAD;
    for policy in POLICIES {
        let resize = |cache: &PageCache, step: usize| {
            let sets = 16 + Random(step as u64).below(60);
            cache.resize((sets * 12 + 17) * page).unwrap();
        };
        storm(
            &Io::memory(),
            Path::new("f"),
            16,
            CacheOptions { policy, ..options() },
            1500,
            resize,
        );
    }
}

#[test]
fn files_on_disk_through_rings_and_without() {
    let dir = tempfile::tempdir().unwrap();
    let options = CacheOptions {
        page_bytes: 4096,
        request_bytes: 16384,
        ..CacheOptions::default()
    };
    storm(&Io::direct(), &dir.path().join("direct"), 2, options, 200, |_, _| {});
    storm(
        &Io::buffered(),
        &dir.path().join("buffered"),
        4,
        CacheOptions {
            page_bytes: 1024,
            ..options
        },
        400,
        |_, _| {},
    );
}
