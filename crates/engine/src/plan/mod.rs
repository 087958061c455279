//! From expressions to passes: rewrite, decide what is held as tiles, fuse the rest, compile what each block runs.

pub mod closure;
pub mod compile;
pub mod few;
pub mod fuse;
pub mod gather;
pub mod group;
pub mod lower;
pub mod partition;
pub mod pieces;
pub mod rewrite;
pub mod slots;
pub mod span;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use outcore_store::{Layout, Source};

pub use compile::{Accumulation, Pass, PassRoot, Step, StepKind};
pub use gather::{ArrayId, Base, Gather};
pub use lower::WorkStep;
pub use partition::{Domain, RootKind};

use crate::expr::{grid, Expr, Op};
use crate::EngineError;

/// Which rewrites are on. All off is the plan of one operator per pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Re-associate matrix chains.
    pub reassociate: bool,
    /// Fuse products with a small operand into passes.
    pub fuse_products: bool,
    /// Merge passes over the same array into one scan.
    pub merge_scans: bool,
    /// Try tasks of a consuming pass as soon as their inputs exist.
    pub pipeline: bool,
    /// Try passes in alternating direction, and along columns.
    pub alternate: bool,
    /// Try the order in which cells that share tiles run together.
    pub share_tiles: bool,
}

impl PlanOptions {
    pub const ALL: PlanOptions = PlanOptions {
        reassociate: true,
        fuse_products: true,
        merge_scans: true,
        pipeline: true,
        alternate: true,
        share_tiles: true,
    };
    pub const NONE: PlanOptions = PlanOptions {
        reassociate: false,
        fuse_products: false,
        merge_scans: false,
        pipeline: false,
        alternate: false,
        share_tiles: false,
    };

    pub const NAMES: [&'static str; 6] = [
        "reassociate",
        "fuse-products",
        "merge-scans",
        "pipeline",
        "alternate",
        "share-tiles",
    ];

    /// Switches one rewrite by its name. False when there is none of that name.
    pub fn switch(&mut self, name: &str, on: bool) -> bool {
        match name {
            "all" => *self = if on { PlanOptions::ALL } else { PlanOptions::NONE },
            "reassociate" => self.reassociate = on,
            "fuse-products" => self.fuse_products = on,
            "merge-scans" => self.merge_scans = on,
            "pipeline" => self.pipeline = on,
            "alternate" => self.alternate = on,
            "share-tiles" => self.share_tiles = on,
            _ => return false,
        }
        true
    }
}

impl Default for PlanOptions {
    fn default() -> Self {
        PlanOptions::ALL
    }
}

/// Where an array's tiles come from.
#[derive(Clone, Debug)]
pub enum ArrayKind {
    /// Read from disk.
    Source(Arc<dyn Source>),
    /// The caller's memory, borrowed.
    Memory(Arc<dyn Source>),
    /// Computed by a pass.
    Computed,
}

#[derive(Clone, Debug)]
pub struct ArrayInfo {
    pub node: Expr,
    pub kind: ArrayKind,
    pub counts: Vec<u64>,
    /// Outputs (positions in the request) that this array's tiles are written to.
    pub outputs: Vec<usize>,
}

impl ArrayInfo {
    pub fn tiles(&self) -> u64 {
        match self.kind {
            ArrayKind::Memory(_) => 0,
            _ => self.counts.iter().fold(1, |tiles, &count| tiles.saturating_mul(count)),
        }
    }

    /// The source, when its tiles cut its rows, so that neighbours are better read together.
    pub fn grouped_source(&self) -> Option<&Arc<dyn Source>> {
        match &self.kind {
            ArrayKind::Source(source) if source.layout() == Layout::RowMajor => {
                let cut = self.counts.len() >= 2 && self.counts.last().is_some_and(|&count| count > 1);
                Some(source).filter(|_| cut)
            }
            _ => None,
        }
    }

    pub fn label(&self) -> String {
        match &self.kind {
            ArrayKind::Computed => format!("{}#{}", self.node.label(), self.node.id),
            ArrayKind::Source(source) | ArrayKind::Memory(source) => source.name(),
        }
    }
}

/// What gives a program its tasks.
#[derive(Debug)]
pub enum Producer {
    /// A walk over a domain: one task for each cell.
    Pass(Pass),
    /// Tasks that name their tiles themselves.
    Work(WorkStep),
}

impl Producer {
    pub fn tasks(&self) -> u64 {
        match self {
            Producer::Pass(pass) => pass.domain.cells(),
            Producer::Work(step) => step.work.tasks(),
        }
    }

    pub fn label(&self) -> &str {
        match self {
            Producer::Pass(pass) => &pass.label,
            Producer::Work(step) => &step.label,
        }
    }

    pub fn pass(&self) -> Option<&Pass> {
        match self {
            Producer::Pass(pass) => Some(pass),
            Producer::Work(_) => None,
        }
    }

    pub fn work(&self) -> Option<&WorkStep> {
        match self {
            Producer::Pass(_) => None,
            Producer::Work(step) => Some(step),
        }
    }
}

/// The passes and works of a program, in an order that respects their dependences.
#[derive(Debug)]
pub struct Plan {
    pub arrays: Vec<ArrayInfo>,
    pub producers: Vec<Producer>,
    /// The array that holds each requested output.
    pub outputs: Vec<ArrayId>,
    /// What the rewrites changed, one line each.
    pub rewrites: Vec<String>,
    /// The tasks that are left to do, where an earlier run has done the others.
    pub needed: Option<Needed>,
}

/// By producer and task: whether it is to run.
pub type Needed = Vec<Vec<bool>>;

impl Plan {
    pub fn tasks(&self) -> u64 {
        let tasks = self.producers.iter().map(Producer::tasks);
        tasks.fold(0, u64::saturating_add)
    }

    pub fn passes(&self) -> impl Iterator<Item = &Pass> {
        self.producers.iter().filter_map(Producer::pass)
    }

    pub fn works(&self) -> impl Iterator<Item = &WorkStep> {
        self.producers.iter().filter_map(Producer::work)
    }

    /// Whether a task is to run.
    pub fn is_needed(&self, producer: u32, task: u32) -> bool {
        let needed = self.needed.as_ref();
        needed.is_none_or(|needed| needed[producer as usize][task as usize])
    }

    /// The pass that gives a task, where one does.
    pub fn pass(&self, producer: u32) -> Option<&Pass> {
        self.producers[producer as usize].pass()
    }

    /// The stored arrays that it reads.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<dyn Source>> {
        let stored = self.arrays.iter().filter_map(|array| match &array.kind {
            ArrayKind::Source(source) => Some(source),
            _ => None,
        });
        // Several parts of an array lie in the same files.
        let mut seen = HashSet::new();
        stored.filter(move |source| seen.insert(source.origin().to_string()))
    }

    /// What the plan takes in memory, counting generously what its parts have allocated.
    pub fn bytes(&self) -> u64 {
        const ALLOCATED: usize = 256;
        let steps = |pass: &Pass| {
            pass.steps
                .iter()
                .map(|step| size_of::<Step>() + ALLOCATED + step.bytes())
                .sum::<usize>()
        };
        let roots = |pass: &Pass| pass.roots.len() * (size_of::<PassRoot>() + ALLOCATED);
        let passes = self.passes();
        let passes: usize = passes
            .map(|pass| size_of::<Pass>() + ALLOCATED + steps(pass) + roots(pass))
            .sum();
        let works: usize = self
            .works()
            .map(|step| size_of::<Producer>() + ALLOCATED + 16 * step.sets.len())
            .sum();
        (passes + works + self.arrays.len() * (size_of::<ArrayInfo>() + ALLOCATED)) as u64
    }
}

/// Arrays by node, filled as passes are compiled.
#[derive(Default)]
pub struct ArrayTable {
    pub arrays: Vec<ArrayInfo>,
    by_node: HashMap<u64, ArrayId>,
}

impl ArrayTable {
    pub fn id(&mut self, node: &Expr, materialized: bool) -> ArrayId {
        *self.by_node.entry(node.id).or_insert_with(|| {
            let kind = match &node.op {
                Op::Source(key) if !materialized => match key.0.layout() {
                    Layout::Memory => ArrayKind::Memory(key.0.clone()),
                    _ => ArrayKind::Source(key.0.clone()),
                },
                _ => ArrayKind::Computed,
            };
            let counts = grid::counts(&node.shape, &node.tile);
            self.arrays.push(ArrayInfo {
                node: node.clone(),
                kind,
                counts,
                outputs: vec![],
            });
            self.arrays.len() as ArrayId - 1
        })
    }
}

/// Plans `outputs`. Pure: depends on the expressions and the options only.
///
/// # Errors
/// When a rewrite cannot be built, which would be a bug of ours.
pub fn plan(outputs: &[Expr], options: PlanOptions) -> Result<Plan, EngineError> {
    let outputs = rewrite::read_in_shape(outputs)?;
    // Stored arrays that are outputs themselves are copied.
    let outputs: Vec<Expr> = outputs
        .iter()
        .map(|node| match node.op {
            Op::Source(_) => crate::ops::copy_tiled(node, node.tile.clone()),
            _ => node.clone(),
        })
        .collect();
    let (outputs, rewrites) = if options.reassociate {
        rewrite::reassociate(&outputs)?
    } else {
        (outputs, vec![])
    };
    let partition = partition::partition(&outputs, &options);
    let groups = group::group(&partition, &options);
    let mut table = ArrayTable::default();
    let mut producers = Vec::new();
    for roots in &groups {
        match &roots[0].node.op {
            Op::Algorithm(key, _) => lower::lower(key, &roots[0].node, &mut table, &mut producers),
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
        needed: None,
    };
    check_widths(&plan)?;
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

/// The error for a program that is too long to be numbered.
pub(crate) fn too_many(count: u64, what: &str) -> EngineError {
    EngineError::Plan(format!(
        "{count} {what} are more than one program can have; compute it in parts"
    ))
}
