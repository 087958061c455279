//! How a program gets its memory: placed in what the session may grant, or refused with the least that would do.

use outcore_store::cache::PageCache;
use outcore_store::{FramePool, Reclaim, GROUP_STAGING_BYTES};

use crate::place::window::InBytes;
use crate::place::{self, Limits, Placed, Shortage, Window};
use crate::plan::{Plan, PlanOptions};
use crate::run::prepare::planning::Supposed;
use crate::run::prepare::refusal::{Fit, HeldBytes, Looking};
use crate::run::session::residency::KeptKey;
use crate::run::session::Session;
use crate::schedule::tiles::tasks_per_read;
use crate::schedule::{is_searched, TileId, TileTable, TASKS_FOR_SEARCH};
use crate::EngineError;

/// Frames' worth of memory left to frames that wait to be used again.
const SPARE_FRAMES: u64 = 4;
/// Reads that may be under way beside the tasks at work.
const READS_AHEAD: usize = 8;
/// Tasks of one read that the window counts at most: each holds its results too.
const TASKS_PER_READ_MAX: u64 = 8;

/// A request for a placement.
#[derive(Clone, Copy)]
pub(in crate::run) struct PlacementRequest<'a> {
    pub(in crate::run) plan: &'a Plan,
    pub(in crate::run) tiles: &'a TileTable,
    /// Bytes of values computed before that stand in the plan.
    pub(in crate::run) used: u64,
    pub(in crate::run) memory: Supposed,
    /// The function that the caller called for it, where its nodes do not know.
    pub(in crate::run) called: Option<&'static str>,
    /// Whether a refusal is to name the smallest limit that works.
    pub(in crate::run) last: bool,
}

/// How a placement is tried.
#[derive(Clone, Copy)]
struct Try<'a> {
    budget: u64,
    /// Reserved beside tiles and partial results.
    fixed_bytes: u64,
    /// Tiles in memory that may be started from, as far as they fit.
    offered: &'a [(TileId, KeptKey)],
    /// Tasks of the window, at most.
    window_max: usize,
    /// Read neighbouring tiles together.
    group: bool,
    /// Leave room to frames that wait to be used again, where there is.
    spare: bool,
    /// Search for orders.
    search: bool,
}

/// A program that fits, and the memory it was given.
pub(in crate::run) struct Placement {
    pub(in crate::run) placed: Placed,
    pub(in crate::run) fixed_bytes: u64,
    pub(in crate::run) memory: u64,
    pub(in crate::run) start: Vec<(TileId, KeptKey)>,
}

impl Session {
    pub(in crate::run) fn place(
        &self,
        request: PlacementRequest<'_>,
        fixed_bytes: u64,
        start: Vec<(TileId, KeptKey)>,
    ) -> Result<Placement, EngineError> {
        let held = self.held();
        let (budget, values) = match request.memory {
            Supposed::Bytes(budget) | Supposed::Limit(budget) => (budget, request.used),
            // Values computed before are left alone where there is room: what they cost is more than what tiles would save.
            _ => (self.budget_beside(held), self.kept.value_bytes().max(request.used)),
        };
        let mut placed = self.attempt(request, fixed_bytes, budget.saturating_sub(values), &start);
        if placed.is_err() && values > request.used {
            placed = self.attempt(request, fixed_bytes, budget.saturating_sub(request.used), &start);
        }
        placed.or_else(|shortage| {
            let smallest = match request.memory {
                Supposed::Nothing if request.last => self.least_budget(request, fixed_bytes, held, &shortage)?,
                _ => None,
            };
            Err(self.refuse(request.plan, request.called, &shortage, held, smallest))
        })
    }

    /// The smallest budget that a program fits into which was refused.
    fn least_budget(
        &self,
        request: PlacementRequest<'_>,
        fixed_bytes: u64,
        held: HeldBytes,
        shortage: &Shortage,
    ) -> Result<Option<u64>, EngineError> {
        let mut fits = |budget| {
            Ok(match self.attempt_least(request, fixed_bytes, budget) {
                Ok(_) => Fit::Yes,
                Err(Shortage { need, .. }) => Fit::No { need },
            })
        };
        let looking = Looking {
            refused: shortage.available,
            need: shortage.need,
            needs_are_least: true,
            parts: u64::MAX,
        };
        looking.find(|budget| self.fits_as_named(budget, held, &mut fits))
    }

    /// What a program may take, or would take.
    pub(in crate::run) fn budget_for(&self, memory: Supposed) -> u64 {
        match memory {
            Supposed::Bytes(budget) | Supposed::Limit(budget) => budget,
            _ => self.budget_beside(self.held()),
        }
    }

    /// What a program may take: kept tiles and idle frames, here and in other sessions, give way to it.
    pub(in crate::run) fn budget_beside(&self, held: HeldBytes) -> u64 {
        self.budget()
            .min(self.room().saturating_sub(held.elsewhere))
            .saturating_sub(held.here)
    }

    /// Places in a budget, with a shorter window where memory is short: down to one task at work. A shorter one that
    /// leaves room to keep what is read again is taken where that saves enough.
    fn attempt(
        &self,
        request: PlacementRequest<'_>,
        fixed_bytes: u64,
        budget: u64,
        offered: &[(TileId, KeptKey)],
    ) -> Result<Placement, Shortage> {
        // Orders of programs without loops are searched for in the window that is best for the fixed ones.
        let has_loops = is_searched(request.plan);
        let within = |window, search| self.attempt_within(request, fixed_bytes, budget, offered, (window, search));
        let mut window = self
            .window(request.plan, request.tiles, budget.saturating_sub(fixed_bytes))
            .tasks;
        let mut best = within(window, has_loops || self.options.window.is_some());
        let mut best_window = window;
        if self.options.window.is_some() {
            return best;
        }
        if best.is_err() {
            // Without a single task at work, no more of them fit.
            self.attempt_least(request, fixed_bytes, budget)?;
        }
        while window > 1 && best.as_ref().map_or(true, |best| may_save(request, best)) {
            window /= 2;
            let placement = within(window, has_loops);
            let (before, now) = (moved(&best), moved(&placement));
            // Tasks of algorithms are large: a few of them keep the disk busy, and any saving is one.
            let is_enough = match has_works(request.plan) && window >= 2 * self.options.threads {
                true => now < before,
                false => now + now / 3 <= before,
            };
            if best.is_err() || is_enough {
                best = placement;
                best_window = window;
            }
        }
        if !has_loops && best.as_ref().is_ok_and(|best| may_save(request, best)) {
            let found = within(best_window, true);
            if moved(&found) < moved(&best) {
                best = found;
            }
        }
        best
    }

    /// Places with the least memory that anything takes: one task at work, tiles read one by one.
    fn attempt_least(
        &self,
        request: PlacementRequest<'_>,
        fixed_bytes: u64,
        budget: u64,
    ) -> Result<Placement, Shortage> {
        let how = Try {
            budget,
            fixed_bytes,
            offered: &[],
            window_max: self.options.window.unwrap_or(1),
            group: false,
            spare: false,
            search: false,
        };
        self.attempt_reading(request, how)
    }

    /// Places with a window: reading neighbouring tiles together where that is possible and moves less, else one by one.
    /// A large program that fits the first way is not placed the second: planning must not cost more than it saves.
    fn attempt_within(
        &self,
        request: PlacementRequest<'_>,
        fixed_bytes: u64,
        budget: u64,
        offered: &[(TileId, KeptKey)],
        (window_max, search): (usize, bool),
    ) -> Result<Placement, Shortage> {
        let plan = request.plan;
        let alone = Try {
            budget,
            fixed_bytes,
            offered,
            window_max,
            group: false,
            spare: true,
            search,
        };
        let together = Try {
            fixed_bytes: fixed_bytes + self.staging_bytes(),
            group: true,
            ..alone
        };
        let may_group = plan.arrays.iter().any(|array| array.grouped_source().is_some());
        let grouped = may_group
            .then(|| self.attempt_reading(request, together).ok())
            .flatten();
        let grouped = grouped.filter(|grouped| grouped.placed.program.reads_groups());
        match grouped {
            None => self.attempt_reading(request, alone),
            Some(grouped) if plan.tasks() > TASKS_FOR_SEARCH => Ok(grouped),
            Some(grouped) => match self.attempt_reading(request, alone) {
                Ok(alone) if alone.placed.moved_bytes() <= grouped.placed.moved_bytes() => Ok(alone),
                _ => Ok(grouped),
            },
        }
    }

    fn attempt_reading(&self, request: PlacementRequest<'_>, how: Try<'_>) -> Result<Placement, Shortage> {
        let PlacementRequest { plan, tiles, .. } = request;
        let Try {
            budget, fixed_bytes, ..
        } = how;
        if fixed_bytes > budget {
            return Err(Shortage {
                pass: 0,
                need: fixed_bytes,
                available: budget,
            });
        }
        let within = |memory: u64| {
            // Tiles kept from before are an offer: as many as fit are taken.
            let mut taken = 0;
            let start = how.offered.iter().take_while(|&&(tile, _)| {
                taken += tiles.weights[tile as usize].frame;
                taken <= memory
            });
            let start: Vec<(TileId, KeptKey)> = start.cloned().collect();
            let limits = Limits {
                policy: self.options.policy,
                group: how.group,
                ..Limits::new(memory, self.window(plan, tiles, memory).at_most(how.window_max))
            };
            let ids: Vec<TileId> = start.iter().map(|&(tile, _)| tile).collect();
            let options = PlanOptions {
                search: how.search && self.options.plan.search,
                ..self.options.plan
            };
            let placed = place::place(plan, tiles, options, limits, &ids)?;
            Ok(Placement {
                placed,
                fixed_bytes,
                memory,
                start,
            })
        };
        // Frames just freed are kept for the next tile of their size only while they fit beside what is reserved:
        // with nothing left over, every tile would be mapped, and zeroed by the kernel, anew.
        let memory = budget - fixed_bytes;
        let spare = match how.spare {
            true => spare_bytes(tiles, memory),
            false => 0,
        };
        within(memory - spare)
            .or_else(|shortage| if spare == 0 { Err(shortage) } else { within(memory) })
            .map_err(|shortage: Shortage| Shortage {
                need: shortage.need + fixed_bytes,
                available: budget,
                ..shortage
            })
    }

    /// Memory through which neighbouring tiles are read together.
    pub(in crate::run) fn staging_bytes(&self) -> u64 {
        (self.options.io_threads.max(1) * FramePool::frame_bytes(GROUP_STAGING_BYTES)) as u64
    }

    pub(in crate::run) fn window(&self, plan: &Plan, tiles: &TileTable, memory: u64) -> Window {
        let threads = self.options.threads.max(1);
        if let Some(window) = self.options.window {
            return Window::of_tasks(window);
        }
        // The disk is kept busy by whole reads, so the window counts those where a read serves several tasks.
        let per_read = tasks_per_read(plan).min(TASKS_PER_READ_MAX) as usize;
        let ahead = if plan.passes().any(crate::schedule::blocking::is_blocked) {
            4 * threads
        } else {
            4 * threads + READS_AHEAD * per_read
        };
        // A quarter of the memory at most is for tiles that are only passing through. Those of passes are of one size or
        // nearly so; what algorithms work on need not be.
        let passing = memory / 4;
        if has_works(plan) {
            let bytes = InBytes {
                most: passing.saturating_mul(per_read as u64),
                tasks_min: threads,
            };
            return Window {
                tasks: ahead,
                bytes: Some(bytes),
            };
        }
        let tile = tiles.weights.iter().map(|weight| weight.frame).max();
        let tiles = passing / tile.unwrap_or(0).max(1);
        Window::of_tasks(ahead.min(tiles as usize * per_read).max(threads))
    }

    /// Has the other sessions give up what they can do without, as far as `wish` bytes here need its room. Returns what
    /// this session may grant then. In its turn only.
    pub(in crate::run) fn claim_room(&self, wish: u64) -> u64 {
        let others = self.ledger().shrink_others(self.room().saturating_sub(wish) as usize) as u64;
        self.budget().min(self.room().saturating_sub(others))
    }

    /// Has what stays between programs do with `allowed` bytes: pages of caches leave first, for they can be read again, and
    /// tiles may have to be computed. Returns what it takes then.
    pub(in crate::run) fn give_way(&self, allowed: u64) -> u64 {
        let kept = self.kept.bytes();
        let pages = self.ledger().shrink_pages((allowed as usize).saturating_sub(kept));
        self.kept.shrink_to((allowed as usize).saturating_sub(pages));
        (self.kept.bytes() + pages) as u64
    }

    /// Has caches and kept tiles give way to so many bytes that are reserved next, for a new cache or to make one larger: what
    /// was used longest ago is the first; in a turn that was taken, other sessions too. Says how many of the bytes there are then.
    pub fn make_way(&self, bytes: u64, of: Option<&dyn Reclaim>, is_turn: bool) -> u64 {
        let ledger = self.ledger();
        if is_turn {
            let limit = self.claim_room(ledger.used() as u64 + bytes);
            ledger.set_limit(limit as usize);
        }
        // Who has the turn has planned with what there is.
        if !is_turn && ledger.is_in_turn() {
            return 0;
        }
        let limit = self.budget().min(ledger.limit() as u64);
        let excess = (ledger.used() as u64 + bytes).saturating_sub(limit);
        ledger.give_up(excess as usize, of);
        bytes.min(limit.saturating_sub(ledger.used() as u64))
    }

    /// Has tiles that are kept and frames that wait give way to what the process has taken since it was measured last.
    pub(in crate::run) fn yield_to_process(&self) {
        self.overhead.measure_again();
        let ledger = self.ledger();
        if !ledger.is_in_turn() {
            self.make_way(0, None, false);
            let limit = self.budget().min(ledger.limit() as u64);
            self.pool.keep_idle((limit as usize).saturating_sub(ledger.used()));
        }
    }

    /// Settles the size of the process before a forecast, so that the run after it is of the same memory.
    pub fn settle_ahead(&self) {
        self.overhead.measure_ahead();
    }

    /// Has so many bytes of the limit be free for what no ledger counts, such as libraries that are loaded next.
    pub fn leave_room(&self, bytes: u64) {
        self.overhead.measure_again();
        self.make_way(bytes, None, false);
        self.pool.trim();
    }

    /// Has a cache, which `holder` holds, be of so many bytes, or as large as can be: others give way as to `make_way`.
    pub fn resize_pages(&self, cache: &PageCache, holder: &dyn Reclaim, bytes: u64, is_turn: bool) {
        let missing = bytes.saturating_sub(cache.bytes() as u64);
        let more = self.make_way(missing, Some(holder), is_turn);
        if missing > 0 && more == 0 {
            return;
        }
        // It is as large as it was where others take that meanwhile.
        let _ = cache.resize((bytes as usize).min(cache.bytes() + more as usize));
    }

    /// What could be reserved if all went that can be had again: tiles, pages, and those of other sessions.
    pub fn spare(&self) -> u64 {
        let ledger = self.ledger();
        self.budget_beside(HeldBytes {
            here: ledger.held_now() as u64,
            elsewhere: ledger.held_by_others() as u64,
        })
    }
}

fn moved(placement: &Result<Placement, Shortage>) -> u64 {
    placement
        .as_ref()
        .map_or(u64::MAX / 2, |placement| placement.placed.moved_bytes())
}

/// Programs of more tasks are not placed again and again.
const TASKS_FOR_WINDOWS: u64 = 20_000;

/// Whether a placement reads so much again, or leaves so much in scratch, that other windows are worth trying.
fn may_save(request: PlacementRequest<'_>, placement: &Placement) -> bool {
    if request.plan.tasks() > TASKS_FOR_WINDOWS {
        return false;
    }
    let once: u64 = request.tiles.source_bytes(request.plan);
    let totals = &placement.placed.program.totals;
    let little = once / if has_works(request.plan) { 64 } else { 3 };
    totals.read_bytes > once + little || totals.spilled_bytes > little
}

/// Whether some of it are tasks of algorithms.
fn has_works(plan: &Plan) -> bool {
    plan.works().next().is_some()
}

/// Room for frames that wait to be used again.
pub(in crate::run) fn spare_bytes(tiles: &TileTable, memory: u64) -> u64 {
    let frame = tiles.weights.iter().map(|weight| weight.frame).max().unwrap_or(0);
    (SPARE_FRAMES * frame).min(memory / 20)
}
