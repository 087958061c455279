//! From expressions to passes: rewrite, decide what is held as tiles, fuse the rest, compile what each block runs.
//!
//! Uses `expr`, `ops` and the algorithms' rooms. Start with `partition.rs`: the values that are held as tiles.

pub mod arrays;
pub mod boxes;
pub mod closure;
pub mod compile;
pub mod few;
pub mod gather;
pub mod group;
pub mod lower;
pub mod model;
pub mod options;
pub mod partition;
pub mod pieces;
pub mod rewrite;
pub mod root;
pub mod slots;
pub mod span;
pub mod work;

pub use arrays::{ArrayInfo, ArrayKind, ArrayTable};
pub use compile::{Accumulation, Pass, PassRoot, Step, StepKind};
pub use gather::{ArrayId, Base, Gather};
pub use model::{LeftWork, Needed, Plan, Producer};
pub use options::PlanOptions;
pub use root::{Domain, RootKind};
pub use work::WorkStep;

use crate::expr::{Expr, Op};
use crate::EngineError;

/// Plans `outputs`. Pure: depends on the expressions and the options only.
///
/// # Errors
/// When a rewrite cannot be built, which would be a bug of ours.
pub fn plan(outputs: &[Expr], options: PlanOptions) -> Result<Plan, EngineError> {
    let (outputs, rewrites) = rewritten(outputs, options)?;
    plan_of(&outputs, rewrites, options)
}

/// The same with files that large products read in tiles for products, where there are any: other reads of them are then apart.
///
/// # Errors
/// When a rewrite cannot be built.
pub fn plan_in_product_tiles(outputs: &[Expr], options: PlanOptions) -> Result<Option<Plan>, EngineError> {
    let (outputs, rewrites) = rewritten(outputs, options)?;
    let tiled = rewrite::in_product_tiles(&outputs)?;
    tiled.map(|outputs| plan_of(&outputs, rewrites, options)).transpose()
}

fn rewritten(outputs: &[Expr], options: PlanOptions) -> Result<(Vec<Expr>, Vec<String>), EngineError> {
    let outputs = rewrite::read_in_shape(&rewrite::equal_as_one(outputs))?;
    // Stored arrays that are outputs themselves are copied.
    let outputs: Vec<Expr> = outputs
        .iter()
        .map(|node| match node.op {
            Op::Source(_) => crate::ops::copy_tiled(node, node.tile.clone()),
            _ => node.clone(),
        })
        .collect();
    if options.reassociate {
        rewrite::reassociate(&outputs)
    } else {
        Ok((outputs, vec![]))
    }
}

fn plan_of(outputs: &[Expr], rewrites: Vec<String>, options: PlanOptions) -> Result<Plan, EngineError> {
    let partition = partition::partition(outputs, &options);
    let groups = group::group(&partition, &options);
    let mut table = ArrayTable::default();
    let mut producers = Vec::new();
    for roots in &groups {
        match &roots[0].node.op {
            Op::Algorithm(key, _) => {
                let results: Vec<&Expr> = roots.iter().map(|root| &root.node).collect();
                lower::lower(key, &results, &mut table, &mut producers);
            }
            _ => producers.push(Producer::Pass(compile::compile(roots, &partition, &mut table)?)),
        }
    }
    let ids: Vec<ArrayId> = outputs.iter().map(|node| table.id(node, true)).collect();
    for (position, &id) in ids.iter().enumerate() {
        table.arrays[id as usize].outputs.push(position);
    }
    let plan = Plan {
        arrays: table.arrays,
        producers,
        outputs: ids,
        rewrites,
        left: None,
        is_searched: true,
    };
    check_widths(&plan)?;
    check_listed(&plan)?;
    Ok(plan)
}

/// Instructions are numbered in 32 bits, and a task has a few.
const TASKS_MAX: u64 = (u32::MAX / 8) as u64;

/// Refuses what cannot be numbered: tiles, tasks, passes and their results have 32 bits.
fn check_widths(plan: &Plan) -> Result<(), EngineError> {
    let tiles = plan
        .arrays
        .iter()
        .fold(0u64, |sum, array| sum.saturating_add(array.tiles()));
    let roots = plan.passes().map(|pass| pass.roots.len() as u64).max().unwrap_or(0);
    let limits = [
        (tiles, u64::from(u32::MAX), "tiles"),
        (plan.tasks(), TASKS_MAX, "tasks"),
        (plan.producers.len() as u64, u64::from(u32::MAX), "passes"),
        (roots, u64::from(u32::MAX), "results of one pass"),
    ];
    match limits.into_iter().find(|(count, most, _)| count > most) {
        Some((count, _, what)) => Err(too_many(count, what)),
        None => Ok(()),
    }
}

/// Refuses tiles of different sizes where they cannot be: the rest of their rows is nowhere.
fn check_listed(plan: &Plan) -> Result<(), EngineError> {
    let is_listed = |id: ArrayId| plan.arrays[id as usize].listed().is_some();
    if !plan.arrays.iter().any(|array| array.listed().is_some()) {
        return Ok(());
    }
    let is_file = |id: &ArrayId| plan.arrays[*id as usize].node.file_output().is_some();
    let mut touched: Vec<ArrayId> = plan.outputs.iter().copied().filter(|id| !is_file(id)).collect();
    for step in plan.passes().flat_map(|pass| &pass.steps) {
        if let StepKind::Gather(gather) = &step.kind {
            gather.arrays(&mut touched);
        }
    }
    match touched.into_iter().find(|&id| is_listed(id)) {
        Some(id) => Err(EngineError::Plan(format!(
            "the tiles of {} differ in size: only algorithms take them",
            plan.arrays[id as usize].label()
        ))),
        None => Ok(()),
    }
}

/// The error for a program that is too long to be numbered.
pub(crate) fn too_many(count: u64, what: &str) -> EngineError {
    EngineError::Plan(format!(
        "{count} {what} are more than one program can have; compute it in parts"
    ))
}
