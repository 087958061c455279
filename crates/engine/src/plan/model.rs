//! What planning gives: arrays, and what makes their tiles.

use std::collections::HashSet;
use std::sync::Arc;

use outcore_store::Source;

use super::arrays::{ArrayInfo, ArrayKind};
use super::compile::{Pass, PassRoot, Step, StepKind};
use super::gather::ArrayId;
use super::work::WorkStep;
use crate::task::Access;

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

    /// Whether its tasks call functions of the user.
    pub fn calls_functions(&self) -> bool {
        match self {
            Producer::Pass(pass) => pass.steps.iter().any(|step| matches!(step.kind, StepKind::Function(_))),
            Producer::Work(step) => step.work.calls_functions(),
        }
    }

    /// The arrays whose tiles its tasks take, each once.
    pub fn reads(&self) -> Vec<ArrayId> {
        let mut arrays = match self {
            Producer::Pass(_) => vec![],
            Producer::Work(step) => step.accessed(|access| access == Access::Read),
        };
        for step in self.pass().iter().flat_map(|pass| &pass.steps) {
            if let StepKind::Gather(gather) = &step.kind {
                gather.arrays(&mut arrays);
            }
        }
        arrays.sort_unstable();
        arrays.dedup();
        arrays
    }

    /// The arrays whose tiles its tasks make.
    pub fn writes(&self) -> Vec<ArrayId> {
        match self {
            Producer::Pass(pass) => pass.roots.iter().map(|root| root.array).collect(),
            Producer::Work(step) => step.accessed(|access| access != Access::Read),
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
    pub left: Option<LeftWork>,
    /// Whether orders of its tasks are searched for. What bounds a program that is planned later has the fixed ones alone.
    pub is_searched: bool,
}

/// By producer and task: whether it is to run.
pub type Needed = Vec<Vec<bool>>;

/// The work that an earlier run has left.
#[derive(Debug)]
pub struct LeftWork {
    pub tasks: Needed,
    /// Tiles of outputs, by their numbers, that were written then, and are read back where tasks take them.
    pub standing: Vec<u32>,
}

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
        let left = self.left.as_ref();
        left.is_none_or(|left| left.tasks[producer as usize][task as usize])
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
            .map(|step| size_of::<Producer>() + ALLOCATED + 16 * step.sets.len() + step.work.record_bytes() as usize)
            .sum();
        (passes + works + self.arrays.len() * (size_of::<ArrayInfo>() + ALLOCATED)) as u64
    }
}
