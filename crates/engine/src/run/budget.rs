//! How a program gets its memory: placed in what the session may grant, or refused with the least that would do.

use std::sync::atomic::AtomicBool;

use outcore_store::{FramePool, GROUP_STAGING_BYTES};

use super::prepare::check_wanted;
use super::session::{KeptKey, Session};
use crate::place::{self, Limits, Placed, Shortage};
use crate::plan::Plan;
use crate::schedule::tiles::tasks_per_read;
use crate::schedule::{TileId, TileTable, TASKS_FOR_SEARCH};
use crate::EngineError;

/// Frames' worth of memory left to frames that wait to be used again.
const SPARE_FRAMES: u64 = 4;
/// Reads that may be under way beside the tasks at work.
const READS_AHEAD: usize = 8;
/// Tasks of one read that the window counts at most: each holds its results too.
const TASKS_PER_READ_MAX: u64 = 8;

/// What is to be placed, and whether anybody still waits for it.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) plan: &'a Plan,
    pub(super) tiles: &'a TileTable,
    pub(super) unwanted: &'a AtomicBool,
}

/// A program that fits, and the memory it was given.
pub(super) struct Placement {
    pub(super) placed: Placed,
    pub(super) fixed_bytes: u64,
    pub(super) memory: u64,
    pub(super) start: Vec<(TileId, KeptKey)>,
}

/// Bytes that results take which the caller still has, of this session and of the process's others.
#[derive(Clone, Copy)]
pub(super) struct Held {
    here: u64,
    elsewhere: u64,
}

impl Session {
    pub(super) fn place(
        &self,
        wanted: Wanted<'_>,
        fixed_bytes: u64,
        start: Vec<(TileId, KeptKey)>,
    ) -> Result<Placement, EngineError> {
        let held = Held {
            here: self.ledger().held() as u64,
            elsewhere: self.ledger().held_by_others() as u64,
        };
        let budget = self.budget_beside(held);
        // Tiles kept from before are an offer: as many as fit are taken.
        let mut start = start;
        let mut offered = 0;
        start.retain(|&(tile, _)| {
            offered += wanted.tiles.weights[tile as usize].frame;
            offered + fixed_bytes <= budget - budget / 20
        });
        self.attempt(wanted, fixed_bytes, budget, start).or_else(|shortage| {
            let smallest = smallest_budget(shortage.need, &|budget| {
                check_wanted(wanted.unwanted)?;
                Ok(self.attempt(wanted, fixed_bytes, budget, vec![]).is_ok())
            })?;
            Err(self.refuse(wanted.plan, shortage, held, smallest))
        })
    }

    /// What a program may take: kept tiles and idle frames, here and in other sessions, give way to it.
    pub(super) fn budget_beside(&self, held: Held) -> u64 {
        self.budget()
            .min(self.room().saturating_sub(held.elsewhere))
            .saturating_sub(held.here)
    }

    /// Places in a budget: reading neighbouring tiles together where that is possible and moves less, else one by one. A
    /// large program that fits the first way is not placed the second: planning must not cost more than it saves.
    pub(super) fn attempt(
        &self,
        wanted: Wanted<'_>,
        fixed_bytes: u64,
        budget: u64,
        start: Vec<(TileId, KeptKey)>,
    ) -> Result<Placement, Shortage> {
        let plan = wanted.plan;
        let ids: Vec<TileId> = start.iter().map(|&(tile, _)| tile).collect();
        let placement = |(placed, memory), fixed_bytes, start| Placement {
            placed,
            fixed_bytes,
            memory,
            start,
        };
        let together = plan
            .arrays
            .iter()
            .any(|array| array.grouped_source().is_some())
            .then(|| {
                let fixed_bytes = fixed_bytes + self.staging_bytes();
                let found = self.attempt_reading(wanted, fixed_bytes, budget, &ids, true).ok()?;
                found.0.program.reads_groups().then_some((found, fixed_bytes))
            });
        let together = together.flatten();
        let tasks = plan.tasks();
        let (found, fixed_together) = match together {
            Some((found, fixed_bytes)) if tasks > TASKS_FOR_SEARCH => return Ok(placement(found, fixed_bytes, start)),
            Some(together) => together,
            None => {
                let alone = self.attempt_reading(wanted, fixed_bytes, budget, &ids, false)?;
                return Ok(placement(alone, fixed_bytes, start));
            }
        };
        match self.attempt_reading(wanted, fixed_bytes, budget, &ids, false) {
            Ok(alone) if alone.0.moved_bytes() <= found.0.moved_bytes() => Ok(placement(alone, fixed_bytes, start)),
            _ => Ok(placement(found, fixed_together, start)),
        }
    }

    pub(super) fn attempt_reading(
        &self,
        wanted: Wanted<'_>,
        fixed_bytes: u64,
        budget: u64,
        start: &[TileId],
        group: bool,
    ) -> Result<(Placed, u64), Shortage> {
        let Wanted { plan, tiles, unwanted } = wanted;
        if fixed_bytes > budget {
            return Err(Shortage {
                pass: 0,
                need: fixed_bytes,
                available: budget,
            });
        }
        let memory = budget - fixed_bytes;
        let limits = |memory| Limits {
            memory,
            window: self.window(plan, tiles, memory),
            policy: self.options.policy,
            sample: true,
            group,
            unwanted,
        };
        // Frames just freed are kept for the next tile of their size only while they fit beside what is reserved:
        // with nothing left over, every tile would be mapped, and zeroed by the kernel, anew.
        let spare = spare_bytes(tiles, memory);
        let within = |memory| place::place(plan, tiles, self.options.plan, limits(memory), start);
        within(memory - spare)
            .map(|placed| (placed, memory - spare))
            .or_else(|_| within(memory).map(|placed| (placed, memory)))
            .map_err(|shortage| Shortage {
                need: shortage.need + fixed_bytes,
                available: budget,
                ..shortage
            })
    }

    /// Memory through which neighbouring tiles are read together.
    pub(super) fn staging_bytes(&self) -> u64 {
        (self.options.io_threads.max(1) * FramePool::frame_bytes(GROUP_STAGING_BYTES)) as u64
    }

    pub(super) fn window(&self, plan: &Plan, tiles: &TileTable, memory: u64) -> usize {
        let threads = self.options.threads.max(1);
        if let Some(window) = self.options.window {
            return window;
        }
        let tile = tiles
            .weights
            .iter()
            .map(|weight| weight.frame)
            .max()
            .unwrap_or(0)
            .max(1);
        // The disk is kept busy by whole reads, so the window counts those where a read serves several tasks.
        let per_read = tasks_per_read(plan).min(TASKS_PER_READ_MAX) as usize;
        let ahead = if plan.passes.iter().any(crate::schedule::blocking::is_blocked) {
            4 * threads
        } else {
            4 * threads + READS_AHEAD * per_read
        };
        // A quarter of the memory at most is for tiles that are only passing through.
        ahead.min((memory / (4 * tile)) as usize * per_read).max(threads)
    }

    /// Has the other sessions give up what they can do without, as far as `wish` bytes here need its room. Returns what
    /// this session may grant then and what the others still hold. In its turn only.
    pub(super) fn claim_room(&self, wish: u64) -> (u64, u64) {
        let others = self.ledger().shrink_others(self.room().saturating_sub(wish) as usize) as u64;
        (self.budget().min(self.room().saturating_sub(others)), others)
    }

    /// Where the limit's bytes are.
    pub(super) fn describe_limit(&self, here: u64, elsewhere: u64) -> String {
        format!(
            "limit {} bytes, of which {} are the process itself, {here} are held by earlier results and {elsewhere} by \
             results of other sessions",
            self.options.memory_limit,
            self.overhead()
        )
    }

    /// The error for a program that does not fit, with the smallest limit that would do: of the pool where that is what
    /// it does not fit, else of the process.
    pub(super) fn refuse(&self, plan: &Plan, shortage: Shortage, held: Held, budget: u64) -> EngineError {
        let Held { here, elsewhere } = held;
        let pool = self.options.pool_limit.filter(|&pool| budget + here > pool);
        let smallest = match pool {
            Some(_) => budget + here,
            None => budget + here + elsewhere + self.overhead(),
        };
        let operator = plan
            .passes
            .get(shortage.pass as usize)
            .map_or_else(String::new, |pass| pass.label.clone());
        EngineError::Memory {
            operator,
            need: shortage.need,
            available: self.budget_beside(held),
            smallest,
            detail: self.describe_limit(here, elsewhere),
        }
    }
}

/// The smallest budget that fits, by bisection from a guess.
fn smallest_budget(guess: u64, fits: &dyn Fn(u64) -> Result<bool, EngineError>) -> Result<u64, EngineError> {
    let (mut low, mut high) = (0, guess.max(1 << 20));
    while high <= 1 << 60 && !fits(high)? {
        low = high;
        high *= 2;
    }
    while high - low > 64 << 10 {
        let middle = low + (high - low) / 2;
        if fits(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// Room for frames that wait to be used again.
pub(super) fn spare_bytes(tiles: &TileTable, memory: u64) -> u64 {
    let frame = tiles.weights.iter().map(|weight| weight.frame).max().unwrap_or(0);
    (SPARE_FRAMES * frame).min(memory / 20)
}
