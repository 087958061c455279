//! What iterations do, counted while they run: for whoever watches, and to be looked at after.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use outcore_store::cache::CachedFile;

/// Counts of an iteration, or of some that follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Iterations {
    /// The number of the first, from 0 in a run, over all programs in it.
    pub first: u64,
    pub count: u64,
    /// Vertices that were active, over all of them.
    pub active: u64,
    /// Lists that were asked for.
    pub lists: u64,
    /// Bytes that came from the file.
    pub read_bytes: u64,
    /// Pages that were in the cache.
    pub hits: u64,
    pub seconds: f64,
}

impl Iterations {
    fn add(&mut self, next: &Iterations) {
        self.count += next.count;
        self.active += next.active;
        self.lists += next.lists;
        self.read_bytes += next.read_bytes;
        self.hits += next.hits;
        self.seconds += next.seconds;
    }
}

/// Rows that are kept: where there are more iterations, each row is of several.
const ROWS: usize = 1024;

/// The iterations of a run.
#[derive(Debug, Default)]
pub struct Activity {
    /// Bytes and pages that nobody counts but who reads them: past the cache, or where the run has none of its own.
    told_bytes: AtomicU64,
    told_hits: AtomicU64,
    course: Mutex<Course>,
}

/// Invariant: `rows` are no more than `ROWS`, and each is of 2^`shift` iterations but the last, which may be of fewer.
#[derive(Debug, Default)]
struct Course {
    rows: Vec<Iterations>,
    shift: u32,
    /// The iteration that is under way, and what had been counted when it began.
    open: Option<(Iterations, Counted, Instant)>,
    all: Iterations,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    read_bytes: u64,
    hits: u64,
}

impl Activity {
    /// An iteration begins; the one before has ended.
    pub fn begin(&self, active: u64, cache: Option<&CachedFile>) {
        let counted = self.counted(cache);
        let mut course = self.lock();
        course.close(counted);
        let row = Iterations {
            first: course.all.count,
            count: 1,
            active,
            ..Iterations::default()
        };
        course.open = Some((row, counted, Instant::now()));
    }

    /// Lists are asked for.
    pub fn ask(&self, lists: u64) {
        if let Some((row, ..)) = &mut self.lock().open {
            row.lists += lists;
        }
    }

    /// Bytes are read past the cache.
    pub fn read(&self, bytes: u64) {
        self.told_bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes are read, and pages found, by way of a cache that `begin` and `end` do not see.
    pub fn read_by_cache(&self, bytes: u64, hits: u64) {
        self.told_bytes.fetch_add(bytes, Relaxed);
        self.told_hits.fetch_add(hits, Relaxed);
    }

    /// The last iteration has ended.
    pub fn end(&self, cache: Option<&CachedFile>) {
        let counted = self.counted(cache);
        self.lock().close(counted);
    }

    /// What has been done, row by row.
    pub fn rows(&self) -> Vec<Iterations> {
        self.lock().rows.clone()
    }

    /// The iteration that is under way, and all that was read before.
    pub fn now(&self) -> Iterations {
        let course = self.lock();
        let open = course.open.map(|(row, ..)| row).unwrap_or_default();
        Iterations {
            first: open.first,
            active: open.active,
            lists: course.all.lists + open.lists,
            ..course.all
        }
    }

    fn counted(&self, cache: Option<&CachedFile>) -> Counted {
        let cached = cache.map(|file| file.cache().counters());
        Counted {
            read_bytes: self.told_bytes.load(Relaxed) + cached.map_or(0, |counters| counters.bytes_read),
            hits: self.told_hits.load(Relaxed) + cached.map_or(0, |counters| counters.hits),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Course {
    fn close(&mut self, counted: Counted) {
        let Some((mut row, before, began)) = self.open.take() else {
            return;
        };
        row.read_bytes = counted.read_bytes.saturating_sub(before.read_bytes);
        row.hits = counted.hits.saturating_sub(before.hits);
        row.seconds = began.elapsed().as_secs_f64();
        self.all.add(&row);
        match self.rows.last_mut().filter(|last| last.count < 1 << self.shift) {
            Some(last) => last.add(&row),
            None => {
                if self.rows.len() == ROWS {
                    self.halve();
                }
                self.rows.push(row);
            }
        }
    }

    /// Makes one row of two.
    fn halve(&mut self) {
        self.shift += 1;
        let pairs = self.rows.chunks(2).map(|pair| {
            let mut row = pair[0];
            pair[1..].iter().for_each(|next| row.add(next));
            row
        });
        self.rows = pairs.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_iterations_are_rows_of_several() {
        let activity = Activity::default();
        for number in 0..5000u64 {
            activity.begin(number, None);
            activity.ask(2);
            activity.read(10);
            assert_eq!((activity.now().first, activity.now().active), (number, number));
        }
        activity.end(None);
        let rows = activity.rows();
        assert!(rows.len() <= ROWS, "{}", rows.len());
        let mut next = 0;
        for row in &rows {
            assert_eq!(
                (row.first, row.lists, row.read_bytes),
                (next, 2 * row.count, 10 * row.count)
            );
            assert_eq!(row.active, (row.first..row.first + row.count).sum::<u64>());
            next += row.count;
        }
        assert_eq!(next, 5000);
        assert!(rows[..rows.len() - 1].iter().all(|row| row.count == 8));
    }
}
