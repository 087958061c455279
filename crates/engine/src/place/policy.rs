//! Choice of the tile that leaves memory when room is needed.

use std::collections::{BinaryHeap, VecDeque};

use super::window::Window;
use crate::schedule::TileId;

/// The limits of a placement.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes for tiles and partial results.
    pub memory: u64,
    /// What may be at work or read ahead for.
    pub window: Window,
    pub policy: Policy,
    /// For `NextUse`: keep an even sample of the tiles that are needed again, instead of one run of them.
    pub sample: bool,
    /// Read neighbouring tiles of row-major sources together.
    pub group: bool,
    /// For `NextUse`: wait for the tasks of the window before what is needed again leaves. Fewer tiles leave, and less work and
    /// I/O goes on at once.
    pub patient: bool,
}

impl Limits {
    /// So much memory and a window, with all that the default policy can do.
    pub fn new(memory: u64, window: Window) -> Limits {
        Limits {
            memory,
            window,
            policy: Policy::default(),
            sample: true,
            group: true,
            patient: false,
        }
    }
}

/// Which rule picks the victim, and whether dead tiles are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// Farthest next use, weighed by what leaving costs; dead tiles are dropped at once.
    #[default]
    NextUse,
    /// Clean tiles in LRU order, then dirty ones, which are written (TilePACK's baseline).
    CleanFirstLru,
    /// The same, and a temporary is dropped after its last consumer (consumer counts, Kim 2023).
    ConsumerCount,
    Lru,
    /// Second chance.
    Clock,
}

impl Policy {
    pub const ALL: [Policy; 5] = [
        Policy::NextUse,
        Policy::CleanFirstLru,
        Policy::ConsumerCount,
        Policy::Lru,
        Policy::Clock,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Policy::NextUse => "next-use",
            Policy::CleanFirstLru => "clean-first-lru",
            Policy::ConsumerCount => "consumer-count",
            Policy::Lru => "lru",
            Policy::Clock => "clock",
        }
    }

    pub fn from_name(name: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// Whether a temporary is dropped after its last use, unwritten.
    pub fn drops_dead_temporaries(self) -> bool {
        matches!(self, Policy::NextUse | Policy::ConsumerCount)
    }
}

/// The cost of leaving memory, per byte read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Coming back transfers nothing.
    Free,
    /// One read.
    Clean,
    /// One write now and one read later.
    Dirty,
}

const COSTS: [Cost; 3] = [Cost::Free, Cost::Clean, Cost::Dirty];

impl Cost {
    fn weight(self) -> f64 {
        match self {
            Cost::Free => 1e-3,
            Cost::Clean => 1.0,
            Cost::Dirty => 2.0,
        }
    }
}

/// The standing of an entry in the order of eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The tile has left, or has been used since and stands elsewhere in the order.
    Gone,
    /// In use by a task at work; it keeps its place (clock only).
    Busy,
    /// Used since the hand last passed (clock only).
    SecondChance,
    Takeable,
}

/// Resident tiles outside the window, ordered for eviction. Entries may be stale: whoever pops says so.
pub struct Victims {
    policy: Policy,
    order: Order,
}

enum Order {
    /// `NextUse`, exactly: by cost class, farthest next use first.
    Farthest([BinaryHeap<(u64, TileId)>; 3]),
    /// `NextUse`, an even sample.
    Sample(Sample),
    /// By cost class: least recently used first.
    Recency([VecDeque<(u64, TileId)>; 3]),
}

impl Victims {
    /// With `sample`, next-use placement keeps an even sample of the tiles that are needed again.
    pub fn new(policy: Policy, sample: bool) -> Victims {
        let order = match policy {
            Policy::NextUse if sample => Order::Sample(Sample::default()),
            Policy::NextUse => Order::Farthest(Default::default()),
            _ => Order::Recency(Default::default()),
        };
        Victims { policy, order }
    }

    /// A tile leaves the window. `key` is its next use for `NextUse`, its last use for the others.
    pub fn insert(&mut self, tile: TileId, key: u64, cost: Cost) {
        match &mut self.order {
            Order::Farthest(heaps) => heaps[cost as usize].push((key, tile)),
            Order::Sample(sample) => sample.insert(tile, key, cost),
            Order::Recency(queues) => {
                let class = if matches!(self.policy, Policy::Lru | Policy::Clock) {
                    0
                } else {
                    cost as usize
                };
                queues[class].push_back((key, tile));
            }
        }
    }

    /// What `key` is for this policy.
    pub fn key(&self, last_use: u64, next_use: u64) -> u64 {
        if self.policy == Policy::NextUse {
            next_use
        } else {
            last_use
        }
    }

    /// A tile that costs nothing to evict, if next-use placement knows one.
    pub fn pop_free(&mut self, mut standing: impl FnMut(TileId, u64) -> Standing) -> Option<TileId> {
        let mut is_takeable = |tile, key| standing(tile, key) == Standing::Takeable;
        match &mut self.order {
            Order::Farthest([free, ..]) => {
                std::iter::from_fn(|| free.pop()).find_map(|(key, tile)| is_takeable(tile, key).then_some(tile))
            }
            Order::Sample(Sample([free, ..])) => {
                std::iter::from_fn(|| free.pop()).find_map(|(_, tile, key)| is_takeable(tile, key).then_some(tile))
            }
            Order::Recency(_) => None,
        }
    }

    /// The tile to evict at task `now`. `standing` says what an entry stands for, and takes a reference bit away
    /// when it answers `SecondChance`.
    pub fn pop(&mut self, now: u64, mut standing: impl FnMut(TileId, u64) -> Standing) -> Option<TileId> {
        match &mut self.order {
            Order::Farthest(heaps) => pop_farthest(heaps, now, standing),
            Order::Sample(sample) => sample.pop(standing),
            Order::Recency(queues) => {
                for queue in queues {
                    // Each entry is looked at twice at most: once with its reference bit and once without.
                    for _ in 0..2 * queue.len() {
                        let Some((key, tile)) = queue.pop_front() else { break };
                        match standing(tile, key) {
                            Standing::Gone => {}
                            Standing::Busy | Standing::SecondChance => queue.push_back((key, tile)),
                            Standing::Takeable => return Some(tile),
                        }
                    }
                }
                None
            }
        }
    }
}

fn pop_farthest(
    heaps: &mut [BinaryHeap<(u64, TileId)>; 3],
    now: u64,
    mut standing: impl FnMut(TileId, u64) -> Standing,
) -> Option<TileId> {
    let mut best: Option<(f64, usize)> = None;
    for (class, heap) in heaps.iter_mut().enumerate() {
        while heap
            .peek()
            .is_some_and(|&(key, tile)| standing(tile, key) != Standing::Takeable)
        {
            heap.pop();
        }
        if let Some(&(next_use, _)) = heap.peek() {
            let score = next_use.saturating_sub(now) as f64 / COSTS[class].weight();
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, class));
            }
        }
    }
    let (_, class) = best?;
    heaps[class].pop().map(|(_, tile)| tile)
}

/// By cost class, the tile with the highest rank in a low-discrepancy sequence leaves first, whenever it is needed again.
///
/// Cyclic sweeps hit equally often whichever tiles are kept. Farthest-first keeps one run of them, so a sweep computes
/// on that run with an idle disk and then waits for the disk. An even sample lets reads and work overlap all the way.
#[derive(Default)]
struct Sample([BinaryHeap<(u32, TileId, u64)>; 3]);

impl Sample {
    /// The fractional part of `tile` times the golden ratio: any leading part of the order is evenly spaced.
    fn rank(tile: TileId) -> u32 {
        tile.wrapping_mul(0x9E37_79B9)
    }

    fn insert(&mut self, tile: TileId, next_use: u64, cost: Cost) {
        // What is not used again leaves in its order: a sample of that serves nobody.
        let last_use = u64::MAX - next_use;
        let rank = match u32::try_from(last_use) {
            Ok(last_use) => u32::MAX - last_use,
            Err(_) => Sample::rank(tile),
        };
        self.0[cost as usize].push((rank, tile, next_use));
    }

    fn pop(&mut self, mut standing: impl FnMut(TileId, u64) -> Standing) -> Option<TileId> {
        for class in &mut self.0 {
            while let Some((_, tile, next_use)) = class.pop() {
                if standing(tile, next_use) == Standing::Takeable {
                    return Some(tile);
                }
            }
        }
        None
    }
}
