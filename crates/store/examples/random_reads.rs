//! Small reads at random, by every way there is:
//! `cargo run --release --example random_reads <directory> [GiB] [percent of hits, of all if none is given]`.
//!
//! Prints reads per second, bytes per second and processor time per read: of the page cache at several hit rates, beside
//! buffered `pread` and `mmap` on the same file; of the ring, beside threads with `pread`, past all caches. The file is
//! removed when all goes well.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use outcore_store::cache::{CacheOptions, CachedFile, PageCache, Span};
use outcore_store::io::{Mode, Queue};
use outcore_store::{AlignedBuffer, Io, Ledger};
use rustix::fs::{fadvise, Advice};
use rustix::mm::{madvise, mmap, munmap, MapFlags, ProtFlags};

const PAGE: usize = 4096;
const CACHE_BYTES: usize = 256 << 20;
/// Pages that are asked for again and again; they fit in every cache.
const HOT: u64 = 16 << 10;
const SECONDS: f64 = 2.0;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap_or_else(|| ".".into()));
    let gib: u64 = arguments.next().map_or(Ok(4), |gib| gib.parse())?;
    let path = directory.join("random_reads.bin");
    write_file(&path, gib << 30)?;
    let pages = (gib << 30) / PAGE as u64;
    println!(
        "file of {gib} GiB, cache of {} MiB, {SECONDS} s each",
        CACHE_BYTES >> 20
    );
    let percent: Option<f64> = arguments.next().map(|percent| percent.parse()).transpose()?;
    if percent.is_none() {
        raw(&path, pages)?;
    }
    for hits in percent.map_or(vec![0.0, 0.5, 0.95, 1.0], |percent| vec![percent / 100.0]) {
        println!("{:.0} % hits:", hits * 100.0);
        let base = buffered(&path, pages, hits, 1)?;
        buffered(&path, pages, hits, 32)?.beside("pread, 1 thread", &base);
        mapped(&path, pages, hits, 1)?.beside("pread, 1 thread", &base);
        mapped(&path, pages, hits, 32)?.beside("pread, 1 thread", &base);
        for threads in [1, 2] {
            cached(&path, pages, hits, threads)?.beside("pread, 1 thread", &base);
        }
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

/// Bytes that no disk can leave out.
fn write_file(path: &Path, bytes: u64) -> Fallible<()> {
    let mut file = File::create(path)?;
    let mut random = Random(1);
    for _ in 0..bytes >> 22 {
        let block: Vec<u8> = (0..1 << 19).flat_map(|_| random.next().to_le_bytes()).collect();
        file.write_all(&block)?;
    }
    file.sync_all()?;
    Ok(())
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 32
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// User and system seconds of this process.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}

/// What was measured.
struct Measured {
    per_second: f64,
}

impl Measured {
    fn beside(&self, what: &str, base: &Measured) {
        println!("{:46} = {:.2} x {what}", "", self.per_second / base.per_second);
    }
}

/// Runs `job` in threads, each until it has nothing left or the time is over; it returns how much it read.
fn measure(what: &str, threads: usize, bytes: usize, job: impl Fn(usize, Instant) -> u64 + Sync) -> Measured {
    let (start, processor) = (Instant::now(), processor_seconds());
    let deadline = start + Duration::from_secs_f64(SECONDS);
    let reads: u64 = std::thread::scope(|scope| {
        let job = &job;
        let all: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || job(thread, deadline)))
            .collect();
        all.into_iter().map(|thread| thread.join().expect("a job")).sum()
    });
    let seconds = start.elapsed().as_secs_f64();
    let processor = processor_seconds() - processor;
    let per_second = reads as f64 / seconds;
    println!(
        "  {what:24} {threads:3} threads {per_second:10.0} reads/s {:8.1} MiB/s {:7.2} us processor/read",
        per_second * bytes as f64 / f64::from(1 << 20),
        processor * 1e6 / reads as f64
    );
    Measured { per_second }
}

/// Which pages are asked for: hot ones as often as is wished, else one that was not asked for before.
struct Accesses {
    pages: u64,
    hits: f64,
    cold: AtomicU64,
}

impl Accesses {
    fn new(pages: u64, hits: f64) -> Accesses {
        Accesses {
            pages,
            hits,
            cold: AtomicU64::new(0),
        }
    }

    fn next(&self, random: &mut Random) -> Option<u64> {
        if (random.next() >> 11) as f64 / (1u64 << 53) as f64 >= self.hits {
            let number = self.cold.fetch_add(1, Relaxed);
            let all = self.pages - HOT;
            return (number < all).then(|| HOT + (number * 7_368_787) % all);
        }
        Some(random.below(HOT))
    }
}

/// What a user does with a page: looks at both its ends.
fn used(page: &[u8]) -> u64 {
    u64::from(page[0]) + u64::from(page[page.len() - 1])
}

fn opened(path: &Path) -> Fallible<File> {
    let file = File::open(path)?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    fadvise(&file, 0, None, Advice::Random)?;
    Ok(file)
}

fn buffered(path: &Path, pages: u64, hits: f64, threads: usize) -> Fallible<Measured> {
    let file = opened(path)?;
    let mut page = [0; PAGE];
    for hot in 0..HOT {
        file.read_exact_at(&mut page, hot * PAGE as u64)?;
    }
    let accesses = Accesses::new(pages, hits);
    Ok(measure("buffered pread", threads, PAGE, |thread, deadline| {
        let (mut random, mut page, mut reads, mut sum) = (Random(thread as u64), [0; PAGE], 0, 0);
        while let Some(next) = accesses
            .next(&mut random)
            .filter(|_| reads % 64 > 0 || Instant::now() < deadline)
        {
            file.read_exact_at(&mut page, next * PAGE as u64).expect("a read");
            sum += used(&page);
            reads += 1;
        }
        std::hint::black_box(sum);
        reads
    }))
}

fn mapped(path: &Path, pages: u64, hits: f64, threads: usize) -> Fallible<Measured> {
    let file = opened(path)?;
    let bytes = pages as usize * PAGE;
    // SAFETY: a mapping of our own file, at an address of the kernel's choice, which nobody writes.
    let start = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, &file, 0)? };
    // SAFETY: the range is the mapping just made.
    unsafe { madvise(start, bytes, rustix::mm::Advice::Random)? };
    // SAFETY: the mapping holds `bytes` bytes and is undone after the last use.
    let all = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), bytes) };
    let page = |page: u64| &all[page as usize * PAGE..][..PAGE];
    std::hint::black_box((0..HOT).map(|hot| used(page(hot))).sum::<u64>());
    let accesses = Accesses::new(pages, hits);
    let measured = measure("mmap", threads, PAGE, |thread, deadline| {
        let (mut random, mut reads, mut sum) = (Random(thread as u64), 0, 0);
        while let Some(next) = accesses
            .next(&mut random)
            .filter(|_| reads % 64 > 0 || Instant::now() < deadline)
        {
            sum += used(page(next));
            reads += 1;
        }
        std::hint::black_box(sum);
        reads
    });
    // SAFETY: made above, used no more.
    unsafe { munmap(start, bytes)? };
    Ok(measured)
}

fn cached(path: &Path, pages: u64, hits: f64, threads: usize) -> Fallible<Measured> {
    let cache = PageCache::new(
        &Io::direct(),
        &Ledger::new(CACHE_BYTES),
        CACHE_BYTES,
        CacheOptions::default(),
    )?;
    let file = cache.open(path, Mode::Read)?;
    let visit = |file: &CachedFile, wanted: &[Span]| {
        let mut sum = 0;
        let mut each = |_: usize, pages: outcore_store::cache::Pages<'_>| sum += used(pages.slices()[0]);
        file.visit(wanted, &mut each).expect("a visit");
        std::hint::black_box(sum);
    };
    let span = |page: u64| Span {
        offset: page * PAGE as u64,
        bytes: PAGE as u32,
    };
    for _ in 0..2 {
        visit(&file, &(0..HOT).map(span).collect::<Vec<_>>());
    }
    let accesses = Accesses::new(pages, hits);
    let before = cache.counters();
    let measured = measure("page cache", threads, PAGE, |thread, deadline| {
        let (mut random, mut reads) = (Random(thread as u64), 0);
        let mut wanted = Vec::new();
        while Instant::now() < deadline {
            wanted.clear();
            wanted.extend((0..4096).map_while(|_| accesses.next(&mut random)).map(span));
            if wanted.is_empty() {
                break;
            }
            visit(&file, &wanted);
            reads += wanted.len() as u64;
        }
        reads
    });
    let after = cache.counters();
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    println!(
        "    {:.2} % hits, {} MiB read, {} evictions",
        hits as f64 * 100.0 / (hits + misses) as f64,
        (after.bytes_read - before.bytes_read) >> 20,
        after.evictions
    );
    Ok(measured)
}

/// Past all caches: the ring beside threads.
fn raw(path: &Path, pages: u64) -> Fallible<()> {
    for (what, bytes, depths, counts) in [
        ("random 4 KiB", PAGE, &[1, 32, 64, 128, 256][..], &[1, 8, 32, 64][..]),
        ("random 64 KiB", 16 * PAGE, &[16, 64][..], &[8, 32][..]),
        ("sequential 4 MiB", 1 << 22, &[1, 2, 4, 8][..], &[1, 2, 4][..]),
    ] {
        println!("{what}, past all caches:");
        let blocks = pages * PAGE as u64 / bytes as u64;
        let sequential = bytes >= 1 << 22;
        let next = AtomicU64::new(0);
        let block = |random: &mut Random| match sequential {
            true => next.fetch_add(1, Relaxed) % blocks,
            false => random.below(blocks),
        };
        let io = Io::direct();
        let file = io.open(path, Mode::Read)?;
        for &threads in counts {
            measure("pread", threads, bytes, |thread, deadline| {
                let (mut random, mut reads) = (Random(thread as u64), 0);
                let mut buffer = AlignedBuffer::new(bytes).expect("memory");
                while Instant::now() < deadline {
                    let offset = block(&mut random) * bytes as u64;
                    io.read(&file, &mut buffer, offset, bytes).expect("a read");
                    reads += 1;
                }
                reads
            });
        }
        for &depth in depths {
            measure(&format!("ring of {depth}"), 1, bytes, |thread, deadline| {
                let (mut random, mut reads) = (Random(thread as u64), 0);
                let mut queue = Queue::new(&io);
                assert!(queue.has_ring(), "no ring to be had");
                let mut idle: Vec<Vec<AlignedBuffer>> = (0..depth)
                    .map(|_| vec![AlignedBuffer::new(bytes).expect("memory")])
                    .collect();
                while Instant::now() < deadline {
                    for buffers in idle.drain(..) {
                        queue.read(&file, buffers, block(&mut random) * bytes as u64, bytes, 0);
                    }
                    let mut wait = true;
                    while let Some(done) = queue.next_read(wait) {
                        done.outcome.expect("a read");
                        idle.push(done.buffers);
                        (wait, reads) = (false, reads + 1);
                    }
                }
                reads
            });
        }
    }
    Ok(())
}
