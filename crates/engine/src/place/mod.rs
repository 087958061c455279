//! Memory decided by the plan: a simulation of the tile pool says which tile is read when, kept how long, spilled or
//! dropped. What comes out is a program that provably fits (docs/placement.md).
//!
//! Uses `schedule`. Start with `simulate.rs`.

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

use std::collections::HashMap;

use crate::plan::{Plan, PlanOptions};
use crate::schedule::{candidates, order, pipeline, search, tasks, Candidate, TaskList, TileId, TileTable};

/// More bytes than the exact next-use order moves that an even sample may cost: it hides reads behind work.
const SAMPLE_COST: f64 = 1.02;

/// Numbers of sweeps together in turn that are worse than the best before no more are tried.
const WORSE_MAX: usize = 5;

/// A program, the tasks it runs, and the orders that were compared.
pub struct Placed {
    pub tasks: TaskList,
    pub program: Program,
    pub candidate: Candidate,
    /// Name, bytes read and bytes written of every order that was simulated and fitted.
    pub compared: Vec<(String, u64, u64)>,
}

impl Placed {
    pub fn moved_bytes(&self) -> u64 {
        self.program.totals.moved_bytes()
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
    let mut best: Option<Placed> = None;
    let mut shortage: Option<Shortage> = None;
    let mut compared = Vec::new();
    let mut seen: HashMap<Vec<(u32, u32)>, ()> = HashMap::new();
    let all = candidates(plan, options, limits.memory, !resident.is_empty());
    let several = all.len() > 1;
    let mut worse_in_turn = 0;
    for candidate in all {
        // More sweeps together need more memory: where it is not enough, still more do not help.
        if candidate.together.is_some() && worse_in_turn >= WORSE_MAX {
            continue;
        }
        let is_least = |best: &Placed| {
            let totals = &best.program.totals;
            totals.spilled_bytes == 0 && totals.read_bytes <= tiles.source_bytes(plan)
        };
        if candidate.is_searched() && best.as_ref().is_some_and(is_least) {
            continue;
        }
        let order = order_of(plan, tiles, &candidate, limits.memory);
        if several && seen.insert(order.clone(), ()).is_some() {
            continue;
        }
        let tasks = tasks::build_tasks(plan, tiles, &order);
        let exactly = Limits {
            sample: false,
            ..limits
        };
        match simulate(plan, tiles, &tasks, exactly, resident) {
            Ok(program) => {
                compared.push((
                    candidate.name(),
                    program.totals.read_bytes,
                    program.totals.written_bytes,
                ));
                let placed = Placed {
                    tasks,
                    program,
                    candidate,
                    compared: vec![],
                };
                let is_best = best
                    .as_ref()
                    .is_none_or(|best| placed.moved_bytes() < best.moved_bytes());
                let is_fair = is_best || candidate.together.is_none();
                worse_in_turn = if is_fair { 0 } else { worse_in_turn + 1 };
                if is_best {
                    best = Some(placed);
                }
            }
            Err(error) => {
                if shortage.as_ref().is_none_or(|least| error.need < least.need) {
                    shortage = Some(error);
                }
            }
        }
    }
    match best {
        Some(best) => Ok(keep_sample(plan, tiles, limits, resident, Placed { compared, ..best })),
        None => Err(shortage.expect("there is at least one candidate")),
    }
}

/// The order of a candidate, without the tasks that are not needed.
fn order_of(plan: &Plan, tiles: &TileTable, candidate: &Candidate, memory: u64) -> Vec<(u32, u32)> {
    let cells = order::sequential(plan, tiles, candidate, memory);
    let listed = || tasks::build_tasks(plan, tiles, &in_turn(&cells));
    let mut order = if let Some(share) = candidate.searched {
        search::list_schedule(plan, tiles, &listed(), (memory as f64 * share) as u64)
    } else if let Some(together) = candidate.together {
        search::sweeps_together(plan, tiles, &listed(), together)
    } else if let Some(blocks) = candidate.blocks {
        search::in_blocks(plan, tiles, &listed(), blocks)
    } else if candidate.pipeline {
        pipeline::interleave(plan, tiles, &cells)
    } else {
        in_turn(&cells)
    };
    if plan.left.is_some() {
        order.retain(|&(producer, task)| plan.is_needed(producer, task));
    }
    order
}

/// The tasks of one producer after those of another.
fn in_turn(cells: &[Vec<u32>]) -> Vec<(u32, u32)> {
    let passes = cells.iter().enumerate();
    passes
        .flat_map(|(pass, cells)| cells.iter().map(move |&cell| (pass as u32, cell)))
        .collect()
}

/// Keeps an even sample of tiles instead of the exact next-use order, where that costs next to nothing.
fn keep_sample(plan: &Plan, tiles: &TileTable, limits: Limits, resident: &[TileId], exact: Placed) -> Placed {
    if !limits.sample || limits.policy != Policy::NextUse || exact.program.totals.read_bytes == 0 {
        return exact;
    }
    let most = SAMPLE_COST * exact.moved_bytes() as f64;
    match simulate(plan, tiles, &exact.tasks, limits, resident) {
        Ok(program) if program.totals.moved_bytes() as f64 <= most => Placed { program, ..exact },
        _ => exact,
    }
}
