//! Pages read at random, for `benchmarks/page_cache.py` to hold one way against another:
//! `cargo run --release --example page_cache <file> <cache|pread|mmap> <hits %> <threads> <seconds> <cache bytes> <whole|ends>`.
//!
//! So many of a hundred pages are among those that are asked for again and again, the others are met for the first time.
//! Whoever has a page looks at all of it, or at its first and last byte. Prints reads, seconds and the hits that were, as JSON.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use outcore_store::cache::{ByteSpan, CacheOptions, PageCache, Pages};
use outcore_store::io::Mode;
use outcore_store::{Io, Ledger};
use rustix::fs::{fadvise, Advice};
use rustix::mm::{madvise, mmap, munmap, MapFlags, ProtFlags};

const PAGE: usize = 4096;
/// Pages that are asked for again and again; they fit in every cache.
const HOT: u64 = 16 << 10;
/// Pages that the cache is asked for at once.
const TOGETHER: usize = 4096;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// splitmix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// What is measured.
struct Case<'a> {
    path: &'a Path,
    threads: u64,
    length: Duration,
    cache_bytes: usize,
    whole: bool,
    pages: u64,
    hits: f64,
    cold: AtomicU64,
}

/// Reads that there were, and how many of a hundred were hits, where that is known.
type Found = (u64, Option<f64>);

impl Case<'_> {
    /// The page that is asked for next: a hot one as often as is wished, else one that was not asked for before; `None` where
    /// there is no such any more.
    fn next(&self, random: &mut Random) -> Option<u64> {
        if random.below(1 << 32) as f64 / f64::from(1u32 << 16) / 65536.0 < self.hits {
            return Some(random.below(HOT));
        }
        let (number, all) = (self.cold.fetch_add(1, Relaxed), self.pages - HOT);
        (number < all).then(|| HOT + (number * 7_368_787) % all)
    }

    /// What a user does with a page.
    fn used(&self, page: &[u8]) -> u64 {
        match self.whole {
            true => {
                let words = page.chunks_exact(8);
                words.fold(0, |sum, word| {
                    sum ^ u64::from_ne_bytes(word.try_into().expect("eight bytes"))
                })
            }
            false => u64::from(page[0]) + u64::from(page[page.len() - 1]),
        }
    }

    /// Runs `job` in every thread; it gives how much it read.
    fn in_threads(&self, job: impl Fn(&mut Random, Instant) -> u64 + Sync) -> u64 {
        let deadline = Instant::now() + self.length;
        std::thread::scope(|scope| {
            let job = &job;
            let run = |thread| scope.spawn(move || job(&mut Random(thread << 40), deadline));
            let all: Vec<_> = (0..self.threads).map(run).collect();
            all.into_iter().map(|thread| thread.join().expect("a job")).sum()
        })
    }

    /// The same with one page after the other.
    fn one_by_one(&self, read: impl Fn(u64, &mut [u8; PAGE]) -> u64 + Sync) -> u64 {
        self.in_threads(|random, deadline| {
            let (mut buffer, mut reads, mut sum) = ([0; PAGE], 0, 0);
            while reads % 64 > 0 || Instant::now() < deadline {
                let Some(page) = self.next(random) else { break };
                sum ^= read(page, &mut buffer);
                reads += 1;
            }
            std::hint::black_box(sum);
            reads
        })
    }

    fn opened(&self) -> Fallible<File> {
        let file = File::open(self.path)?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
        fadvise(&file, 0, None, Advice::Random)?;
        Ok(file)
    }

    fn pread(&self, begun: &mut dyn FnMut()) -> Fallible<Found> {
        let file = self.opened()?;
        let read = |page: u64, buffer: &mut [u8; PAGE]| {
            file.read_exact_at(buffer, page * PAGE as u64).expect("a read");
            self.used(buffer)
        };
        for hot in (0..HOT).chain(0..HOT) {
            read(hot, &mut [0; PAGE]);
        }
        begun();
        Ok((self.one_by_one(read), None))
    }

    fn mmap(&self, begun: &mut dyn FnMut()) -> Fallible<Found> {
        let file = self.opened()?;
        let bytes = self.pages as usize * PAGE;
        // SAFETY: a mapping of our own file, at an address of the kernel's choice, which nobody writes.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, &file, 0)? };
        // SAFETY: the range is the mapping just made.
        unsafe { madvise(start, bytes, rustix::mm::Advice::Random)? };
        // SAFETY: the mapping holds `bytes` bytes and is undone after the last use.
        let all = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), bytes) };
        let read = |page: u64| self.used(&all[page as usize * PAGE..][..PAGE]);
        std::hint::black_box((0..HOT).chain(0..HOT).fold(0, |sum, hot| sum ^ read(hot)));
        begun();
        let reads = self.one_by_one(|page, _| read(page));
        // SAFETY: made above, used no more.
        unsafe { munmap(start, bytes)? };
        Ok((reads, None))
    }

    fn cache(&self, begun: &mut dyn FnMut()) -> Fallible<Found> {
        let (io, ledger) = (Io::direct(), Ledger::new(self.cache_bytes));
        let cache = PageCache::new(&io, &ledger, self.cache_bytes, CacheOptions::default())?;
        let file = cache.open(self.path, Mode::Read)?;
        let visit = |wanted: &[ByteSpan]| {
            let mut sum = 0;
            let mut each = |_: usize, pages: Pages<'_>| sum ^= self.used(pages.slices()[0]);
            file.visit(wanted, &mut each).expect("a visit");
            std::hint::black_box(sum);
        };
        let span = |page: u64| ByteSpan {
            offset: page * PAGE as u64,
            bytes: PAGE as u32,
        };
        for _ in 0..2 {
            visit(&(0..HOT).map(span).collect::<Vec<_>>());
        }
        let before = cache.counters();
        begun();
        let reads = self.in_threads(|random, deadline| {
            let (mut reads, mut wanted) = (0, Vec::with_capacity(TOGETHER));
            while Instant::now() < deadline {
                wanted.clear();
                wanted.extend((0..TOGETHER).map_while(|_| self.next(random)).map(span));
                if wanted.is_empty() {
                    break;
                }
                visit(&wanted);
                reads += wanted.len() as u64;
            }
            reads
        });
        let after = cache.counters();
        let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
        Ok((reads, Some(100.0 * hits as f64 / (hits + misses).max(1) as f64)))
    }
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, way, hits, threads, seconds, cache_bytes, use_of] = &arguments[..] else {
        return Err(
            "usage: page_cache <file> <cache|pread|mmap> <hits %> <threads> <seconds> <cache bytes> <whole|ends>"
                .into(),
        );
    };
    let path = Path::new(path);
    let case = Case {
        path,
        threads: threads.parse()?,
        length: Duration::from_secs_f64(seconds.parse()?),
        cache_bytes: cache_bytes.parse()?,
        whole: use_of == "whole",
        pages: path.metadata()?.len() / PAGE as u64,
        hits: hits.parse::<f64>()? / 100.0,
        cold: AtomicU64::new(0),
    };
    if case.pages <= 2 * HOT {
        return Err(format!("a file of {} pages: more than {} are needed", case.pages, 2 * HOT).into());
    }
    let mut start = Instant::now();
    let mut begun = || start = Instant::now();
    let (reads, hits) = match way.as_str() {
        "cache" => case.cache(&mut begun)?,
        "pread" => case.pread(&mut begun)?,
        "mmap" => case.mmap(&mut begun)?,
        other => return Err(format!("{other}: cache, pread and mmap are there").into()),
    };
    let (seconds, hits) = (
        start.elapsed().as_secs_f64(),
        hits.map_or("null".into(), |hits| format!("{hits:.3}")),
    );
    println!("{{\"reads\": {reads}, \"seconds\": {seconds}, \"hit_percent\": {hits}}}");
    Ok(())
}
