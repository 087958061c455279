//! Sets of twelve hit as often as one global cache of the same policy (SAFS 2.5.2).

use std::collections::{BTreeSet, HashMap};

use super::*;
use crate::cache::GCLOCK_MOST;

const PAGES: usize = 20_000;
const ACCESSES: usize = 200_000;

/// One global cache: the books' algorithms, page by page.
struct Global {
    policy: CachePolicy,
    room: usize,
    /// Each page's frame, and of LRU and LFU its key in `order`.
    frames: HashMap<usize, usize>,
    pages: Vec<usize>,
    uses: Vec<u64>,
    since: Vec<u64>,
    order: BTreeSet<(u64, u64, usize)>,
    hand: usize,
    now: u64,
}

impl Global {
    fn new(policy: CachePolicy, room: usize) -> Global {
        Global {
            policy,
            room,
            frames: HashMap::new(),
            pages: Vec::new(),
            uses: Vec::new(),
            since: Vec::new(),
            order: BTreeSet::new(),
            hand: 0,
            now: 0,
        }
    }

    fn key(&self, frame: usize) -> (u64, u64, usize) {
        let uses = if self.policy == CachePolicy::Lfu {
            self.uses[frame]
        } else {
            0
        };
        (uses, self.since[frame], frame)
    }

    fn victim(&mut self) -> usize {
        if matches!(self.policy, CachePolicy::Lru | CachePolicy::Lfu) {
            return self.order.pop_first().unwrap().2;
        }
        loop {
            let frame = self.hand;
            self.hand = (self.hand + 1) % self.room;
            if self.uses[frame] == 0 {
                return frame;
            }
            self.uses[frame] -= 1;
        }
    }

    fn hits(&mut self, page: usize) -> bool {
        self.now += 1;
        if let Some(&frame) = self.frames.get(&page) {
            let key = self.key(frame);
            self.order.remove(&key);
            match self.policy {
                CachePolicy::Lru => self.since[frame] = self.now,
                CachePolicy::Lfu => self.uses[frame] += 1,
                CachePolicy::Clock => self.uses[frame] = 1,
                CachePolicy::Gclock => self.uses[frame] = (self.uses[frame] + 1).min(u64::from(GCLOCK_MOST)),
            }
            let key = self.key(frame);
            self.order.insert(key);
            return true;
        }
        let frame = if self.pages.len() < self.room {
            self.pages.push(page);
            self.uses.push(0);
            self.since.push(0);
            self.pages.len() - 1
        } else {
            let frame = self.victim();
            self.frames.remove(&self.pages[frame]);
            frame
        };
        (self.pages[frame], self.uses[frame], self.since[frame]) = (page, 1, self.now);
        self.frames.insert(page, frame);
        let key = self.key(frame);
        self.order.insert(key);
        false
    }
}

fn uniform() -> Vec<usize> {
    let mut random = Random(1);
    (0..ACCESSES).map(|_| random.below(PAGES)).collect()
}

/// Pages in no order, the r-th of them asked for in proportion to r^-0.99 (YCSB).
fn zipf() -> Vec<usize> {
    let mut random = Random(2);
    let mut pages: Vec<usize> = (0..PAGES).collect();
    (1..PAGES).rev().for_each(|at| pages.swap(at, random.below(at + 1)));
    let mut sums: Vec<f64> = Vec::with_capacity(PAGES);
    for rank in 1..=PAGES {
        sums.push(sums.last().unwrap_or(&0.0) + (rank as f64).powf(-0.99));
    }
    let draw = |random: &mut Random| {
        let at = random.below(1 << 53) as f64 / (1u64 << 53) as f64 * sums[PAGES - 1];
        pages[sums.partition_point(|sum| *sum < at).min(PAGES - 1)]
    };
    (0..ACCESSES).map(|_| draw(&mut random)).collect()
}

/// Breadth first from vertex to vertex: edge lists of few pages each, hubs asked for often, neighbours often near.
fn graph() -> Vec<usize> {
    let mut random = Random(3);
    let mut trace = Vec::with_capacity(ACCESSES + 8);
    let mut vertex = 0;
    while trace.len() < ACCESSES {
        vertex = match random.below(10) {
            0..4 => (vertex + random.below(64)) % PAGES,
            4..8 => {
                let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
                ((share * share * share) * PAGES as f64) as usize * 7919 % PAGES
            }
            _ => random.below(PAGES),
        };
        let pages = 1 + random.below(3).min(PAGES - 1 - vertex);
        trace.extend(vertex..vertex + pages);
    }
    trace
}

#[test]
fn sets_hit_as_often_as_one_global_cache() {
    let io = Io::memory();
    let path = written(&io, PAGES * PAGE);
    for (what, trace) in [("uniform", uniform()), ("zipf", zipf()), ("graph", graph())] {
        for policy in POLICIES {
            let cache = cache_of(&io, 400, CacheOptions { policy, ..options() });
            let room = cache.pages();
            let file = cache.open(path, Mode::Read).unwrap();
            let mut global = Global::new(policy, room);
            let (warm, counted) = trace.split_at(trace.len() / 2);
            let mut hits = 0;
            warm.iter().for_each(|page| _ = global.hits(*page));
            counted.iter().for_each(|page| hits += u64::from(global.hits(*page)));
            let visit = |part: &[usize]| {
                for page in part {
                    file.visit(&[span(page * PAGE, 8)], &mut |_, _| {}).unwrap();
                }
            };
            visit(warm);
            let before = cache.counters().hits;
            visit(counted);
            let share = |hits: u64| hits as f64 * 100.0 / counted.len() as f64;
            let (sets, one) = (share(cache.counters().hits - before), share(hits));
            println!("{what:8} {policy:?}: {sets:.2} % in sets, {one:.2} % in one");
            assert!(
                sets > one - 1.0,
                "{what} {policy:?}: {sets:.2} % in sets, {one:.2} % in one of {room} pages"
            );
        }
    }
}

/// Back and forth through more pages than the cache has: each time those are read that were not there, and no others, though
/// there are pages of something else at first.
#[test]
fn a_sweep_larger_than_the_cache_reads_no_page_that_is_there() {
    let io = Io::memory();
    let path = written(&io, PAGES * PAGE);
    let cache = cache_of(&io, 400, options());
    let room = cache.pages();
    let file = cache.open(path, Mode::Read).unwrap();
    let all = room + room / 5;
    let sweep = |kind: Option<usize>, turns: bool| {
        cache.sweep(kind);
        let before = cache.counters().misses;
        for page in 0..all {
            let page = kind.unwrap_or(0) * all + if turns { all - 1 - page } else { page };
            file.visit(&[span(page * PAGE, 8)], &mut |_, _| {}).unwrap();
        }
        (cache.counters().misses - before) as usize
    };
    let there = |misses: usize| (all - room..all - room + room / 50).contains(&misses);
    for kind in [1, 0, 2] {
        for turn in 0..40 {
            let misses = sweep(Some(kind), turn % 2 == 1);
            match turn {
                0 => assert_eq!(misses, all, "nothing was there"),
                _ => assert!(
                    there(misses),
                    "sweep {turn} of {kind}: {misses} of {all} pages, {room} in memory"
                ),
            }
        }
    }
    let alone: usize = (0..4).map(|turn| sweep(None, turn % 2 == 0)).sum();
    assert!(
        alone > 4 * (all - room) * 3 / 2,
        "by itself the policy reads {} a sweep",
        alone / 4
    );
}
