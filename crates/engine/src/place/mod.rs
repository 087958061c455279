//! Memory decided by the plan: a simulation of the tile pool says which tile is read when, kept how long, spilled or
//! dropped. What comes out is a program that provably fits (docs/placement.md).
//!
//! Uses `schedule`. Start with `simulate.rs`.

pub mod occupancy;
pub mod policy;
pub mod program;
pub mod simulate;
pub mod slabs;
mod uses;
pub mod window;

pub use policy::{Limits, Policy};
pub use program::{Instruction, Program, Totals, Traffic};
pub use simulate::{simulate, Shortage, Start};
pub use window::Window;

use std::collections::HashSet;

use crate::plan::{Plan, PlanOptions};
use crate::schedule::{
    beam, candidates, is_searched, order, pipeline, search, tasks, Candidate, FoundOrder, TaskGraph, TaskList, TileId,
    TileTable, PLAIN,
};

/// More bytes than the exact next-use order moves that an even sample may cost: it hides reads behind work.
const SAMPLE_COST: f64 = 1.02;

/// Patience must save so much of the bytes: less work and I/O goes on at once with it.
const PATIENT_GAIN: f64 = 0.95;

/// Orders that move more than so many times what the best does are not tried with patience.
const PATIENT_MOST: f64 = 2.5;

/// Orders that are found by search must save so much: others lay reads and work out evenly.
const FOUND_GAIN: f64 = 0.98;

/// Numbers of sweeps together in turn that are worse than the best before no more are tried.
const WORSE_MAX: usize = 5;

/// A program, the tasks it runs, and the orders that were compared.
pub struct Placed {
    pub tasks: TaskList,
    pub program: Program,
    pub candidate: Candidate,
    /// Whether tiles that are needed again leave only when the window has been waited for.
    pub patient: bool,
    /// Name, bytes read and bytes written of every order that was simulated and fitted.
    pub compared: Vec<(String, u64, u64)>,
}

impl Placed {
    pub fn moved_bytes(&self) -> u64 {
        self.program.totals.moved_bytes()
    }

    /// The order's name, as `explain` has it.
    pub fn name(&self) -> String {
        let name = self.candidate.name();
        match self.patient {
            true => name + ", patient",
            false => name,
        }
    }

    /// Whether it is better than another: fewer bytes, and clearly fewer where it costs evenness.
    fn is_before(&self, other: &Placed) -> bool {
        let weight = |placed: &Placed| {
            let patience = if placed.patient { PATIENT_GAIN } else { 1.0 };
            let search = if placed.candidate.found.is_some() {
                FOUND_GAIN
            } else {
                1.0
            };
            placed.moved_bytes() as f64 / (patience * search)
        };
        weight(self) < weight(other)
    }
}

/// The best of the orders that were simulated so far, beside what was said of all.
#[derive(Default)]
struct Comparison {
    best: Option<Placed>,
    shortage: Option<Shortage>,
    compared: Vec<(String, u64, u64)>,
}

impl Comparison {
    /// Takes what came of an order, and says whether it is the best.
    fn take(&mut self, placed: Result<Placed, Shortage>) -> bool {
        match placed {
            Ok(placed) => {
                let totals = &placed.program.totals;
                self.compared
                    .push((placed.name(), totals.read_bytes, totals.written_bytes));
                let is_best = self.best.as_ref().is_none_or(|best| placed.is_before(best));
                if is_best {
                    self.best = Some(placed);
                }
                is_best
            }
            Err(error) => {
                if self.shortage.as_ref().is_none_or(|least| error.need < least.need) {
                    self.shortage = Some(error);
                }
                false
            }
        }
    }

    /// Whether an order that moves so many bytes may become the best with patience.
    fn is_near(&self, moved: u64) -> bool {
        let best = self.best.as_ref().map_or(u64::MAX, Placed::moved_bytes);
        moved as f64 <= PATIENT_MOST * best as f64
    }

    /// Whether the best reads stored tiles once and spills none.
    fn has_least(&self, source_bytes: u64) -> bool {
        self.best.as_ref().is_some_and(|best| {
            let totals = &best.program.totals;
            totals.spilled_bytes == 0 && totals.read_bytes <= source_bytes
        })
    }
}

/// Simulates every candidate order and keeps the one that moves the fewest bytes.
///
/// # Errors
/// The smallest shortage, when no order fits.
pub fn place(
    plan: &Plan,
    tiles: &TileTable,
    options: PlanOptions,
    limits: Limits,
    resident: &[TileId],
) -> Result<Placed, Shortage> {
    let mut comparison = Comparison::default();
    let mut seen: HashSet<Vec<(u32, u32)>> = HashSet::new();
    let all = candidates(plan, options, limits.memory, !resident.is_empty());
    let several = all.len() > 1;
    let has_loops = is_searched(plan);
    let mut graph = has_loops.then(|| TaskGraph::of(plan, tiles, &PLAIN, limits.memory));
    let exactly = Limits {
        sample: false,
        ..limits
    };
    let source_bytes = tiles.source_bytes(plan);
    let mut worse_in_turn = 0;
    for candidate in all {
        // More sweeps together need more memory: where it is not enough, still more do not help.
        let is_together = matches!(candidate.found, Some(FoundOrder::Together(_)));
        if is_together && worse_in_turn >= WORSE_MAX {
            continue;
        }
        if candidate.found.is_some() && comparison.has_least(source_bytes) {
            continue;
        }
        if candidate.found.is_some() && graph.is_none() {
            graph = Some(TaskGraph::of(plan, tiles, &PLAIN, limits.memory));
        }
        let order = order_of(plan, tiles, &candidate, limits.memory, graph.as_ref());
        let is_none = candidate.found.is_some() && order.is_empty();
        if is_none || several && !seen.insert(order.clone()) {
            continue;
        }
        let simulated = |patient: bool| {
            let tasks = tasks::build_tasks(plan, tiles, &order);
            let limits = Limits { patient, ..exactly };
            let program = simulate(plan, tiles, &tasks, limits, resident)?;
            Ok(Placed {
                tasks,
                program,
                candidate,
                patient,
                compared: vec![],
            })
        };
        let hasty = simulated(false);
        let moved = hasty.as_ref().map_or(0, Placed::moved_bytes);
        let mut is_best = comparison.take(hasty);
        if has_loops && comparison.is_near(moved) && !comparison.has_least(source_bytes) {
            is_best |= comparison.take(simulated(true));
        }
        worse_in_turn = if is_best || !is_together { 0 } else { worse_in_turn + 1 };
    }
    let Comparison {
        best,
        shortage,
        compared,
    } = comparison;
    match best {
        Some(best) => Ok(keep_sample(plan, tiles, limits, resident, Placed { compared, ..best })),
        None => Err(shortage.expect("there is at least one candidate")),
    }
}

/// The order of a candidate, without the tasks that are not needed. Where orders are searched for, `graph` has the tasks.
fn order_of(
    plan: &Plan,
    tiles: &TileTable,
    candidate: &Candidate,
    memory: u64,
    graph: Option<&TaskGraph>,
) -> Vec<(u32, u32)> {
    let share_of = |share: f64| (memory as f64 * share) as u64;
    let mut order = match (candidate.found, graph) {
        (Some(FoundOrder::Listed(share)), Some(graph)) => search::list_schedule(plan, tiles, graph, share_of(share)),
        (Some(FoundOrder::Beam(share)), Some(graph)) => {
            beam::beam_schedule(plan, tiles, graph, share_of(share)).unwrap_or_default()
        }
        (Some(FoundOrder::Together(sweeps)), Some(graph)) => search::sweeps_together(plan, graph, sweeps),
        (Some(FoundOrder::Blocks(blocks)), Some(graph)) => search::in_blocks(plan, graph, blocks),
        (Some(FoundOrder::Cubes(side)), Some(graph)) => search::in_cubes(plan, graph, side),
        _ => {
            let cells = order::sequential(plan, tiles, candidate, memory);
            match candidate.pipeline {
                true => pipeline::interleave(plan, tiles, &cells),
                false => order::in_turn(&cells),
            }
        }
    };
    if let Some(graph) = graph {
        let copies_stay = matches!(candidate.found, Some(FoundOrder::Beam(_)));
        order = graph.with_makers_late(&order, copies_stay);
    }
    if plan.left.is_some() {
        order.retain(|&(producer, task)| plan.is_needed(producer, task));
    }
    order
}

/// Keeps an even sample of tiles instead of the exact next-use order, where that costs next to nothing.
fn keep_sample(plan: &Plan, tiles: &TileTable, limits: Limits, resident: &[TileId], exact: Placed) -> Placed {
    if !limits.sample || limits.policy != Policy::NextUse || exact.program.totals.read_bytes == 0 {
        return exact;
    }
    let limits = Limits {
        patient: exact.patient,
        ..limits
    };
    let most = SAMPLE_COST * exact.moved_bytes() as f64;
    match simulate(plan, tiles, &exact.tasks, limits, resident) {
        Ok(program) if program.totals.moved_bytes() as f64 <= most => Placed { program, ..exact },
        _ => exact,
    }
}
